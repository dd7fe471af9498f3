"""Decide by rules about paths what may be read or written, and what waits for a person.

Rules stand in an order and the first that matches decides; what no rule matches is allowed. A pattern matches
the whole path, hidden names included; `/secrets/**` is all below `/secrets`, and `/secrets/` is that and
`/secrets` itself.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property, lru_cache
from pathlib import PurePosixPath
from typing import Final, Literal, NamedTuple, TypeAlias, cast, get_args

from deepagents._globs import GlobPattern, Place, Places
from deepagents._paths import is_within, overlap
from deepagents._values import frozenclass
from deepagents.errors import ConfigError

FilesystemOperation: TypeAlias = Literal["read", "write"]
Mode: TypeAlias = Literal["allow", "deny", "interrupt"]

_LONG: Final = 500
"""Characters of a pattern, as a regular expression, from which on it is tested apart from the others."""
# Their usual file systems take `/Secrets` and `/secrets` for one name, so rules must as well.
_BLIND_TO_CASE: Final = sys.platform in ("darwin", "win32")
_SEPARATOR = re.compile(r"[/\\]")
# A backslash before a letter separates names on Windows; before anything else it escapes.
_FOREIGN_SEPARATOR = re.compile(r"\\(?=[\w.]|$)")
ANY_NAME: Final = "\ue000\ue001"
"""Private-use characters: a name that no pattern names, so only wildcards match it."""


@frozenclass
class FilesystemPermission:
    """One rule: what `mode` says of these operations on the paths that match one of these patterns.

    `read` is for `ls`, `read_file`, `glob` and `grep`; `write` for `write_file`, `edit_file` and `delete`.
    `interrupt` makes a call wait until a person approves it.

    Raises:
        ConfigError: for an unknown operation or mode, and for a pattern that is not text, does not start with
            `/`, has a `..` component, is separated by `\\` or is not a pattern at all.
        NotImplementedError: for a pattern with a `~` component.
    """

    operations: Sequence[FilesystemOperation]
    paths: Sequence[str]
    mode: Mode = "allow"

    def __post_init__(self) -> None:
        _check_names("operations", self.operations, get_args(FilesystemOperation))
        _check_names("mode", [self.mode], get_args(Mode))
        _check_list("paths", self.paths)
        for path in self.paths:
            _check_pattern(path)


class Match(NamedTuple):
    """The mode of a rule, and the pattern of it that matched."""

    mode: Mode
    pattern: str


class Rules:
    """Rules in their order, compiled once.

    Where names on disk differ by more than case and Unicode form only (`fold`), so do the patterns.
    """

    def __init__(self, given: Sequence[FilesystemPermission] = (), *, fold: bool = _BLIND_TO_CASE) -> None:
        for each in cast("Sequence[object]", given):
            if not isinstance(each, FilesystemPermission):
                raise ConfigError(f"permissions holds {each!r}; give FilesystemPermission(...) objects")
        self.given = tuple(given)
        self._fold = fold
        self._compiled: dict[str, tuple[tuple[Mode, tuple[_Pattern, ...]], ...]] = {
            operation: tuple(
                (rule.mode, tuple(_compile(path, fold) for path in rule.paths))
                for rule in self.given
                if operation in rule.operations
            )
            for operation in get_args(FilesystemOperation)
        }
        patterns = {text: _compile(text, fold).glob for rule in self.given for text in rule.paths}
        self._globs = [*patterns.values()]
        self._tests: dict[str, Sequence[Callable[[str], object]]] = {}
        restricting = [rule for rule in self.given if rule.mode != "allow"]
        self._restricting: dict[str | None, frozenset[int]] = {
            operation: frozenset(
                number
                for number, text in enumerate(patterns)
                if any(text in rule.paths and operation in (None, *rule.operations) for rule in restricting)
            )
            for operation in (None, *get_args(FilesystemOperation))
        }

    @cached_property
    def _places(self) -> Places:
        return Places(self._globs)

    def _may_match(self, operation: FilesystemOperation, name: str) -> bool:
        # At the first path: many agents change nothing before their first answer, and this takes long.
        if operation not in self._tests:
            every = [each.glob.expression for _, patterns in self._compiled[operation] for each in patterns]
            short = "|".join(f"(?:{each})" for each in every if len(each) < _LONG)
            long = (each for each in every if len(each) >= _LONG)
            self._tests[operation] = [_test(each) for each in (short, *long) if each]
        return any(test(name) for test in self._tests[operation])

    def __bool__(self) -> bool:
        return bool(self.given)

    def has(self, mode: Mode, operation: FilesystemOperation | None = None) -> bool:
        """Return whether any rule is of this mode."""
        return any(
            rule.mode == mode and (operation is None or operation in rule.operations) for rule in self.given
        )

    def match(self, operation: FilesystemOperation, path: str) -> Match | None:
        """Return the first rule that matches a path."""
        name = self._name(path)
        if name and not self._may_match(operation, name):
            return None
        for mode, patterns in self._compiled[operation]:
            for pattern in patterns:
                if pattern.matches(name):
                    return Match(mode, pattern.text)
        return None

    def decide(self, operation: FilesystemOperation, path: str) -> Mode:
        """Return what holds for a path."""
        found = self.match(operation, path)
        return "allow" if found is None else found.mode

    def waits(self, operation: FilesystemOperation, directory: str) -> bool:
        """Return whether a path itself, or any name right below it, waits for a person."""
        below = f"{directory.rstrip('/')}/{ANY_NAME}"
        return "interrupt" in (self.decide(operation, directory), self.decide(operation, below))

    def place(self, directory: str) -> Place:
        """Return what all directories share below which the rules say the same."""
        return self._places.at(self._name(directory))

    def is_free_below(self, operation: FilesystemOperation, directory: str) -> bool:
        """Return whether everything below a directory is surely allowed."""
        known = self.place(directory).known
        question = "free", operation
        if question not in known:
            known[question] = self._first_below(operation, directory, ("deny", "interrupt")) is None
        return known[question]

    def is_closed_below(self, operation: FilesystemOperation, directory: str) -> bool:
        """Return whether everything below a directory is surely denied."""
        name = self._name(directory)
        for mode, patterns in self._compiled[operation]:
            if mode == "deny" and any(pattern.glob.matches_all_below(name) for pattern in patterns):
                return True
            if mode != "deny" and any(pattern.glob.may_match_below(name) for pattern in patterns):
                return False
        return False

    def find_without_match(self, directories: Sequence[str]) -> str | None:
        """Return a pattern that denies or waits, and that matches nothing at or below these directories."""
        names = [self._name(each) for each in directories]
        for rule in self.given:
            for text in rule.paths if rule.mode != "allow" else ():
                pattern = _compile(text, self._fold)
                if not any(pattern.matches(each) or pattern.glob.may_match_below(each) for each in names):
                    return text
        return None

    def may_wait_in(self, directories: Sequence[str]) -> bool:
        """Return whether anything at or below these directories may wait for a person."""
        return any(
            self.decide(operation, each) == "interrupt" or self.waiting_below(operation, each)
            for operation in get_args(FilesystemOperation)
            for each in directories
        )

    def doubtful_names(
        self, directory: str, operation: FilesystemOperation | None = None
    ) -> Callable[[str], object]:
        """Return a fast test of whether rules may speak about what has a name in a directory."""
        test = self.place(directory).names_of(self._restricting[operation])
        return (lambda name: test(self._name(name))) if self._fold else test

    def waiting_below(self, operation: FilesystemOperation, directory: str) -> str | None:
        """Return the pattern, if any, for which something below a directory may wait for a person."""
        return self._first_below(operation, directory, ("interrupt",))

    def deletion_blockers(self, path: str) -> list[str]:
        """Return the patterns that forbid to delete the directory at a path with all that is in it.

        No rule that allows can lift one that denies, whichever stands first.
        """
        name = self._name(path)
        found = [
            pattern.text
            for mode, patterns in self._compiled["write"]
            for pattern in patterns
            if mode == "deny" and pattern.overlaps_deletion(name)
        ]
        return list(dict.fromkeys(found))

    def restrictions(self) -> Iterator[tuple[str, str]]:
        """Yield each pattern that denies or waits, with a path at or below which all its matches lie."""
        for rule in self.given:
            if rule.mode != "allow":
                for path in rule.paths:
                    yield from ((path, anchor) for anchor, _ in _compile(path, fold=False).anchored)

    def _first_below(
        self, operation: FilesystemOperation, directory: str, modes: Sequence[Mode]
    ) -> str | None:
        name = self._name(directory)
        for mode, patterns in self._compiled[operation]:
            # The first rule that matches decides, so one that covers all ends the search.
            if mode not in modes and any(pattern.glob.matches_all_below(name) for pattern in patterns):
                return None
            for pattern in patterns if mode in modes else ():
                if pattern.glob.may_match_below(name):
                    return pattern.text
        return None

    def _name(self, path: str) -> str:
        name = path.strip("/")
        # Most names are lower-case ASCII, for which folding changes nothing and costs time.
        return _fold_name(name) if self._fold and not (name.isascii() and name.islower()) else name


class Access:
    """The rights of one call, which also note what they held back for a person to approve.

    Everything at and below the `approved` paths counts as approved.
    """

    def __init__(self, rules: Rules, operation: FilesystemOperation, approved: Sequence[str] = ()) -> None:
        self.rules = rules
        self.operation: FilesystemOperation = operation
        self.approved = tuple(approved)
        self.held_back = dict[str, None]()

    def __call__(self, path: str) -> bool:
        """Return whether the call may touch a path."""
        found = self.rules.match(self.operation, path)
        if found is None or found.mode == "allow":
            return True
        # An approval lifts only the wait, never a rule that denies.
        if found.mode == "interrupt" and self.is_approved(path):
            return True
        if found.mode == "interrupt":
            self.held_back[found.pattern] = None
        return False

    def all_below(self, directory: str) -> bool:
        """Return whether every path below a directory is surely allowed."""
        return self.rules.is_free_below(self.operation, directory)

    def none_below(self, directory: str) -> bool:
        """Return whether every path below a directory is surely denied."""
        return self.rules.is_closed_below(self.operation, directory)

    def is_approved(self, path: str) -> bool:
        """Return whether a person approved of a path."""
        return any(is_within(path, each) for each in self.approved)


class CommandAccess(Access):
    """The rights of one command: what it may `read` and what it may `write`, and as a whole both.

    A person who approved of a command approved of all that waits. `unprotected` are the protected paths of a
    sandbox that this command may change nonetheless.
    """

    def __init__(self, rules: Rules, is_approved: bool, unprotected: Collection[str] = ()) -> None:
        super().__init__(rules, "read", ["/"] if is_approved else [])
        self.unprotected = frozenset(unprotected)
        self.read = Access(rules, "read", self.approved)
        self.write = Access(rules, "write", self.approved)

    def __call__(self, path: str) -> bool:
        """Return whether the command may read and change a path."""
        return self.read(path) and self.write(path)

    def all_below(self, directory: str) -> bool:
        """Return whether every path below a directory may surely be read and changed."""
        return self.read.all_below(directory) and self.write.all_below(directory)


class DeleteAccess(Access):
    """The rights of one deletion: a directory goes whole or not at all."""

    def all_below(self, directory: str) -> bool:
        """Return whether a directory may be deleted with all that is in it."""
        if self.rules.deletion_blockers(directory):
            return False
        return self.is_approved(directory) or self.rules.waiting_below("write", directory) is None


class _Pattern(NamedTuple):
    text: str
    glob: GlobPattern
    has_root: bool
    anchored: Sequence[tuple[str, Sequence[str]]]

    def matches(self, name: str) -> bool:
        return self.glob(name) if name else self.has_root

    def overlaps_deletion(self, name: str) -> bool:
        """Return whether deleting the directory of this name could take away what is matched."""
        return self.matches(name) or any(
            self._overlaps(anchor, rest, f"/{name}") for anchor, rest in self.anchored
        )

    def _overlaps(self, anchor: str, rest: Sequence[str], target: str) -> bool:
        if not rest:
            return overlap(anchor, target)
        if anchor == "/" or is_within(anchor, target):
            return True
        if not is_within(target, anchor):
            return False
        # What a longer pattern matches below is not known without looking, so it counts as matched.
        return (
            len(rest) > 1
            or rest[0] == "**"
            or any(self.glob(str(each)[1:]) for each in PurePosixPath(target).parents[:-1])
        )


# Kept, because agents are often made anew for each request with the same rules, and because most that is long
# is for reading as well as for writing.
@lru_cache(maxsize=1024)
def _test(expression: str) -> Callable[[str], object]:
    return re.compile(expression, re.DOTALL).fullmatch


@lru_cache(maxsize=1024)
def _compile(text: str, fold: bool) -> _Pattern:
    bare = text
    while bare.endswith(("/", "/.")):
        bare = bare.rstrip(".").removesuffix("/")
    # A slash at the end means the directory and all below it.
    pattern = text if bare == text else f"{bare}{{,/**}}"
    glob = GlobPattern(_fold_name(pattern) if fold else pattern, dots=True)
    has_root = all(each in ("", ".", "**") for each in bare.split("/"))
    return _Pattern(text, glob, has_root, glob.anchored)


def _fold_name(text: str) -> str:
    # macOS gives names in decomposed form, in which the same letters are other characters.
    return unicodedata.normalize("NFC", text).casefold()


def _check_pattern(path: object) -> None:
    if not isinstance(path, str):
        raise ConfigError(f"a permission path must be text such as '/secrets/**', got {path!r}")
    if not path.startswith("/"):
        raise ConfigError(f"a permission path must start with '/', got {path!r}")
    components = _SEPARATOR.split(path)
    if ".." in components:
        raise ConfigError(f"a permission path must not contain '..', got {path!r}; write the path from '/'")
    if "~" in components:
        raise NotImplementedError(f"a permission path cannot hold '~', got {path!r}; write the path out")
    if _FOREIGN_SEPARATOR.search(path):
        meant = _FOREIGN_SEPARATOR.sub("/", path)
        raise ConfigError(f"a permission path is separated by '/', got {path!r}; write {meant!r}")
    try:
        _compile(path, fold=False)
    except ValueError as error:
        raise ConfigError(str(error)) from error


def _check_names(what: str, given: Sequence[str], known: tuple[str, ...]) -> None:
    _check_list(what, given)
    unknown = [each for each in given if each not in known]
    if unknown:
        raise ConfigError(f"FilesystemPermission {what} holds {unknown!r}; known are {list(known)!r}")


def _check_list(what: str, given: object) -> None:
    if isinstance(given, str) or not isinstance(given, Sequence) or not given:
        raise ConfigError(f"FilesystemPermission {what} must be a list that names something, got {given!r}")
