"""Compare texts without the differences that are easily overlooked, and find where one fits so."""

from __future__ import annotations

import html
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from deepagents._text.lines import split_lines
from deepagents._values import valueclass

if TYPE_CHECKING:
    import regex

MAX_LENGTH: Final = 2_000_000
_MOST_PLACES: Final = 1000

LOOK_ALIKES: Final = str.maketrans(
    {**dict.fromkeys("‘’‚‛′", "'"), **dict.fromkeys("“”„‟″", '"'), **dict.fromkeys("‐‑‒–—―−", "-")}
    | dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff\u00ad")
)

_BLANKS = re.compile(r"[ \t\f\v]+")
_COMPARED: Final = 200
"""How many characters are compared, which may take the cube of it: 0.2 s for these, 100 s for 2,000."""
_ALIKE: Final = 0.5
NUMBER: Final = re.compile(r" *(\d+)(\t|: |\| ?|→)")
_ESCAPE = re.compile(r"""\\([nrt"'\\])""")
_FENCED = re.compile(r"```[\w+-]*\n((?:(?!```).)*)\n```\n?", re.DOTALL)
_ENTITY = "&(?:lt|gt|amp|quot|apos|#39|#x27);"
ENTITY: Final = re.compile(_ENTITY)
_MARKUP = re.compile(f"[<>]|(?!{_ENTITY})&")
_MARK = re.compile(rf"\\?[\"'“”„‟″‘’‚‛′]|{_ENTITY}|[<>&‐‑‒–—―−-]")
_ESCAPED: Final = MappingProxyType({"n": "\n", "r": "\r", "t": "\t"})


# Normalising sorts each run of combining marks, which takes the square of its length and holds the
# interpreter's lock: 200,000 marks stop every thread for 40 s. No text has more than a few, so the rest is
# left out. The two half-width Japanese sound marks are letters that become marks when they are normalised.
@cache
def more_marks() -> regex.Pattern[str]:
    """Make the expression for marks beyond the eighth in a row."""
    # Imported for the few edits that need it: to import it takes longer than the rest of this package.
    import regex

    return regex.compile(r"([\p{M}\uff9e\uff9f]{8})[\p{M}\uff9e\uff9f]+")


def _even_blanks(text: str) -> str:
    return _BLANKS.sub(" ", text).strip(" ")


def _even_characters(text: str) -> str:
    if text.isascii():
        return text
    return unicodedata.normalize("NFKC", more_marks().sub(r"\1", text.translate(LOOK_ALIKES)))


EVENED: Final[Mapping[str, Callable[[str], str]]] = MappingProxyType(
    {"look-alike characters": _even_characters, "case": str.casefold, "whitespace": _even_blanks}
)


def even_out(lines: Sequence[str], without: str = "") -> list[str]:
    """Remove the differences that are easily overlooked, up to `MAX_LENGTH` characters of result.

    This goes line by line so that other threads get their turn, and counts what comes out because one
    character can stand for eighteen.
    """
    evened: list[str] = []
    room = MAX_LENGTH
    for line in lines:
        for kind, even in EVENED.items():
            if kind != without:
                line = even(line)
        evened.append(line)
        room -= len(line)
        if room < 0:
            break
    return evened


def find_places(lines: Sequence[str], wanted: Sequence[str]) -> list[tuple[int, int]]:
    """Find all places whose lines hold the wanted text, blank lines at its ends aside; both are evened out.

    Of a place, the first line and the one after the last. A line is there as often as it holds the text.
    """
    key = "\n".join(wanted).strip("\n")
    text = "\n".join(lines)
    places: list[tuple[int, int]] = []
    at, counted, line = text.find(key) if key else -1, 0, 0
    while at >= 0 and len(places) < _MOST_PLACES:
        line += text.count("\n", counted, at)
        counted = at
        places.append((line, line + key.count("\n") + 1))
        at = text.find(key, at + 1)
    return places


@valueclass
class Reading:
    """What a quote may have meant: its text, and in which way it was spoilt on the way."""

    text: str
    spoilt: str = ""


NUMBERED: Final = "numbered"
ESCAPED: Final = "escaped"
FENCED: Final = "fenced"
ENCODED: Final = "encoded"


def readings(text: str) -> Iterator[Reading]:
    """Yield a quote as it is, and each way to read one that was spoilt as a whole."""
    yield Reading(text)
    if (plain := without_numbers(text)) is not None:
        yield Reading(plain, NUMBERED)
    if (plain := unescape(text)) != text:
        yield Reading(plain, ESCAPED)
    for spoilt, decode in ((FENCED, without_fence), (ENCODED, without_entities)):
        if (plain := decode(text)) != text:
            yield Reading(plain, spoilt)


def without_numbers(text: str) -> str | None:
    """Return a text without the numbers that count its lines; `None` where there are none."""
    lines = split_lines(text)
    found = [NUMBER.match(line) for line in lines]
    if not lines or any(each is None or int(each[1]) != _first(found) + at for at, each in enumerate(found)):
        return None
    plain = "\n".join(line[each.end() :] for line, each in zip(lines, found, strict=True) if each)
    return plain + "\n" * text.endswith("\n")


def _first(found: Sequence[re.Match[str] | None]) -> int:
    return int(found[0][1]) if found and found[0] else 0


def without_fence(text: str) -> str:
    """Return what stands in a code fence, if that is all of a text."""
    return _FENCED.sub(r"\1", text) if _FENCED.fullmatch(text) else text


def without_entities(text: str) -> str:
    """Return a text with what its HTML entities stand for, if it is written with them as a whole."""
    return text if _MARKUP.search(text) else html.unescape(text)


def unescape(text: str) -> str:
    """Return a text whose escapes stand for what they mean in JSON."""
    return _ESCAPE.sub(lambda found: _ESCAPED.get(found[1], found[1]), text)


def describe_habits(there: Sequence[str], given: Sequence[str], *, indented: bool = True) -> str:
    """Say in which looks new lines differ from all those that they replace, where words differ as well.

    It is `""` where only looks differ, which must be meant, and where there is nothing in common. `indented`
    says whether the indentation counts.
    """
    plain, new = ([_plain(line).strip() for line in lines] for lines in (there, given))
    texts = ["\n".join(lines)[:_COMPARED] for lines in (plain, new)]
    if plain == new or SequenceMatcher(None, *texts, autojunk=False).ratio() < _ALIKE:
        return ""
    found: list[str] = []
    marks, new_marks = (_marks(lines) for lines in (there, given))
    for mark in sorted(marks.keys() & new_marks.keys()):
        if marks[mark].isdisjoint(new_marks[mark]):
            one, other = (" or ".join(sorted(each[mark])) for each in (marks, new_marks))
            found.append(f"{other} for {one}")
    if not any(map(more_marks().search, (*there, *given))):
        is_composed = [
            all(unicodedata.is_normalized("NFC", line) for line in lines) for lines in (there, given)
        ]
        if is_composed == [True, False] and not "".join(there).isascii():
            found.append("letters in two parts for letters in one")
    if indented and (depths := _find_other_depth(there, given, plain, new)) is not None:
        found.append("another indentation, {1!r} for {0!r}".format(*depths))
    return " and ".join(found)


def _plain(line: str) -> str:
    return _MARK.sub(lambda found: _plain_mark(found[0]), line)


def _plain_mark(mark: str) -> str:
    return html.unescape(mark.lstrip("\\")).translate(LOOK_ALIKES)


def _marks(lines: Sequence[str]) -> Mapping[str, set[str]]:
    """Return in which forms each mark is written."""
    forms: dict[str, set[str]] = defaultdict(set)
    for line in lines:
        for found in _MARK.findall(line):
            forms[_plain_mark(found)].add(found)
    return forms


def _find_other_depth(
    there: Sequence[str], given: Sequence[str], plain: Sequence[str], new: Sequence[str]
) -> tuple[str, str] | None:
    """Return the indentation of a line, and another one in its place, where no line has kept its own."""
    depths, new_depths = (
        [line[: len(line) - len(line.lstrip())] for line in lines] for lines in (there, given)
    )
    # With the first line as deep as before, lines below it may have been put into a block, or taken out.
    pairs = [(one, other) for one, other in zip(depths[:1], new_depths[:1], strict=False) if one != other]
    if not pairs and len(there) == len(given):
        kept = [at for at, depth in enumerate(depths) if depth and plain[at] == new[at]]
        pairs = [(depths[at], new_depths[at]) for at in kept]
        pairs = pairs if all(one != other for one, other in pairs) else []
    return pairs[0] if pairs else None
