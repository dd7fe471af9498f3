"""List, search, show, name, remove, export, fork and rewind earlier sessions: `deepagents sessions`."""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from deepagents_cli.commands import undo
from deepagents_cli.commands.options import add_debug
from deepagents_cli.commands.when_run import imported_when_run
from deepagents_cli.errors import CommandError, Exit, missing_package
from deepagents_cli.text import clean, one_line
from deepagents_cli.values import read_count

with imported_when_run():
    from deepagents import undo as history
    from deepagents_cli.project import state
    from deepagents_cli.session.threads import sessions

# To list sessions takes none of what reads their messages: LangChain, for most of a second.
with imported_when_run(late=True):
    from deepagents_cli.session.threads import artifacts, export

_DAY: Final = 86_400
_MEGABYTE: Final = 1_000_000


def add_options(commands: Any) -> None:
    """Describe the command and its options."""
    sessions = commands.add_parser(
        "sessions", help="list, show, name, remove, export, fork and rewind what runs have left"
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

    back = add("rewind", "go back to before one of your messages; alone, list these")
    back.add_argument(
        "--to", metavar="N", help="the message to go back to before, as `show` and this command number them"
    )
    back.add_argument(
        "--only", choices=("files", "conversation"), help="what goes back (default: both of these)"
    )
    undo.add_agreement(back)


def run(arguments: Namespace, *, model: Any = None) -> int:
    """Do what the verb says; return the exit code."""
    try:
        return _VERBS[arguments.verb](sessions.Sessions(state.state_dir()), arguments) or Exit.DONE
    except ModuleNotFoundError as error:
        raise missing_package(error, "cli") from error


def _list(store: sessions.Sessions, arguments: Namespace) -> None:
    _print_list(store.find_all(_directory(arguments)), with_directory=arguments.all)


def _search(store: sessions.Sessions, arguments: Namespace) -> None:
    wanted = arguments.text.casefold()
    with closing(export.MessageReader(store.path)) as reader:
        found = [
            each
            for each in store.find_all(_directory(arguments))
            if wanted in each.name.casefold()
            or any(wanted in message.text.casefold() for message in reader.read(each.id))
        ]
    _print_list(found, with_directory=arguments.all)


def _show(store: sessions.Sessions, arguments: Namespace) -> None:
    found = store.find(arguments.session)
    sys.stdout.write(clean(export.as_markdown(found, export.read_messages(store, found.id))))


def _export(store: sessions.Sessions, arguments: Namespace) -> None:
    found = store.find(arguments.session)
    write = export.as_json if arguments.json else export.as_markdown
    written = write(found, export.read_messages(store, found.id))
    # In a file it stays as it was; at a terminal it must not steer it.
    sys.stdout.write(clean(written) if sys.stdout.isatty() else written)


def _rename(store: sessions.Sessions, arguments: Namespace) -> None:
    store.rename(store.find(arguments.session).id, arguments.name)


def _delete(store: sessions.Sessions, arguments: Namespace) -> None:
    # All are found before the first is removed: a typing error removes nothing.
    _remove(store, [store.find(name) for name in arguments.session])


def _prune(store: sessions.Sessions, arguments: Namespace) -> None:
    """Remove what is older than asked, then the oldest until the rest is as small as asked."""
    if arguments.older is None and arguments.keep is None:
        raise CommandError("say what to remove: --older DAYS, --keep MB, or both", Exit.USAGE)
    now, kept, surplus = time.time(), 0, list[sessions.Session]()
    for each in store.find_all(_directory(arguments)):
        too_old = arguments.older is not None and now - each.used > arguments.older * _DAY
        too_large = arguments.keep is not None and kept + each.size > arguments.keep * _MEGABYTE
        if too_old or too_large:
            surplus.append(each)
        else:
            kept += each.size
    _remove(store, surplus)


def _fork(store: sessions.Sessions, arguments: Namespace) -> None:
    sys.stdout.write(f"{export.fork(store, store.find(arguments.session), arguments.at)}\n")


def _rewind(store: sessions.Sessions, arguments: Namespace) -> int:
    found = store.find(arguments.session)
    if arguments.to is None:
        undo.list_messages(found)
        return Exit.DONE
    what = arguments.only or "both"
    return undo.go_back(found, arguments.to, what, arguments.write, agreed=arguments.yes)


def _remove(store: sessions.Sessions, surplus: Sequence[sessions.Session]) -> None:
    """Remove sessions and their files; one in use keeps none of the others."""
    if not surplus:
        return
    kept: list[str] = []
    alone: list[str] = []
    gone: dict[Path, set[str]] = {}
    for each in surplus:
        try:
            with store.hold(each.id):
                gone.setdefault(each.directory, set()).update(artifacts.names_of(store, each.id))
                # A copy goes back by the records of its source too.
                alone += [] if store.has_copy(each.id) else [each.id]
                store.forget(each.id)
        except sessions.InUse:
            kept.append(each.id)
        else:
            sys.stdout.write(f"removed {each.id}  {one_line(each.name)}\n")
    for folder, count, size in artifacts.remove_unused(store, gone):
        where = one_line(str(folder))
        sys.stdout.write(f"removed {count:,} of their files ({size / _MEGABYTE:.1f} MB) from {where}\n")
    store.shrink()
    _forget_files(alone)
    if kept:
        raise CommandError(f"in use by a run, and kept: {', '.join(kept)}")


def _forget_files(threads: Sequence[str]) -> None:
    """Drop what was kept of the files that these have changed."""
    if threads and state.undo_dir().exists():
        with closing(history.FileHistory(state.undo_dir())) as kept:
            for each in threads:
                kept.forget(each)


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
    "rewind": _rewind,
}


def _print_list(found: Sequence[sessions.Session], *, with_directory: bool) -> None:
    for each in found:
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(each.used))
        where = f"  {one_line(str(each.directory))}" if with_directory else ""
        where += f"  worktree {one_line(each.branch)}" if each.branch else ""
        sys.stdout.write(
            f"{each.id}  {used}  {each.size / _MEGABYTE:6.1f} MB{where}  {one_line(each.name)}\n"
        )
