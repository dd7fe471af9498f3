"""Complete the path at the end of a command that is typed, as a shell does."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

from prompt_toolkit.completion import Completion

from deepagents_cli.text import one_line

_WORD: Final = re.compile(r"\"[^\"]*\Z|'[^']*\Z|(?:\\.|[^\s\\;|&<>()=\"'])*\Z", re.DOTALL)
_SPECIAL: Final = re.compile(r"[^\w@%+:,./~-]")
_MOST_LOOKED_AT: Final = 10_000
_MOST: Final = 50


def complete_path(directory: Path, typed: str) -> Iterator[Completion]:
    """Yield the paths with which the last word of a command can go on, seen from a directory."""
    found = _WORD.search(typed)
    word = found[0] if found else ""
    quote = word[:1] if word[:1] in ("'", '"') else ""
    path = word[1:] if quote else re.sub(r"\\(.)", r"\1", word, flags=re.DOTALL)
    above, _, name = path.rpartition("/")
    # "/" alone is the root, and no word at all is the directory.
    shown = f"{above}/" if "/" in path else ""
    is_home = shown.startswith("~/") and not quote
    place = Path.home() / shown[2:] if is_home else directory / shown
    for each in _find_names(place, name):
        whole, ends = f"{shown}{each}", not each.endswith("/")
        text = f"{quote}{whole}{quote * ends}" if quote else _SPECIAL.sub(r"\\\g<0>", whole)
        yield Completion(f"{text}{' ' * ends}", -len(word), display=each)


def _find_names(place: Path, begun: str) -> list[str]:
    """Return the names in a directory that begin so, a directory's with a slash; hidden ones where asked."""
    try:
        with os.scandir(place) as entries:
            names = [
                f"{each.name}/" if each.is_dir() else each.name
                for each in islice(entries, _MOST_LOOKED_AT)
                if each.name.startswith(begun) and (begun.startswith(".") or not each.name.startswith("."))
            ]
    except (OSError, ValueError):
        return []
    # What a terminal cannot show as it is, is not offered.
    return sorted(each for each in names if one_line(each) == each)[:_MOST]
