"""`deepagents completion SHELL`: a script with which a shell completes commands, options and sessions."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, cast

from deepagents_cli.args import build_parser
from deepagents_cli.errors import CommandError, Exit
from deepagents_cli.threads import FILE, Threads, state_dir

_ASK: Final = "deepagents completion sessions 2>/dev/null"
_PREAMBLE: Final = {
    "bash": f'_deepagents_sessions() {{ compgen -W "$({_ASK})" -- "$1"; }}',
    "zsh": f'_deepagents_sessions() {{ compadd -- ${{(f)"$({_ASK})"}} }}',
    "fish": f"function _deepagents_sessions\n    {_ASK}\nend",
}
_SESSIONS: Final = {
    "bash": "_deepagents_sessions",
    "zsh": "_deepagents_sessions",
    "fish": "(_deepagents_sessions)",
}


def run(arguments: argparse.Namespace, *, model: Any = None) -> int:
    """Write the script, or the names that it asks for; return the exit code."""
    if arguments.shell == "sessions":
        sys.stdout.writelines(f"{name}\n" for name in _session_names())
        return Exit.DONE
    try:
        import shtab
    except ModuleNotFoundError as error:
        raise CommandError(
            "completion needs shtab: pip install '.[cli]' in a checkout of deepagents"
        ) from error
    parser, _ = build_parser()
    for action in _actions(parser):
        complete: Any = None
        if action.dest in ("session", "thread"):
            complete = _SESSIONS
        elif action.dest in ("dir", "read", "write"):
            complete = shtab.DIRECTORY
        elif action.dest == "schema":
            complete = shtab.FILE
        if complete:
            vars(action)["complete"] = complete
    # Its documentation has a text for each shell here, and its types have one text.
    preamble: Any = _PREAMBLE
    sys.stdout.write(shtab.complete(parser, shell=arguments.shell, preamble=preamble))
    return Exit.DONE


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    # There is no public list of what a parser takes.
    actions: list[argparse.Action] = vars(parser)["_actions"]
    for action in actions:
        yield action
        choices = cast(object, action.choices)
        table: Mapping[str, object] = (
            cast("Mapping[str, object]", choices) if isinstance(choices, Mapping) else {}
        )
        # The choices of an option may be the keys of any table.
        for below in table.values():
            if isinstance(below, argparse.ArgumentParser):
                yield from _actions(below)


def _session_names() -> list[str]:
    """Return ids, and names that a shell takes as one word, of this directory's sessions."""
    if not (state_dir() / FILE).exists():
        return []
    found = Threads(state_dir()).find_all(Path.cwd())
    return [
        *dict.fromkeys(
            text for each in found for text in (each.name, each.id) if text.replace("-", "").isalnum()
        )
    ]
