"""Remove the files that sessions leave: results and messages that were too large, and compacted messages.

A session names its files in what it saves, and a fork names those of its source too. A file goes if a removed
session names it and no other does. A model can write any name, so one counts only in the form that the
library gives, and is removed as file tools would: no link leads out of the folder.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from deepagents.backends.filesystem import FilesystemBackend
from deepagents.backends.protocol import FileInfo
from deepagents.middleware.summarization.archive import archive_path
from deepagents_cli.approval.backends import ARTIFACTS, Files
from deepagents_cli.session.threads.sessions import Sessions

_HISTORY: Final = "conversation_history"
_NAMED: Final = re.compile(
    rb"\.deepagents/artifacts/((?:conversation_history/rules-[0-9a-f]{12}/)?(?:"
    rb"large_tool_results/(?:[\w-]{1,60}-)?[0-9a-f]{12}"
    rb"|conversation_history/media/[0-9a-f]{32}\.[a-z0-9]{1,8}"
    rb"|conversation_history/[\w.-]{1,130}\.md))"
)
_MESSAGE: Final = re.compile(r"/[0-9a-f]{32}\.md")
_PART: Final = re.compile(r"(?:\.[0-9a-f]{8})?(?:\.\d{1,7})?\.md\Z")
_ARCHIVE_BEGINS: Final = b"\n## Summarized at "


def names_of(sessions: Sessions, thread: str) -> frozenset[str]:
    """Return the names of the files that a session refers to, and of its archive."""
    own = archive_path("", thread, "", "")
    return frozenset({_whole(own[1:]), *_names_in(sessions.read_saved(thread))})


def remove_unused(
    sessions: Sessions, gone: Mapping[Path, Collection[str]]
) -> Iterator[tuple[Path, int, int]]:
    """Remove those of the named files below each directory that no session names.

    Yield each folder from which some were removed, how many, and their bytes.
    """
    named: frozenset[str] | None = None
    for directory, names in gone.items():
        files = Files(root_dir=directory, virtual_mode=True)
        listed = dict(_list_files(files))
        if not any(_whole(each) in names for each in listed):
            continue
        if named is None:
            named = frozenset(name for each in sessions.all_ids() for name in names_of(sessions, each))
        surplus = _find_surplus(files, listed, names, named)
        done = [each for each in surplus if not files.delete(f"/{ARTIFACTS}/{each}").error]
        if done:
            yield directory / ARTIFACTS, len(done), sum(map(listed.__getitem__, done))


def _find_surplus(
    files: FilesystemBackend, listed: Iterable[str], gone: Collection[str], kept: Collection[str]
) -> list[str]:
    """Return the files that may go; archives name media and results too, and decide about these."""
    gone, kept = {*gone}, {*kept}
    for each in listed:
        if not each.endswith(".md") or _MESSAGE.search(each):
            continue
        (found,) = files.download_files([f"/{ARTIFACTS}/{each}"])
        held = found.content or b""
        # A file of a person or of the project may have any name.
        is_gone = held.startswith(_ARCHIVE_BEGINS) and _whole(each) in gone and _whole(each) not in kept
        (gone if is_gone else kept).update(_names_in([held]))
        if not is_gone:
            kept.add(_whole(each))
    return [each for each in listed if _whole(each) in gone and _whole(each) not in kept]


def _list_files(files: FilesystemBackend) -> Iterator[tuple[str, int]]:
    """Yield the files that may be those of sessions, below the folder, with their sizes."""
    top = f"/{ARTIFACTS}"
    further = [each["path"].rstrip("/") for each in _list(files, f"{top}/{_HISTORY}", is_dir=True)]
    folders = ("large_tool_results", _HISTORY, f"{_HISTORY}/media")
    for folder in [f"{root}/{name}" for root in (top, *further) for name in folders]:
        for each in _list(files, folder, is_dir=False):
            if found := _NAMED.fullmatch(each["path"].lstrip("/").encode(errors="replace")):
                yield found[1].decode(), each.get("size") or 0


def _list(files: FilesystemBackend, folder: str, *, is_dir: bool) -> Sequence[FileInfo]:
    return [each for each in files.ls(folder).entries or () if bool(each.get("is_dir")) == is_dir]


def _names_in(saved: Iterable[bytes]) -> set[str]:
    return {_whole(each[1].decode()) for text in saved for each in _NAMED.finditer(text)}


def _whole(name: str) -> str:
    """Return one name for all parts of an archive, and those of its subagents."""
    return _PART.sub("", name)
