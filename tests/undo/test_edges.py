"""What undo does at its bounds, and with paths that cannot be reached."""

from __future__ import annotations

from pathlib import Path

import pytest

from deepagents.testing import call
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


def test_a_name_that_cannot_be_reached_leaves_undo_on(shop: Workshop) -> None:
    (shop.root / "a.txt").write_text("1\n")
    start = shop.do(
        call("write_file", file_path=f"/{'x' * 300}", content="x"),
        call("write_file", file_path=f"/{'x' * 300}/y.txt", content="x"),
        call("write_file", file_path="/a.txt/below/y.txt", content="x"),
        call("write_file", file_path="/nul\0.txt", content="x"),
        call("write_file", file_path="/half\ud800.txt", content="x"),
        call("write_file", file_path="/a.txt", content="2\n"),
    )
    covered = shop.mode.call(shop.history, "coverage", shop.agent)
    assert (covered.files, covered.why) == (True, None)
    plan = shop.plan(start)
    assert names(plan.restored, shop.root) == ["a.txt"]
