"""Read the example of the first run: a request, the files before it, and what they must become."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from deepagents_cli.diffs import text_diff
from deepagents_cli.errors import CommandError

_INSTALLED: Final = Path(__file__).with_name("first-run")
_IN_A_CHECKOUT: Final = Path(__file__).parents[2] / "examples" / "first-run"


@dataclass(frozen=True, slots=True)
class Example:
    """A folder with `task.txt`, the files in `before/`, and in `after/` what they must become."""

    home: Path

    @property
    def task(self) -> str:
        """The task that the agent gets."""
        return (self.home / "task.txt").read_text("utf-8").strip()

    def copy_to(self, directory: Path) -> None:
        """Copy the files to start from."""
        shutil.copytree(self.home / "before", directory, dirs_exist_ok=True)

    def diff(self, directory: Path) -> list[str]:
        """Return what became of the files, as a diff."""
        return compare(_texts(self.home / "before"), _texts(directory))

    def find_fault(self, directory: Path) -> str:
        """Describe what is wrong with the outcome; an empty string when each file is as it should be."""
        wanted, found = _texts(self.home / "after"), _texts(directory)
        for name in sorted(wanted.keys() | found.keys()):
            if name not in found:
                return f"{name} is missing"
            if name not in wanted:
                return f"{name} was not asked for"
            if found[name].rstrip() != wanted[name].rstrip():
                return f"{name} is not as it should be"
        return ""


def find_example() -> Example:
    """Find the example, installed with this module or in the checkout.

    Raises:
        CommandError: when it is in neither of them.
    """
    for home in (_INSTALLED, _IN_A_CHECKOUT):
        if (home / "task.txt").is_file():
            return Example(home)
    raise CommandError("The files of the first run are not in this installation")


def compare(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """Return the unified diff between two sets of files."""
    lines: list[str] = []
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            lines += text_diff(before.get(name), after.get(name), name)
    return lines


def _texts(root: Path) -> dict[str, str]:
    files = sorted(path for path in root.rglob("*") if path.is_file())
    return {path.relative_to(root).as_posix(): path.read_text("utf-8", "replace") for path in files}
