"""Helpers for deprecations, as other packages use them on names of their own."""

from __future__ import annotations

from typing import Any

import pytest

from deepagents._api import deprecation

deprecated: Any = deprecation.deprecated
warning: Any = deprecation.LangChainDeprecationWarning


class Old:
    """Something with older members."""

    @property
    @deprecated("1.1", removal="2.0")
    def size(self) -> int:
        return 1


@deprecated("1.1", alternative="new", removal="2.0")
def old() -> int:
    return 1


def old_in_words_of_ours() -> int:
    deprecation.warn_deprecated(
        "1.1", name="theirs.old", obj_type="function", alternative="new", removal="2.0"
    )
    return 1


def test_a_decorated_function_warns_once_until_it_is_reset() -> None:
    with pytest.warns(warning, match="old"):
        assert old() == 1
    assert old() == 1

    deprecation.reset_deprecation_dedupe(old, Old.size, 5, len)
    with pytest.warns(warning, match="old"):
        old()
    deprecation.reset_deprecation_dedupe(old)


def test_the_getter_of_a_property_can_be_reset() -> None:
    for _ in range(2):
        with pytest.warns(warning, match="size"):
            assert Old().size == 1
        assert Old().size == 1
        deprecation.reset_deprecation_dedupe(vars(Old)["size"])


def test_a_warning_is_of_the_line_that_called() -> None:
    with pytest.warns(warning) as warned:
        old_in_words_of_ours()

    assert [each.filename for each in warned] == [__file__]
    said = (
        "The function `theirs.old` was deprecated in theirs 1.1 and will be removed in 2.0. Use new instead."
    )
    assert str(warned[0].message) == said


def test_a_warning_can_be_silenced_put_off_and_worded() -> None:
    with deprecation.suppress_langchain_deprecation_warning():
        old_in_words_of_ours()
    with pytest.warns(deprecation.LangChainPendingDeprecationWarning, match="`x` will be deprecated .* So."):
        deprecation.warn_deprecated("1.1", name="x", pending=True, addendum="So.")
    with pytest.warns(warning, match="^My words.$"):
        deprecation.warn_deprecated("1.1", message="My words.")
    with pytest.raises(ValueError, match="'2.0'"):
        deprecation.warn_deprecated("1.1", name="x", pending=True, removal="2.0")
