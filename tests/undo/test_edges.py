"""What undo does at its bounds, and with paths that cannot be reached."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from deepagents.testing import call
from deepagents.undo import FileHistory
from deepagents.undo.looker import Directories
from tests.conftest import CallMode
from tests.undo.workshop import Workshop, names


@pytest.fixture
def shop(call_mode: CallMode, tmp_path: Path) -> Workshop:
    return Workshop(call_mode, tmp_path)


def test_a_store_at_its_bound_goes_on_and_keeps_the_newest(call_mode: CallMode, tmp_path: Path) -> None:
    most = 1_500_000
    shop = Workshop(call_mode, tmp_path, max_bytes=most)
    starts = [shop.run("head -c 100000 /dev/urandom > a") for _ in range(3 * most // 100_000)]
    covered = shop.mode.call(shop.history, "coverage", shop.agent)
    assert (covered.files, covered.why) == (True, None)
    assert most // 2 < shop.history.size() <= most
    plan = shop.plan(starts[-most // 200_000])
    assert names(plan.restored, shop.root) == ["a"]


def test_a_directory_above_the_bounds_is_named_when_it_is_deleted(
    call_mode: CallMode, tmp_path: Path
) -> None:
    shop = Workshop(call_mode, tmp_path, max_files=20)
    (shop.root / "many").mkdir()
    for number in range(30):
        (shop.root / "many" / f"{number}.txt").write_text("x")
    start = shop.do(call("delete", file_path="/many"))
    assert not (shop.root / "many").exists()
    plan = shop.plan(start)
    assert [(each.path.name, each.reason) for each in plan.not_kept] == [("many", "before_undo")]
    assert plan.restored == ()


@pytest.mark.parametrize(
    "name",
    ["x" * 300, f"{'x' * 300}/y", "a.txt/below/y", f"{'x' * 200}/" * 30],
    ids=["name", "directory", "file", "path"],
)
def test_a_name_that_cannot_be_reached_leaves_undo_on(tmp_path: Path, name: str) -> None:
    (tmp_path / "a.txt").write_text("1\n")
    history, places = FileHistory(tmp_path.parent / f"{tmp_path.name}-history"), Directories((str(tmp_path),))
    path = str(tmp_path / name)
    step = history.attempt(lambda recorder: recorder.begin_files("1", [path], places))
    assert step is not None
    assert history.attempt(lambda recorder: recorder.end_files(step)) is not None
    assert history.attempt(lambda recorder: recorder.look_at([path])) == {path: None}
    assert history.attempt(lambda recorder: recorder.last_of("1")) == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root may enter any directory")
def test_a_directory_that_may_not_be_entered_leaves_undo_on(shop: Workshop) -> None:
    (shop.root / "shut").mkdir(mode=0o600)
    start = shop.do(
        call("write_file", file_path="/shut/a.txt", content="x"),
        call("write_file", file_path="/b.txt", content="x"),
    )
    assert shop.mode.call(shop.history, "coverage", shop.agent).files
    assert names(shop.plan(start).removed, shop.root) == ["b.txt"]


def test_a_user_without_home_is_covered(shop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    def know_nobody(number: int) -> None:
        raise KeyError(number)

    monkeypatch.delenv("HOME")
    monkeypatch.setattr(pwd, "getpwuid", know_nobody)
    assert shop.mode.call(shop.history, "coverage", shop.agent).commands
