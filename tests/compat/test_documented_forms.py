"""The table of documented forms is complete, and what it says of the tests is true."""

from __future__ import annotations

from importlib import import_module

from tests.compat.documented_forms import FORMS, GUIDE, IN_PASSING, NOT_PYTHON, REFERENCE

EXAMPLES = {"guide": 74, "reference": 50}


def test_every_example_has_its_row() -> None:
    assert {"guide": len(GUIDE), "reference": len(REFERENCE)} == EXAMPLES
    for rows in (GUIDE, REFERENCE, IN_PASSING):
        assert [form.number for form in rows] == [*range(1, len(rows) + 1)]


def test_a_form_is_tested_if_it_is_python() -> None:
    assert [form for form in FORMS if bool(form.tests) == (form.shows in NOT_PYTHON)] == []


def test_each_test_that_the_table_names_is_there() -> None:
    assert [test for form in FORMS for test in form.tests if not is_test(test)] == []


def is_test(test: str) -> bool:
    module, name = test.split(".")
    return name.startswith("test_") and callable(getattr(import_module(f"tests.compat.{module}"), name, None))
