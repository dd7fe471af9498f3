"""Parse the command line; commands import what is heavy when they run, so that `--help` answers at once."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from types import ModuleType
from typing import Any, Final, TypeAlias

from deepagents import __version__
from deepagents_cli.commands.environment import actions_of
from deepagents_cli.session.agent.access import command_flags

_COMMANDS: Final = (
    "run", "chat", "undo", "acp", "sessions", "models", "mcp", "first-run", "trust", "doctor", "completion",
    "serve", "worker", "keys", "runs", "db",
)  # fmt: skip
"""In the order of the help."""
_TOGETHER: Final = {"worker": "serve"}
"""Commands that are described in the module of another."""
_Parsers: TypeAlias = Mapping[str, argparse.ArgumentParser]
_MORE: Final = """examples:
  deepagents
  deepagents "say what this directory holds"
  deepagents make the tests pass --auto
  git diff | deepagents -q "write a commit message" > message.txt
  deepagents --continue "now the documents"

modes:
  ask   reads go through; changes and commands are asked about
  auto  changes in the directory and commands in the sandbox go through too
  plan  nothing is changed; the answer is a plan
  full  everything goes through, secrets and .git too

exit codes:
  0    done
  1    failed; one sentence on standard error says why
  2    wrong usage, or no model to use
  3    done, but calls that needed approval were refused, because there was no terminal to ask in
  4    stopped at a limit, with what there is; `deepagents --continue "TASK"` goes on
  130  stopped by Ctrl-C or SIGTERM; `deepagents --continue` goes on

environment:
  DEEPAGENTS_MODEL  the model to use when --model is not given
  DEEPAGENTS_STATE  the directory that keeps the sessions
  DEEPAGENTS_CACHE  the directory that keeps the weights of local models
  NO_COLOR          any value turns colours off
"""


class _CommandParser(argparse.ArgumentParser):
    # argparse would keep to itself that it could not write.

    def print_help(self, file: Any = None) -> None:
        (file or sys.stdout).write(self.format_help())


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *given: Any) -> None:
        sys.stdout.write(f"deepagents {__version__}\n")
        parser.exit()


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line; help, version and wrong usage end the program.

    What begins with no command is a task for `run`; so is standard input, where nothing was typed.
    """
    typed = list(sys.argv[1:] if argv is None else argv)
    at_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    if typed == ["help"] or (typed[:1] == ["help"] and typed[1:] and typed[1] in _COMMANDS):
        typed = [*typed[1:2], "--help"]
    if not typed or typed[0] not in (*_COMMANDS, "-h", "--help", "--version"):
        if at_terminal:
            # Options alone open a conversation; what is left over is a task, or an option of `run`.
            parser, _ = build_parser(["chat"])
            arguments, task = parser.parse_known_args(["chat", *typed])
            if not task:
                return _check(parser, arguments)
        _check_mistyped(typed)
        typed = ["run", *typed]
    # To describe all of them takes as long as a step of an agent.
    parser, commands = build_parser(typed[:1] if typed[0] in _COMMANDS else _COMMANDS)
    arguments, unknown = parser.parse_known_args(typed)
    if unknown:
        known = sorted({*re.findall(r"--[a-z][a-z-]*", commands[arguments.command].format_help())})
        near = " or ".join(get_close_matches(unknown[0].partition("=")[0], known, n=2))
        parser.error(f"unrecognized arguments: {' '.join(unknown)}" + (f"; is it {near}?" if near else ""))
    if arguments.command == "chat" and not at_terminal:
        parser.error("a conversation needs a terminal; for one task: deepagents run TASK")
    if arguments.command not in ("run", "chat", "acp"):
        return arguments
    return _check(parser, arguments)


def import_command(name: str) -> ModuleType:
    """Return the module of a command."""
    return import_module(f"deepagents_cli.commands.{_TOGETHER.get(name, name).replace('-', '_')}")


def _check(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> argparse.Namespace:
    """Refuse options that contradict each other."""
    arguments.task = " ".join(getattr(arguments, "task", ())) or None
    given = command_flags(arguments)
    if arguments.shell and (others := {*given} - {"--shell", "--auto"}):
        parser.error(
            f"{min(others)} is about the sandbox, and --shell runs commands without it; leave one out"
        )
    if arguments.auto and arguments.mode not in (None, "auto"):
        parser.error(f"--auto is --mode auto, and --mode {arguments.mode} was typed too; leave one out")
    if "all" in arguments.network and len(arguments.network) > 1:
        parser.error("--network all allows every host; leave the others out")
    return arguments


def _check_mistyped(typed: Sequence[str]) -> None:
    """Refuse what is nearly a command: a model would be asked, and paid, for a typing error."""
    words = [each for each in typed if not each.startswith("-")]
    is_word = bool(words) and typed[0] == words[0] and " " not in words[0]
    near = next(iter(get_close_matches(typed[0], [*_COMMANDS, "help"], n=1)), None) if is_word else None
    if not near:
        return
    parser, commands = build_parser()
    if len(words) == 1 or words[1] in _list_verbs(commands.get(near)):
        task = " ".join(words)
        parser.error(f"{typed[0]!r} is not a command; is it {near!r}? As a task: deepagents run {task!r}")


def _list_verbs(command: argparse.ArgumentParser | None) -> list[str]:
    """Return the words of which one stands behind a command."""
    choices = [each.choices for each in actions_of(command) if not each.option_strings] if command else []
    return [str(word) for each in choices for word in each or ()]


def build_parser(
    names: Collection[str] = _COMMANDS, *, with_task: bool = False
) -> tuple[argparse.ArgumentParser, _Parsers]:
    """Describe these commands and all their options; return the parser of each of them too.

    With `with_task`, the options of a task and a conversation stand behind the program's name too.
    """
    parser = _CommandParser(
        prog="deepagents",
        description="Run an agent that plans, works on files and delegates.",
        epilog=_MORE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    parser.set_defaults(debug=False)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for module in dict.fromkeys(map(import_command, names)):
        module.add_options(commands)
    if with_task:
        for name in ("run", "chat"):
            import_command(name).add_own_options(parser)
    return parser, commands.choices
