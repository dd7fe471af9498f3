"""Search the archive of a conversation by words, and show where what fits best stands in it.

The index is made for each search, in memory and from the files of the archive, so that it fits every backend.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Final

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
_PIECE: Final = 800
"""Characters of one piece of the archive, which is what is found."""
_WORD: Final = re.compile(r"\w+")
# Thai to Khmer, kana, Han: written without spaces, so that SQLite takes a whole sentence for one word.
_UNSPACED: Final = re.compile(r"([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff])")


class SearchHistorySchema(BaseModel):
    """The arguments of `search_history`."""

    query: str = Field(description="A few words")


async def search_archive(files: FileCalls, newest: str, query: str) -> str:
    """Describe the pieces of an archive that fit a query best; `newest` is its last part.

    Raises:
        ToolFailure: for a query without words, and when no part of the archive can be read.
    """
    words = list(dict.fromkeys(_WORD.findall(query.lower())))
    if not words:
        raise ToolFailure("invalid_argument", f"the query {query!r} has no words; give some")
    parts: list[tuple[str, str]] = []
    room, failure = _MOST_BYTES, None
    for path in reversed(find_parts(newest)):
        try:
            data = await files.download(path)
        except ToolFailure as error:
            failure = failure or error
            continue
        room -= len(data)
        parts.append((path, data.decode(errors="replace")))
        if room <= 0:
            break
    if failure and not parts:
        raise failure
    return await in_thread(lambda: _search(parts, words))


def _search(parts: Sequence[tuple[str, str]], words: Sequence[str]) -> str:
    pieces = [(path, line, text) for path, whole in reversed(parts) for line, text in _cut_into_pieces(whole)]
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute("CREATE VIRTUAL TABLE pieces USING fts5(text)")
        database.executemany(
            "INSERT INTO pieces(rowid, text) VALUES (?, ?)",
            ((at, _space(text)) for at, (_, _, text) in enumerate(pieces, 1)),
        )
        # Each word in quotes: nothing of a query is read as a sign of the query language.
        asked = " OR ".join(f'"{_space(each)}"' for each in words)
        found: list[tuple[int]] = database.execute(
            "SELECT rowid FROM pieces WHERE pieces MATCH ? ORDER BY rank, rowid DESC LIMIT ?",
            (asked, _MOST_FOUND),
        ).fetchall()
    if not found:
        return "Nothing was found. Try other words."
    shown = (pieces[at - 1] for (at,) in found)
    return "\n\n".join(f"{path}, line {line}:\n{text}" for path, line, text in shown)


def _space(text: str) -> str:
    """Return a text in which each letter of a script without spaces is a word."""
    return _UNSPACED.sub(r" \1 ", text)


def _cut_into_pieces(whole: str) -> Iterator[tuple[int, str]]:
    """Yield pieces of whole lines, each with the number of its first line; a message begins a new one."""
    first, lines, size = 1, list[str](), 0
    for number, line in enumerate(whole.split("\n"), 1):
        for at in range(0, max(len(line), 1), _PIECE):
            part = line[at : at + _PIECE]
            if lines and (size + len(part) > _PIECE or part.startswith("### ")):
                yield first, "\n".join(lines)
                lines, size = [], 0
            if not lines:
                first = number
            lines.append(part)
            size += len(part) + 1
    if lines:
        yield first, "\n".join(lines)
