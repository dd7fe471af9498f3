"""Merge three versions of a text by lines."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Final, TypeAlias

from deepagents._text.lines import split_keeping_ends
from deepagents._values import valueclass

# Pairs of equal lines times lines: above that difflib takes seconds, in a reducer that holds up a step.
_MAX_WORK: Final = 3_000_000

_Chain: TypeAlias = tuple[int, int, "_Chain | None"]


@valueclass
class _Change:
    """Lines `start` to `end` of the base became lines `new_start` to `new_end` of a side."""

    start: int
    end: int
    new_start: int
    new_end: int


def merge3(base: str, ours: str, theirs: str, labels: tuple[str, str] = ("ours", "theirs")) -> str:
    """Put the changes of both sides together; where they clash, keep both between conflict markers."""
    if ours == theirs or theirs == base:
        return ours
    if ours == base:
        return theirs
    old, left, right = map(split_keeping_ends, (base, ours, theirs))
    merged: list[str] = []
    at = left_shift = right_shift = 0
    for left_changes, right_changes in _groups(deque(_changes(old, left)), deque(_changes(old, right))):
        both = [*left_changes, *right_changes]
        start, end = min(change.start for change in both), max(change.end for change in both)
        merged += old[at:start]
        left_end, right_end = (
            end + left_shift + _growth(left_changes),
            end + right_shift + _growth(right_changes),
        )
        left_text, right_text = left[start + left_shift : left_end], right[start + right_shift : right_end]
        if left_changes and right_changes and left_text != right_text:
            merged += _clash(left_text, right_text, labels)
        else:
            merged += left_text if left_changes else right_text
        at, left_shift, right_shift = end, left_end - end, right_end - end
    return "".join(merged + old[at:])


def _growth(changes: Sequence[_Change]) -> int:
    return sum((each.new_end - each.new_start) - (each.end - each.start) for each in changes)


def _groups(left: deque[_Change], right: deque[_Change]) -> Iterator[tuple[list[_Change], list[_Change]]]:
    """Put together the changes of both sides that touch the same lines of the base."""
    while left or right:
        first = min((side[0] for side in (left, right) if side), key=lambda change: change.start)
        group: tuple[list[_Change], list[_Change]] = ([], [])
        end, grown = first.end, True
        while grown:
            more = [_take(side, first, end) for side in (left, right)]
            for known, new in zip(group, more, strict=True):
                known += new
            grown = any(more)
            end = max([end, *(change.end for new in more for change in new)])
        yield group


def _take(side: deque[_Change], first: _Change, end: int) -> list[_Change]:
    taken: list[_Change] = []
    while side and (side[0] is first or _touches(side[0], first.start, end)):
        taken.append(side.popleft())
        end = max(end, taken[-1].end)
    return taken


def _touches(change: _Change, start: int, end: int) -> bool:
    """Return whether a change reaches into `start` to `end`; an insertion clashes with its neighbours."""
    if change.start == change.end or start == end:
        return change.start <= end
    return change.start < end


def _clash(left: Sequence[str], right: Sequence[str], labels: tuple[str, str]) -> Iterator[str]:
    """Put both texts between markers, but for the lines they have in common at their ends."""
    head = _alike(left, right)
    tail = _alike(left[head:][::-1], right[head:][::-1])
    a, b = left[head : len(left) - tail], right[head : len(right) - tail]
    end = next((line[len(line.rstrip("\r\n")) :] for line in (*left, *right) if line[-1] in "\r\n"), "\n")
    yield from left[:head]
    yield f"<<<<<<< {labels[0]}{end}"
    yield from _end_last_line(a, end)
    yield f"======={end}"
    yield from _end_last_line(b, end)
    yield f">>>>>>> {labels[1]}{end}"
    yield from left[len(left) - tail :]


def _alike(a: Sequence[str], b: Sequence[str]) -> int:
    """Count the lines that two texts have in common from the start."""
    return next((at for at, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def _end_last_line(lines: Sequence[str], end: str) -> Iterator[str]:
    yield from lines[:-1]
    if lines:
        yield lines[-1] if lines[-1][-1] in "\r\n" else lines[-1] + end


def _changes(old: Sequence[str], new: Sequence[str]) -> Iterator[_Change]:
    at = new_at = 0
    # Lines that stand once in both texts cut the work into small gaps (patience diff).
    for anchor, new_anchor in [*_anchors(old, new), (len(old), len(new))]:
        if at < anchor or new_at < new_anchor:
            gap = _changes_between(old[at:anchor], new[new_at:new_anchor])
            yield from (_move(each, at, new_at) for each in gap)
        at, new_at = anchor + 1, new_anchor + 1


def _move(change: _Change, by: int, new_by: int) -> _Change:
    return _Change(change.start + by, change.end + by, change.new_start + new_by, change.new_end + new_by)


def _anchors(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Pair the lines that stand once in each text, as many as keep their order."""
    counts, new_counts = Counter(old), Counter(new)
    new_positions = {line: at for at, line in enumerate(new)}
    tails: list[int] = []
    chains: list[_Chain] = []
    for at, line in enumerate(old):
        if counts[line] != 1 or new_counts[line] != 1:
            continue
        length = bisect_left(tails, new_positions[line])
        chain = (at, new_positions[line], chains[length - 1] if length else None)
        tails[length : length + 1] = [new_positions[line]]
        chains[length : length + 1] = [chain]
    return list(_unchain(chains[-1] if chains else None))[::-1]


def _unchain(chain: _Chain | None) -> Iterator[tuple[int, int]]:
    while chain is not None:
        yield chain[0], chain[1]
        chain = chain[2]


def _changes_between(old: Sequence[str], new: Sequence[str]) -> Iterator[_Change]:
    others = Counter(new)
    equal_pairs = sum(count * others[line] for line, count in Counter(old).items())
    if not equal_pairs or equal_pairs * min(len(old), len(new)) > _MAX_WORK:
        yield _Change(0, len(old), 0, len(new))
        return
    # Without autojunk: it ignores lines that are frequent, such as a brace alone.
    for kind, *bounds in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind != "equal":
            yield _Change(*bounds)
