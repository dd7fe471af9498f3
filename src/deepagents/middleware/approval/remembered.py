"""What a caller says about approval, and what a person had remembered in a thread."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from langchain_core.runnables import RunnableConfig
from langgraph.graph import END

from deepagents._async import IOCall, sync_and_async
from deepagents.errors import ConfigError
from deepagents.middleware.approval.entries import ApprovalConfig
from deepagents.middleware.approval.memory import Record, Records, within_of
from deepagents.middleware.approval.state import REMEMBERED

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

    async def _all(self) -> list[RememberedDecision]:
        """List them, the oldest first."""
        state = await self._state()
        return [_shown(key, record) for key, record in _records(state).items()]

    async def _forget(self, key: str) -> None:
        """Forget one, so that calls like it are asked about again.

        Raises:
            ConfigError: for a key that is not there, and while the thread waits for a person or is cut.
        """
        state = await self._state()
        if key not in _records(state):
            raise ConfigError(f"nothing is remembered under {key!r}; all() lists what is")
        if state.next:
            raise ConfigError("the thread waits or was cut; let its run come to an end, then forget")
        await self._both("update_state", {REMEMBERED: {key: None}})
        if (await self._state()).next:
            await self._both("update_state", None, END)

    async def _state(self) -> Any:
        return await self._both("get_state")

    def _both(self, method: str, *given: Any) -> IOCall[Any]:
        block: Callable[..., Any] = getattr(self._agent, method)
        wait: Callable[..., Any] = getattr(self._agent, f"a{method}")
        return IOCall(lambda: block(self._config, *given), lambda: wait(self._config, *given))

    all, aall = sync_and_async(_all)
    forget, aforget = sync_and_async(_forget)


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
