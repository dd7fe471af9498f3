"""Models that run on this machine are listed, located and fetched."""

from __future__ import annotations

import pytest

from deepagents_local import DEFAULT_MODEL, KNOWN, cache_dir
from tests.cli.conftest import Command


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setenv("DEEPAGENTS_CACHE", str(tmp_path))


def put_weights(size: int) -> str:
    """Make a file of the right name; one of the right size takes no space."""
    path = cache_dir() / "models" / KNOWN[0].file
    path.parent.mkdir(parents=True)
    with path.open("wb") as file:
        file.truncate(size)
    return str(path)


@pytest.mark.usefixtures("cache")
def test_the_list_says_which_are_here(cli: Command) -> None:
    put_weights(KNOWN[0].size)

    first, second = cli("models", "list").out.splitlines()

    assert first.split("  ") == [KNOWN[0].name, "1.1 GB", "Apache-2.0", "here, default"]
    assert second.endswith("not here")


@pytest.mark.usefixtures("cache")
def test_the_path_of_weights_that_are_here_is_printed(cli: Command) -> None:
    path = put_weights(KNOWN[0].size)

    ended = cli("models", "path")

    assert (ended.code, ended.out) == (0, f"{path}\n")


@pytest.mark.usefixtures("cache")
def test_the_path_of_weights_that_are_not_says_how_to_fetch_them(cli: Command) -> None:
    ended = cli("models", "path")

    assert (ended.code, ended.out) == (2, "")
    assert f"deepagents models pull {DEFAULT_MODEL}" in ended.err


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize("verb", ["pull", "path"])
def test_an_unknown_name_lists_the_known_ones(cli: Command, verb: str) -> None:
    ended = cli("models", verb, "gpt-9")

    assert ended.code == 2
    assert "'gpt-9'" in ended.err
    assert DEFAULT_MODEL in ended.err
