"""Parse the command line; nothing heavy is imported here, so that `--help` answers at once."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from deepagents_cli.commands.db import add_db
from deepagents_cli.commands.keys import add_keys
from deepagents_cli.commands.other_commands import add_debug, add_model, add_other_commands
from deepagents_cli.commands.runs import add_runs
from deepagents_cli.commands.serve import add_serve, add_worker
from deepagents_cli.session.access import FLAGS, REPEATS, command_flags
from deepagents_cli.values import MODES, read_amount, read_count, read_number, read_price, read_seconds

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
  DEEPAGENTS_STATE  the directory that keeps the threads
  DEEPAGENTS_CACHE  the directory that keeps the weights of local models
  NO_COLOR          any value turns colours off
"""


class _ShowVersion(argparse.Action):
    def __init__(self, option_strings: Sequence[str], dest: str, **options: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, help="show the version and exit")

    def __call__(self, parser: argparse.ArgumentParser, *rest: Any) -> None:
        from deepagents import __version__

        sys.stdout.write(f"deepagents {__version__}\n")
        parser.exit()


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line; help, version and wrong usage end the program.

    What begins with no command is a task for `run`; so is standard input, where nothing was typed.
    """
    parser, commands = build_parser()
    typed = list(sys.argv[1:] if argv is None else argv)
    at_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    if typed == ["help"] or (typed[:1] == ["help"] and typed[1:] and typed[1] in commands):
        typed = [*typed[1:2], "--help"]
    if not typed or typed[0] not in (*commands, "-h", "--help", "--version"):
        if at_terminal:
            # Options alone open a conversation; what is left over is a task, or an option of `run`.
            arguments, task = parser.parse_known_args(["chat", *typed])
            if not task:
                return _check(parser, arguments)
        _check_mistyped(parser, typed, commands)
        typed = ["run", *typed]
    arguments, unknown = parser.parse_known_args(typed)
    if unknown:
        known = sorted({*re.findall(r"--[a-z][a-z-]*", commands[arguments.command].format_help())})
        near = " or ".join(get_close_matches(unknown[0].partition("=")[0], known, n=2))
        parser.error(f"unrecognized arguments: {' '.join(unknown)}" + (f"; is it {near}?" if near else ""))
    if arguments.command == "chat" and not at_terminal:
        parser.error("a conversation needs a terminal; for one task: deepagents run TASK")
    if arguments.command not in ("run", "chat"):
        return arguments
    return _check(parser, arguments)


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


def _check_mistyped(parser: argparse.ArgumentParser, typed: Sequence[str], commands: Iterable[str]) -> None:
    """Refuse a single word that is nearly a command: a model would be asked, and paid, for a typing error."""
    is_word = bool(typed) and " " not in typed[0] and not typed[0].startswith("-")
    near = get_close_matches(typed[0], [*commands, "help"], n=1) if is_word else []
    words = [each for each in typed if not each.startswith("-")]
    if near and len(words) == 1:
        parser.error(f"{typed[0]!r} is no command; is it {near[0]!r}? As a task: deepagents run {typed[0]!r}")


def build_parser() -> tuple[argparse.ArgumentParser, Mapping[str, argparse.ArgumentParser]]:
    """Describe every command and option; return the parser of each command too."""
    parser = argparse.ArgumentParser(
        prog="deepagents",
        description="Run an agent that plans, works on files and delegates.",
        epilog=_MORE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_ShowVersion)
    parser.set_defaults(debug=False)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    _add_run(commands)
    _add_chat(commands)
    add_other_commands(commands)
    add_serve(commands)
    add_worker(commands)
    add_keys(commands)
    add_runs(commands)
    add_db(commands)
    return parser, commands.choices


def _add_run(commands: Any) -> None:
    run = commands.add_parser(
        "run",
        help="let an agent work on a directory",
        description="Let an agent work on a directory. It reads freely and asks before it changes anything.",
    )
    run.add_argument("task", nargs="*", metavar="TASK", help="what to do; or on standard input")
    add_task_options(run)


def add_task_options(run: argparse.ArgumentParser) -> None:
    """Describe the options of a task; they stand behind `deepagents run`, or `deepagents` alone."""
    _add_place(run)
    run.add_argument(
        "--yes",
        action="store_true",
        help="approve every call without asking, but those about .git, secrets and settings of editors",
    )
    written = run.add_mutually_exclusive_group()
    written.add_argument("--json", action="store_true", help="write events as JSON, one object a line")
    written.add_argument("-q", "--quiet", action="store_true", help="write the answer alone")
    run.add_argument(
        "--schema",
        type=Path,
        metavar="FILE",
        help="a JSON Schema that the answer fits; it is written as JSON",
    )
    _add_work(run)


def _add_chat(commands: Any) -> None:
    chat = commands.add_parser(
        "chat",
        help="talk with an agent that works on a directory; `deepagents` alone does the same",
        description="Talk with an agent that works on a directory. /help shows what can be typed.",
    )
    _add_place(chat)
    add_plain(chat)
    _add_work(chat)


def add_plain(chat: argparse.ArgumentParser) -> None:
    """Let a conversation be written without drawing."""
    chat.add_argument(
        "--plain",
        action="store_true",
        help="write line after line, for screen readers and logs; nothing is drawn twice",
    )


def _add_place(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--dir", type=Path, default=Path(), help="the directory to work on, and to stay in (default: .)"
    )
    add_model(parser)
    parser.add_argument(
        "--mode", choices=MODES, help="what the agent may do without asking: see `deepagents -h`"
    )


def _add_work(parser: argparse.ArgumentParser) -> None:
    """Describe what a task and a conversation have in common."""
    parser.add_argument(
        "--continue", dest="resume", action="store_true", help="take up the directory's last thread"
    )
    parser.add_argument(
        "--thread", metavar="NAME", help="use the session of this name or id; a new one gets the id"
    )
    _add_commands(parser)
    _add_limits(parser)
    add_debug(parser)


def _add_commands(run: argparse.ArgumentParser) -> None:
    group = run.add_argument_group(
        "commands", "what commands may do; in the sandbox, they reach DIR, and no network"
    )
    group.add_argument("--auto", action="store_true", help="--mode auto, where there is a sandbox")
    for name, kind, metavar, text in (
        ("network", str, "HOST", "let commands reach this host, or `all`"),
        ("read", Path, "DIR", "let the agent read this directory too"),
        ("write", Path, "DIR", "let the agent change this directory too"),
    ):
        group.add_argument(
            f"--{name}",
            action="append",
            default=[],
            type=kind,
            metavar=metavar,
            help=f"{text}; may be repeated",
        )
    group.add_argument(
        "--shell", action="store_true", help="run commands without the sandbox, with all your rights"
    )


def _add_limits(run: argparse.ArgumentParser) -> None:
    group = run.add_argument_group("limits", "what the agent and all its subagents may use for this task")

    def add(kind: str, read: Any, metavar: str, text: str) -> None:
        group.add_argument(FLAGS[kind], dest=kind, type=read, metavar=metavar, help=text)

    add("tokens", read_count, "N", "tokens that models read and write")
    add("money", read_amount, "AMOUNT", "what these may cost")
    group.add_argument(
        "--price",
        type=read_price,
        metavar="IN/OUT[/CACHED]",
        help="what a million tokens cost: read, written, and read from the provider's cache",
    )
    add("seconds", read_seconds, "TIME", "such as 90s, 10m or 1h30m; questions do not count")
    add("model_calls", read_count, "N", "requests to models")
    add("tool_calls", read_count, "N", "tool calls")
    text = f"equal tool calls in a row (default: {REPEATS}; 0: any number)"
    add("repeats", read_number, "N", text)
