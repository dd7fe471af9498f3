"""Repair a quote that differs from a text in looks alone, and in the same way what is to stand in its place.

Only what is certain is repaired: the quote fits one place, and its difference there says how the new text has
to change. A difference in words, however small, is more than that.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Final, TypeAlias

from deepagents._text.endings import to_lf
from deepagents._text.looks import (
    ENCODED,
    ENTITY,
    ESCAPED,
    FENCED,
    LOOK_ALIKES,
    MAX_LENGTH,
    NUMBER,
    NUMBERED,
    Reading,
    find_places,
    more_marks,
    readings,
    unescape,
    without_entities,
    without_fence,
)
from deepagents._values import replace, valueclass

_MAX_LINES: Final = 50_000
_MAX_LINE: Final = 1000
_MAX_QUOTED: Final = 400
_ALIKE: Final = 0.5
_BLANK: Final = " \t\f\v\u00a0\u2007\u202f\u3000"
_ODD_BLANK = re.compile(f"[{_BLANK[4:]}]")
_BLANKS = re.compile(f"[{_BLANK}]+")
_TOKEN = re.compile(rf"[{_BLANK}]+|\w+|.", re.DOTALL)
_UNSEEN: Final = {char: even for char, even in LOOK_ALIKES.items() if even is None}
_UNSEEN_MARKS: Final = "".join(map(chr, _UNSEEN))
_ODD_ESCAPE = re.compile(r"""\\[^nrt"'\\]|\\$""")
_QUOTES_ESCAPED = re.compile(r'([^"\\]|\\")*')
_STRINGS = re.compile(r"""[^"']|\"{3}|'{3}""")
_WIDE = re.compile(rf"\S[{_BLANK}]{{2,}}\S")
# Where a line ends before which no blank one stands, and where one ends behind which none does.
_ENDS = re.compile(r"(?:\A|\S[ \t]*\n)\Z")
_BEGINS = re.compile(r"\Z|\n(?:\Z|[ \t]*\S)")
_SPOILT: Final = {
    NUMBERED: "line numbers",
    ESCAPED: "double escapes",
    FENCED: "a code fence",
    ENCODED: "HTML entities",
}
_UNITS: Final = ("\t", *(" " * size for size in (1, 2, 3, 4, 8)))

_Pair: TypeAlias = tuple[str, str]


@valueclass
class Mended:
    """A quote as it stands in the text, what is to stand there, and where and in what way that differed."""

    old: str
    new: str
    how: str


class _UnsureError(Exception):
    """The way in which a quote differs does not say how the new text has to change."""


def mend(content: str, old: str, new: str) -> Mended | None:
    """Repair a quote that is not in the content, and the text to put there; `None` where that is unsure."""
    plain = to_lf(content)
    if len(plain) > MAX_LENGTH or plain.count("\n") > _MAX_LINES or old.count("\n") > _MAX_QUOTED:
        return None
    if any(not each.isascii() and more_marks().search(each) for each in (plain, old, new)):
        return None
    try:
        for reading in readings(to_lf(old)):
            if reading.spoilt == FENCED and "```" in plain:
                return None
            if reading.spoilt != NUMBERED and plain.count(reading.text) == 1:
                return _mend_exact(plain, reading, to_lf(old), to_lf(new))
            if place := _find_one(plain, reading.text):
                _check_numbers(place, reading, old)
                return _carry_over(place, reading, _read_alike(to_lf(new), to_lf(old), reading))
    except _UnsureError:
        pass
    return _mend_blank_lines(plain, to_lf(old), to_lf(new))


def _mend_blank_lines(text: str, old: str, new: str) -> Mended | None:
    """Leave out blank lines around a quote, where neither the text nor the new one has any."""
    before, quote, after = _split_blank_lines(old)
    new_before, then, new_after = _split_blank_lines(new)
    # The end of the last line makes no blank line, unlike what follows it.
    has_after = after.count("\n") > 1
    ends_alike = new_after in ("", after[:1]) if has_after else new_after == after
    if not (before or has_after) or new_before or not ends_alike or not quote.strip():
        return None
    # More or fewer lines may be those that were forgotten between the quote and the blank lines.
    if not then or quote.count("\n") != then.count("\n") or text.count(quote) != 1:
        return None
    above, below = text.split(quote)
    begins = _BEGINS.match(below) if has_after else below.startswith(after)
    if not begins or (before and not _ENDS.search(above)):
        return None
    place = _Place(quote.split("\n"), (), above.count("\n"), True)
    return Mended(quote, then, f"{place} apart from blank lines around")


def _split_blank_lines(text: str) -> tuple[str, str, str]:
    """Return the blank lines that a text begins with, what stands between, and those that it ends with."""
    if not text.strip():
        return "", text, ""
    start = text.rfind("\n", 0, len(text) - len(text.lstrip())) + 1
    end = text.find("\n", len(text.rstrip()))
    return text[:start], text[start : end if end >= 0 else None], text[end:] if end >= 0 else ""


def is_escaped_twice(old: str, new: str) -> bool:
    """Return whether a new text has the two characters of an escape where a line end may have been meant."""
    is_doubtful = "\\n" in new and "\n" not in new and "\\n" not in old
    return is_doubtful and not any(map(_has_open_string, unescape(new).split("\n")))


@valueclass
class _Place:
    """The one place that a quote fits: its lines, counted from 0, and those of the quote.

    `has_end` says that a line end follows, `is_cut` that it has not all of its lines, `is_inside` that it
    begins inside of one.
    """

    there: Sequence[str]
    wanted: Sequence[str]
    start: int
    has_end: bool
    is_cut: bool = False
    is_inside: bool = False

    def __str__(self) -> str:
        last = self.start + len(self.there)
        return f"line {last}" if len(self.there) == 1 else f"lines {self.start + 1}-{last}"


def _find_one(text: str, quote: str) -> _Place | None:
    """Find the place of a quote apart from looks.

    Raises:
        _UnsureError: where there is more than one, or one with other blank lines around it.
    """
    lines, wanted = text.removesuffix("\n").split("\n"), quote.removesuffix("\n").split("\n")
    evened, even_wanted = ([_even(line) for line in each] for each in (lines, wanted))
    places = find_places(evened, even_wanted)
    if not places:
        return None
    before = next(at for at, line in enumerate(even_wanted) if line)
    start = places[0][0] - before if len(places) == 1 else -1
    end = start + len(wanted)
    if start < 0 or end > len(lines):
        raise _UnsureError
    place = _Place(lines[start:end], wanted, start, end < len(lines) or text.endswith("\n"))
    return place if evened[start:end] == even_wanted else _cut(place, quote.endswith("\n"))


def _even(line: str) -> str:
    if not line.isascii():
        line = unicodedata.normalize("NFC", line.translate(LOOK_ALIKES))
    return _BLANKS.sub(" ", line).strip(" ")


def _cut(place: _Place, to_end: bool) -> _Place:
    """Cut the first and the last line to what the quote has of them."""
    there, wanted = list(place.there), place.wanted
    if max(len(there[0]), len(there[-1])) > _MAX_LINE or wanted[-1][-1:].isspace():
        raise _UnsureError
    first, last = _even(wanted[0]), _even(wanted[-1])
    begin = max((at for at in range(len(there[0])) if _even(there[0][at:]).startswith(first)), default=0)
    is_inside = bool(there[0][:begin].strip())
    # Blanks before the text of a line are its indentation, but those inside of a line may be meant.
    if is_inside and wanted[0][:1].isspace():
        raise _UnsureError
    there[0] = there[0][begin if is_inside else 0 :]
    whole = there[-1]
    there[-1] = next((whole[:end] for end in range(len(whole) + 1) if _even(whole[:end]) == last), whole)
    is_cut_short = there[-1].rstrip() != whole.rstrip()
    if [_even(line) for line in there] != [_even(line) for line in wanted] or (to_end and is_cut_short):
        raise _UnsureError
    return _Place(there, wanted, place.start, place.has_end, True, is_inside)


def _check_numbers(place: _Place, reading: Reading, old: str) -> None:
    """Refuse what may be a number of the text itself."""
    number = NUMBER.match(old) if reading.spoilt == NUMBERED else None
    if number and (place.is_cut or number[2] != "\t" and int(number[1]) != place.start + 1):
        raise _UnsureError


def _carry_over(place: _Place, reading: Reading, new: str) -> Mended:
    there, wanted = ("\n".join(each) for each in (place.there, place.wanted))
    for form in ("NFC", "NFD"):
        if unicodedata.is_normalized(form, there) > unicodedata.is_normalized(form, wanted):
            wanted, new = (unicodedata.normalize(form, each) for each in (wanted, new))
    formed = replace(place, wanted=wanted.split("\n"))
    lines = _Correction.of(formed).apply(new.removesuffix("\n").split("\n")) if new else []
    then = "\n".join(lines)
    kinds = _describe(formed, reading) + ["Unicode form"] * (formed.wanted != place.wanted)
    how = f"{place} apart from {' and '.join(kinds) or 'the line end'}"
    if reading.text.endswith("\n") and not place.has_end:
        return Mended(there, then, how)
    there += "\n" * reading.text.endswith("\n")
    then += "\n" * new.endswith("\n")
    return Mended(there, then, how)


def _mend_exact(text: str, reading: Reading, old: str, new: str) -> Mended:
    """Repair a quote that stands in one place, exactly, when it is read so."""
    line = text.count("\n", 0, text.index(reading.text))
    place = _Place(reading.text.removesuffix("\n").split("\n"), (), line, True)
    how = f"{place} apart from {_SPOILT.get(reading.spoilt, 'the line ends')}"
    return Mended(reading.text, _read_alike(new, old, reading), how)


def _read_alike(new: str, old: str, reading: Reading) -> str:
    """Read the new text as the quote was read, where it was spoilt in the same way.

    Raises:
        _UnsureError: where it may have been, in part.
    """
    if reading.spoilt == NUMBERED:
        return _drop_numbers(new)
    if reading.spoilt in (FENCED, ENCODED):
        return _decode(new, old, reading.spoilt)
    if reading.spoilt != ESCAPED or "\\" not in new:
        return new
    if all(_QUOTES_ESCAPED.fullmatch(each) for each in (old, new)):
        return unescape(new)
    meant = unescape(new)
    added = set(meant.split("\n")).difference(reading.text.split("\n"))
    # In a text that was escaped as a whole no line ends, and nothing but an escape begins with a backslash.
    # A line end inside of quotation marks may have been meant as an escape of the language.
    if "\n" in new or _ODD_ESCAPE.search(new) or any(_has_open_string(line) for line in added):
        raise _UnsureError
    return meant


def _decode(new: str, old: str, spoilt: str) -> str:
    plain = without_fence(new) if spoilt == FENCED else without_entities(new)
    entities = set(ENTITY.findall(new)) if spoilt == ENCODED else set[str]()
    is_partly = "```" in plain if spoilt == FENCED else bool(entities) and plain == new
    if is_partly or not entities.issubset(ENTITY.findall(old)):
        raise _UnsureError
    return plain


def _has_open_string(line: str) -> bool:
    marks = _STRINGS.sub("", line)
    return any(marks.count(mark) % 2 for mark in "\"'")


def _drop_numbers(new: str) -> str:
    lines = new.split("\n")
    numbered = [line for line in lines if NUMBER.match(line)]
    if not numbered:
        return new
    if len(numbered) < sum(map(bool, lines)):
        raise _UnsureError
    return "\n".join(NUMBER.sub("", line, count=1) for line in lines)


def _describe(place: _Place, reading: Reading) -> list[str]:
    pairs = list(zip(place.there, place.wanted, strict=True))
    solid = [tuple(_BLANKS.sub("", each) for each in pair) for pair in pairs]
    inside = [tuple(each.lstrip(_BLANK) for each in pair) for pair in pairs]
    kinds = {
        **{kind: reading.spoilt == spoilt for spoilt, kind in _SPOILT.items()},
        "indentation": any(_indent(one) != _indent(other) for one, other in pairs),
        "blank space": any(
            one != other and same == so for (one, other), (same, so) in zip(inside, solid, strict=True)
        ),
        "look-alike characters": any(one != other for one, other in solid),
    }
    return [kind for kind, is_so in kinds.items() if is_so]


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(_BLANK + _UNSEEN_MARKS))].translate(_UNSEEN)


@valueclass
class _Correction:
    """What turns lines as the quote has them into lines as the text has them."""

    place: _Place
    indents: Mapping[str, str]
    """Of each indentation in the quote, the one in the text; empty where one stands for several."""
    characters: Mapping[str, frozenset[str]]
    changes: Sequence[_Pair]
    """The lines that differ: in the text, and in the quote."""

    @classmethod
    def of(cls, place: _Place) -> _Correction:
        """Find the correction of a quote."""
        pairs = [pair for pair in zip(place.there, place.wanted, strict=True) if pair[1].strip()]
        blank = [pair for pair in zip(place.there, place.wanted, strict=True) if all(map(str.isspace, pair))]
        indented = {(_indent(other), _indent(one)) for one, other in [*pairs[place.is_inside :], *blank]}
        indents = dict(indented)
        changes = [pair for pair in pairs if pair[0] != pair[1]]
        return cls(place, indents if len(indents) == len(indented) else {}, _find_characters(pairs), changes)

    def apply(self, lines: Sequence[str]) -> list[str]:
        """Correct lines that were written after the quote.

        Raises:
            _UnsureError: where there is more than one way to do so.
        """
        if self._is_right(lines):
            return list(lines)
        there, wanted = self.place.there, self.place.wanted
        self._check_repeated(lines)
        done: list[str] = []
        for tag, start, end, first, last in SequenceMatcher(None, wanted, lines, False).get_opcodes():
            if tag == "equal":
                done += there[start:end]
            else:
                done += self._replace(range(start, end), lines[first:last])
            # What now stands inside of a line was one of its own, or the other way round.
            if self.place.is_inside and (start == 0) != (first == 0):
                raise _UnsureError
        return done

    def _replace(self, gone: range, lines: Sequence[str]) -> Iterator[str]:
        """Correct lines that stand for some of the quote, in their order as far as they are like them."""
        left = list(gone)
        for number, line in enumerate(lines):
            at = gone[number] if len(gone) == len(lines) else self._find_like(line, left)
            if at is None:
                yield self._insert(line)
            else:
                left = [each for each in left if each > at]
                yield self._change(self.place.there[at], self.place.wanted[at], line)

    def _find_like(self, line: str, among: Sequence[int]) -> int | None:
        ratios = {at: _ratio(line, self.place.wanted[at]) for at in among}
        best = max(ratios, key=lambda at: ratios[at], default=None)
        return best if best is not None and ratios[best] > _ALIKE else None

    def _is_right(self, lines: Sequence[str]) -> bool:
        """Return whether lines are as the text has them already, unlike the quote."""
        as_there = [one for one, _ in self.changes if one in lines and one not in self.place.wanted]
        as_quoted = [other for _, other in self.changes if other in lines and other not in self.place.there]
        there, wanted = self.place.there, self.place.wanted
        if as_quoted:
            is_doubtful = bool(as_there)
        else:
            is_doubtful = _has_indents(lines, *((wanted, there) if as_there else (there, wanted)))
        if is_doubtful:
            raise _UnsureError
        return bool(as_there)

    def _check_repeated(self, lines: Sequence[str]) -> None:
        meant: dict[str, set[str]] = defaultdict(set)
        for one, other in zip(self.place.there, self.place.wanted, strict=True):
            meant[other].add(one)
        for other, ones in meant.items():
            if len(ones) > 1 and other in lines and lines.count(other) != self.place.wanted.count(other):
                raise _UnsureError

    def _change(self, there: str, wanted: str, line: str) -> str:
        """Correct a line that was made of one of the quote."""
        if not line.strip():
            return ""
        is_same = _indent(line) == _indent(wanted)
        indent = _indent(there) if is_same else self._reindent(_indent(line))
        old, quoted, new = (_TOKEN.findall(each.strip(_BLANK)) for each in (there, wanted, line))
        if len(old) != len(quoted) or _ratio(line, wanted) <= _ALIKE:
            return indent + self._rewrite("".join(new)) + self._tail(line)
        done = [indent]
        for tag, start, end, first, last in SequenceMatcher(None, quoted, new, False).get_opcodes():
            done.append(
                "".join(old[start:end]) if tag == "equal" else self._rewrite("".join(new[first:last]))
            )
        return "".join(done) + self._tail(line)

    def _insert(self, line: str) -> str:
        """Correct a line that is new."""
        if not line.strip():
            return ""
        return self._reindent(_indent(line)) + self._rewrite(line.strip(_BLANK)) + self._tail(line)

    def _tail(self, line: str) -> str:
        """Keep the blanks at the end, unless the quote has some that the text has not."""
        had = any(len(_blanks_after(other)) > len(_blanks_after(one)) for one, other in self.changes)
        return "" if had else _blanks_after(line)

    def _reindent(self, indent: str) -> str:
        if indent in self.indents:
            found = {self.indents[indent]}
        else:
            found = set(_other_indents(self.indents, indent))
        # One line whose indentation was left out: the next ones may have theirs.
        if len(self.place.wanted) == 1 and self.indents.get(""):
            found.add(indent)
        made = found.pop() if len(found) == 1 else None
        is_mixed = made is not None and len(set(made)) > 1
        if made is None or (is_mixed and all(len(set(_indent(one))) < 2 for one in self.place.there)):
            raise _UnsureError
        return made

    def _rewrite(self, text: str) -> str:
        """Correct characters in text that the quote does not have."""
        if _WIDE.search(text) and any(_is_widened(*pair) for pair in self.changes):
            raise _UnsureError
        if _ODD_BLANK.search("".join(self.place.wanted)) and not _ODD_BLANK.search("".join(self.place.there)):
            text = _ODD_BLANK.sub(" ", text)
        done: list[str] = []
        differ = any(chars != frozenset(char) for char, chars in self.characters.items())
        for char in text:
            chars = self.characters.get(char, frozenset(char))
            # A hyphen that stands for a dash in a comment is a minus in code.
            is_plain = char.isascii() and chars != frozenset(char)
            if (
                is_plain
                or len(chars) > 1
                or (differ and char not in self.characters and ord(char) in LOOK_ALIKES)
            ):
                raise _UnsureError
            done += chars
        return "".join(done)


def _ratio(one: str, other: str) -> float:
    return SequenceMatcher(None, one.strip(), other.strip(), False).ratio()


def _is_widened(there: str, wanted: str) -> bool:
    return len(_WIDE.findall(wanted.strip(_BLANK))) > len(_WIDE.findall(there.strip(_BLANK)))


def _blanks_after(line: str) -> str:
    return line[len(line.rstrip(_BLANK)) :]


def _has_indents(lines: Sequence[str], of: Sequence[str], unlike: Sequence[str]) -> bool:
    """Return whether lines have an indentation that some other lines have, and yet others have not."""
    given, some, others = ({_indent(line) for line in each if line.strip()} for each in (lines, of, unlike))
    return not given.isdisjoint(some - others)


def _other_indents(known: Mapping[str, str], indent: str) -> Iterator[str | None]:
    """Yield what an indentation becomes by each rule that explains the known ones; `None` for no telling."""
    pairs = list(known.items())
    if all(one == other for one, other in pairs):
        yield indent if pairs else None
        return
    more = {other.removesuffix(one) if other.endswith(one) else None for one, other in pairs}
    if len(more) == 1 and None not in more:
        yield f"{more.pop()}{indent}"
    less = {one.removesuffix(other) if one.endswith(other) else None for one, other in pairs}
    if len(less) == 1 and (shift := less.pop()):
        yield indent.removeprefix(shift) if indent.startswith(shift) else None
    for unit in _UNITS:
        for other in _UNITS:
            if unit != other and all(_scale(one, unit, other) == made for one, made in pairs):
                yield _scale(indent, unit, other)


def _scale(indent: str, unit: str, other: str) -> str | None:
    times, rest = divmod(len(indent), len(unit))
    return other * times if not rest and indent == unit * times else None


def _find_characters(pairs: Sequence[_Pair]) -> Mapping[str, frozenset[str]]:
    """Return what the characters of the quote are in the text.

    Raises:
        _UnsureError: where there is no telling.
    """
    found: dict[str, set[str]] = defaultdict(set)
    for pair in pairs:
        one, other = (unicodedata.normalize("NFC", _BLANKS.sub("", each)) for each in pair)
        if one != other and len(one) != len(other):
            one, other = (each.translate(_UNSEEN) for each in (one, other))
        if len(one) != len(other):
            raise _UnsureError
        for there, quoted in zip(one, other, strict=True):
            found[quoted].add(there)
    return {char: frozenset(chars) for char, chars in found.items()}
