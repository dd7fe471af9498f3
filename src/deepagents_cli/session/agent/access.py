"""Read from the options what an agent may do and use."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from deepagents._values import valueclass
from deepagents.limits import Limits
from deepagents_cli.values import MODES, Mode

if TYPE_CHECKING:
    from deepagents_cli.project.settings import Settings

NO_LIMITS: Final[Mapping[str, Any]] = MappingProxyType({})
REPEATS: Final = 10
"""How often in a row the same call may be made when nothing was typed."""
FLAGS: Final = {
    "tokens": "--max-tokens",
    "money": "--max-cost",
    "seconds": "--max-time",
    "model_calls": "--max-model-calls",
    "tool_calls": "--max-tool-calls",
    "repeats": "--max-repeats",
}
"""The option for each kind of limit."""


@valueclass
class Access:
    """What commands may reach, as the options say; `typed` are the options about commands that were given.

    `approving` is the option that lets calls through without a question, if one was typed.
    """

    shell: bool = False
    network: Sequence[str] = ()
    read: Sequence[Path] = ()
    write: Sequence[Path] = ()
    mode: Mode = "ask"
    approving: str | None = None
    typed: Sequence[str] = ()
    asks_hosts: bool = False

    @classmethod
    def of(cls, arguments: argparse.Namespace, settings: Settings) -> Access:
        """Read the command line, and what was set where nothing was typed."""
        hosts = ["all"] if "all" in settings.network else settings.network
        return cls(
            arguments.shell,
            arguments.network or hosts,
            [Path(each) for each in arguments.read or settings.read],
            [Path(each) for each in arguments.write or settings.write],
            mode_of(arguments, settings.mode),
            approving_flag(arguments, settings.mode),
            command_flags(arguments),
        )


def command_flags(arguments: argparse.Namespace) -> list[str]:
    """Return the options about commands that were typed."""
    return [f"--{name}" for name in ("shell", "network", "read", "write", "auto") if getattr(arguments, name)]


def mode_of(arguments: argparse.Namespace, in_settings: str | None = None) -> Mode:
    """Return the mode that was typed, or else set; `--auto` is short for one."""
    chosen = arguments.mode or ("auto" if arguments.auto else in_settings)
    found: Mode | None = next((mode for mode in MODES if mode == chosen), None)
    return found or "ask"


def approving_flag(arguments: argparse.Namespace, in_settings: str | None = None) -> str | None:
    """Return the option, if any, that lets changes through without a question."""
    if arguments.yes or arguments.auto:
        return "--yes" if arguments.yes else "--auto"
    mode = mode_of(arguments, in_settings)
    return f"--mode {mode}" if mode in ("auto", "full") else None


def limits_of(arguments: argparse.Namespace, settings: Mapping[str, Any] = NO_LIMITS) -> Limits | None:
    """Return the limits that were typed, or else set; `None` when nothing is limited."""
    set_here: dict[str, Any] = {"repeats": REPEATS, **settings}
    typed = {kind: getattr(arguments, kind) for kind in (*FLAGS, "price")}
    found = {kind: set_here.get(kind) if value is None else value for kind, value in typed.items()}
    given: dict[str, Any] = {kind: found[kind] or None for kind in FLAGS}
    prices = {"*": found["price"]} if found["price"] else {}
    return Limits(**given, prices=prices) if any(given.values()) else None
