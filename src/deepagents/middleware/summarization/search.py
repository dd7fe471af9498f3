"""Search the archive of a conversation by words, and show where what fits best stands in it.

The files of the archive are looked through for each search, so that it fits every backend. There is no index,
as to make one takes longer than to look through the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from math import log
from typing import Final, NamedTuple
from unicodedata import normalize

from pydantic import BaseModel, Field

from deepagents._async import in_thread
from deepagents.backends.handle import FileCalls
from deepagents.errors import ToolFailure
from deepagents.middleware.summarization.archive import find_parts

SEARCH_NAME: Final = "search_history"
SEARCH_DESCRIPTION: Final = (
    "Search the part of this conversation that was summarized. Gives the places that fit best, word for word."
)
_MOST_BYTES: Final = 32 * 1024 * 1024
"""How much of an archive is searched; the newest parts go first."""
_MOST_FOUND: Final = 8
_MOST_WORDS: Final = 30
_COMMON: Final = 0.2
_PIECE: Final = 800
"""Characters of one piece of the archive, which is what is found."""
_WORD: Final = re.compile(r"\w+")
_MARKS: Final = re.compile("[\u0300-\u036f]")
_FENCE: Final = re.compile("`{3,}")
_IS_SEARCH: Final = f'"name": "{SEARCH_NAME}"'


class _Piece(NamedTuple):
    path: str
    line: int
    text: str
    is_search: bool


class SearchHistorySchema(BaseModel):
    """The arguments of `search_history`."""

    query: str = Field(description="A few words")


async def search_archive(files: FileCalls, newest: str, query: str) -> str:
    """Describe the pieces of an archive that fit a query best; `newest` is its last part.

    Raises:
        ToolFailure: for a query without words, and when no part of the archive can be read.
    """
    words = list(dict.fromkeys(_WORD.findall(_fold(query))))[:_MOST_WORDS]
    if not words:
        raise ToolFailure("invalid_argument", f"the query {query!r} has no words; give some")
    parts: list[tuple[str, str]] = []
    left_out: list[str] = []
    room, failure = _MOST_BYTES, None
    for path in reversed(find_parts(newest)):
        if room <= 0:
            left_out.append(path)
            continue
        try:
            data = await files.download(path)
        except ToolFailure as error:
            failure = failure or error
            left_out.append(path)
            continue
        room -= len(data)
        parts.append((path, data.decode(errors="replace")))
    if failure and not parts:
        raise failure
    found = await in_thread(lambda: _search(parts, words))
    return f"{found}\n\n[Not searched: {_name_some(left_out)}.]" if left_out else found


def _name_some(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _MOST_FOUND} more" if len(paths) > _MOST_FOUND else ""
    return ", ".join(paths[:_MOST_FOUND]) + more


def _search(parts: Sequence[tuple[str, str]], words: Sequence[str]) -> str:
    pieces = [_Piece(path, *piece) for path, whole in reversed(parts) for piece in _cut_into_pieces(whole)]
    scores = _score([each.text for each in pieces], words)
    # Of equal ones the newest first, and what earlier searches have found last: it was copied from here.
    best = sorted(
        (at for at, score in enumerate(scores) if score),
        key=lambda at: (pieces[at].is_search, -scores[at], -at),
    )
    if not best:
        return "Nothing was found. Try other words."
    shown = (pieces[at] for at in best[:_MOST_FOUND])
    return "\n\n".join(f"{each.path}, line {each.line}:\n{each.text}" for each in shown)


def _score(texts: Sequence[str], words: Sequence[str]) -> Sequence[float]:
    """Return how well each text fits: by the words that it has, and how rare they are; a part counts half."""
    folded = [_fold(text) for text in texts]
    scores = [0.0] * len(folded)
    for word in words:
        is_whole = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)").search
        holding = [at for at, text in enumerate(folded) if word in text]
        weight = log(1 + len(folded) / max(len(holding), 1))
        # What is everywhere tells little, and would take most of the time.
        is_common = len(holding) > len(folded) * _COMMON
        for at in holding:
            scores[at] += weight if not is_common and is_whole(folded[at]) else weight / 2
    return scores


def _fold(text: str) -> str:
    """Return a text without case and accents."""
    lower = text.lower()
    return lower if lower.isascii() else _MARKS.sub("", normalize("NFD", lower))


def _cut_into_pieces(whole: str) -> Iterator[tuple[int, str, bool]]:
    """Yield pieces of whole lines, each with the number of its first line, and whether it is of a search.

    A message begins a new one.
    """
    first, lines, size = 1, list[str](), 0
    fence, is_search = "", False
    for number, line in enumerate(whole.split("\n"), 1):
        begins = not fence and line.startswith("### ")
        if begins and lines:
            yield first, "\n".join(lines), is_search
            lines, size = [], 0
        is_search = not begins and (is_search or (bool(fence) and _IS_SEARCH in line))
        if marks := _FENCE.match(line):
            fence = "" if line == fence else fence or marks[0]
        for at in range(0, max(len(line), 1), _PIECE):
            part = line[at : at + _PIECE]
            if lines and size + len(part) > _PIECE:
                yield first, "\n".join(lines), is_search
                lines, size = [], 0
            if not lines:
                first = number
            lines.append(part)
            size += len(part) + 1
    if lines:
        yield first, "\n".join(lines), is_search
