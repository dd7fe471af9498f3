"""Keep evicted messages, whole and readable, in Markdown files of each conversation that are only added to.

A compaction adds sections. A section ends with a line that names the marks of its messages. A write that was
torn has no such line, so its messages are added again; a message whose mark stands in one is never added
twice. Nothing reads the files back into messages.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

from langchain_core.messages import AnyMessage, BaseMessage

from deepagents._async import in_thread
from deepagents._paths import HISTORY
from deepagents._values import valueclass
from deepagents.backends.handle import FileCalls
from deepagents.errors import ToolFailure
from deepagents.middleware.summarization.media import MediaFiles, are_lost, file_sizes
from deepagents.tools._tool import artifact_name

PART_BYTES: Final = 4 * 1024 * 1024
"""How large a part may be: searches on disk pass over files of more than 10 MB."""
_ENDING: Final = "<!-- end of section "
_END: Final = re.compile(r"<!-- end of section ([0-9a-f]{16}):((?: [0-9a-f]{12})+) -->")
# Names that could be those of another conversation's further parts or subagents are not used as they are.
_OWNED: Final = r"(?:\.[0-9a-f]{8}|-[0-9a-f]{16}|\.\d{1,7})"
_PLAIN: Final = re.compile(rf"(?!\.+\Z)(?!.*{_OWNED}\Z)[A-Za-z0-9._-]{{1,100}}")
_PART: Final = re.compile(r"(?P<first>.+?)(?:\.(?P<number>[1-9]\d{0,6}))?\.md")
_LONGEST_END: Final = 200
_LONGEST_IN_LINE: Final = 120
_LONGEST_LABEL: Final = 100
_OWN_FENCE: Final = re.compile(r"content|content\.\d+(?:\.text)?")
_UNFIT: Final = re.compile("[\0\ud800-\udfff]")
_TO_ESCAPE: Final = re.compile("[\0\\\\\ud800-\udfff]")
_FENCES: Final = re.compile("`+")


@valueclass
class Archived:
    """The part that messages were added to last, or why they are not kept."""

    path: str | None
    error: str | None = None


_Entries: TypeAlias = Sequence[tuple[str, BaseMessage, str]]
"""Messages, each with what it is known by before it, and as it is written down behind it."""


class Archive:
    """The files of one conversation, for one compaction; `path` is the first of them."""

    def __init__(self, files: FileCalls, path: str, part_bytes: int = PART_BYTES) -> None:
        self.files = files
        self.path = path
        self.part_bytes = part_bytes
        root = path.rpartition(f"/{HISTORY}/")[0]
        self.media = MediaFiles(f"{root}/{HISTORY}/media", root)

    async def add(
        self, messages: Sequence[AnyMessage], *, made_at: str, since: str | None = None
    ) -> Archived:
        """Add those of the messages that are not there whole yet.

        `since` is the part that the last compaction wrote to: none of the messages can be in an earlier one.
        """
        if not messages:
            return Archived(None)
        if are_lost(self.files, self.path):
            return Archived(None, "this graph keeps no files in its state; add FilesystemMiddleware")
        entries = await in_thread(lambda: list(self._write(messages)))
        listed = await file_sizes(self.files, self.path.rpartition("/")[0])
        sizes = {at: size or 0 for path, size in listed.items() if (at := part_number(path, self.path))}
        newest = max(sizes, default=1)
        known = await self._find_known_marks(part_number(since or "", self.path) or 1, newest, sizes)
        missing = [each for each in entries if each[0] not in known]
        if not missing:
            return Archived(part_path(self.path, newest))
        try:
            await self.media.save(self.files)
            return await self._append(missing, newest, sizes.get(newest, 0), made_at)
        except ToolFailure as failure:
            return Archived(None, failure.text)

    async def _append(self, entries: _Entries, number: int, size: int, made_at: str) -> Archived:
        if self.media.unsaved:
            entries = await in_thread(
                lambda: [(mark, each, write_message(each, self.media)) for mark, each, _ in entries]
            )
        for section in _sections(entries, self.part_bytes):
            text = _write_section(section, made_at)
            length = len(text.encode())
            if size and size + length > self.part_bytes:
                number, size = number + 1, 0
            # One append for each section: a torn write costs that section alone, which is added again.
            await self.files.append(part_path(self.path, number), text)
            size += length
        return Archived(part_path(self.path, number))

    def _write(self, messages: Sequence[BaseMessage]) -> Iterator[tuple[str, BaseMessage, str]]:
        mark = ""
        for message in messages:
            text = write_message(message, self.media)
            # Without an id, what stands before a message tells it from others of the same words.
            mark = _digest(f"{self.path}\n{'' if message.id else mark}\n{text}")[:12]
            yield mark, message, text

    async def _find_known_marks(self, first: int, newest: int, sizes: Mapping[int, int]) -> frozenset[str]:
        """Return the marks of all messages that stand whole in these parts."""
        marks: set[str] = set()
        for number in range(min(first, newest), newest + 1):
            try:
                lines = await self._endings(part_path(self.path, number), sizes.get(number, 0))
            except ToolFailure:
                continue
            ends = [_END.fullmatch(each.strip()) for each in lines]
            marks.update(mark for end in ends if end for mark in end[2].split())
        return frozenset(marks)

    async def _endings(self, path: str, size: int) -> Sequence[str]:
        """Return the lines of a part that may end a section."""
        if size <= self.part_bytes:
            found = await self.files.grep(_ENDING, path)
            return [each["text"] for each in found.matches or ()]
        # Searches pass over large files. Such a part holds one message, so its only end is the last line.
        whole = await self.files.download(path)
        return whole[-_LONGEST_END:].decode(errors="replace").splitlines()[-1:]


def archive_path(root: str, thread_id: str | None, session_id: str, namespace: str) -> str:
    """Return the first file of a conversation: one for a thread, one more for each subagent in it.

    `namespace` is the checkpoint namespace of the node that asks; its last part is the node's own.
    """
    owner, _, _ = namespace.rpartition("|")
    part = f".{_digest(owner)[:8]}" if owner else ""
    name = thread_id or session_id
    if not _PLAIN.fullmatch(name):
        name = artifact_name(name, _digest(name)[:16])
    return f"{root.rstrip('/')}/{HISTORY}/{name}{part}.md"


def part_path(first: str, number: int) -> str:
    """Return the path of a part of an archive; parts are counted from 1."""
    return first if number == 1 else f"{first.removesuffix('.md')}.{number}.md"


def part_number(path: str, first: str) -> int | None:
    """Return which part of an archive a file is; `None` for any other file."""
    known, number = _parse_part(path)
    return number if known == first else None


def find_parts(path: str) -> list[str]:
    """Return the paths of a part and of all before it, the oldest first."""
    first, number = _parse_part(path)
    return [part_path(first, each) for each in range(1, number + 1)]


def describe_parts(path: str) -> str:
    """Describe a part and the parts that were written before it."""
    first, number = _parse_part(path)
    if number == 1:
        return path
    older = first if number == 2 else f"{first} and {part_path(first, 2)}"
    last = f" to {part_path(first, number - 1)}" if number > 3 else ""
    return f"{path}, what is older to {older}{last}"


def write_message(message: BaseMessage, media: MediaFiles) -> str:
    """Write a message down whole: a heading, a line of JSON, and each longer text in a fence of its own.

    Texts stand there as they are, so that grep finds them; only one with NUL or half characters has escapes,
    and its fence says so. Media that have a file are named.
    """
    texts: list[tuple[str, str]] = []

    def text(value: str, path: str) -> Any:
        is_short = "\n" not in value and len(value) <= _LONGEST_IN_LINE
        if is_short and not (value and _OWN_FENCE.fullmatch(path)):
            return value
        texts.append((re.sub(r"[^\w.-]", "_", path)[:_LONGEST_LABEL], value))
        return {"$text": len(texts)}

    def plain(value: Any, path: str) -> Any:
        match value:
            case str():
                return text(value, path)
            case bytes():
                return {"$bytes": base64.b64encode(value).decode()}
            case dict():
                holder = cast("dict[Any, Any]", value)
                return {
                    str(key): media.reference(holder, key) or plain(holder[key], f"{path}.{key}".lstrip("."))
                    for key in holder
                }
            case list() | tuple():
                items = cast("Sequence[Any]", value)
                return [plain(each, f"{path}.{number}") for number, each in enumerate(items)]
            case _:
                return value

    data = plain(message.model_dump(exclude_defaults=True, warnings=False), "")
    line = _write_fence("json", json.dumps(data, ensure_ascii=False, default=repr))
    return f"### {message.type}\n\n{line}" + "".join(
        _write_fence(f"text {label}", text) for label, text in texts
    )


def _write_fence(label: str, text: str) -> str:
    # Longer than any row of backticks inside, so that no text closes its own fence.
    fence = "`" * max(3, 1 + max(map(len, _FENCES.findall(text)), default=0))
    if _UNFIT.search(text):
        kind, _, rest = label.partition(" ")
        label = f"{kind}-escaped {rest}".strip()
        text = _TO_ESCAPE.sub(lambda found: "\\\\" if found[0] == "\\" else f"\\u{ord(found[0]):04x}", text)
    return f"{fence}{label}\n{text}\n{fence}\n\n"


def _write_section(section: _Entries, made_at: str) -> str:
    body = "".join(text for _, _, text in section)
    mark = _digest(body)[:16]
    beginning = f"<!-- section {mark}, {len(body)} characters -->"
    marks = " ".join(mark for mark, _, _ in section)
    return f"\n## Summarized at {made_at}\n\n{beginning}\n\n{body}{_ENDING}{mark}: {marks} -->\n"


def _sections(entries: _Entries, most: int) -> Iterator[_Entries]:
    """Group messages so that no group is larger than a part, except for a single message that is."""
    begin = size = 0
    for at, (_, _, text) in enumerate(entries):
        length = len(text.encode())
        if size and size + length > most:
            yield entries[begin:at]
            begin, size = at, 0
        size += length
    yield entries[begin:]


def _parse_part(path: str) -> tuple[str, int]:
    """Return the first file of the archive that a path belongs to, and which part it is."""
    found = _PART.fullmatch(path)
    if found is None or found["number"] is None:
        return path, 1
    return f"{found['first']}.md", int(found["number"])


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
