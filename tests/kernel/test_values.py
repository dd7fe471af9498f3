"""Values are dataclasses that share their methods."""

from __future__ import annotations

import copy
import inspect
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import KW_ONLY, FrozenInstanceError, asdict, dataclass
from functools import cached_property
from threading import Barrier
from typing import Any

import pytest

from deepagents._values import field, frozenclass, recordclass, replace, valueclass


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
class Tagged:
    x: int
    tags: dict[str, int] = field(hash=False)


@valueclass
class Single:
    number: float


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


def test_a_field_can_be_left_out_of_the_hash_alone() -> None:
    assert len({Tagged(1, {}), Tagged(1, {}), Tagged(1, {"a": 1})}) == 2
    assert hash(Tagged(1, {})) == hash(Tagged(1, {"a": 1}))


def test_a_field_that_is_unequal_to_itself_is_no_difference() -> None:
    number = float("nan")

    assert Single(number) == Single(number)


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
    assert Value.__match_args__ == Frozen.__match_args__


@frozenclass
class Fixed:
    x: int
    _: KW_ONLY
    y: int = 0
    marks: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError("x")


@recordclass
class Count:
    number: int
    names: list[str] = field(default_factory=list[str])


def test_what_callers_get_cannot_be_changed() -> None:
    fixed: Any = Fixed(1, y=2)

    for change in (
        lambda: setattr(fixed, "x", 2),
        lambda: setattr(fixed, "z", 2),
        lambda: delattr(fixed, "x"),
    ):
        with pytest.raises(FrozenInstanceError):
            change()
    assert replace(fixed, x=3) == Fixed(3, y=2)
    assert pickle.loads(pickle.dumps(fixed)) == fixed
    with pytest.raises(ValueError, match="x"):
        Fixed(-1)


def test_a_record_changes_and_has_no_hash() -> None:
    count = Count(1)
    count.number += 1

    assert (count, Count(1).names) == (Count(2, []), [])
    assert Count(1).names is not count.names
    with pytest.raises(TypeError, match="unhashable"):
        hash(count)


def test_a_class_without_objects_says_what_it_takes() -> None:
    @frozenclass
    class Fresh:
        x: int
        y: int = field(default=0, kw_only=True)

    assert str(inspect.signature(Fresh)) == "(x: 'int', *, y: 'int' = 0) -> None"
    assert Fresh.__match_args__ == ("x",)
    with pytest.raises(TypeError, match=r"Fresh.__init__\(\) missing 1 required positional argument: 'x'"):
        Fresh()  # pyright: ignore[reportCallIssue]


def test_dataclasses_of_others_stand_on_them() -> None:
    @dataclass(frozen=True)
    class Own(Fixed):
        own: list[str] = field(default_factory=list[str])

    @dataclass
    class Grown(Count):
        more: int = 0

    assert (Own(1, ["a"], y=2).own, Own(1, y=2).y, Grown(1, more=3).more) == (["a"], 2, 3)


def test_threads_that_make_the_first_objects_at_once_all_get_them() -> None:
    together = Barrier(8)

    @valueclass
    class Fresh:
        x: int
        y: int = 0

    def make(number: int) -> int:
        together.wait()
        return Fresh(number, y=1).x

    with ThreadPoolExecutor(8) as pool:
        assert [*pool.map(make, range(8))] == [*range(8)]
