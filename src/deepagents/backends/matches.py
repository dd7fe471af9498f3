"""Show search results as text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Literal

from deepagents.backends.results import GrepMatch

OutputMode = Literal["files_with_matches", "content", "count"]

NO_MATCHES = "No matches found"
_LOOKS_LIKE_REGEX = re.compile(r"\\[|.*+?()\[\]{}^$wdsbWDSB]|\.[*+]|\|")


def format_grep_matches(matches: Sequence[GrepMatch], output_mode: OutputMode = "files_with_matches") -> str:
    """Show matches as paths, as counts for each path, or as the lines themselves."""
    if not matches:
        return NO_MATCHES
    ordered = sorted(matches, key=lambda match: (match["path"], match["line"]))
    by_path = [(path, list(group)) for path, group in groupby(ordered, key=lambda match: match["path"])]
    match output_mode:
        case "files_with_matches":
            return "\n".join(path for path, _ in by_path)
        case "count":
            return "\n".join(f"{path}: {len(group)}" for path, group in by_path)
        case "content":
            return "\n".join(line for path, group in by_path for line in (f"{path}:", *_lines(group)))


def regex_literal_hint(pattern: str) -> str | None:
    """Explain an empty literal search whose pattern looks like a regular expression."""
    if not _LOOKS_LIKE_REGEX.search(pattern):
        return None
    return f"The pattern {pattern!r} was searched literally; for a regular expression set regex=true."


def _lines(group: Iterable[GrepMatch]) -> list[str]:
    shown: dict[int, str] = {}
    with_context = False
    for match in group:
        around = [*match.get("context_before", ()), *match.get("context_after", ())]
        with_context = with_context or "context_before" in match
        for line in around:
            shown.setdefault(line["line"], f"  {line['line']}- {line['text']}")
        shown[match["line"]] = f"  {match['line']}: {match['text']}"
    numbers = sorted(shown)
    rows: list[str] = []
    for before, number in zip([None, *numbers], numbers, strict=False):
        if with_context and before is not None and number > before + 1:
            rows.append("  --")
        rows.append(shown[number])
    return rows
