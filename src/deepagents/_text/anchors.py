"""Show lines behind anchors, their number and a short hash of their text, and change a text by these.

The hash is of the line and of the one before: a blank line or a brace alone would fit too many places.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, Literal, TypeAlias
from zlib import crc32

from deepagents._text.lines import split_lines
from deepagents._text.looks import describe_habits
from deepagents._text.mend import is_escaped_twice
from deepagents._text.show import MAX_LINE_LENGTH, cut_line
from deepagents._text.spans import Problems, Span, find_overlaps, put_spans
from deepagents._values import valueclass
from deepagents.errors import BackendError

LineOperation: TypeAlias = Literal["replace", "insert", "delete"]

# Without i, l, o and u, which are taken for other characters. Three of them: another line has the same hash
# by chance once in 32,768 times.
_LETTERS: Final = "0123456789abcdefghjkmnpqrstvwxyz"
_ANCHOR: Final = re.compile(r"\s*(\d{1,9})(?::([0-9a-z]{3}))?\s*(?:\|.*)?", re.DOTALL)
_SHOWN_LINE: Final = re.compile(r"\d+:[0-9a-z]{3}\|")
_NUMBERED_LINE: Final = re.compile(r"\s*\d+\t")
_FENCE: Final = "```"
_AROUND: Final = 2
_MAX_WIDTH: Final = 200
_MAX_SHOWN: Final = 40
_WORD: Final = re.compile(r"\w")
_START: Final = ("0", "0:")
_UNCHANGED: Final = "Nothing was changed: repeat the whole call with anchors that fit."


@valueclass
class LineChange:
    """One change of lines: from `anchor` to `to`, both included, or behind `anchor`."""

    op: LineOperation
    anchor: str
    to: str | None = None
    text: str | None = None


def anchor_of(lines: Sequence[str], at: int) -> str:
    """Return the anchor of a line, which is counted from 0."""
    return f"{at + 1}:{_hash(lines, at)}"


def anchor_lines(text: str, start: int = 1, before: str = "") -> str:
    """Show each line behind its anchor, where `before` is the line before them.

    A very long line goes on in rows marked `N.1|`, `N.2|` and so on.
    """
    lines = [before, *split_lines(text)]
    return "\n".join(row for at in range(1, len(lines)) for row in _rows(lines, at, start - 1))


def change_lines(content: str, changes: Sequence[LineChange], *, stale: bool = False) -> tuple[str, str]:
    """Make all changes, whose anchors are those of `content`; return the new text, and its lines around them.

    Line ends are kept, and new lines get those that stand there. Of a `stale` text it is known that it has
    changed since the anchors were shown: those that fit several lines are refused.

    Raises:
        BackendError: `no_match` where lines are not those that the anchors name, `invalid_argument` for
            anchors and changes that mean nothing. It shows the present anchors; nothing is changed.
    """
    lines = split_lines(content)
    spans: list[Span] = []
    problems = Problems(_UNCHANGED)
    several = len(changes) > 1
    for number, change in enumerate(changes, 1):
        with problems.noting(f"Edit {number}" * several):
            spans.append(_find_span(lines, change, number, stale))
    problems.report()
    spans.sort(key=lambda span: (span.start, span.end))
    for span in spans:
        with problems.noting(f"Edit {span.by}" * several):
            _refuse_unlike(lines, span, spans)
    with problems.noting():
        _refuse_nothing_and_overlaps(lines, spans)
    problems.report()
    changed = put_spans(content, spans)
    return changed, _show_changed(split_lines(changed), spans)


def _misuse(text: str) -> BackendError:
    return BackendError("invalid_argument", text)


def _hash(lines: Sequence[str], at: int) -> str:
    pair = f"{lines[at - 1] if at else ''}\n{lines[at]}"
    code = crc32(pair.encode("utf-8", "surrogatepass"))
    return "".join(_LETTERS[code >> shift & 31] for shift in (0, 5, 10))


def _rows(lines: Sequence[str], at: int, shift: int) -> Iterator[str]:
    line, number = lines[at], at + shift
    yield f"{number}:{_hash(lines, at)}|{line[:MAX_LINE_LENGTH]}"
    for part, at in enumerate(range(MAX_LINE_LENGTH, len(line), MAX_LINE_LENGTH), 1):
        yield f"{number}.{part}|{line[at : at + MAX_LINE_LENGTH]}"


def _find_span(lines: Sequence[str], change: LineChange, number: int, stale: bool) -> Span:
    new = split_lines(change.text or "")
    if change.op == "delete" and new:
        raise _misuse("delete takes no text; use replace to put text there.")
    if change.op != "delete" and not new:
        raise _misuse(f'{change.op} needs text; a blank line is "\\n".')
    _refuse_anchors_in_text(lines, new)
    if change.op == "insert":
        if change.to not in (None, change.anchor):
            raise _misuse("insert takes no 'to'; use replace to change lines.")
        at = 0 if change.anchor.strip() in _START else _locate(lines, change.anchor, stale) + 1
        return Span(at, at, new, number)
    start = _locate(lines, change.anchor, stale)
    last = start if change.to is None else _locate(lines, change.to, stale)
    if last < start:
        raise _misuse(
            f"'to' is before 'anchor'; the lines are from {anchor_of(lines, last)} to "
            f"{anchor_of(lines, start)}:\n{_excerpt(lines, last, start)}"
        )
    return Span(start, last + 1, new, number)


def _refuse_anchors_in_text(lines: Sequence[str], new: Sequence[str]) -> None:
    """Refuse text that was copied with anchors, which would otherwise go into the file."""
    known = {f"{anchor_of(lines, at)}|" for at in range(len(lines))}
    shown = [_SHOWN_LINE.match(line) for line in new]
    if (new and all(shown)) or any(found and found[0] in known for found in shown):
        raise _misuse("lines of text begin with anchors; give the text alone, what stands after |.")
    # One number may belong to the text; one behind blanks is as files are shown.
    numbered = bool(new) and all(map(_NUMBERED_LINE.match, new)) and (len(new) > 1 or new[0][:1] == " ")
    if numbered and not any(map(_NUMBERED_LINE.match, lines)):
        raise _misuse("lines of text begin with line numbers; leave the numbers out.")
    if len(new) > 1 and new[0].startswith(_FENCE) and new[-1] == _FENCE and _FENCE not in lines:
        raise _misuse("text stands in a code fence; give the text alone.")


def _refuse_unlike(lines: Sequence[str], span: Span, spans: Sequence[Span]) -> None:
    """Refuse new lines in place of others by their looks, or because they are there already."""
    there, given = lines[span.start : span.end], span.new
    if not there or not given:
        return
    behind = zip(given[len(there) :], lines[span.end :], strict=False)
    repeated = [at for at, (one, other) in enumerate(behind, span.end) if one == other and _WORD.search(one)]
    if repeated:
        raise _misuse(
            "text repeats what stands behind the lines it replaces. Name the last line in 'to', or leave it "
            f"out of text, or insert it if it is meant:\n{_excerpt(lines, span.start, max(repeated))}"
        )
    # A block may be put around lines in one edit, and the lines indented in another.
    is_alone = all(each is span or each.end < span.start or each.start > span.end for each in spans)
    if is_escaped_twice("\n".join(there), "\n".join(given)):
        habits = "line ends escaped twice, as \\ and n"
    else:
        habits = describe_habits(there, given, indented=is_alone)
    if habits:
        raise _misuse(
            f"text has {habits}. Write it as the lines are written, or, if it is meant, delete the lines and "
            f"insert text:\n{_excerpt(lines, span.start, span.end - 1)}"
        )


def _locate(lines: Sequence[str], anchor: str, stale: bool) -> int:
    """Return the line that an anchor names, counted from 0."""
    found = _ANCHOR.fullmatch(anchor)
    if found is None:
        alike = _find_hash(lines, anchor.strip().strip(":"))
        raise _misuse(f"{anchor!r} is not an anchor. {_point_to(lines, alike, 0)}")
    at, tag = int(found[1]) - 1, found[2]
    if tag is None:
        known = [at] if 0 <= at < len(lines) else []
        text = f"{anchor!r} has a number and no hash. {_point_to(lines, known, at)}"
        raise _misuse(text)
    alike = _find_hash(lines, tag)
    if at in alike and not (stale and len(alike) > 1):
        return at
    wrong = "fits several lines, and the file has changed" if at in alike else "is not there now"
    raise BackendError("no_match", f"{found[1]}:{tag} {wrong}. {_point_to(lines, alike, at)}")


def _find_hash(lines: Sequence[str], tag: str) -> list[int]:
    return [at for at in range(len(lines)) if _hash(lines, at) == tag]


def _point_to(lines: Sequence[str], found: Sequence[int], at: int) -> str:
    """Show which lines an anchor may mean, or those where it points to."""
    if not lines:
        return 'The file is empty; insert after anchor "0".'
    nearest = sorted(found, key=lambda each: abs(each - at))[:3]
    meant = " or ".join(anchor_of(lines, each) for each in nearest)
    shown = f"It may be {meant}; the lines are now:" if meant else "The lines there are now:"
    middle = nearest[0] if nearest else min(max(at, 0), len(lines) - 1)
    return f"{shown}\n{_excerpt(lines, middle - _AROUND, middle + _AROUND)}"


def _excerpt(lines: Sequence[str], first: int, last: int) -> str:
    shown = range(max(first, 0), min(last + 1, len(lines)))
    rows = [f"{anchor_of(lines, at)}|{cut_line(lines[at], _MAX_WIDTH)}" for at in shown[:_MAX_SHOWN]]
    return "\n".join([*rows, "..."] if len(shown) > _MAX_SHOWN else rows)


def _refuse_nothing_and_overlaps(lines: Sequence[str], spans: Sequence[Span]) -> None:
    if not spans:
        raise _misuse("edits is empty: name what to change.")
    for numbers in find_overlaps(spans):
        both = [span for span in spans if span.by in numbers]
        shown = _excerpt(lines, min(each.start for each in both), max(each.end for each in both) - 1)
        text = "Edits {} and {} are about the same lines; make one of them:".format(*numbers)
        raise _misuse(f"{text}\n{shown}")


def _show_changed(lines: Sequence[str], spans: Sequence[Span]) -> str:
    """Show the changed lines with a line before and after, and how the numbers behind them changed."""
    shown: dict[int, None] = {}
    grown = last = 0
    for span in spans:
        first = span.start + grown
        last = first + len(span.new)
        shown |= dict.fromkeys(range(max(first - 1, 0), min(last + 1, len(lines))))
        grown += len(span.new) - (span.end - span.start)
    rows = [f"{anchor_of(lines, at)}|{cut_line(lines[at], _MAX_WIDTH)}" for at in [*shown][:_MAX_SHOWN]]
    rows += ["..."] if len(shown) > _MAX_SHOWN else []
    if grown and last < len(lines):
        rows.append(f"Numbers after line {last} have changed by {grown:+}; hashes have not.")
    return "\n".join(rows)
