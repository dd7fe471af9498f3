"""Read patches of several files, in the form that OpenAI trains its models on, and apply them to texts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, Literal, TypeAlias

from deepagents._text.endings import to_lf
from deepagents._text.lines import split_lines
from deepagents._text.mend import mend
from deepagents._text.nearest import describe_miss
from deepagents._text.show import cut_line, number_lines
from deepagents._text.spans import Problems, Span, find_overlaps, put_spans
from deepagents._values import field, recordclass
from deepagents.errors import BackendError

PatchAction: TypeAlias = Literal["add", "update", "delete"]

_BEGIN: Final = "*** Begin Patch"
_END: Final = "*** End Patch"
_END_OF_FILE: Final = "*** End of File"
_SECTION: Final = re.compile(r"\*\*\* (Add|Update|Delete) File: *(\S.*)")
_MOVE: Final = re.compile(r"\*\*\* Move to: *(\S.*)")
# Line numbers, as other forms of patch have them, say nothing here: the context does.
_HEADER: Final = re.compile(r"@@(?: -\d+(?:,\d+)? \+\d+(?:,\d+)? @@)?\s*(.*?)\s*(?:@@\s*)?$")
_NO_NEWLINE: Final = "\\ No newline"
_CLOSERS: Final = (")", "]", "}")
_SHOWN: Final = 120
_MOST_PLACES: Final = 8
_FORM: Final = (
    "A patch looks like this:\n*** Begin Patch\n*** Update File: /a.py\n@@ def f():\n a line that stays\n"
    "-a line that goes\n+a line that comes\n*** Add File: /b.py\n+its text\n*** Delete File: /c.py\n"
    "*** End Patch"
)


@recordclass
class Hunk:
    """Lines of a file with what becomes of them: each begins with a space, `-` or `+`.

    `headers` are lines that stand above them; `at_end` says that they are the last of the file.
    """

    headers: list[str] = field(default_factory=list[str])
    lines: list[str] = field(default_factory=list[str])
    at_end: bool = False

    @property
    def old(self) -> list[str]:
        """The lines that the file has there."""
        return [line[1:] for line in self.lines if line[0] != "+"]

    def spans(self, at: int, by: int) -> Iterator[Span]:
        """Yield what is to be put where, for a hunk that begins at a line."""
        start, new = at, list[str]()
        for line in [*self.lines, " "]:
            if line[0] == "+":
                new.append(line[1:])
            elif line[0] == "-":
                at += 1
            else:
                if new or at > start:
                    yield Span(start, at, new, by)
                at += 1
                start, new = at, list[str]()


@recordclass
class FilePatch:
    """What a patch does to one file."""

    action: PatchAction
    path: str
    move_to: str | None = None
    text: str = ""
    hunks: list[Hunk] = field(default_factory=list[Hunk])


def parse_patch(patch: str) -> list[FilePatch]:
    """Return what a patch does, file by file, in its order; several sections of one file become one.

    Raises:
        BackendError: `invalid_argument`, with what is wrong and where.
    """
    found: dict[str, FilePatch] = {}
    for number, heading, body in _split_sections(patch):
        made = _read_section(number, heading, body)
        known = found.setdefault(made.path, made)
        if known is made:
            continue
        if known.action != "update" or made.action != "update" or known.move_to or made.move_to:
            raise _malformed(number, f"{made.path!r} is in the patch twice; make one section of it")
        known.hunks += made.hunks
    if not found:
        raise BackendError("invalid_argument", f"The patch names no file. {_FORM}")
    return [*found.values()]


def apply_hunks(content: str, hunks: Sequence[Hunk]) -> tuple[str, list[str]]:
    """Return a text with all changes made, and what differed in looks alone where a change was made.

    Line ends are kept, and new lines get those that stand there.

    Raises:
        BackendError: `no_match` or `ambiguous_match`, with what stands there or where it fits.
    """
    lines = split_lines(content)
    problems = Problems()
    spans: list[Span] = []
    differences: list[str] = []
    after = 0
    for number, hunk in enumerate(hunks, 1):
        with problems.noting(f"Hunk {number}" * (len(hunks) > 1)):
            at, fitting, how = _fit(content, lines, hunk, after)
            after = at + len(fitting.old)
            spans += fitting.spans(at, number)
            differences += [how] if how else []
    problems.report()
    if not spans:
        raise BackendError("invalid_argument", "No line begins with '-' or '+': nothing changes.")
    spans.sort(key=lambda span: (span.start, span.end))
    for one, other in find_overlaps(spans):
        text = f"Hunks {one} and {other} change the same lines; make one of them."
        raise BackendError("invalid_argument", text)
    return put_spans(content, spans), differences


def _malformed(number: int, problem: str) -> BackendError:
    return BackendError("invalid_argument", f"Line {number} of the patch: {problem}. Nothing was changed.")


def _split_sections(patch: str) -> Iterator[tuple[int, re.Match[str], Sequence[str]]]:
    """Yield for each file the number of its heading, the heading, and the lines below it."""
    lines = split_lines(patch)
    marks = [line.rstrip() for line in lines]
    if _BEGIN not in marks:
        raise BackendError("invalid_argument", f"The patch has no line {_BEGIN!r}. {_FORM}")
    if _END not in marks:
        raise BackendError(
            "invalid_argument",
            f"The patch has no line {_END!r}, so it may have been cut off, and nothing was changed. Send it "
            "whole, or in several patches.",
        )
    # What a model puts around a patch, such as a fence, is none of it.
    first, last = marks.index(_BEGIN) + 1, len(marks) - 1 - marks[::-1].index(_END)
    starts = [at for at in range(first, last) if _SECTION.fullmatch(marks[at])]
    for at in range(first, starts[0] if starts else last):
        if marks[at]:
            raise _malformed(at + 1, f"{_cut(lines[at])} is outside of any file. {_FORM}")
    for at, end in pairwise([*starts, last]):
        heading = _SECTION.fullmatch(marks[at])
        assert heading is not None
        yield at + 1, heading, lines[at + 1 : end]


def _read_section(number: int, heading: re.Match[str], body: Sequence[str]) -> FilePatch:
    made = FilePatch(_ACTIONS[heading[1]], heading[2])
    while body and not body[-1].strip():
        body = body[:-1]
    if made.action == "update":
        _read_update(number, body, made)
    elif made.action == "add":
        for at, line in enumerate(body, number + 1):
            if line and line[0] != "+":
                raise _malformed(at, f"each line of a new file begins with '+', got {_cut(line)}")
        made.text = "".join(f"{line[1:]}\n" for line in body)
    elif body:
        raise _malformed(number + 1, f"a deletion has no lines below it, got {_cut(body[0])}")
    return made


_ACTIONS: Final[dict[str, PatchAction]] = {"Add": "add", "Update": "update", "Delete": "delete"}


def _read_update(number: int, body: Sequence[str], made: FilePatch) -> None:
    if body and (moved := _MOVE.fullmatch(body[0])):
        made.move_to = moved[1]
        number, body = number + 1, body[1:]
    begins = True
    for at, line in enumerate(body, number + 1):
        if line.startswith("@@"):
            hunk = _add_hunk(made) if begins or made.hunks[-1].lines else made.hunks[-1]
            hunk.headers += filter(None, _HEADER.findall(line)[:1])
            begins = False
        elif line.rstrip() == _END_OF_FILE and made.hunks:
            made.hunks[-1].at_end = begins = True
        elif line[:1] in ("", " ", "-", "+"):
            hunk = _add_hunk(made) if begins else made.hunks[-1]
            hunk.lines.append(line or " ")
            begins = False
        elif not line.startswith(_NO_NEWLINE):
            raise _malformed(at, f"a line begins with ' ', '-' or '+', got {_cut(line)}")
    made.hunks = [hunk for hunk in map(_without_last_blanks, made.hunks) if hunk.lines]
    if not made.hunks and made.move_to is None:
        raise _malformed(number, "it changes nothing in the file")


def _without_last_blanks(hunk: Hunk) -> Hunk:
    """Leave out empty lines at the end, which stand between parts of a patch rather than in the file."""
    while hunk.lines and hunk.lines[-1] == " " and not hunk.at_end:
        hunk.lines.pop()
    return hunk


def _add_hunk(made: FilePatch) -> Hunk:
    made.hunks.append(Hunk())
    return made.hunks[-1]


def _cut(line: str) -> str:
    return repr(cut_line(line, _SHOWN))


def _fit(content: str, lines: Sequence[str], hunk: Hunk, after: int) -> tuple[int, Hunk, str]:
    """Return where a hunk begins, the hunk as it fits there, and what was different in looks alone."""
    try:
        return _place(content, lines, hunk, after), hunk, ""
    except BackendError as problem:
        mended = _mend(content, lines, hunk) if problem.code == "no_match" else None
        if mended is None:
            raise
        return mended


def _place(content: str, lines: Sequence[str], hunk: Hunk, after: int) -> int:
    """Return the one line at which a hunk begins; of several, the one behind the hunk before it."""
    old = hunk.old
    if not old:
        if hunk.at_end or not lines:
            return len(lines)
        text = (
            f"{_cut(hunk.lines[0][1:])} is to be added, and nothing says where: put a line of the file that "
        )
        raise BackendError("no_match", f"{text}stays before or behind it, or end with {_END_OF_FILE!r}.")
    fitting = _find_lines(lines, old)
    places = [at for at in fitting if not hunk.at_end or at + len(old) == len(lines)]
    below = _below(lines, hunk.headers, places)
    found = [at for at in below if at >= after] or below
    if len(found) == 1:
        return found[0]
    if found:
        raise BackendError("ambiguous_match", _name_places(lines, old, found))
    if fitting:
        where = "at the end of the file" if hunk.at_end else f"below {_cut(hunk.headers[-1])}"
        raise BackendError("no_match", f"The lines are not {where}. {_name_places(lines, old, fitting)}")
    raise BackendError("no_match", _describe_miss(content, "\n".join(old)))


def _mend(content: str, lines: Sequence[str], hunk: Hunk) -> tuple[int, Hunk, str] | None:
    """Return where a hunk fits whole lines apart from looks, what it should be, and what is different."""
    old, new = ("".join(f"{line[1:]}\n" for line in hunk.lines if line[0] != kind) for kind in "+-")
    mended = mend(content, old, new)
    if mended is None and old[-2:] != "\n\n" and new[-2:] not in ("\n", "\n\n"):
        # Where line ends were escaped, they all were.
        mended = mend(content, old.removesuffix("\n"), new.removesuffix("\n"))
    if mended is None:
        return None
    # Whole lines: a longer line may begin with the same text.
    text, there = f"\n{to_lf(content)}\n", "\n{}\n".format(mended.old.removesuffix("\n"))
    if there not in text:
        return None
    at = text.count("\n", 0, text.index(there))
    made = Hunk(lines=[f"-{line}" for line in split_lines(mended.old)])
    is_there = _below(lines, hunk.headers, [at]) and (not hunk.at_end or at + len(made.lines) == len(lines))
    made.lines += [f"+{line}" for line in split_lines(mended.new)]
    return (at, made, mended.how) if is_there else None


def _describe_miss(content: str, old: str) -> str:
    if old in to_lf(content):
        return f"{_cut(old)} is only a part of longer lines; a patch has whole lines."
    return describe_miss(content, old).replace("old_string", "the patch")


def _find_lines(lines: Sequence[str], old: Sequence[str]) -> list[int]:
    """Return where lines stand; only if they do nowhere, apart from blanks at their ends."""
    starts = range(len(lines) - len(old) + 1)
    exact = [at for at in starts if lines[at] == old[0] and lines[at : at + len(old)] == old]
    if exact:
        return exact
    even, wanted = [line.rstrip() for line in lines], [line.rstrip() for line in old]
    return [at for at in starts if even[at] == wanted[0] and even[at : at + len(old)] == wanted]


def _below(lines: Sequence[str], headers: Sequence[str], places: Sequence[int]) -> Sequence[int]:
    """Return the places that lie in what the headers begin; all, where the file has no such lines."""
    scopes = [range(len(lines))]
    for header in map(str.strip, headers):
        inside = [at for scope in scopes for at in scope if lines[at].strip() == header]
        inside = inside or [at for scope in scopes for at in scope if lines[at].strip().startswith(header)]
        if not inside:
            break
        scopes = [_block(lines, at) for at in inside]
    return [place for place in places if any(place in scope for scope in scopes)]


def _block(lines: Sequence[str], start: int) -> range:
    """Return the lines of the block that a line begins; one that begins none stands before the whole rest."""
    depth = _depth(lines[start])
    has_body = False
    for at in range(start + 1, len(lines)):
        text = lines[at].strip()
        if not text or text.startswith(_CLOSERS):
            continue
        if _depth(lines[at]) <= depth:
            return range(start, at if has_body else len(lines))
        has_body = True
    return range(start, len(lines))


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _name_places(lines: Sequence[str], old: Sequence[str], places: Sequence[int]) -> str:
    named = ", ".join(f"{at + 1}-{at + len(old)}" for at in places[:_MOST_PLACES])
    more = ", ..." if len(places) > _MOST_PLACES else ""
    above = "\n".join(number_lines(lines[at - 1], at) for at in places[:_MOST_PLACES] if at)
    return (
        f"The text that begins with {_cut(old[0])} is in lines {named}{more}. Name one place by more lines "
        f"around it, or by @@ and a line above it. Before each stands:\n{above or '(the start of the file)'}"
    )
