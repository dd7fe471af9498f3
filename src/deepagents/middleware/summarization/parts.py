"""The files of an archive: the first, whose name never changes, and those that follow where it is large."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Final

from deepagents.backends.calls import Files
from deepagents.errors import ToolFailure
from deepagents.tools._tool import artifact_name

FOLDER: Final = "conversation_history"
PART_BYTES: Final = 4 * 1024 * 1024
"""How large a part may be: half of what searches on disk still look at."""
_DIGEST_LENGTH: Final = 16
_OWNED: Final = r"(?:\.[0-9a-f]{8}|-[0-9a-f]{16}|\.\d{1,7})"
_PLAIN = re.compile(rf"(?!\.+\Z)(?!.*{_OWNED}\Z)[A-Za-z0-9._-]{{1,100}}")
_PART = re.compile(r"(?P<first>.+?)(?:\.(?P<number>[1-9]\d{0,6}))?\.md")


def archive_path(root: str, thread_id: str | None, session_id: str, namespace: str) -> str:
    """Name the first file of a conversation: one for a thread, one more for each subagent's namespace in it.

    The namespace is the checkpoint namespace of the node that asks; its last part is the node's own.
    """
    owner, _, _ = namespace.rpartition("|")
    part = f".{_digest(owner)[:8]}" if owner else ""
    return f"{root.rstrip('/')}/{FOLDER}/{_name(thread_id or session_id)}{part}.md"


def part_path(first: str, number: int) -> str:
    """Name a part of an archive; they are counted from 1."""
    return first if number == 1 else f"{first.removesuffix('.md')}.{number}.md"


def part_number(path: str, first: str) -> int | None:
    """Tell which part of an archive a file is; `None` for any other file."""
    known, number = _parsed(path)
    return number if known == first else None


def in_order(paths: Iterable[str], first: str) -> list[str]:
    """Return those of the paths that are parts of an archive, in the order in which they were written."""
    numbered = {part_number(path, first): path for path in paths}
    return [numbered[number] for number in sorted(number for number in numbered if number)]


def with_earlier(path: str) -> str:
    """Name a part, and the parts that were written before it."""
    first, number = _parsed(path)
    earlier = [part_path(first, each) for each in range(1, number)]
    match earlier:
        case []:
            return path
        case [only]:
            return f"{path}, what is older to {only}"
        case [_, second]:
            return f"{path}, what is older to {first} and {second}"
        case _:
            return f"{path}, what is older to {first} and {earlier[1]} to {earlier[-1]}"


async def part_sizes(files: Files, first: str) -> Mapping[int, int]:
    """Return the bytes of each part that there is; nothing where the directory cannot be listed."""
    try:
        found = await files.ls(first.rpartition("/")[0])
    except ToolFailure:
        return {}
    numbered = [(part_number(each["path"], first), each.get("size")) for each in found.entries or ()]
    return {number: size or 0 for number, size in numbered if number}


def _parsed(path: str) -> tuple[str, int]:
    """Return the first file of the archive that a path belongs to, and which part it is."""
    found = _PART.fullmatch(path)
    if found is None or found["number"] is None:
        return path, 1
    return f"{found['first']}.md", int(found["number"])


def _name(thread: str) -> str:
    return thread if _PLAIN.fullmatch(thread) else artifact_name(thread, _digest(thread)[:_DIGEST_LENGTH])


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
