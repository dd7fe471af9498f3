"""Glob patterns as trees of tokens, matched by plain recursion: the documented rules and nothing more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

SPECIAL = "*?[]{}\\,$"


@dataclass(frozen=True)
class Literal:
    char: str


@dataclass(frozen=True)
class Star:
    pass


@dataclass(frozen=True)
class Any1:
    pass


@dataclass(frozen=True)
class Slash:
    pass


@dataclass(frozen=True)
class Class:
    shown: str
    chars: str
    negated: str


@dataclass(frozen=True)
class Either:
    options: tuple[tuple[Token, ...], ...]


Token = Literal | Star | Any1 | Slash | Class | Either


@dataclass(frozen=True)
class Pattern:
    """A pattern as people write it, and what it means."""

    tokens: tuple[Token, ...]

    @property
    def shown(self) -> str:
        return "".join(map(_shown, self.tokens))

    def __repr__(self) -> str:
        return f"Pattern({self.shown!r})"

    def is_refused(self) -> bool:
        dots = [Literal("."), Literal(".")]
        return any(dots in _split(each) for each in _expanded(self.tokens))

    def matches(self, path: str) -> bool:
        names = path.split("/")
        if "/" not in self.shown:
            return any(each and _name_fits(each, names[-1]) for each in _expanded(self.tokens))
        return any(_path_fits(each, names) for each in _expanded(self.tokens))


def _shown(token: Token) -> str:
    match token:
        case Literal(char):
            return f"\\{char}" if char in SPECIAL else char
        case Star():
            return "*"
        case Any1():
            return "?"
        case Slash():
            return "/"
        case Class(shown, _, negated):
            return f"[{negated}{shown}]"
        case Either(options):
            return "{" + ",".join("".join(map(_shown, each)) for each in options) + "}"


def _expanded(tokens: Sequence[Token]) -> list[list[Token]]:
    """Write out every choice."""
    if not tokens:
        return [[]]
    first, rest = tokens[0], _expanded(tokens[1:])
    if isinstance(first, Either):
        heads = [head for option in first.options for head in _expanded(option)]
        return [head + tail for head in heads for tail in rest]
    return [[first, *tail] for tail in rest]


def _split(tokens: Sequence[Token]) -> list[list[Token]]:
    segments: list[list[Token]] = [[]]
    for token in tokens:
        if isinstance(token, Slash):
            segments.append([])
        else:
            segments[-1].append(token)
    return segments


def _path_fits(tokens: list[Token], names: list[str]) -> bool:
    everything = _split(tokens)
    segments = [each for each in everything if each not in ([], [Literal(".")])]
    for_directories = len(everything) > 1 and everything[-1] in ([], [Literal(".")])
    if not segments or (for_directories and not _is_any_depth(segments[-1])):
        return False
    return _fits(segments, names)


def _is_any_depth(segment: list[Token]) -> bool:
    return segment == [Star(), Star()]


def _fits(segments: list[list[Token]], names: list[str]) -> bool:
    if not segments or not names:
        return not segments and not names
    if not _is_any_depth(segments[0]):
        return _name_fits(segments[0], names[0]) and _fits(segments[1:], names[1:])
    if len(segments) == 1:
        return not any(name.startswith(".") for name in names)
    return _fits(segments[1:], names) or (not names[0].startswith(".") and _fits(segments, names[1:]))


def _name_fits(segment: list[Token], name: str) -> bool:
    if name.startswith(".") and segment[:1] != [Literal(".")]:
        return False
    return _chars_fit(segment, name)


def _chars_fit(tokens: list[Token], name: str) -> bool:
    if not tokens:
        return not name
    first, rest = tokens[0], tokens[1:]
    if isinstance(first, Star):
        return _chars_fit(rest, name) or (bool(name) and _chars_fit(tokens, name[1:]))
    return bool(name) and _char_fits(first, name[0]) and _chars_fit(rest, name[1:])


def _char_fits(token: Token, char: str) -> bool:
    match token:
        case Literal(wanted):
            return char == wanted
        case Class(_, chars, negated):
            return (char in chars) != bool(negated)
        case _:
            return True


CLASSES = st.builds(
    lambda pair, negated: Class(pair[0], pair[1], negated),
    st.sampled_from([("ab", "ab"), ("a-c", "abc"), (".x", ".x"), ("é🙂", "é🙂"), ("]a", "]a")]),
    st.sampled_from(["", "!", "^"]),
)


def patterns(chars: str) -> st.SearchStrategy[Pattern]:
    """Make patterns out of the characters that names have."""
    literal = st.builds(Literal, st.sampled_from(sorted(set(chars) - set("/\\"))))
    simple = st.one_of(literal, literal, st.just(Star()), st.just(Any1()), CLASSES)
    segment: st.SearchStrategy[Sequence[Token]] = st.one_of(
        st.just([Star()]), st.just([Star(), Star()]), st.just([Literal("."), Star()]),
        st.lists(simple, max_size=4).map(lambda tokens: [*tokens, Star()]), st.lists(simple, max_size=5),
    )  # fmt: skip
    either: st.SearchStrategy[Sequence[Token]] = st.lists(
        st.lists(simple, max_size=3).map(tuple), min_size=2, max_size=3
    ).map(lambda options: [Either(tuple(options)), Star()])
    piece = st.one_of(segment, segment, either, st.just([Slash()]))
    joined = st.lists(piece, min_size=1, max_size=4).flatmap(
        lambda pieces: st.sampled_from([_joined(pieces, slash) for slash in (True, True, False)])
    )
    return joined.map(lambda tokens: Pattern(tuple(tokens))).filter(lambda pattern: bool(pattern.tokens))


def _joined(pieces: Sequence[Sequence[Token]], with_slash: bool) -> list[Token]:
    tokens: list[Token] = []
    for number, piece in enumerate(pieces):
        tokens += [Slash(), *piece] if number and with_slash else piece
    return tokens
