"""Read complaints in what a checker printed, and find those that are new, wherever their lines moved to."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

from deepagents._text import escape_controls, split_lines, truncate
from deepagents._values import replace, valueclass

Key: TypeAlias = tuple[str, str]

_COMPLAINT: Final = re.compile(
    r"(?P<indent>\s*)(?P<path>[^\s:()][^:()\n]*)"
    r"(?::(?P<line>\d+)(?::\d+)?(?:-\d+(?::\d+)?)?\s*(?::|\s-)|\((?P<at>\d+)(?:,\d+)?\)\s*:)\s*(?P<text>\S.*)"
)
"""`path:12:5: text`, `path:12:5 - text` and `path(12,5): text`, of which most programs print one."""
_BELOW_PATH: Final = re.compile(r"\s+(\d+:\d+)\s+((?:error|warning)\s.*)")
"""As eslint has it, below a line with the path alone."""
_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")
_PLACES: Final = re.compile(r"(?:(?<=\bline )|(?<=\blines )|(?<=\w:))\d+\b")
_SEVERITY: Final = re.compile(r"(fatal |syntax )?(error|warning|information|info|note|hint)\b", re.IGNORECASE)
_LAST: Final = ("warning", "information", "info", "note", "hint")
_LONGEST: Final = 300
_MOST_DETAILS: Final = 2
_MOST_OTHERS: Final = 5


@valueclass
class Complaint:
    """One complaint: `key` stays when lines move, `shown` are the lines that a reader gets."""

    path: str
    line: str
    key: Key
    rank: int
    shown: tuple[str, ...]


def read_complaints(output: str) -> list[Complaint]:
    """Find the complaints in an output; lines that are indented further belong to the one above them."""
    found: list[Complaint] = []
    indent, details, heading = 0, list[str](), ""
    for line in split_lines(_COLOURS.sub("", output)):
        own = len(line) - len(line.lstrip())
        below = _BELOW_PATH.fullmatch(line)
        if below and heading:
            line = f"{heading}:{below[1]}: {below[2]}"
        match = _COMPLAINT.fullmatch(line)
        if match and re.search(r"[./]", match["path"]) and not (details and own > indent):
            indent, details = own, [line.strip()]
            found.append(_complaint(match["path"], match["line"] or match["at"], match["text"], details))
        elif details and own > indent:
            if len(details) <= _MOST_DETAILS:
                details.append(f"  {line.strip()}")
                found[-1] = replace(found[-1], shown=_show(details))
        else:
            details, heading = [], line.strip()
    return found


def _complaint(path: str, line: str, text: str, lines: Iterable[str]) -> Complaint:
    severity = _SEVERITY.match(text)
    # What names no severity, as most linters, stands between the two.
    rank = 1 if severity is None else 2 if severity[2].lower() in _LAST else 0
    return Complaint(path, line, (path, _PLACES.sub("#", text)), rank, _show(lines))


def _show(lines: Iterable[str]) -> tuple[str, ...]:
    return tuple(truncate(escape_controls(each), _LONGEST) for each in lines)


def count(complaints: Iterable[Complaint]) -> Counter[Key]:
    """Count the complaints that say the same of the same file."""
    return Counter(each.key for each in complaints)


def find_new(complaints: Sequence[Complaint], known: Counter[Key]) -> list[Complaint]:
    """Return what is not among the known ones, each of which stands for one complaint.

    Of several that say the same it is not known which is new, so the others are named.
    """
    left, found = Counter(known), list[Complaint]()
    for each in complaints:
        if left[each.key] > 0:
            left[each.key] -= 1
        elif known[each.key]:
            others = [other.line for other in complaints if other.key == each.key and other is not each]
            note = f" [or in line {', '.join(others[:_MOST_OTHERS])}, which says the same]"
            found.append(replace(each, shown=(each.shown[0] + note, *each.shown[1:])))
        else:
            found.append(each)
    return found


def is_about(complaint: Complaint, paths: Iterable[str]) -> bool:
    """Return whether a complaint is about one of these files, which it may name from any directory."""
    named = complaint.path.removeprefix("./")
    return any(each == named or each.endswith(f"/{named.lstrip('/')}") for each in paths)
