"""What a row of the middleware table is, and what the making of its middleware may look at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self, TypeAlias

from langchain_core.runnables import Runnable

from deepagents._agent.plan import AgentPlan
from deepagents.middleware._base import Middleware


@dataclass(frozen=True, slots=True)
class Building:
    """What a slot may look at: the plan, how to compile a child, the profile's extras, all slots."""

    plan: AgentPlan
    compile_child: CompileChild
    extras: Sequence[Middleware]
    slots: frozenset[str]

    @property
    def who(self) -> str:
        """What a message calls the agent."""
        return "the agent" if self.plan.role == "main" else f"subagent {self.plan.name!r}"

    @property
    def brought(self) -> Sequence[Middleware]:
        """The middleware that is not the library's own; the caller's goes before the profile's."""
        return (*self.plan.middleware, *self.extras)

    def replacement(self, name: str) -> Middleware | None:
        """Return the brought middleware that takes the place of a slot's."""
        return next((each for each in self.brought if each.name == name), None)

    def answering_in(self, response_format: Any) -> Self:
        """Return what makes the same agent once more, to answer in another format."""
        plan = replace(self.plan, response_format=response_format)
        return replace(self, plan=plan, extras=plan.profile.materialize_extra_middleware())


CompileChild: TypeAlias = Callable[[Building], Runnable[Any, Any]]


@dataclass(frozen=True, slots=True)
class Slot:
    """One place in the stack: its middleware's name, how to make it, and why it stands there."""

    name: str
    make: Callable[[Building], Middleware | None]
    reason: str
    required: bool = False
    take: Callable[[Building, Middleware], Middleware] = lambda _, middleware: middleware


@dataclass(frozen=True, slots=True)
class Place:
    """Where middleware lands that is not the library's own."""

    name: Literal["CALLER", "PROFILE"]
    reason: str
