"""The API reference tells of every public name, with its signature and its docstring laid out."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace
from typing import Any, TypedDict

import pytest

import deepagents
import deepagents.backends
import deepagents.middleware
from tests.architecture.source import ROOT


@pytest.fixture(scope="module")
def api() -> ModuleType:
    spec = importlib.util.spec_from_file_location("api", ROOT / "docs/api.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault("api", module)
    spec.loader.exec_module(module)
    return module


@dataclass
class Boat(dict[str, Any]):
    """Floats.

    Args:
        length: in metres,
            from end to end.

    Raises:
        ValueError: when it leaks.
        Twice

    Example:
        ```python
        Boat(3)
        ```
    """

    length: int

    @property
    def deep(self) -> bool:
        """Tell whether it lies deep."""
        return self.length > 9

    def row(
        self,
        to: str,
        *,
        by: Callable[..., None] = print,
        along: dict[str, str] | None = None,
        at_dawn: bool = True,
    ) -> None:
        """Go somewhere."""

    def untold(self) -> None: ...


class Crew(TypedDict, total=False):
    """Who is on board."""

    captain: str


def test_every_public_name_is_told_of_once(api: ModuleType) -> None:
    entries = list(api.entries())
    told = {(module, entry.name) for entry in entries for module in (entry.home, *entry.also)}
    front = [deepagents, deepagents.backends, deepagents.middleware]
    missing = [name for door in front for name in door.__all__ if (door.__name__, name) not in told]

    assert missing == ["__version__"]
    assert len({(entry.name, id(entry.value)) for entry in entries}) == len(entries) > 100


def test_a_class_is_told_of_with_its_arguments_and_methods(api: ModuleType) -> None:
    page = api.described(SimpleNamespace(name="Boat", value=Boat, also=("harbour",)))

    for part in (
        "class Boat(dict)\nBoat(length: int)",
        "- `length`: in metres,\n  from end to end.",
        "- `ValueError`: when it leaks.\n- Twice",
        "```py\nBoat(3)\n```",
        "Also in `harbour`.",
        "deep: bool",
        "row(\n    to: str,\n    *,\n    by: Callable[..., None] = print,",
    ):
        assert part in page
    assert "untold" not in page


def test_a_typed_dict_is_told_of_with_its_keys(api: ModuleType) -> None:
    page = api.described(SimpleNamespace(name="Crew", value=Crew, also=()))

    assert "class Crew(TypedDict)" in page
    assert "| `captain` | `str` |  |" in page


def test_pages_say_no_address(api: ModuleType) -> None:
    assert " at 0x" not in "".join(api.pages().values())
