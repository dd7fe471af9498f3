"""Drill limits with random trees of agents that work in parallel: `python -m benchmarks.trees --trees 1000`.

Each tree has a limit of tokens or money, or both. Its model reports what it takes as a provider does, writes
answers as long as it may, and fails at times; calls are cancelled. What it took in all is compared with the
limits.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

from langchain.agents import create_agent
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, BaseCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.outputs import ChatResult, LLMResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool, tool
from pydantic import PrivateAttr

from deepagents import Limits, Price
from deepagents.limits import Tokens
from deepagents.middleware.limits import LIMIT_REACHED, LimitsMiddleware, ReservationMiddleware
from deepagents.testing import Asked, ScriptedModel, calls
from deepagents.testing.scripted import Reply

PRICE = Price(input=3, output=15, cached_input=0.3, cache_write=3.75)
_DEPTH = 3
_ROUNDING = 1e-9
# Each agent ends with an answer at the limits of its root: it needs limits of its own for that.
_NONE = Limits(tool_calls=10**9)


class Bill(BaseCallbackHandler):
    """Keeps what each answer took that arrived."""

    run_inline = True

    def __init__(self) -> None:
        self.taken: list[Tokens] = []

    def on_llm_end(self, response: LLMResult, **more: Any) -> None:
        """Read what an answer took."""
        message: Any = response.generations[0][0]
        self.taken.append(Tokens.of(message.message.usage_metadata))

    @property
    def tokens(self) -> int:
        """All tokens."""
        return sum(each.input + each.output for each in self.taken)

    @property
    def money(self) -> float:
        """What they cost."""
        return sum(each.cost(PRICE) for each in self.taken)


class Spender(ScriptedModel):
    """A model that hands work on, takes some turns of the event loop, and reports what it took."""

    max_tokens: int | None = None
    failures: float = 0.0
    _random: Random = PrivateAttr(default_factory=Random)
    _offered: list[BaseTool] = PrivateAttr(default_factory=list[BaseTool])

    def begin(self, random: Random, bill: Bill) -> None:
        """Begin a tree, with a bill of its own."""
        self._random, self.callbacks = random, [bill]
        self.max_tokens = random.choice((400, 2_000, 4_000, 16_000, 64_000))
        self.failures = random.choice((0, 0, 0.05))

    def bind_tools(self, tools: Sequence[Any], **options: Any) -> Runnable[Any, AIMessage]:
        """Offer tools, which all look the same."""
        self._offered = [*tools]
        return super().bind_tools(tools, **options)

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **options: Any,
    ) -> ChatResult:
        for _ in range(self._random.randint(0, 6)):
            await asyncio.sleep(0)
        return self._generate(messages, stop, None, **options)

    def _reply(self, asked: Asked) -> Reply:
        return self._work

    def _work(self, asked: Asked) -> AIMessage | Exception:
        random = self._random
        if random.random() < self.failures:
            return ConnectionError("the provider does not answer")
        most: int = asked.options.get("max_tokens") or self.max_tokens or 4_000
        written = most if random.random() < 0.5 else random.randint(1, most)
        # As they are counted before: in the form that providers are sent they are a little longer.
        read = count_tokens_approximately(asked.messages, tools=self._offered if asked.tools else [])
        cached = random.randint(0, read)
        usage = UsageMetadata(
            input_tokens=read,
            output_tokens=written,
            total_tokens=read + written,
            input_token_details={"cache_read": cached, "cache_creation": random.randint(0, read - cached)},
        )
        several = [("spawn", {"work": "w" * random.randint(1, 4_000)})] * random.randint(1, 4)
        works = asked.tools and random.random() < 0.75
        answer = calls(*several) if works else AIMessage("Done. " * random.randint(1, 400))
        return answer.model_copy(update={"usage_metadata": usage})


@dataclass
class Found:
    """What the trees of a drill did."""

    trees: int = 0
    calls: int = 0
    stopped: int = 0
    shares: list[float] = field(default_factory=list[float])
    over: list[str] = field(default_factory=list[str])


class Forest:
    """Grows one tree after the other; all of them share what is below their roots."""

    def __init__(self, *, reserves: bool = True) -> None:
        self.found = Found()
        self._reserves = reserves
        self._model = Spender(remembers=False)
        self._random = Random()
        below: list[BaseTool] = []
        for _ in range(_DEPTH):
            below = [self._spawning(self._make(_NONE, below))]
        self._below = below

    async def grow(self, seed: int) -> None:
        """Let one random tree work, and note what it took of its limits."""
        model, random = self._model, Random(seed)
        self._random = random
        bill = Bill()
        model.begin(random, bill)
        kinds = random.choice((("tokens",), ("money",), ("tokens", "money")))
        limits = Limits(
            tokens=random.randint(8_000, 120_000) if "tokens" in kinds else None,
            money=random.uniform(0.1, 1.5) if "money" in kinds else None,
            prices={"*": PRICE},
        )
        result: Any = {"messages": []}
        with suppress(ConnectionError):
            result = await self._make(limits, self._below).ainvoke({"messages": "Work"})
        found = self.found
        found.trees += 1
        found.calls += len(bill.taken)
        found.stopped += any(LIMIT_REACHED in each.additional_kwargs for each in result["messages"][-1:])
        for kind, most, spent in (
            ("tokens", limits.tokens, bill.tokens),
            ("money", limits.money, bill.money),
        ):
            if most is not None:
                found.shares.append(spent / most)
                if spent > most * (1 + _ROUNDING):
                    found.over.append(f"tree {seed}: {spent:,.4f} of {most:,.4f} {kind}")

    def _make(self, limits: Limits, tools: list[BaseTool]) -> Any:
        middleware = [LimitsMiddleware(limits), *([ReservationMiddleware()] if self._reserves else [])]
        return create_agent(self._model, tools, system_prompt="Work. " * 100, middleware=middleware)

    def _spawning(self, child: Any) -> BaseTool:
        @tool
        async def spawn(work: str) -> str:
            """Let another agent work."""
            running = asyncio.ensure_future(child.ainvoke({"messages": work}))
            if self._random.random() < 0.05:
                for _ in range(self._random.randint(1, 30)):
                    await asyncio.sleep(0)
                running.cancel()
            try:
                return (await running)["messages"][-1].text
            except (asyncio.CancelledError, ConnectionError) as error:
                return f"Failed: {error!r}"

        return spawn


async def drill(seeds: Sequence[int], *, reserves: bool = True) -> Found:
    """Let a tree work for each seed."""
    forest = Forest(reserves=reserves)
    for seed in seeds:
        await forest.grow(seed)
    return forest.found


def main() -> int:
    """Print what was found; the exit code tells whether a tree was over its limits."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.trees", description=__doc__)
    parser.add_argument("--trees", type=int, default=1_000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--without", action="store_true", help="without reservations, to compare")
    options = parser.parse_args()
    began = time.monotonic()
    seeds = range(options.first, options.first + options.trees)
    found = asyncio.run(drill(seeds, reserves=not options.without))
    print(f"{found.trees} trees, {found.calls} calls of models, {found.stopped} stopped at a limit")
    print(f"over their limits: {len(found.over)}; the most that was used: {max(found.shares):.1%}")
    print(*found.over[:20], sep="\n")
    print(f"{time.monotonic() - began:.1f} s")
    return int(bool(found.over))


if __name__ == "__main__":
    raise SystemExit(main())
