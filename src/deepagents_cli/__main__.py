"""Run a command and turn whatever ends it into an exit code."""

from __future__ import annotations

import atexit
import os
import sys

if __name__ == "__main__" and not sys.flags.safe_path:
    # With -m, Python looks for modules in the directory first, and a project may have some of any name.
    sys.path.pop(0)

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

from deepagents_cli.views.terminal.startup import FirstPrompt, Starting, clear_prompt

_OF_SERVER: Final = frozenset({"serve", "worker", "keys", "db", "runs"})
"""The commands that need the packages of the server."""
_ended: Final = list[Any]()
"""The boundary of the task of this process. Of other commands none is kept: a server holds code of others."""


def run_program() -> int:
    """Run the command line that this process was started for, and return its exit code."""
    # What registered even earlier, such as a profiler, would be left out.
    if not getattr(atexit, "_ncallbacks", int)():
        atexit.register(_leave)
    return main()


def _leave() -> None:
    """End the process of a task with its code.

    Python would free each object by itself now, which takes longer than a step of the agent. Threads have
    ended, and what else was to be done at exit is done: this was registered first.
    """
    if _ended:
        for stream in (sys.stdout, sys.stderr):
            if stream and not stream.closed:
                stream.flush()
        os._exit(_ended[0].code)


def main(argv: Sequence[str] | None = None, *, model: Any = None) -> int:
    """Run the command line; `model`, a chat model, replaces what `--model` names."""
    # `deepagents` alone shows its prompt before anything is imported.
    alone = argv is None and len(sys.argv) == 1 and sys.stdin and sys.stdout
    with FirstPrompt() if alone else nullcontext() as prompt:
        return _run(argv, model, prompt.typed if prompt else 0)


def _run(argv: Sequence[str] | None, model: Any, typed: int) -> int:
    from deepagents_cli.commands.args import parse
    from deepagents_cli.errors import ErrorBoundary, check_process, open_streams

    open_streams()
    with ErrorBoundary() as boundary:
        arguments = parse(argv)
        arguments.typed, boundary.debug = typed, arguments.debug
        from deepagents_cli.imports import importing_much

        check_process()
        is_seen = arguments.command == "run" and not (arguments.json or arguments.quiet)
        with Starting(shown=is_seen), importing_much():
            command = _load_command(arguments.command)
        is_work = arguments.command in ("run", "chat", "acp")
        with _keep(arguments.command) if is_work else nullcontext():
            boundary.code = command(arguments, model=model)
        if arguments.command == "run":
            _ended.append(boundary)
    return boundary.code


def _keep(command: str) -> AbstractContextManager[None]:
    from deepagents_cli.errors import complain
    from deepagents_cli.project.state import keep_somewhere

    def tell(text: str) -> None:
        if command == "chat":
            clear_prompt()
        complain(text)

    return keep_somewhere(tell)


def _load_command(name: str) -> Any:
    """Return the `run` function in the module of a command, with all that it needs imported."""
    from deepagents_cli.commands.args import import_command
    from deepagents_cli.commands.when_run import load_all
    from deepagents_cli.errors import missing_package

    try:
        command = import_command(name)
        load_all(vars(command))
    except ModuleNotFoundError as error:
        raise missing_package(error, "server" if name in _OF_SERVER else "cli") from error
    return command.run


if __name__ == "__main__":
    sys.exit(run_program())
