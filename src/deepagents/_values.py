"""Make classes of values: dataclasses whose fields are set once, as type checkers see to.

For a frozen dataclass, Python writes and compiles six methods, and a program starts with hundreds of them.
Values share all but `__init__`, which takes a quarter of the time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from reprlib import recursive_repr
from typing import Any, TypeVar, dataclass_transform

__all__ = ["dataclass", "field", "replace", "valueclass"]

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def valueclass(cls: type[T]) -> type[T]:
    """Make a dataclass whose values are equal where their fields are.

    A value that callers get is a frozen dataclass instead: their code may not be checked.
    """
    made: Any = dataclass(repr=False, eq=False)(cls)
    compared = [each.name for each in fields(made) if each.compare]
    shown = [each.name for each in fields(made) if each.repr]
    read: Callable[[object], object] = attrgetter(*compared) if compared else type

    def is_equal(self: object, other: object) -> bool:
        return read(self) == read(other) if other.__class__ is self.__class__ else NotImplemented

    def make_hash(self: object) -> int:
        return hash(read(self))

    @recursive_repr("...")
    def show(self: object) -> str:
        listed = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
        return f"{self.__class__.__qualname__}({listed})"

    methods: dict[str, Any] = {"__eq__": is_equal, "__hash__": make_hash, "__repr__": show}
    for name, method in methods.items():
        if name not in vars(cls):
            setattr(made, name, method)
    return made
