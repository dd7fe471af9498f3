"""The API reference describes every public name, with its signature and its docstring laid out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace
from typing import Any, TypedDict

import pytest

import deepagents
import deepagents.backends
import deepagents.middleware
from tests.docs.pages import load_program


@pytest.fixture(scope="module")
def api() -> ModuleType:
    return load_program("api")


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
        """Return whether it lies deep."""
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

    def undocumented(self) -> None: ...


class Crew(TypedDict, total=False):
    """The people on board."""

    captain: str


def test_every_public_name_is_described_once(api: ModuleType) -> None:
    entries = list(api.find_entries())
    described = {(module, entry.name) for entry in entries for module in (entry.home, *entry.also)}
    packages = [deepagents, deepagents.backends, deepagents.middleware]
    names = [(package.__name__, name) for package in packages for name in package.__all__]

    assert [name for name in names if name not in described] == [("deepagents", "__version__")]
    assert len({(entry.name, id(entry.value)) for entry in entries}) == len(entries) > 100


def test_a_class_is_described_with_its_arguments_and_methods(api: ModuleType) -> None:
    page = api.describe(SimpleNamespace(name="Boat", value=Boat, also=("harbour",)))

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
    assert "undocumented" not in page


def test_a_typed_dict_is_described_with_its_keys(api: ModuleType) -> None:
    page = api.describe(SimpleNamespace(name="Crew", value=Crew, also=()))

    assert "class Crew(TypedDict)" in page
    assert "| `captain` | `str` |  |" in page


def test_no_page_shows_a_memory_address(api: ModuleType) -> None:
    assert " at 0x" not in "".join(api.make_pages().values())
