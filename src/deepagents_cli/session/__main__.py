"""Carry out what the screen sends, until it closes or is gone: `python -m deepagents_cli.session`."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import suppress
from typing import IO

from deepagents_cli.errors import Exit, complain
from deepagents_cli.imports import importing_much
from deepagents_cli.protocol import Close, Open, ToScreen, read_for_worker, write
from deepagents_cli.terminal import is_pipe, put_back

_LONGEST_LINE = 1 << 28
"""Bytes: a text that was pasted, at most."""


async def _serve(out: IO[bytes]) -> int:
    with importing_much():
        from deepagents_cli.session.worker import Worker
    loop = asyncio.get_running_loop()
    lines = asyncio.StreamReader(limit=_LONGEST_LINE)
    pipe, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin.buffer)
    # Ctrl-C is the screen's. A handler, since commands would inherit that a signal is ignored.
    loop.add_signal_handler(signal.SIGINT, lambda: None)
    loop.add_signal_handler(signal.SIGTERM, lines.feed_eof)

    def say(message: ToScreen) -> None:
        # A screen that is gone: the lines end too, and what was asked of the agent can be continued.
        with suppress(BrokenPipeError):
            out.write(write(message))
            out.flush()

    codes: list[int] = []

    def end(code: int) -> None:
        codes.append(code)
        lines.feed_eof()

    worker = Worker(say, end)
    terminal: int | None = None
    try:
        while line := await lines.readline():
            match read_for_worker(line):
                case Close():
                    break
                case Open(terminal=int(shared)) as message:
                    os.set_inheritable(terminal := shared, False)
                    worker.take(message)
                case message:
                    worker.take(message)
        else:
            # A screen says that it closes. One that was killed may still be the parent: its pipes end first.
            if terminal is not None and pipe.is_closing():
                put_back(terminal)
    finally:
        await worker.close()
    return codes[0] if codes else Exit.DONE


def main() -> int:
    """Serve the screen at standard input and output; what else is printed goes to standard error."""
    if not is_pipe(0):
        complain("this is the agent's part of a conversation, which `deepagents` starts by itself")
        return Exit.USAGE
    with os.fdopen(os.dup(1), "wb") as out:
        os.dup2(2, 1)
        return asyncio.run(_serve(out))


if __name__ == "__main__":
    sys.exit(main())
