"""Models that never end by themselves, and what a run of one tells of what it spent."""

from __future__ import annotations

from collections.abc import Callable, Collection
from threading import Lock
from typing import Any

from langchain_core.messages import AIMessage

from deepagents.middleware.limits import LIMIT_REACHED
from deepagents.testing import Asked, ScriptedModel, calls

GO: Any = {"messages": "Go"}
THREAD: Any = {"configurable": {"thread_id": "1"}}


class Runaway(ScriptedModel):
    """Delegates where it can, so many at once, and calls tools forever where it cannot; or hangs up."""

    def __init__(
        self,
        width: int = 1,
        *,
        delegates: bool = True,
        hangs_up: Collection[int] = (),
        child: str = "general-purpose",
    ) -> None:
        count, lock = iter(range(1_000_000)), Lock()

        def answer(asked: Asked) -> AIMessage | Exception:
            with lock:
                number = next(count)
            if number in hangs_up:
                return ConnectionResetError("gone")
            if delegates and "task" in asked.tool_names:
                orders = [
                    ("task", {"description": f"{number}.{at}", "subagent_type": child}) for at in range(width)
                ]
                return calls(*orders, text=f"I hand on {number}.")
            return calls(
                *[("look", {"at": f"{number}.{at}"}) for at in range(width)], text=f"I look {number}."
            )

        super().__init__(always=answer)


class Looking:
    """A tool that counts how often it really ran."""

    def __init__(self) -> None:
        self.times: list[str] = []

    def tool(self) -> Callable[..., str]:
        def look(at: str) -> str:
            """Look."""
            self.times.append(at)
            return f"seen {at}"

        return look


def mark(result: Any) -> Any:
    return result["messages"][-1].additional_kwargs[LIMIT_REACHED]


def spent(result: Any) -> Any:
    return mark(result)["all_spent"]
