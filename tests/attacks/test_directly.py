"""Nobody gets out of the root of a backend that is asked directly, through every one of its methods."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from deepagents.backends.filesystem import FilesystemBackend
from deepagents.backends.filesystem.confined_dir import ConfinedDirectory, LeavesRootError
from tests.attacks.flipping import FLIP_DIRECTORY, FLIP_FILE, meanwhile

SECRET = "the secret outside"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    outside = tmp_path / "outside"
    (outside / "deep").mkdir(parents=True)
    (outside / "secret.txt").write_text(SECRET)
    (outside / "deep" / "secret.txt").write_text(SECRET)
    return outside


@pytest.fixture
def root(tmp_path: Path, outside: Path) -> Path:
    root = tmp_path / "root"
    (root / "d").mkdir(parents=True)
    (root / "in.txt").write_text("inside")
    links = {
        "to-file": outside / "secret.txt",
        "to-directory": outside,
        "up": "..",
        "up-and-over": "../outside",
        "d/up-up": "../../outside",
        "through-itself": "d/../../outside",
        "to-link": "to-directory",
        "loop": "loop",
        "loop-a": "loop-b",
        "loop-b": "loop-a",
        "to-host-root": "/",
        "to-proc": "/proc/self/cwd",
        "new-outside": outside / "new.txt",
        "sneaky-prefix": f"{root}-elsewhere",
        "dotted": f"{root}/../outside",
    }
    for name, target in links.items():
        (root / name).symlink_to(target)
    (tmp_path / "root-elsewhere").mkdir()
    (tmp_path / "root-elsewhere" / "secret.txt").write_text(SECRET)
    return root


@pytest.fixture
def backend(root: Path) -> FilesystemBackend:
    return FilesystemBackend(root)


WAYS_OUT = [
    "../outside/secret.txt",
    "/../outside/secret.txt",
    "/d/../../outside/secret.txt",
    "..\\outside\\secret.txt",
    "/d/..\\..\\outside/secret.txt",
    "~/secret.txt",
    "~root/secret.txt",
    "C:/secret.txt",
    "C:\\secret.txt",
    "/secret\x00.txt",
    "/in.txt\x00../outside/secret.txt",
    "/secret\n.txt",
    "/\ud800",
    "/to-file",
    "/to-directory/secret.txt",
    "/to-directory/deep/secret.txt",
    "/up/outside/secret.txt",
    "/up-and-over/secret.txt",
    "/d/up-up/secret.txt",
    "/through-itself/secret.txt",
    "/to-link/secret.txt",
    "/loop",
    "/loop/secret.txt",
    "/loop-a",
    "/to-host-root/etc/passwd",
    "/to-proc/etc/passwd",
    "/new-outside",
    "/sneaky-prefix/secret.txt",
    "/dotted/secret.txt",
]


@pytest.mark.parametrize("path", WAYS_OUT)
def test_no_spelling_and_no_link_leads_out(
    backend: FilesystemBackend, root: Path, outside: Path, path: str
) -> None:
    results: list[Any] = [
        backend.read(path),
        backend.write(path, "overwritten"),
        backend.edit(path, "secret", "overwritten"),
        backend.ls(path),
        backend.glob("*", path),
        backend.grep("secret", path),
        *backend.upload_files([(path, b"overwritten")]),
        *backend.download_files([path]),
    ]

    for result in results:
        assert result.error or result.matches == []
        assert SECRET not in repr(result)
        assert str(root.parent) not in str(result.error)
    assert results[0].code in ("invalid_path", "file_not_found")
    assert [path.read_text() for path in sorted(outside.rglob("*.txt"))] == [SECRET, SECRET]


@pytest.mark.parametrize("path", WAYS_OUT)
def test_deleting_takes_a_link_at_most(backend: FilesystemBackend, outside: Path, path: str) -> None:
    result = backend.delete(path)

    assert result.error is None or result.code in ("invalid_path", "file_not_found")
    assert sorted(path.name for path in outside.rglob("*")) == ["deep", "secret.txt", "secret.txt"]


def test_links_that_lead_out_are_neither_listed_nor_found(backend: FilesystemBackend) -> None:
    listed = backend.ls("/")

    assert listed.error is None
    assert [entry["path"] for entry in listed.entries or []] == ["/d/", "/in.txt"]
    assert [match["path"] for match in backend.glob("**").matches or []] == ["/in.txt"]
    assert [match["path"] for match in backend.glob("*").matches or []] == ["/in.txt"]
    assert backend.grep("secret").matches == []


def test_links_that_stay_inside_are_shown_under_their_own_names(
    backend: FilesystemBackend, root: Path
) -> None:
    (root / "d" / "link").symlink_to("../in.txt")
    (root / "absolute").symlink_to(root / "d")
    (root / "to-here").symlink_to(".")

    assert backend.read("/absolute/link").error is None
    assert backend.read("/to-here/to-here/in.txt").error is None
    assert [entry["path"] for entry in backend.ls("/absolute").entries or []] == ["/absolute/link"]
    assert [match["path"] for match in backend.glob("*", "/absolute").matches or []] == ["/absolute/link"]
    assert "/absolute/" in [entry["path"] for entry in backend.ls("/").entries or []]
    assert [match["path"] for match in backend.grep("inside").matches or []] == ["/in.txt"]


def test_deleting_a_link_to_a_directory_spares_the_directory(backend: FilesystemBackend, root: Path) -> None:
    (root / "d" / "kept").touch()
    (root / "link").symlink_to("d")

    assert backend.delete("/link").error is None
    assert (root / "d" / "kept").exists()
    assert not (root / "link").is_symlink()


def test_deleting_a_directory_spares_what_links_in_it_lead_to(
    backend: FilesystemBackend, root: Path, outside: Path
) -> None:
    (root / "d" / "deep").symlink_to(outside)

    assert backend.delete("/d").error is None
    assert (outside / "secret.txt").read_text() == SECRET


@pytest.mark.parametrize("path", ["", "/", ".", "//", "/.", "/to-here", "/to-here/to-here"])
def test_the_root_is_never_deleted(backend: FilesystemBackend, root: Path, path: str) -> None:
    (root / "to-here").symlink_to(".")

    backend.delete(path)

    assert (root / "in.txt").read_text() == "inside"


@pytest.mark.parametrize(
    "name",
    [
        "-rf",
        "*",
        "a b",
        " ",
        "%2e%2e",
        "..foo",
        "foo..",
        "...",
        "$(id)",
        "`id`",
        "a;b",
        "é",
        "e\u0301",
        "💥",
        "[a]",
    ],
)
def test_odd_but_legal_names_are_only_names(backend: FilesystemBackend, root: Path, name: str) -> None:
    assert backend.write(f"/odd/{name}", "x").error is None
    assert [entry["path"] for entry in backend.ls("/odd").entries or []] == [f"/odd/{name}"]
    assert [match["path"] for match in backend.grep("x", "/odd").matches or []] == [f"/odd/{name}"]
    assert backend.delete(f"/odd/{name}").error is None
    assert list((root / "odd").iterdir()) == []


def test_a_name_that_is_not_utf8_is_shown_in_a_form_that_can_be_sent(
    backend: FilesystemBackend, root: Path
) -> None:
    (root / "d" / os.fsdecode(b"caf\xe9.txt")).write_text("needle")

    for result in (backend.ls("/d"), backend.glob("*.txt", "/d"), backend.grep("needle", "/d")):
        assert "/d/caf\ufffd.txt" in repr(result)
        repr(result).encode()


def test_devices_and_sockets_are_refused(backend: FilesystemBackend, root: Path) -> None:
    host = FilesystemBackend(root, virtual_mode=False)

    assert host.read("/dev/zero").code == "invalid_path"
    assert host.write("/dev/null", "x").code == "invalid_path"
    assert host.download_files(["/dev/zero"])[0].error == "invalid_path"


@contextmanager
def as_nobody() -> Generator[None]:
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@contextmanager
def open_to_all() -> Generator[Path]:
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        yield Path(directory)


def test_what_the_system_forbids_is_reported_for_each_file_alone() -> None:
    with open_to_all() as root:
        backend = FilesystemBackend(root)
        backend.upload_files([("/closed/a", b"w\n"), ("/read-only", b"w\n"), ("/unreadable", b"w\n")])
        (root / "closed").chmod(0)
        (root / "read-only").chmod(0o444)
        (root / "unreadable").chmod(0)
        root.chmod(0o555)
        with as_nobody():
            found = backend.grep("w")
            globbed = backend.glob("*")
            codes = [
                backend.read("/unreadable").code,
                backend.read("/closed/a").code,
                backend.ls("/closed").code,
                backend.write("/read-only", "x").code,
                backend.edit("/read-only", "w", "x").code,
                backend.write("/new", "x").code,
                backend.delete("/read-only").code,
                backend.download_files(["/unreadable"])[0].error,
                backend.upload_files([("/new", b"x")])[0].error,
            ]
        root.chmod(0o755)
        (root / "closed").chmod(0o755)

        assert codes == ["permission_denied"] * 9
        assert [match["path"] for match in found.matches or []] == ["/read-only"]
        assert found.error is not None
        assert found.error.splitlines()[1:] == [
            "- /closed: Permission denied",
            "- /unreadable: Permission denied",
        ]
        assert (globbed.truncated, globbed.truncation_reason) == (True, "unreadable")


def test_a_directory_that_may_only_be_passed_through_is_passed_through() -> None:
    with open_to_all() as root:
        (root / "d").mkdir()
        (root / "d" / "a").write_text("text")
        (root / "d" / "a").chmod(0o644)
        (root / "d").chmod(0o711)
        with as_nobody():
            read = FilesystemBackend(root).read("/d/a")
            listed = FilesystemBackend(root).ls("/d")

    if sys.platform == "linux":
        assert read.error is None
    assert listed.code == "permission_denied" or os.geteuid() != 0


@pytest.mark.parametrize("script", [FLIP_DIRECTORY, FLIP_FILE], ids=["directory", "file"])
def test_no_reader_is_led_out_while_names_change_hands(
    backend: FilesystemBackend, root: Path, outside: Path, script: str
) -> None:
    (root / "d" / "secret.txt").write_text("inside")
    seen: set[str] = set()
    with meanwhile(script, root, outside, seconds=0.6) as there_is_time:
        while there_is_time():
            results: list[Any] = [
                backend.read("/d/secret.txt"),
                *backend.download_files(["/d/secret.txt"]),
                backend.grep("secret", "/d"),
                backend.ls("/d"),
            ]
            seen |= {SECRET for result in results if SECRET in repr(result) or "deep" in repr(result)}
            seen |= {"read" for result in results[:2] if result.error is None}

    assert seen == {"read"}


@pytest.mark.parametrize("script", [FLIP_DIRECTORY, FLIP_FILE], ids=["directory", "file"])
def test_no_writer_is_led_out_while_names_change_hands(
    backend: FilesystemBackend, root: Path, outside: Path, script: str
) -> None:
    (root / "d" / "secret.txt").write_text("inside")
    written = 0
    with meanwhile(script, root, outside, seconds=0.6) as there_is_time:
        while there_is_time():
            written += backend.write("/d/secret.txt", "overwritten").error is None
            backend.write("/d/new.txt", "overwritten")
            backend.edit("/d/secret.txt", "e", "E", True)
            backend.upload_files([("/d/secret.txt", b"overwritten")])
            backend.delete("/d/deep")

    assert written
    assert sorted(path.name for path in outside.rglob("*")) == ["deep", "secret.txt", "secret.txt"]
    assert [path.read_text() for path in outside.rglob("*.txt")] == [SECRET, SECRET]


@pytest.mark.parametrize("by_handle", [True, False])
def test_both_ways_to_reach_places_keep_inside(root: Path, by_handle: bool) -> None:
    tree = ConfinedDirectory(root, by_handle)

    with tree.entry(["d", ".."]) as place:
        assert place.parts == ()
    for parts in (
        ["to-directory", "secret.txt"],
        ["up", "outside"],
        ["..", "outside"],
        ["to-file"],
        ["dotted", "x"],
    ):
        with pytest.raises(LeavesRootError), tree.entry(parts):
            pass
    with pytest.raises(OSError, match="symbolic links"), tree.entry(["loop", "x"]):
        pass
    with tree.entry(["to-file"], follow=False) as place:
        assert place.parts == ("to-file",)
