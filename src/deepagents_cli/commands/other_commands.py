"""Describe the commands besides those that let an agent work."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, Final

from deepagents_cli.values import read_count

SHELLS: Final = ("bash", "zsh", "fish")
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


def add_other_commands(commands: Any) -> None:
    """Add them to the program's parser."""
    _add_sessions(commands)
    _add_models(commands)
    _add_first_run(commands)
    _add_trust(commands)
    _add_doctor(commands)
    _add_completion(commands)


def _add_completion(commands: Any) -> None:
    completion = commands.add_parser(
        "completion",
        help="write a script with which a shell completes",
        description="Write a script with which a shell completes commands, options and sessions.",
        epilog=_INSTALL,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    completion.add_argument("shell", choices=(*SHELLS, "sessions"), metavar="SHELL", help="bash, zsh or fish")
    add_debug(completion)


def _add_sessions(commands: Any) -> None:
    sessions = commands.add_parser(
        "sessions", help="list, show, name, remove, export and fork what runs have left"
    )
    sessions.set_defaults(all=False, dir=Path())
    verbs = sessions.add_subparsers(dest="verb", metavar="VERB")
    verbs.default = "list"

    def add(verb: str, text: str, *, of_directory: bool = False) -> Any:
        added = verbs.add_parser(verb, help=text)
        if of_directory:
            added.add_argument(
                "--dir", type=Path, default=Path(), help="the sessions of this directory (default: .)"
            )
            added.add_argument("--all", action="store_true", help="the sessions of all directories")
        else:
            added.add_argument(
                "session",
                metavar="SESSION",
                nargs="+" if verb == "delete" else None,
                help="a name, an id, or the beginning of an id",
            )
        add_debug(added)
        return added

    add("list", "list the sessions of a directory, those used last first", of_directory=True)
    add("search", "list the sessions that hold a text", of_directory=True).add_argument(
        "text", metavar="TEXT"
    )
    add("show", "show what was asked, called and answered")
    add("rename", "give a session another name").add_argument("name", metavar="NAME")
    add("delete", "remove sessions")
    pruned = add("prune", "remove old sessions, and the oldest beyond a size", of_directory=True)
    pruned.add_argument(
        "--older", type=read_count, metavar="DAYS", help="remove what was not used for so many days"
    )
    pruned.add_argument(
        "--keep", type=read_count, metavar="MB", help="remove the oldest until the rest is as small"
    )
    exported = add("export", "write a session as Markdown, or as JSON")
    exported.add_argument("--json", action="store_true", help="write JSON, with all that messages hold")
    forked = add("fork", "copy a session, to go on from one of its messages in another way")
    forked.add_argument(
        "--at", type=read_count, metavar="N", help="the last message that is copied, as `show` numbers it"
    )


def _add_models(commands: Any) -> None:
    models = commands.add_parser("models", help="fetch and list models that run on this machine")
    verbs = models.add_subparsers(dest="verb", metavar="VERB", required=True)
    pull = verbs.add_parser(
        "pull", help="fetch the weights of a model, going on where an earlier pull stopped"
    )
    pull.add_argument("name", nargs="?", metavar="NAME", help="a name from `deepagents models list`")
    listed = verbs.add_parser("list", help="list the known models and which of them are here")
    path = verbs.add_parser("path", help="print where the weights of a model are")
    path.add_argument("name", nargs="?", metavar="NAME", help="a name from `deepagents models list`")
    for each in (pull, listed, path):
        add_debug(each)


def _add_first_run(commands: Any) -> None:
    first = commands.add_parser(
        "first-run",
        help="watch an agent do a small real job on a throw-away copy of example files",
        description=(
            "Watch an agent do a small real job on a throw-away copy of example files, see what changed, and "
            "whether it got done. Without a model or a key, a small local model is fetched first."
        ),
    )
    add_model(first)
    add_debug(first)


def _add_trust(commands: Any) -> None:
    trust = commands.add_parser(
        "trust",
        help="list what a directory brings that can run, and use it from now on",
        description=(
            "List the hooks, commands, settings and agents of a directory that can run something or let more "
            "happen, and use them from now on. Until then they are left out; a change of them asks again."
        ),
    )
    trust.add_argument("dir", nargs="?", default=".", metavar="DIR", help="the directory (default: .)")
    trust.add_argument("--yes", action="store_true", help="trust what is listed without asking")
    trust.add_argument("--remove", action="store_true", help="trust the directory no longer")
    add_debug(trust)


def _add_doctor(commands: Any) -> None:
    doctor = commands.add_parser(
        "doctor",
        help="say what is found here, what is missing, and how to get it",
        description="Say what is found here, what is missing, and how to get it. Code 0: a task could run.",
    )
    doctor.add_argument("--dir", default=".", metavar="DIR", help="the directory of the project (default: .)")
    doctor.add_argument("--json", action="store_true", help="write JSON")
    add_debug(doctor)


def add_model(parser: argparse.ArgumentParser) -> None:
    """Let the model be named."""
    parser.add_argument(
        "--model", metavar="PROVIDER:NAME", help="the model, such as anthropic:NAME or local-server:NAME"
    )


def add_debug(parser: argparse.ArgumentParser) -> None:
    """Let a failure be shown whole."""
    parser.add_argument("--debug", action="store_true", help="show the traceback when something fails")
