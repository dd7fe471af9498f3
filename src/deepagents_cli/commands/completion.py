"""Print a script with which a shell completes commands, options and sessions: `deepagents completion`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, cast

from deepagents_cli.commands.environment import actions_of
from deepagents_cli.commands.options import add_debug
from deepagents_cli.commands.when_run import imported_when_run
from deepagents_cli.errors import CommandError, Exit
from deepagents_cli.text import one_line

with imported_when_run():
    from deepagents_cli.commands import args
    from deepagents_cli.project import state
    from deepagents_cli.session.threads import sessions

SHELLS: Final = ("bash", "zsh", "fish")
_EFFORTS: Final = ("minimal", "low", "medium", "high", "xhigh", "max")
_INSTALL: Final = """type these once, and open a new shell:

  bash
    mkdir -p ~/.deepagents
    deepagents completion bash > ~/.deepagents/completion.bash
    echo 'source ~/.deepagents/completion.bash' >> ~/.bashrc

  zsh
    mkdir -p ~/.zfunc
    deepagents completion zsh > ~/.zfunc/_deepagents
    echo 'fpath=(~/.zfunc $fpath); autoload -Uz compinit; compinit' >> ~/.zshrc

  fish
    mkdir -p ~/.config/fish/completions
    deepagents completion fish > ~/.config/fish/completions/deepagents.fish
"""

# Writes lines of a word, a tab and its description.
_ASK: Final = "deepagents completion sessions 2>/dev/null"
_PREAMBLE: Final = {
    # It expands what it is given, so it gets the words alone.
    "bash": f'_deepagents_sessions() {{ compgen -W "$({_ASK} | cut -f1)" -- "$1"; }}',
    "zsh": (
        f'_deepagents_sessions() {{\n  local -a each=("${{(@f)$({_ASK})}}")\n'
        '  each=("${(@)each//:/\\\\:}")\n'
        "  each=(\"${(@)each/$'\\t'/:}\")\n"
        "  _describe session each\n}"
    ),
    "fish": f"function _deepagents_sessions\n    {_ASK}\nend",
}
_SESSIONS: Final = {
    "bash": "_deepagents_sessions",
    "zsh": "_deepagents_sessions",
    "fish": "(_deepagents_sessions)",
}


def add_options(commands: Any) -> None:
    """Describe the command and its options."""
    completion = commands.add_parser(
        "completion",
        help="write a script with which a shell completes",
        description="Write a script with which a shell completes commands, options and sessions.",
        epilog=_INSTALL,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    completion.add_argument("shell", choices=(*SHELLS, "sessions"), metavar="SHELL", help="bash, zsh or fish")
    add_debug(completion)


def run(arguments: argparse.Namespace, *, model: Any = None) -> int:
    """Write the script, or the sessions that it asks for; return the exit code."""
    if arguments.shell == "sessions":
        sys.stdout.writelines(_list_sessions())
        return Exit.DONE
    try:
        import shtab
    except ModuleNotFoundError as error:
        raise CommandError(
            "completion needs shtab: pip install '.[cli]' in a checkout of deepagents"
        ) from error
    # A task and a conversation need no command.
    parser, _ = args.build_parser(with_task=True)
    for action in [action for each in find_parsers(parser) for action in actions_of(each)]:
        _describe(action, shtab)
    # Its documentation has a text for each shell here, and its types have one text.
    preamble: Any = _PREAMBLE
    sys.stdout.write(shtab.complete(parser, shell=arguments.shell, preamble=preamble))
    return Exit.DONE


def _describe(action: argparse.Action, shtab: Any) -> None:
    """Say what a shell is to offer for an argument."""
    complete = _find_completion(action, shtab)
    if complete:
        vars(action)["complete"] = complete
    if complete is _SESSIONS and action.nargs == "+":
        # zsh offers no second one otherwise.
        action.nargs = argparse.REMAINDER
    elif action.dest == "shell":
        action.choices = SHELLS
    elif action.dest == "effort":
        # Those of all models: which of them has which is known once it is made.
        action.choices = _EFFORTS
    elif action.dest == "model":
        # Behind a colon zsh reads what to run.
        action.metavar = "MODEL"


def _find_completion(action: argparse.Action, shtab: Any) -> Mapping[str, str] | None:
    """Return how each shell finds what an argument may be, by how the help names it."""
    named = str(action.metavar or "")
    if (action.dest, named) in (("session", "SESSION"), ("thread", "NAME")):
        return _SESSIONS
    if "DIR" in named or action.dest == "dir":
        return shtab.DIRECTORY
    return shtab.FILE if "FILE" in named or ".py" in named or action.dest.endswith("file") else None


def find_parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Yield a parser and those of its commands."""
    yield parser
    for action in actions_of(parser):
        choices = cast(object, action.choices)
        # The choices of an option may be the keys of any table.
        table: Mapping[str, object] = cast("Any", choices) if isinstance(choices, Mapping) else {}
        for below in table.values():
            if isinstance(below, argparse.ArgumentParser):
                yield from find_parsers(below)


def _list_sessions() -> Iterator[str]:
    """Yield the ids of this directory's sessions, and the names that a shell takes as one word."""
    place = state.state_dir()
    found = sessions.Sessions(place).find_all(Path.cwd()) if (place / state.FILE).exists() else []
    for each in found:
        for word, text in ((each.name, each.id), (each.id, each.name)):
            if word.replace("-", "").isalnum() and not word.startswith("-"):
                yield f"{word}\t{one_line(text)}\n"
