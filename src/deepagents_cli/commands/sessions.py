"""List, search, show, name, remove, export and fork earlier sessions: `deepagents sessions`."""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from deepagents_cli.errors import CommandError, Exit
from deepagents_cli.project.state import state_dir
from deepagents_cli.session.artifacts import names_of, remove_unused
from deepagents_cli.session.export import MessageReader, as_json, as_markdown, fork, read_messages
from deepagents_cli.session.threads import InUse, Thread, Threads
from deepagents_cli.text import clean, one_line

_DAY: Final = 86_400
_MEGABYTE: Final = 1_000_000


def run(arguments: Namespace, *, model: Any = None) -> int:
    """Do what the verb says; return the exit code."""
    _VERBS[arguments.verb](Threads(state_dir()), arguments)
    return Exit.DONE


def _list(threads: Threads, arguments: Namespace) -> None:
    _print_list(threads.find_all(_directory(arguments)), with_directory=arguments.all)


def _search(threads: Threads, arguments: Namespace) -> None:
    wanted = arguments.text.casefold()
    with closing(MessageReader(threads.path)) as reader:
        found = [
            each
            for each in threads.find_all(_directory(arguments))
            if wanted in each.name.casefold()
            or any(wanted in message.text.casefold() for message in reader.read(each.id))
        ]
    _print_list(found, with_directory=arguments.all)


def _show(threads: Threads, arguments: Namespace) -> None:
    found = threads.find(arguments.session)
    sys.stdout.write(clean(as_markdown(found, read_messages(threads, found.id))))


def _export(threads: Threads, arguments: Namespace) -> None:
    found = threads.find(arguments.session)
    write = as_json if arguments.json else as_markdown
    written = write(found, read_messages(threads, found.id))
    # In a file it stays as it was; at a terminal it must not steer it.
    sys.stdout.write(clean(written) if sys.stdout.isatty() else written)


def _rename(threads: Threads, arguments: Namespace) -> None:
    threads.rename(threads.find(arguments.session).id, arguments.name)


def _delete(threads: Threads, arguments: Namespace) -> None:
    # All are found before the first is removed: a typing error removes nothing.
    _remove(threads, [threads.find(name) for name in arguments.session])


def _prune(threads: Threads, arguments: Namespace) -> None:
    """Remove what is older than asked, then the oldest until the rest is as small as asked."""
    if arguments.older is None and arguments.keep is None:
        raise CommandError("say what to remove: --older DAYS, --keep MB, or both", Exit.USAGE)
    now, kept, surplus = time.time(), 0, list[Thread]()
    for each in threads.find_all(_directory(arguments)):
        too_old = arguments.older is not None and now - each.used > arguments.older * _DAY
        too_large = arguments.keep is not None and kept + each.size > arguments.keep * _MEGABYTE
        if too_old or too_large:
            surplus.append(each)
        else:
            kept += each.size
    _remove(threads, surplus)


def _fork(threads: Threads, arguments: Namespace) -> None:
    sys.stdout.write(f"{fork(threads, threads.find(arguments.session), arguments.at)}\n")


def _remove(threads: Threads, surplus: Sequence[Thread]) -> None:
    """Remove sessions and their files; one in use keeps none of the others."""
    if not surplus:
        return
    kept: list[str] = []
    gone: dict[Path, set[str]] = {}
    for each in surplus:
        try:
            with threads.hold(each.id):
                gone.setdefault(each.directory, set()).update(names_of(threads, each.id))
                threads.forget(each.id)
        except InUse:
            kept.append(each.id)
        else:
            sys.stdout.write(f"removed {each.id}  {one_line(each.name)}\n")
    for folder, count, size in remove_unused(threads, gone):
        where = one_line(str(folder))
        sys.stdout.write(f"removed {count:,} of their files ({size / _MEGABYTE:.1f} MB) from {where}\n")
    threads.shrink()
    if kept:
        raise CommandError(f"in use by a run, and kept: {', '.join(kept)}")


def _directory(arguments: Namespace) -> Path | None:
    return None if arguments.all else arguments.dir.expanduser().resolve()


_VERBS: Final = {
    "list": _list,
    "search": _search,
    "show": _show,
    "export": _export,
    "rename": _rename,
    "delete": _delete,
    "prune": _prune,
    "fork": _fork,
}


def _print_list(threads: Sequence[Thread], *, with_directory: bool) -> None:
    for each in threads:
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(each.used))
        where = f"  {one_line(str(each.directory))}" if with_directory else ""
        sys.stdout.write(
            f"{each.id}  {used}  {each.size / _MEGABYTE:6.1f} MB{where}  {one_line(each.name)}\n"
        )
