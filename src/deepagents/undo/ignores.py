"""Tell which paths git ignores, by the files that say so, without git.

Only paths that were not known before are asked about: what a tool wrote, or what was seen before it was,
stays covered, as git itself goes on to track what it tracks.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Final

from deepagents._globs import ANY_DIRECTORIES, path_expression
from deepagents._values import field, recordclass

IGNORE_FILE: Final = ".gitignore"
GIT: Final = ".git"
_MOST_BYTES: Final = 1_000_000
_NAME: Final = re.compile(r"(?:\[[!^]?\]?(?:\\.|[^\]\\])*\]|\\.|[^/])+", re.DOTALL)
"""A name of a rule. A slash in brackets, or one behind a backslash, ends none."""
_CLOSED: Final = re.compile(r"(?:(?:\\.|[^\\\]])*+\])*+", re.DOTALL)
_OPEN: Final = re.compile(r"(\\.)|\[", re.DOTALL)
"""What ends with the last bracket that is closed, and the brackets behind it, which are letters."""


@recordclass
class Ignores:
    """The rules of each directory that has any, and which directories are the tops of repositories.

    The rules of a repository do not reach into one that lies in it.
    """

    texts: dict[str, bytes] = field(default_factory=dict[str, bytes])
    tops: set[str] = field(default_factory=set[str])

    def copy(self) -> Ignores:
        """Return the same rules, which stay as they are."""
        return Ignores(dict(self.texts), set(self.tops))

    def dump(self) -> str:
        """Return all of it as text."""
        texts = {path: text.decode("latin-1") for path, text in self.texts.items()}
        return json.dumps([texts, sorted(self.tops)])

    @classmethod
    def load(cls, saved: str) -> Ignores:
        """Return what `dump` has made text of."""
        texts, tops = json.loads(saved)
        return cls({path: text.encode("latin-1") for path, text in texts.items()}, set(tops))

    def ignores(self, path: str, is_directory: bool) -> bool:
        """Return whether a path is ignored whose directory is not."""
        above = path.rpartition("/")[0]
        while above:
            if text := self.texts.get(above):
                verdict = _check(text, path[len(above) + 1 :], is_directory)
                if verdict is not None:
                    return verdict
            if above in self.tops:
                return False
            above = above.rpartition("/")[0]
        return False

    def covers(self, path: str, is_directory: bool) -> bool:
        """Return whether neither a path nor a directory on the way to it is ignored."""
        if self.ignores(path, is_directory):
            return False
        above = path.rpartition("/")[0]
        while above and above not in self.tops:
            if self.ignores(above, True):
                return False
            above = above.rpartition("/")[0]
        return True


def read_above(root: str) -> Ignores:
    """Read the rules above a root that lies within a repository, unless they ignore the root itself."""
    found, directory = Ignores(), Path(root)
    for above in () if (directory / GIT).exists() else directory.parents:
        found.texts[str(above)] = read_rules(above, is_top=False)
        if (above / GIT).exists():
            found.texts[str(above)] = read_rules(above, is_top=True)
            found.tops.add(str(above))
            return found if found.covers(root, True) else Ignores()
    return Ignores()


def read_rules(directory: Path, *, is_top: bool) -> bytes:
    """Read the rules of one directory; at the top of a repository also those that only this clone has."""
    text = b""
    files = [directory / GIT / "info" / "exclude"] if is_top else []
    for each in (*files, directory / IGNORE_FILE):
        # A link is not followed, as git does not follow it, and a huge file holds something else.
        with suppress(OSError):
            if each.is_file() and not each.is_symlink() and each.stat().st_size <= _MOST_BYTES:
                text += each.read_bytes() + b"\n"
    return text


def _check(text: bytes, path: str, is_directory: bool) -> bool | None:
    """Return whether rules ignore a path; `None` where none of them is about it."""
    name = path.rpartition("/")[2]
    ends = ("", "/") if is_directory else ("",)
    for whole, ignores, pattern in _compile(text):
        if any(pattern.fullmatch((path if whole else name) + end) for end in ends):
            return ignores
    return None


@lru_cache(maxsize=256)
def _compile(text: bytes) -> list[tuple[bool, bool, re.Pattern[str]]]:
    """Compile rules, the last first, to as few patterns as their order allows."""
    rules = [rule for line in text.decode("utf-8", "surrogateescape").split("\n") if (rule := _rule(line))]
    found: list[tuple[bool, bool, re.Pattern[str]]] = []
    for (whole, ignores), group in groupby(reversed(rules), lambda rule: rule[:2]):
        found.append((whole, ignores, re.compile("|".join(each[2] for each in group), re.DOTALL)))
    return found


def _rule(line: str) -> tuple[bool, bool, str] | None:
    """Return of one line whether it is about whole paths, whether it ignores, and its expression."""
    line = re.sub(r"(?<!\\) +$", "", line.removesuffix("\r"))
    if not line or line.startswith("#"):
        return None
    ignores = not line.startswith("!")
    line = line.removeprefix("!")
    only_directories = line.endswith("/")
    line = line.removesuffix("/")
    whole = "/" in line
    # The end of each of these would be looked for in all of the line.
    unclosed = _CLOSED.sub("", line, count=1)
    line = line.removesuffix(unclosed) + _OPEN.sub(lambda found: found[1] or r"\[", unclosed)
    *above, last = _NAME.findall(line) or [""]
    if not last:
        return None
    expression = path_expression(above, () if whole and last == ANY_DIRECTORIES else (last,), True)
    return whole, ignores, f"(?:{expression}){'/' if only_directories else ''}"
