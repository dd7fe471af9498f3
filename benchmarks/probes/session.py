"""What the tokens of one long session cost, where a provider serves from a cache what it was sent before.

Tokens are characters / 4. A fresh one costs 1, one from the cache 0.1, one that is written 5. A request is
tools, system prompt and messages; what begins like any earlier request comes from the cache, counted in whole
parts.
"""

from __future__ import annotations

import hashlib
import json
import sys
from typing import Any

from langchain_core.exceptions import ContextOverflowError
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import PrivateAttr

from benchmarks.probes.model import tool_call
from deepagents import create_deep_agent

TASK = "Find out about all whales, and keep notes."
FRESH, CACHED, WRITTEN = 1.0, 0.1, 5.0
_FACTS = "One more fact about this whale, as long as facts are. "
_LENGTHS = (6_000, 18_000, 40_000)
"""Characters of a small, a middle and a large page."""
_NOTE = "A line of a note, as long as such lines are.\n" * 130
_SUMMARY = "What was found out so far, and what is left to do. " * 120


def look_up(topic: str) -> str:
    """Look something up."""
    length = _LENGTHS[int(topic) % len(_LENGTHS)]
    return f"About whale {topic}: {_FACTS * (length // len(_FACTS))}"


class PricedModel(BaseChatModel):
    """Look up three pages, then write a note, and so on; add up what that costs, summaries included."""

    steps: int
    profile: Any = None
    _done: int = PrivateAttr(default=0)
    _seen: set[bytes] = PrivateAttr(default_factory=set[bytes])
    _sent: set[bytes] = PrivateAttr(default_factory=set[bytes])
    _price: float = PrivateAttr(default=0.0)
    _again: list[int] = PrivateAttr(default_factory=lambda: [0, 0])
    _summaries: int = PrivateAttr(default=0)

    @property
    def _llm_type(self) -> str:
        return "priced"

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self.bind(offered=[json.dumps(convert_to_openai_tool(each)) for each in tools])

    def result(self) -> dict[str, float]:
        """Return the price in millions, and the percentage that was sent again and not from the cache."""
        again, served = self._again
        return {
            "price": self._price / 1e6,
            "not served": 100 * (again - served) / again if again else 0.0,
            "summaries": self._summaries,
        }

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **options: Any
    ) -> ChatResult:
        parts = [*options.get("offered", ()), *map(_shown, messages)]
        tokens = sum(map(_tokens, parts))
        if tokens > self.profile["max_input_tokens"]:
            raise ContextOverflowError(f"prompt is too long: {tokens} tokens")
        cached = self._find_cached(parts)
        answer = self._next(messages[-1])
        written = _tokens(_shown(answer))
        self._price += FRESH * (tokens - cached) + CACHED * cached + WRITTEN * written
        answer.usage_metadata = UsageMetadata(
            input_tokens=tokens, output_tokens=written, total_tokens=tokens + written
        )
        return ChatResult(generations=[ChatGeneration(message=answer)])

    def _find_cached(self, parts: list[str]) -> int:
        """Return the tokens of the longest beginning that was sent before, and note this request."""
        cached, is_cached, beginning = 0, True, hashlib.sha256()
        for part in parts:
            own = hashlib.sha256(part.encode()).digest()
            beginning.update(own)
            is_cached = is_cached and beginning.digest() in self._seen
            cached += _tokens(part) if is_cached else 0
            self._again[0] += _tokens(part) if own in self._sent else 0
            self._seen.add(beginning.digest())
            self._sent.add(own)
        self._again[1] += cached
        return cached

    def _next(self, last: BaseMessage) -> AIMessage:
        if last.type == "human" and last.text != TASK:
            self._summaries += 1
            return AIMessage(_SUMMARY)
        if self._done >= self.steps:
            return AIMessage("Done.")
        self._done += 1
        if self._done % 4:
            return tool_call("look_up", f"call_{self._done}", topic=str(self._done))
        path = f"/notes/{self._done}.md"
        return tool_call("write_file", f"call_{self._done}", file_path=path, content=_NOTE)


def _shown(message: BaseMessage) -> str:
    calls = [(each["name"], each["args"]) for each in getattr(message, "tool_calls", ())]
    return json.dumps([message.type, message.content, calls], ensure_ascii=False)


def _tokens(part: str) -> int:
    return -(-len(part) // 4)


def measure(steps: int, window: int) -> dict[str, float]:
    """Run one session, and return what its tokens cost."""
    model = PricedModel(steps=steps, profile={"max_input_tokens": window})
    agent: Any = create_deep_agent(model=model, tools=[look_up])
    config: Any = {"configurable": {"thread_id": "1"}, "recursion_limit": 10 * steps + 100}
    state = agent.invoke({"messages": [{"role": "user", "content": TASK}]}, config)
    done = [each for each in state["messages"] if each.type == "tool" and each.status == "success"]
    assert len(done) == steps, f"{len(done)} results of {steps} steps"
    return model.result()


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]), int(sys.argv[2]))))
