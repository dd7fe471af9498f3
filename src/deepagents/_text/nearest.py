"""Explain why a quote is not in a text: where it fits apart from looks, or is nearest, and what differs."""

from __future__ import annotations

import heapq
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher, unified_diff
from itertools import islice, takewhile, zip_longest
from typing import Final, TypeAlias

from deepagents._text.endings import to_lf
from deepagents._text.lines import split_lines
from deepagents._text.looks import (
    ENCODED,
    ESCAPED,
    EVENED,
    FENCED,
    MAX_LENGTH,
    NUMBERED,
    even_out,
    find_places,
    readings,
)
from deepagents._text.show import number_lines

_QUOTED: Final = 200
_PLACES_SHOWN: Final = 8
_MAX_LINES: Final = 50_000
_MAX_LINE: Final = 20_000
_MAX_OLD_LINES: Final = 400
# A place that is shown in part would be copied in part, so one that is longer is only named.
_MAX_SHOWN_LINES: Final = 60
_MAX_SHOWN: Final = 6000
_MAX_PART: Final = 1000
_MAX_ROWS: Final = 12
_MAX_WIDTH: Final = 200
_CANDIDATES: Final = 20
_ALIKE: Final = 0.6
_SLACK: Final = 8
_MOST_TRIED: Final = 20
_NOTHING_ALIKE: Final = "No similar place was found. Read the file again and copy the text exactly."
_SPOILT: Final = {
    NUMBERED: "Each line of old_string begins with its line number; leave the numbers out.",
    ESCAPED: "old_string is escaped twice: it has the two characters \\ and n where the file has a line end, "
    "or the like.",
    FENCED: "old_string stands in a code fence; leave it out.",
    ENCODED: "old_string is written with HTML entities; write the characters.",
}
_MEANT: Final = {
    NUMBERED: "Without them it fits",
    ESCAPED: "Unescaped it fits",
    FENCED: "Without it the text fits",
    ENCODED: "With them it fits",
}

_WORD = re.compile(r"\w+")
_ELLIPSIS = re.compile(r"\W*(\.\.\.|…)(\W*|[^(]* (code|lines?|unchanged|rest|existing|omitted)\b.*)")
_HEADING = re.compile(r"(\w+ )*(def|class|function|fn|func|fun|sub|interface|struct|enum|impl|module|test)\b")
_SECTION = re.compile(r"#{1,6} \S|\[.+\]$")

_Place: TypeAlias = tuple[int, int]


def describe_miss(content: str, old: str) -> str:
    """Describe where a text that is not in the content comes nearest to it, and what to do."""
    plain, wanted = to_lf(content), to_lf(old)
    key = wanted.removesuffix("\n")
    if key and key != wanted and plain.endswith(key):
        return _trailing_newline(plain.count(key))
    # One line is enough to know it by, and more of it would look like the text of the file.
    line = next(filter(str.strip, wanted.split("\n")), "")
    shown = line[:_QUOTED] + "..." * (len(wanted) > len(line[:_QUOTED]))
    return f"String not found in file: '{shown}'. {_describe_nearest(plain, wanted)}"


def _trailing_newline(times: int) -> str:
    hint = (
        "String not found in file: old_string ends with a newline, but the file ends without one. "
        "Retry with the trailing newline removed"
    )
    if times == 1:
        return f"{hint}."
    return f"{hint} and add surrounding context: without it the text would appear {times} times."


def _describe_nearest(content: str, old: str) -> str:
    # Bounds for the time: this runs for each failed edit, on whatever a file holds.
    lines = [line[:_MAX_LINE] for line in split_lines(content[:MAX_LENGTH])[:_MAX_LINES]]
    evened = even_out(lines)
    for reading in readings(old[:MAX_LENGTH]):
        wanted = [line[:_MAX_LINE] for line in split_lines(reading.text)]
        found = find_places(evened, even_out(wanted))
        places = [_with_blank_lines(each, evened, wanted) for each in dict.fromkeys(found)]
        if places:
            fit = _describe_fit(lines, places, wanted, reading.spoilt)
            return f"{_SPOILT[reading.spoilt]} {fit}" if reading.spoilt else fit
    wanted = split_lines(old[:MAX_LENGTH])
    if len(wanted) > _MAX_OLD_LINES:
        return _NOTHING_ALIKE
    return _describe_alike(lines, evened, [line[:_MAX_LINE] for line in wanted])


def _with_blank_lines(place: _Place, lines: Sequence[str], wanted: Sequence[str]) -> _Place:
    """Give a place the blank lines around it, at most as many as the wanted text has there."""
    start, end = place
    while not lines[start] and start < end - 1:
        start += 1
    while not lines[end - 1] and start < end - 1:
        end -= 1
    start -= _count_blank(zip(reversed(lines[:start]), wanted, strict=False))
    end += _count_blank(zip(lines[end:], reversed(wanted), strict=False))
    return start, end


def _count_blank(pairs: Iterable[tuple[str, str]]) -> int:
    return sum(1 for _ in takewhile(lambda pair: not any(map(str.strip, pair)), pairs))


def _describe_fit(lines: Sequence[str], places: Sequence[_Place], wanted: Sequence[str], spoilt: str) -> str:
    there, key = lines[slice(*places[0])], "\n".join(wanted).strip("\n")
    is_exact = key in "\n".join(there)
    kinds = " and ".join(_kinds_of_difference(there, key)) or "look-alike characters"
    apart = "" if is_exact else f" apart from {kinds}"
    if len(places) > 1:
        fit = "fit there" if spoilt else "fit"
        apart = apart or " apart from the blank lines around them"
        return f"{len(places)} places {fit}{apart}: {_name_all(lines, places)}. Quote more lines, exactly."
    if spoilt:
        fit = f"{_MEANT[spoilt]} {_name(*places[0])}{apart}"
        return f"{fit}." if is_exact else f"{fit}. {_show(lines, places[0], key)}"
    if is_exact:
        # Whoever copies blank lines that the new text has not would lose them.
        start, end = find_places(lines, wanted)[0]
        return (
            f"Without the blank lines at its ends it fits {_name(start, end)}. Leave them out, or read "
            f"{_name(max(start - 2, 0), min(end + 2, len(lines)))} and quote what stands there."
        )
    pairs = [pair for pair in zip_longest(there, key.split("\n"), fillvalue="") if pair[0] != pair[1]]
    in_file, in_old = next((pair for pair in pairs if pair[1] not in pair[0]), pairs[-1])
    return (
        f"{_show(lines, places[0], key)}\nIt differs in {kinds}: the file has {ascii(in_file[:_MAX_WIDTH])}, "
        f"old_string has {ascii(in_old[:_MAX_WIDTH])}. Copy the file's text exactly."
    )


def _kinds_of_difference(there: Sequence[str], key: str) -> list[str]:
    wanted = key.split("\n")
    return [
        kind
        for kind in EVENED
        if "\n".join(even_out(wanted, kind)).strip("\n") not in "\n".join(even_out(there, kind))
    ]


def _describe_alike(lines: Sequence[str], evened: Sequence[str], wanted: Sequence[str]) -> str:
    even_wanted = even_out(wanted)
    left_out, places = _find_elided(evened, even_wanted)
    elided = f"{left_out!r} in old_string stands for lines of the file: quote them too, or fewer."
    if left_out and not places:
        return f"{elided} Read the file first."
    places = places or _find_alike(lines, evened, wanted, _complete(evened, even_wanted))
    if not places:
        return _NOTHING_ALIKE
    if len(places) > 1:
        near = "fit" if left_out else "are equally near"
        return f"{len(places)} places {near}: {_name_all(lines, places)}. Quote more lines, exactly."
    shown, there = _show(lines, places[0], "\n".join(wanted).strip("\n")), lines[slice(*places[0])]
    if left_out:
        return f"{shown}\n{elided}"
    cut_there, cut_wanted = ([line[:_MAX_WIDTH] for line in each] for each in (there, wanted))
    diff = islice(unified_diff(cut_there, cut_wanted, n=0, lineterm=""), 2, None)
    rows = [row for row in diff if not row.startswith("@@")]
    more = "\n..." if len(rows) > _MAX_ROWS else ""
    return (
        f"{shown}\nIt differs ('-' the file, '+' old_string):\n" + "\n".join(rows[:_MAX_ROWS]) + more + "\n"
        "Copy the file's text exactly."
    )


def _find_elided(lines: Sequence[str], wanted: Sequence[str]) -> tuple[str, list[_Place]]:
    """Find where a text fits whose `...` stands for lines, and return that, too; nowhere if it ends so."""
    left_out = next((line for line in wanted if _ELLIPSIS.fullmatch(line)), "")
    parts = [[""]]
    for line in wanted:
        if _ELLIPSIS.fullmatch(line):
            parts.append([""])
        else:
            parts[-1].append(line)
    keys = ["\n".join([*part, ""]) for part in parts]
    if not left_out or not keys[0].strip() or not keys[-1].strip():
        return left_out, []
    text = "\n".join(["", *lines, ""])
    places: list[_Place] = []
    start = text.find(keys[0])
    while start >= 0 and len(places) < _MOST_TRIED:
        end = start + len(keys[0])
        for key in filter(str.strip, keys[1:]):
            at = text.find(key, end)
            if at < 0:
                return left_out, places
            end = at + len(key)
        places.append((text.count("\n", 0, start), text.count("\n", 0, end - 1)))
        start = text.find(keys[0], start + 1)
    return left_out, places


def _find_alike(
    lines: Sequence[str], evened: Sequence[str], wanted: Sequence[str], even_wanted: Sequence[str]
) -> list[_Place]:
    """Find the places that have most in common with a text: more than one where they are equally near."""
    starts = _find_most_lines_in_common(evened, even_wanted)
    if starts:
        agreeing = [_agree(evened, even_wanted, start) for start in starts[:_MOST_TRIED]]
        most = max(size for size, *_ in agreeing)
        spans = [span for size, *span in agreeing if size == most]
    else:
        spans = [[(at, key_at)] * 2 for at, key_at in _find_most_alike_lines(lines, wanted)]
    return list(dict.fromkeys(_reach(evened, even_wanted, first, last) for first, last in spans))


def _find_most_lines_in_common(lines: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """Return where the text would begin if the most of its lines, by length, were in their place."""
    wanted_at: dict[str, list[int]] = defaultdict(list)
    for at, key in enumerate(wanted):
        if key:
            wanted_at[key].append(at)
    votes: dict[int, int] = defaultdict(int)
    for at, line in enumerate(lines):
        for inside in wanted_at.get(line, ()):
            votes[at - inside] += len(line)
    most = max(votes.values(), default=0)
    if 3 * most < sum(map(len, wanted_at)):
        return []
    return sorted(start for start in votes if votes[start] == most)


def _agree(
    lines: Sequence[str], wanted: Sequence[str], start: int
) -> tuple[int, tuple[int, int], tuple[int, int]]:
    """Return how much of a text is near a place, and the first and last line of both that agree."""
    inside = range(max(-start, 0), min(len(wanted), len(lines) - start))
    at = max((each for each in inside if lines[start + each] == wanted[each]), key=lambda at: len(wanted[at]))
    anchor = start + at
    # The nearest first: of lines that occur again and again, those count that are near what agrees.
    before = _walk(lines[max(anchor - at - _SLACK, 0) : anchor][::-1], wanted[:at][::-1])
    after = _walk(lines[anchor + 1 : start + len(wanted) + _SLACK], wanted[at + 1 :])
    size = before[0] + len(wanted[at]) + after[0]
    return size, (anchor - before[1], at - before[2]), (anchor + after[1], at + after[2])


def _walk(lines: Sequence[str], wanted: Sequence[str]) -> tuple[int, int, int]:
    """Return how much agrees in lines that both go on with, and how many of each it is to the last of it."""
    found = SequenceMatcher(None, lines, wanted, autojunk=False).get_matching_blocks()
    blocks = [each for each in found if any(lines[each.a : each.a + each.size])]
    if not blocks:
        return 0, 0, 0
    size = sum(len(line) for each in blocks for line in lines[each.a : each.a + each.size])
    return size, blocks[-1].a + blocks[-1].size, blocks[-1].b + blocks[-1].size


def _reach(
    lines: Sequence[str], wanted: Sequence[str], first: tuple[int, int], last: tuple[int, int]
) -> _Place:
    """Return the lines from where both texts agree, or are alike, to where they do so again."""
    (start, at), (end, until) = first, last
    before = zip(reversed(lines[:start]), reversed(wanted[:at]), strict=False)
    after = zip(lines[end + 1 :], wanted[until + 1 :], strict=False)
    start -= sum(1 for _ in takewhile(_are_alike, before))
    end += sum(1 for _ in takewhile(_are_alike, after))
    return _with_blank_lines((start, end + 1), lines, wanted)


def _are_alike(pair: tuple[str, str]) -> bool:
    one, other = (each[:_MAX_WIDTH] for each in pair)
    return one == other or SequenceMatcher(None, one, other, autojunk=False).ratio() > _ALIKE


def _find_most_alike_lines(lines: Sequence[str], wanted: Sequence[str]) -> list[tuple[int, int]]:
    """Return the lines that are most like the longest wanted one, each with where that stands."""
    key_at = max(range(len(wanted)), key=lambda at: len(wanted[at].strip()), default=0)
    key = wanted[key_at].strip()[:_MAX_WIDTH] if wanted else ""
    if not key:
        return []
    words = set(_WORD.findall(key))
    shared = (
        (len(words.intersection(_WORD.findall(line[:_MAX_WIDTH]))), -at) for at, line in enumerate(lines)
    )
    ratios: dict[int, float] = {}
    matcher = SequenceMatcher(None, "", key, autojunk=False)
    for _, minus_at in heapq.nlargest(_CANDIDATES, shared):
        matcher.set_seq1(lines[-minus_at].strip()[:_MAX_WIDTH])
        ratios[-minus_at] = matcher.ratio()
    best = max(ratios.values(), default=0)
    return [(at, key_at) for at in sorted(ratios) if best > _ALIKE and ratios[at] == best]


def _complete(lines: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """Return a text whose first and last line, where they are a part of one line alone, are all of it."""
    whole = list(wanted)
    for at, is_part in ((-1, str.startswith), (0, str.endswith)) if len(wanted) > 1 else ():
        found = [line for line in lines if wanted[at] and is_part(line, wanted[at])]
        whole[at] = found[0] if len(found) == 1 else whole[at]
    return whole


def _cut(there: Sequence[str], key: str) -> list[str]:
    """Cut the first and the last line of a place to what a text has of them."""
    cut, wanted = list(there), even_out(key.split("\n"))
    if even_out(there[-1:]) != wanted[-1:] and len(there[-1]) <= _MAX_PART:
        fits = str.__eq__ if len(there) > 1 else str.endswith
        ends = (at for at in range(1, len(cut[-1])) if fits(even_out([cut[-1][:at]])[0], wanted[-1]))
        cut[-1] = cut[-1][: next(ends, None)]
    if even_out(cut[:1]) != wanted[:1] and len(cut[0]) <= _MAX_PART:
        begins = (at for at in range(len(cut[0]) - 1, 0, -1) if even_out([cut[0][at:]]) == wanted[:1])
        cut[0] = cut[0][next(begins, 0) :]
    return cut


def _show(lines: Sequence[str], place: _Place, key: str) -> str:
    start, end = place
    # A line that is shown whole would be copied whole, and what the new text has not of it be lost.
    there = _cut(lines[start:end], key)
    text = "\n".join(there)
    part = " (as much of it as old_string has)" * (there != lines[start:end])
    if end - start > _MAX_SHOWN_LINES or len(text) > _MAX_SHOWN:
        return f"Nearest place: {_name(start, end)}, too long to show here: read it, and quote less."
    return f"Nearest place: {_name(start, end)}{part}:\n{number_lines(text + chr(10), start + 1)}"


def _name(start: int, end: int) -> str:
    return f"line {end}" if end == start + 1 else f"lines {start + 1}-{end}"


def _name_all(lines: Sequence[str], places: Sequence[_Place]) -> str:
    named = [
        f"{_name(*place)}{f' (in `{heading}`)' if (heading := _find_heading(lines, place[0])) else ''}"
        for place in places[:_PLACES_SHOWN]
    ]
    return ", ".join(named) + (", ..." if len(places) > _PLACES_SHOWN else "")


def _find_heading(lines: Sequence[str], start: int) -> str:
    """Return the line that a reader would name a place by: of its function, or else of its block."""
    inside, nearest = _indentation(lines[start]), ""
    for line in reversed(lines[max(start - 2 * _MAX_OLD_LINES, 0) : start]):
        text = line.strip()
        is_above = bool(text) and _indentation(line) < inside
        if _SECTION.match(line) if not inside else is_above and _HEADING.match(text):
            return text[: _SLACK * 10]
        if is_above:
            inside, nearest = max(_indentation(line), 1), nearest or text[: _SLACK * 10]
    return nearest


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())
