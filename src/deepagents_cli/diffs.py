"""Show a change as a unified diff; pure."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import unified_diff
from typing import Final

_NO_NEWLINE: Final = "\\ No newline at end of file"


def name_in(path: str, directory: str) -> str:
    """Return a file's name below a directory; its whole path where it lies elsewhere."""
    below = f"{directory.rstrip('/')}/"
    return path.removeprefix(below) if directory and "/.." not in path else path


def text_diff(before: str | None, after: str | None, path: str) -> list[str]:
    """Compare two texts of one file; `None` is a file that is not there.

    Only a newline ends a line, as for programs that read the file; `\\r\\n` counts as one.
    """
    shown = path.lstrip("/").replace("\n", "\\n")
    lines = unified_diff(
        _lines(before or ""),
        _lines(after or ""),
        "/dev/null" if before is None else f"a/{shown}",
        "/dev/null" if after is None else f"b/{shown}",
        lineterm="",
    )
    return [each for at, line in enumerate(lines) for each in _mark_missing_newline(line, in_header=at < 2)]


def _lines(text: str) -> list[str]:
    # Not `splitlines`: it also splits at form feeds and the like, and the diff would show a comment as code
    # or hide the change altogether.
    *whole, rest = text.replace("\r\n", "\n").split("\n")
    return [f"{line}\n" for line in whole] + ([rest] if rest else [])


def _mark_missing_newline(line: str, *, in_header: bool) -> Iterator[str]:
    yield line.removesuffix("\n")
    if not in_header and line[0] in " +-" and not line.endswith("\n"):
        yield _NO_NEWLINE
