"""What a caller says about approval, and what a person had remembered in a thread."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from langchain_core.runnables import RunnableConfig
from langgraph.graph import END

from deepagents._flow import Call, Flow, twins
from deepagents.errors import ConfigError
from deepagents.middleware._approval_entries import ApprovalConfig
from deepagents.middleware._approval_state import REMEMBERED
from deepagents.middleware._remembered import Record, Records, within_of

__all__ = ["ApprovalConfig", "RememberedDecision", "RememberedDecisions"]


@dataclass(frozen=True, slots=True)
class RememberedDecision:
    """A decision about calls of one tool: arguments that have to be the same, and patterns for others.

    `subagents` names those whose own tool it is, the outermost first, where it is none of the agent's.
    """

    key: str
    name: str
    type: Literal["approve", "reject"]
    exact: Mapping[str, Any]
    patterns: Mapping[str, str]
    message: str | None = None
    subagents: tuple[str, ...] = ()


class RememberedDecisions:
    """The decisions that are remembered in a thread of an agent."""

    def __init__(self, agent: Any, config: RunnableConfig) -> None:
        self._agent = agent
        self._config = config

    def _all(self) -> Flow[list[RememberedDecision]]:
        """List them, the oldest first."""
        state = yield from self._state()
        return [_shown(key, record) for key, record in _records(state).items()]

    def _forget(self, key: str) -> Flow[None]:
        """Forget one, so that calls like it are asked about again.

        Raises:
            ConfigError: for a key that is not there, and while the thread waits for a person or is cut.
        """
        state = yield from self._state()
        if key not in _records(state):
            raise ConfigError(f"nothing is remembered under {key!r}; all() lists what is")
        if state.next:
            raise ConfigError("the thread waits or was cut; let its run come to an end, then forget")
        yield from self._both("update_state", {REMEMBERED: {key: None}})
        if (yield from self._state()).next:
            yield from self._both("update_state", None, END)

    def _state(self) -> Flow[Any]:
        return (yield from self._both("get_state"))

    def _both(self, method: str, *given: Any) -> Call[Any]:
        block: Callable[..., Any] = getattr(self._agent, method)
        wait: Callable[..., Any] = getattr(self._agent, f"a{method}")
        return Call(lambda: block(self._config, *given), lambda: wait(self._config, *given))

    all, aall = twins(_all)
    forget, aforget = twins(_forget)


def _records(state: Any) -> Records:
    return state.values.get(REMEMBERED) or {}


def _shown(key: str, record: Record) -> RememberedDecision:
    kept: Mapping[str, Mapping[str, Any]] = record["args"]
    return RememberedDecision(
        key,
        record["name"],
        record["type"],
        {name: how["is"] for name, how in kept.items() if "is" in how},
        {name: how["like"] for name, how in kept.items() if "like" in how},
        record.get("message"),
        tuple(within_of(record)),
    )
