"""Values are dataclasses that share their methods."""

from __future__ import annotations

import copy
import pickle
from dataclasses import asdict, dataclass
from functools import cached_property

import pytest

from deepagents._values import field, replace, valueclass


@valueclass
class Point:
    x: int
    y: int = 0
    note: str = field(default="", compare=False)
    key: str = field(default="", repr=False)

    @cached_property
    def size(self) -> int:
        return self.x + self.y


@valueclass
class Marked(Point):
    marks: list[str] = field(default_factory=list[str])


@valueclass
class Nothing:
    pass


@valueclass
class Named:
    name: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Named) and self.name.lower() == other.name.lower()

    def __hash__(self) -> int:
        return hash(self.name.lower())

    def __repr__(self) -> str:
        return f"<{self.name}>"


def test_values_are_equal_where_their_fields_are() -> None:
    assert Point(1, 2) == Point(1, 2, note="another")
    assert Point(1, 2) != Point(2, 1)
    assert Point(1, 2) != Point(1, 2, key="another")
    assert Point(1, 2) != (1, 2)
    assert Point(1, 2) != Marked(1, 2)
    assert len({Point(1, 2), Point(1, 2), Point(2, 2)}) == 2
    assert Nothing() == Nothing()
    assert len({Nothing(), Nothing()}) == 1


def test_a_value_with_a_list_has_no_hash() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(Marked(1))


def test_a_value_shows_its_fields_and_no_keys() -> None:
    assert repr(Point(1, note="n", key="sk-secret")) == "Point(x=1, y=0, note='n')"
    assert repr(Nothing()) == "Nothing()"


def test_a_value_that_holds_itself_is_shown() -> None:
    marked = Marked(1)
    marked.marks.append(marked)  # pyright: ignore[reportArgumentType]

    assert repr(marked) == "Marked(x=1, y=0, note='', marks=[...])"


def test_a_class_keeps_the_methods_that_it_has() -> None:
    assert Named("A") == Named("a")
    assert len({Named("A"), Named("a")}) == 1
    assert repr(Named("A")) == "<A>"


def test_values_are_copied_and_taken_apart_as_dataclasses_are() -> None:
    point = Marked(1, 2, marks=["m"])

    assert replace(point, y=3) == Marked(1, 3, marks=["m"])
    assert asdict(point) == {"x": 1, "y": 2, "note": "", "key": "", "marks": ["m"]}
    assert copy.deepcopy(point) == point
    assert pickle.loads(pickle.dumps(point)) == point
    assert point.size == 3


def test_values_say_what_the_dataclasses_say_that_they_stand_for() -> None:
    @dataclass(frozen=True)
    class Frozen:
        x: int
        y: int = 0

    @valueclass
    class Value:
        x: int
        y: int = 0

    names = Frozen.__qualname__, Value.__qualname__
    assert repr(Value(1)) == repr(Frozen(1)).replace(*names)
    assert hash(Value(1)) == hash(Frozen(1))
    assert Value.__match_args__ == Frozen.__match_args__
