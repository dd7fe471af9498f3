"""Ask the person about hosts that a command was kept from, once it has ended."""

from __future__ import annotations

from asyncio import Lock
from collections.abc import Awaitable, Callable
from typing import Any, Final

from langchain.agents.middleware import AgentMiddleware
from langchain.tools.tool_node import ToolCallRequest
from langchain_core.messages import ToolMessage

from deepagents_cli.approval.backends import GuardedSandbox
from deepagents_cli.approval.policy import Policy
from deepagents_cli.approval.rules import is_host
from deepagents_cli.project.hooks import Result, ToolHandler

_MOST: Final = 8
"""Hosts that are asked about behind a command: a hostile one could name them without end."""


class Hosts(AgentMiddleware[Any, Any, Any]):
    """Lets commands reach what a person allowed, and asks behind each command that wanted more.

    The connection does not wait for the person, who may be away for longer than any program has patience:
    the model reads that it may run the command again.
    """

    def __init__(self, policy: Policy, ask: Callable[[str], Awaitable[bool]]) -> None:
        super().__init__()
        self._policy = policy
        self._ask = ask
        self._asking = Lock()
        self._wanted: dict[str, None] = {}
        self._declined: set[str] = set()
        if isinstance(policy.backend, GuardedSandbox):
            policy.backend.reaches = self._reaches

    async def awrap_tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> Result:
        """Run a call; behind a command, ask."""
        result = await handler(request)
        spec = self._policy.specs.get(request.tool_call["name"])
        if spec is None or spec.effect != "run" or not isinstance(result, ToolMessage):
            return result
        if allowed := await self.ask_about_wanted():
            hosts = ", ".join(allowed)
            text = f"{result.text}\n\nThe person lets commands reach {hosts} from now on; run it again."
            return result.model_copy(update={"content": text})
        return result

    def _reaches(self, host: str) -> bool:
        """Return whether the person allowed a host; called by the threads of the sandbox."""
        if self._policy.mode == "plan":
            return False
        if self._policy.allows("host", host):
            return True
        may_ask = self._policy.mode != "full" and len(self._wanted) < _MOST
        if may_ask and host not in self._declined and is_host(host):
            self._wanted[host] = None
        return False

    async def ask_about_wanted(self) -> list[str]:
        """Ask about the hosts that commands wanted, and return those that were allowed.

        It is asked about one after the other, also where calls run in parallel.
        """
        allowed: list[str] = []
        async with self._asking:
            while self._wanted:
                host = next(iter(self._wanted))
                del self._wanted[host]
                if self._policy.allows("host", host) or await self._ask(host):
                    allowed.append(host)
                else:
                    self._declined.add(host)
        return allowed
