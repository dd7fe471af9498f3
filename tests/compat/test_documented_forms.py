"""The table of documented forms is complete, and what it says of the tests is true."""

from __future__ import annotations

from importlib import import_module

import pytest

from tests.compat.documented_forms import FORMS, GUIDE, IN_PASSING, NOT_PYTHON, REFERENCE, Form

EXAMPLES = {"guide": 74, "reference": 50}


def named(form: Form) -> str:
    return f"{form.document}-{form.number}"


def test_every_example_has_its_row() -> None:
    assert {"guide": len(GUIDE), "reference": len(REFERENCE)} == EXAMPLES
    for rows in (GUIDE, REFERENCE, IN_PASSING):
        assert [form.number for form in rows] == [*range(1, len(rows) + 1)]


@pytest.mark.parametrize("form", FORMS, ids=named)
def test_a_form_is_tested_if_it_is_python(form: Form) -> None:
    assert bool(form.tests) != (form.shows in NOT_PYTHON)


@pytest.mark.parametrize("test", sorted({test for form in FORMS for test in form.tests}))
def test_a_test_that_the_table_names_is_there(test: str) -> None:
    module, name = test.split(".")

    assert name.startswith("test_")
    assert callable(getattr(import_module(f"tests.compat.{module}"), name, None))
