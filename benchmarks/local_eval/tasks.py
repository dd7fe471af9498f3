"""A small job on files, and the strict check of what became of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

Files = Mapping[str, str]


@dataclass(frozen=True)
class Task:
    """Files, a request in a few wordings, and the one outcome that counts as success.

    Every file must end as `expect` says, or unchanged where it says nothing; no file may appear or vanish
    unasked. Only blank space at the end of a file is forgiven. The last message must say all of `answer`, as
    whole words.
    """

    name: str
    asks: tuple[str, ...]
    files: Files
    expect: Files = field(default_factory=dict[str, str])
    gone: frozenset[str] = frozenset()
    answer: tuple[str, ...] = ()

    def ask(self, attempt: int) -> str:
        """The wording for one attempt."""
        return self.asks[attempt % len(self.asks)]

    def lay(self, root: Path) -> None:
        """Write the files to start from."""
        for name, text in self.files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def fault(self, root: Path, answer: str) -> str:
        """What is wrong with the outcome, or nothing."""
        wanted = {
            name: text
            for name, text in (dict(self.files) | dict(self.expect)).items()
            if name not in self.gone
        }
        found = {str(path.relative_to(root)): path for path in sorted(root.rglob("*")) if path.is_file()}
        for name in wanted:
            if name not in found:
                return f"{name} is missing"
        for name, path in found.items():
            if name not in wanted:
                return f"{name} was not asked for"
            if path.read_text(errors="replace").rstrip() != wanted[name].rstrip():
                return (
                    f"{name} was left unchanged" if _same(path, self.files.get(name)) else f"{name} is wrong"
                )
        missing = [word for word in self.answer if not _says(answer, word)]
        return f"the answer lacks {missing[0]!r}" if missing else ""


def _says(answer: str, word: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(word)}(?!\w)", answer, re.IGNORECASE) is not None


def _same(path: Path, text: str | None) -> bool:
    return text is not None and path.read_text(errors="replace").rstrip() == text.rstrip()
