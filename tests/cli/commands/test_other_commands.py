"""The commands that run no agent are read with their options."""

from __future__ import annotations

from pathlib import Path

import pytest

from deepagents_cli.commands.args import parse


@pytest.mark.parametrize(
    ("argv", "read"),
    [
        (["sessions"], {"verb": "list", "all": False, "dir": Path()}),
        (["sessions", "prune", "--older", "30", "--keep", "100"], {"older": 30, "keep": 100}),
        (["sessions", "delete", "one", "two"], {"session": ["one", "two"]}),
        (["sessions", "fork", "one", "--at", "4"], {"session": "one", "at": 4}),
        (["models", "pull"], {"verb": "pull", "name": None}),
        (["trust", "--remove"], {"dir": ".", "remove": True, "yes": False}),
        (["doctor", "--json", "--debug"], {"json": True, "debug": True}),
        (["completion", "fish"], {"shell": "fish"}),
    ],
)
def test_options_are_read(argv: list[str], read: dict[str, object]) -> None:
    arguments = vars(parse(argv))

    assert {name: arguments[name] for name in read} == read
