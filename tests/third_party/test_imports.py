"""Every name of this library that packages of others import is there, also if a function imports it."""

from __future__ import annotations

import ast
import re
import sys
import warnings
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from tests.third_party.test_packages import PACKAGES

# Not parsed whole: a package may be written for a newer Python than this one.
IMPORT = re.compile(
    r"^[ \t]*(from deepagents(?:\.[\w.]+)? import (?:\([^)]*\)|[^\n]+)|import deepagents(?:\.[\w.]+)?\b)",
    re.MULTILINE,
)
ONLY_TRIED = {
    ("deepagents.middleware.todo", "write_todos"),
    ("deepagents.middleware.todo", "TodoListMiddleware"),
}
"""What a package expects that no release of this API has; it goes another way without it."""


def read_imports(directory: Path) -> Iterator[tuple[str, str | None]]:
    for path in directory.rglob("*.py"):
        for statement in IMPORT.findall(path.read_text("utf-8", "replace")):
            match ast.parse(statement).body[0]:
                case ast.ImportFrom(module=str(module), names=names):
                    yield from ((module, each.name) for each in names)
                case ast.Import(names=names):
                    yield from ((each.name, None) for each in names)
                case _:
                    raise AssertionError(statement)


def is_there(module: str, name: str | None) -> bool:
    try:
        found = import_module(module)
        if name and name != "*" and not hasattr(found, name):
            import_module(f"{module}.{name}")
    except ModuleNotFoundError:
        return False
    return True


def directories() -> list[Path]:
    """Return where the packages are that are only read, and those that are installed."""
    installed = [Path(each) for name in PACKAGES.values() for each in import_module(name).__path__]
    return [*sorted(Path(sys.prefix, "scanned").iterdir()), *installed]


def test_every_imported_name_is_there() -> None:
    wanted = {each for directory in directories() for each in read_imports(directory)}
    # Older names warn when they are asked for.
    with warnings.catch_warnings(action="ignore"):
        missing = {each for each in wanted if not is_there(*each)}

    assert ("deepagents", "create_deep_agent") in wanted
    assert missing == ONLY_TRIED
