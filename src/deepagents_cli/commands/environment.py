"""Read options of servers from the environment, where they are not typed."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable
from typing import Any, Final

PREFIX: Final = "DEEPAGENTS_SERVER_"
HOW: Final = (
    f"Each option can also be a variable, {PREFIX} and its name, as in {PREFIX}KEEP_RUNS=30d for "
    "--keep-runs 30d; a switch is 1 or 0. What is typed comes first."
)
_SWITCHES: Final = {
    **dict.fromkeys(("1", "true", "yes", "on"), True),
    **dict.fromkeys(("0", "false", "no", "off"), False),
}


def actions_of(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Return the arguments and options of a parser, of which it has no public list."""
    return vars(parser)["_actions"]


def read_environment(actions: Iterable[argparse.Action]) -> None:
    """Let arguments that are not typed have the values of their variables."""
    for action in actions:
        variable = f"{PREFIX}{action.dest.upper()}"
        if action.dest != "help" and (text := os.environ.get(variable)):
            # argparse reads a default that is text as if it was typed, when the command is used.
            action.default, action.required = text, False
            action.type = _reader(action, variable, text)


def _reader(action: argparse.Action, variable: str, text: str) -> Callable[[str], Any]:
    # A switch takes no value, so argparse would leave the text as it is.
    read: Any = _read_switch if action.nargs == 0 else action.type or str

    def read_named(given: str) -> Any:
        try:
            value = read(given)
            if action.choices is not None and value not in action.choices:
                raise argparse.ArgumentTypeError(f"{value!r} is none of {', '.join(action.choices)}")
        except (argparse.ArgumentTypeError, ValueError) as error:
            where = f", in {variable}" if given == text else ""
            raise argparse.ArgumentTypeError(f"{error}{where}") from error
        return value

    return read_named


def _read_switch(text: str) -> bool:
    if text.lower() not in _SWITCHES:
        raise argparse.ArgumentTypeError(f"{text!r} is neither 1 nor 0")
    return _SWITCHES[text.lower()]
