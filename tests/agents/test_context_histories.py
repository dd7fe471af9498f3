"""Whatever happens to a conversation: requests stay valid and small, and no message is lost."""

from __future__ import annotations

import base64
import os
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from itertools import count, pairwise
from typing import Any, Literal, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, RemoveMessage, ToolCall
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from deepagents import create_deep_agent
from deepagents.backends import StateBackend
from deepagents.middleware.summarization import SummarizationToolMiddleware, create_summarization_middleware
from deepagents.testing import Asked, WindowedModel, history_faults
from tests.agents.busy import Seen, fail, look_up, text
from tests.middleware.archives import parse

pytestmark = pytest.mark.slow

EXAMPLES = int(os.environ.get("HISTORIES", "8"))
TOLD = 6_500
THREAD: Any = {"configurable": {"thread_id": "any"}}
PICTURE = base64.b64encode(b"\x89PNG" + bytes(range(256)) * 3).decode()

Kind: TypeAlias = Literal["look", "fail", "draw", "write", "compact", "malformed"]
Step: TypeAlias = Sequence[tuple[Kind, int]]


@tool
def draw(number: int) -> list[dict[str, Any]]:
    """Draw something."""
    return [
        {"type": "text", "text": f"drawing {number}"},
        {"type": "image", "base64": PICTURE, "mime_type": "image/png"},
    ]


class Pairs(AgentMiddleware[Any, Any, Any]):
    """Notes for each call of the model what the state held, and the request that the model took."""

    def __init__(self, model: WindowedModel) -> None:
        super().__init__()
        self.found: list[tuple[Seen, Asked]] = []
        self._model = model

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        """Note, once it was answered."""
        response = handler(request)
        self.found.append((Seen.of(request.state), self._model.turns[-1]))
        return response


@dataclass
class Talk:
    """One conversation, to which anything may happen."""

    real: int
    honesty: float | None
    is_down: bool = False
    was_down: bool = False
    steady: int = 0
    numbers: count[int] = field(default_factory=count)

    def __post_init__(self) -> None:
        self.model = WindowedModel(
            window=self.real,
            profile={"max_input_tokens": TOLD},
            honesty=self.honesty,
            summary=lambda asked: OSError("away") if self.is_down else f"Of {len(asked.last)} characters.",
        )
        backend = StateBackend()
        own = create_summarization_middleware(self.model, backend)
        self.pairs = Pairs(self.model)
        self.agent = create_deep_agent(
            self.model,
            tools=[look_up, fail, draw],
            backend=backend,
            middleware=[own, SummarizationToolMiddleware(own), self.pairs],
            subagents=[],
            checkpointer=InMemorySaver(),
        )

    def turn(self, asked: int, steps: Sequence[Step]) -> None:
        """Ask for something that takes these steps."""
        self.model.then(*(self.said(step) for step in steps), "Done.")
        self.agent.invoke({"messages": [HumanMessage(text(asked, f"request {next(self.numbers)}"))]}, THREAD)
        self.model.finish()

    def said(self, step: Step) -> AIMessage:
        """Say what a model says to take a step; ids come again and again."""
        made: list[ToolCall] = []
        for place, (kind, size) in enumerate(step):
            number = next(self.numbers)
            named: dict[Kind, tuple[str, dict[str, Any]]] = {
                "look": ("look_up", {"topic": f"{number}", "size": size}),
                "fail": ("fail", {"topic": f"{number}"}),
                "draw": ("draw", {"number": number}),
                "write": ("write_file", {"file_path": f"/{number}.txt", "content": text(size, f"{number}")}),
                "compact": ("compact_conversation", {}),
                "malformed": ("fail", {}),
            }
            name, args = named[kind]
            made.append(ToolCall(name=name, args=args, id=f"call_{place}"))
        malformed = [call for call, (kind, _) in zip(made, step, strict=True) if kind == "malformed"]
        return AIMessage(
            "",
            tool_calls=[call for call in made if call not in malformed],
            invalid_tool_calls=[
                {"type": "invalid_tool_call", "id": call["id"], "name": "fail", "args": "{", "error": None}
                for call in malformed
            ],
        )

    @property
    def messages(self) -> list[AnyMessage]:
        """The messages of the state."""
        return self.agent.get_state(THREAD).values.get("messages", [])

    def delete(self, number: int) -> None:
        """Take a message away."""
        if messages := self.messages:
            self.write([RemoveMessage(messages[number % len(messages)].id or "")])

    def edit(self, number: int) -> None:
        """Put another text in the place of a message's own."""
        if messages := self.messages:
            message = messages[number % len(messages)]
            self.write([message.model_copy(update={"content": f"edited {next(self.numbers)}"})])

    def insert(self, number: int) -> None:
        """Put a message between two others."""
        messages = self.messages
        tail = messages[number % (len(messages) + 1) :]
        new = HumanMessage(text(400, f"inserted {next(self.numbers)}"))
        self.write([*(RemoveMessage(each.id or "") for each in tail), new, *tail])

    def write(self, messages: Sequence[BaseMessage]) -> None:
        """Change the state behind the agent's back."""
        self.agent.update_state(THREAD, {"messages": list(messages)}, as_node="model")

    def toggle(self, number: int) -> None:
        """Let the summarizer fail from now on, or work again."""
        self.is_down, self.was_down = not self.is_down, True

    def archived(self) -> list[BaseMessage]:
        """Read the archive."""
        files: dict[str, Any] = self.agent.get_state(THREAD).values.get("files") or {}

        def fetch(path: str) -> bytes:
            return base64.b64decode(files[path]["content"])

        texts = [data["content"] for path, data in files.items() if path.endswith("/any.md")]
        return [message for each in texts for message in parse(each, fetch)]

    def check(self) -> None:
        """Nothing is lost, each request is valid and fits, and no message is archived twice."""
        archived = self.archived()
        kept = {message.id for message in archived}
        versions: defaultdict[str | None, list[Any]] = defaultdict(list)
        for seen, asked in self.pairs.found:
            shown = {message.id for message in asked.messages}
            assert lost(seen.messages, shown | kept) == []
            assert history_faults(asked.messages) == []
            assert asked.tokens <= self.real
            for message in seen.messages:
                if not any(message is each for each in versions[message.id]):
                    versions[message.id].append(message)
        self.check_order()
        assert self.was_down or len(kept) == len(archived)
        assert len({repr(message.model_dump()) for message in archived}) == len(archived)
        for message in archived:
            assert message.model_dump() in [each.model_dump() for each in versions[message.id]]

    def check_order(self) -> None:
        """Every live message is shown in its order, and a request begins with the one before if it can."""
        for (seen, asked), (after, _) in pairwise(self.pairs.found):
            own = {message.id for message in seen.messages}
            shown = [message.id for message in asked.messages if message.id in own]
            live = lost(seen.messages, after.hidden)
            assert shown == [message.id for message in seen.messages if message.id in shown]
            assert set(live) <= {f"{message.type} {message.id}" for message in asked.messages}
        for (seen, asked), (after, following), (last, _) in zip(
            self.pairs.found, self.pairs.found[1:], self.pairs.found[2:], strict=False
        ):
            changes = [(each.event, each.clipped) for each in (seen, after, last)]
            if (
                changes.count(changes[0]) == len(changes)
                and after.messages[: len(seen.messages)] == seen.messages
            ):
                assert following.messages[: len(asked.messages)] == asked.messages
                self.steady += 1


def lost(messages: Sequence[AnyMessage], found: Collection[str | None]) -> list[str]:
    """Name the messages that were not found, but for repairs of calls that a summary stands for."""
    missing: list[str] = []
    caller: str | None = None
    for message in messages:
        caller = message.id if isinstance(message, AIMessage) else caller
        is_repair = message.type == "tool" and "error_code" in message.additional_kwargs and caller in found
        if message.id not in found and not is_repair:
            missing.append(f"{message.type} {message.id}")
    return missing


KINDS: st.SearchStrategy[Kind] = st.sampled_from(
    ["look", "look", "look", "fail", "draw", "write", "compact", "malformed"]
)
STEPS = st.lists(st.lists(st.tuples(KINDS, st.integers(20, 2_000)), min_size=1, max_size=3), max_size=6)
CHANGES: Sequence[Callable[[Talk, int], None]] = (Talk.delete, Talk.edit, Talk.insert, Talk.toggle)
EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just(Talk.turn), st.integers(10, 1_500), STEPS),
        st.tuples(st.just(Talk.turn), st.integers(10, 1_500), STEPS),
        st.tuples(st.sampled_from(CHANGES), st.integers(0, 60)),
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=EXAMPLES)
@given(EVENTS, st.sampled_from([TOLD, TOLD, 5_600]), st.sampled_from([1.0, 1.0, None, 0.7]))
def test_no_history_loses_a_message_or_becomes_invalid(
    events: Sequence[tuple[Any, ...]], real: int, honesty: float | None
) -> None:
    talk = Talk(real, honesty)
    for happens, *arguments in events:
        happens(talk, *arguments)
    talk.turn(10, [])
    talk.check()


def test_a_result_put_in_the_place_of_an_archived_one_is_no_orphan() -> None:
    talk = Talk(TOLD, 1.0)
    looking: Step = [("look", 2_000), ("look", 2_000)]
    talk.turn(500, [looking] * 8)
    hidden = talk.agent.get_state(THREAD).values["_summarized_ids"]
    at, gone = next(
        (at, each) for at, each in enumerate(talk.messages) if each.type == "tool" and each.id in hidden
    )
    talk.delete(at)
    talk.turn(10, [])

    assert gone.id not in {each.id for each in talk.messages}
    talk.check()


def test_a_run_goes_on_while_no_summary_can_be_had() -> None:
    talk = Talk(TOLD, 1.0)
    talk.toggle(0)
    working: Step = [("look", 2_000), ("write", 2_000)]
    talk.turn(500, [working] * 12)
    talk.toggle(0)
    talk.turn(500, [working] * 6)

    assert len(talk.model.summaries) > 2
    talk.check()


def test_most_requests_of_a_long_conversation_begin_with_the_one_before() -> None:
    talk = Talk(TOLD, 1.0)
    working: Step = [("look", 900), ("write", 900)]
    for _ in range(4):
        talk.turn(50, [working] * 10)
    talk.check()

    assert len(talk.model.summaries) > 5
    assert talk.steady > 20


def test_a_provider_that_takes_less_than_its_profile_says_refuses_and_is_asked_again() -> None:
    talk = Talk(5_200, None)
    drawing: Step = [("look", 2_000), ("draw", 0)]
    talk.turn(500, [drawing] * 10)

    assert talk.model.refused != []
    talk.check()
