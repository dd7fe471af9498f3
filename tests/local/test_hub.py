from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from deepagents_local import WeightsError
from deepagents_local.hub import fill_from_hub, hub_url
from tests.local.hub import Hub, serving
from tests.local.models import WEIGHTS, pretend_model

MODEL = pretend_model()


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with serving(Hub(WEIGHTS)) as started:
        monkeypatch.setenv("HF_ENDPOINT", started.address)
        yield started


def fill(partial: Path) -> bytes:
    fill_from_hub(MODEL, partial, lambda done: None)
    return partial.read_bytes()


def test_a_connection_that_breaks_is_taken_up_again(hub: Hub, tmp_path: Path) -> None:
    hub.drops = [3_000, 3_000]

    assert fill(tmp_path / "part") == WEIGHTS
    assert hub.asked == [None, "bytes=3000-", "bytes=6000-"]


def test_bytes_from_an_earlier_pull_are_kept(hub: Hub, tmp_path: Path) -> None:
    (tmp_path / "part").write_bytes(WEIGHTS[:7_000])

    assert fill(tmp_path / "part") == WEIGHTS
    assert hub.asked == ["bytes=7000-"]


def test_a_server_without_ranges_starts_over(hub: Hub, tmp_path: Path) -> None:
    hub.ranges = False
    (tmp_path / "part").write_bytes(b"x" * 500)

    assert fill(tmp_path / "part") == WEIGHTS


def test_a_server_that_only_hangs_up_is_given_up(hub: Hub, tmp_path: Path) -> None:
    hub.drops = [1_000, 0, 0, 0, 0, 0]

    with pytest.raises(WeightsError, match="could not be reached"):
        fill(tmp_path / "part")


def test_a_refusal_is_reported_at_once_with_its_address(hub: Hub, tmp_path: Path) -> None:
    hub.status = 404

    with pytest.raises(WeightsError, match=r"answered 404 .*someone/pretend/resolve/main/pretend\.gguf"):
        fill(tmp_path / "part")
    assert len(hub.asked) == 1


def test_a_server_that_never_stops_is_stopped(hub: Hub, tmp_path: Path) -> None:
    hub.content = WEIGHTS + b"and more"

    with pytest.raises(WeightsError, match="more than the expected"):
        fill(tmp_path / "part")


def test_no_server_fails_without_a_second_try(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")

    with pytest.raises(WeightsError, match="could not be reached"):
        fill(tmp_path / "part")


def test_the_address_is_the_official_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_ENDPOINT", raising=False)

    assert hub_url(MODEL) == "https://huggingface.co/someone/pretend/resolve/main/pretend.gguf"
