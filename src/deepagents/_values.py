"""Make dataclasses at little cost: most of a program's hundreds of them make no object in most runs.

For one dataclass, Python writes and compiles up to six methods. Here they share all but `__init__`, which is
written when it is first asked for. That takes a fifth of the time, and of frozen ones, which have two more
that are their own, half. Fields of `InitVar` are not known here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass, field, fields, replace
from operator import attrgetter
from reprlib import recursive_repr
from typing import Any, NoReturn, TypeVar, dataclass_transform

__all__ = ["Frozen", "dataclass", "field", "frozenclass", "recordclass", "replace", "valueclass"]

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def valueclass(cls: type[T]) -> type[T]:
    """Make a dataclass whose fields are set once, as type checkers see to."""
    return _make(cls, is_hashed=True)


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozenclass(cls: type[T]) -> type[T]:
    """Make a frozen dataclass, for values that callers get: their code may not be checked."""
    return _make(cls, is_hashed=True, frozen=True)


@dataclass_transform(field_specifiers=(field,))
def recordclass(cls: type[T]) -> type[T]:
    """Make a dataclass whose fields may change."""
    return _make(cls, is_hashed=False)


class Frozen:
    """Keeps the fields of subclasses that are a `valueclass` as they are, as `frozenclass` does.

    For families of many classes: Python would write and compile both methods for each of them. Dataclasses
    of callers cannot inherit from these.
    """

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise FrozenInstanceError(f"cannot delete field {name!r}")


def _make(cls: type[T], *, is_hashed: bool, frozen: bool = False) -> type[T]:
    made: Any = dataclass(init=False, repr=False, eq=False, frozen=frozen)(cls)
    shown = [each.name for each in fields(made) if each.repr]
    compared = [each for each in fields(made) if each.compare]
    hashed = [each.name for each in compared if each.hash is not False]
    read: Callable[[object], object] = attrgetter("__class__", *(each.name for each in compared))
    read_hashed: Callable[[object], object] = attrgetter("__class__", *hashed)

    def is_equal(self: object, other: object) -> bool:
        return read(self) == read(other) if other.__class__ is self.__class__ else NotImplemented

    def make_hash(self: object) -> int:
        return hash(read_hashed(self))

    @recursive_repr("...")
    def show(self: object) -> str:
        listed = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
        return f"{self.__class__.__qualname__}({listed})"

    methods: dict[str, Any] = {"__eq__": is_equal, "__repr__": show, "__init__": _LateInit(made)}
    for name, method in (methods | {"__hash__": make_hash if is_hashed else None}).items():
        if name not in vars(cls):
            setattr(made, name, method)
    return made


class _LateInit:
    """Stands for the `__init__` of a dataclass until it is called, or looked at."""

    def __init__(self, made: Any) -> None:
        self._made = made

    def __get__(self, instance: object, owner: type) -> Any:
        made, names = self._made, ("__doc__", "__module__", "__post_init__", "__qualname__")
        own: dict[str, Any] = {name: getattr(made, name) for name in names if hasattr(made, name)}
        own |= {each.name: each for each in fields(made)}
        own["__annotations__"] = {each.name: each.type for each in fields(made)}
        frozen = made.__dataclass_params__.frozen or issubclass(made, Frozen)
        twin: type = dataclass(repr=False, eq=False, frozen=frozen)(type(made.__name__, (), own))
        init: Any = vars(twin)["__init__"]
        made.__init__ = init
        return init.__get__(instance, owner)
