"""Remember a person's decisions about calls, and tell which calls each of them covers.

A decision is about the calls of one name. Of each argument it keeps the value itself, or a pattern that the
person gave. It covers the calls with exactly these arguments; only a pattern widens it. What a pattern means
depends on the argument, so the caller says how patterns match.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

from deepagents._values import frozenclass

__all__ = ["RememberedDecision"]

Like: TypeAlias = Callable[[str, str, Any], bool]
"""Takes the name of an argument, a pattern for it and a value, and returns whether they match."""


@frozenclass
class RememberedDecision:
    """A decision about calls of one tool: arguments that have to be the same, and patterns for others.

    `subagents` names the subagent that it is for, behind those that lead to it; empty for the agent itself.
    """

    key: str
    name: str
    type: Literal["approve", "reject"]
    exact: Mapping[str, Any]
    patterns: Mapping[str, str]
    message: str | None = None
    subagents: tuple[str, ...] = ()

    def covers(self, name: str, arguments: Mapping[str, Any], like: Like) -> bool:
        """Return whether it is about a call of this name with these arguments, no more and no less."""
        return (
            name == self.name
            and {*arguments} == {*self.exact, *self.patterns}
            and all(are_equal(value, arguments[each]) for each, value in self.exact.items())
            and all(like(each, pattern, arguments[each]) for each, pattern in self.patterns.items())
        )


def are_equal(one: object, other: object) -> bool:
    """Return whether two values are the same argument: `1` and `True` are equal in Python, and not here."""
    return canonical(one) == canonical(other)


def canonical(value: object) -> str:
    """Write a value as text that differs when the value does."""
    return json.dumps(value, sort_keys=True, default=repr)
