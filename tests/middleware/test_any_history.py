"""Any history, changed at will, through compaction and clipping: valid, whole, within bounds, and steady."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Literal, TypeAlias

from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolCall, ToolMessage
from langchain_core.messages.utils import count_tokens_approximately

from deepagents.middleware.summarization.clipping import Clipping
from deepagents.middleware.summarization.counting import Meter
from deepagents.middleware.summarization.policy import (
    FULL,
    Keep,
    Load,
    Piece,
    PieceKind,
    Since,
    Trigger,
    cut,
    is_due,
    least_gain,
)
from deepagents.middleware.summarization.view import visible
from deepagents.testing import history_faults

WINDOW = 4000
TRIGGER, KEEP = Trigger.of(("fraction", 0.85)), Keep.of(("fraction", 0.1))
MEDIA = "read_file_media_result"

Act: TypeAlias = tuple[Literal["ask", "call", "delete", "insert", "edit"], list[int], bool]


@dataclass
class Conversation:
    """An agent's state, and the requests made of it; the model answers each and reports its true size."""

    messages: list[AnyMessage] = field(default_factory=list[AnyMessage])
    event: dict[str, Any] | None = None
    hidden: dict[str, None] = field(default_factory=dict[str, None])
    record: dict[str, str | None] = field(default_factory=dict[str, str | None])
    after_id: str | None = None
    since: Since | None = None
    requests: list[list[AnyMessage]] = field(default_factory=list[list[AnyMessage]])
    steady: bool = False
    meter: Meter = field(default_factory=Meter)
    clipping: Clipping = field(
        default_factory=lambda: Clipping.of(
            {"trigger": ("fraction", 0.5), "keep": ("fraction", 0.1), "max_length": 200}
        )
    )
    names: count[int] = field(default_factory=count)

    def add(self, kind: type[Any], text: str, **more: Any) -> None:
        self.messages.append(kind(text, id=f"{kind.__name__}-{next(self.names)}", **more))

    def act(self, act: Act) -> None:
        """Do what people and tools do to a conversation, then ask the model."""
        kind, numbers, flag = act
        match kind:
            case "ask":
                self.add(HumanMessage, "?" * numbers[0])
            case "call":
                self.call(numbers, media=flag)
            case "delete":
                self.steady = False
                del self.messages[self.unit(numbers[0])]
            case "insert":
                self.steady = False
                place = self.unit(numbers[0]).start
                self.messages.insert(place, HumanMessage("!" * 40, id=f"inserted-{next(self.names)}"))
            case "edit":
                self.steady = False
                for at in range(len(self.messages))[self.unit(numbers[0])]:
                    changed = self.messages[at].text[:50] + "*"
                    self.messages[at] = self.messages[at].model_copy(update={"content": changed})
        if not self.messages or isinstance(self.messages[-1], AIMessage):
            self.add(HumanMessage, "Go on.")
        self.request()

    def call(self, sizes: Sequence[int], *, media: bool) -> None:
        """Let the model write files in parallel, or read them."""
        name = "write_file" if media or sizes[0] % 2 else "read_file"
        calls = [
            ToolCall(
                name=name,
                args={"file_path": f"/{at}.txt", "content": "x" * size if name == "write_file" else ""},
                id=f"call-{next(self.names)}",
                type="tool_call",
            )
            for at, size in enumerate(sizes)
        ]
        self.add(AIMessage, "", tool_calls=calls)
        for call, size in zip(calls, sizes, strict=True):
            text = "y" * size if name == "read_file" else "Done"
            self.add(ToolMessage, text, tool_call_id=call["id"], name=name)
        if media:
            self.add(HumanMessage, "A film.", additional_kwargs={MEDIA: True})

    def unit(self, number: int) -> slice:
        """Find a message of a person, or one of the model with all that its calls brought."""
        starts = [at for at, each in enumerate(self.messages) if not _belongs(each)]
        chosen = number % len(starts) if starts else 0
        ends = [*starts[1:], len(self.messages)]
        return slice(starts[chosen], ends[chosen]) if starts else slice(0, 0)

    def request(self) -> None:
        """Clip and compact as far as it is time for it, send what is to be seen, take the answer."""
        shown = self.clipping.clipped(visible(self.messages, self.event, self.hidden), self.record)
        tokens = self.tokens(shown)
        batch = self.clipping.next_batch(shown, self.meter.each, self.load(shown, tokens), self.record)
        if batch:
            self.record |= dict.fromkeys(batch)
            self.changed(shown)
            before = count_tokens_approximately(shown)
            shown = self.clipping.clipped(shown, self.record)
            tokens = self.tokens(shown)
            assert before - count_tokens_approximately(shown) >= 0.05 * WINDOW
        if is_due(TRIGGER, self.load(shown, tokens), self.since):
            shown = self.compacted(shown, tokens)
        self.check(shown)
        self.requests.append(list(shown))
        self.steady = True
        size = count_tokens_approximately(shown)
        usage: Any = {"input_tokens": size, "output_tokens": 5, "total_tokens": size + 5}
        self.add(AIMessage, "Well.", usage_metadata=usage)

    def compacted(self, shown: list[AnyMessage], tokens: int) -> list[AnyMessage]:
        least = least_gain(TRIGGER, WINDOW)
        at = cut(self.pieces(shown), KEEP, window=WINDOW, fixed=0, least=least)
        if not at:
            return shown
        evicted = [each.id or "" for each in shown[:at] if each.id != "summary"]
        assert evicted
        assert not self.hidden.keys() & set(evicted)
        self.check_spacing(tokens)
        self.hidden |= dict.fromkeys(evicted)
        self.changed(shown)
        summary = HumanMessage(f"A summary of {len(self.hidden)} messages.", id="summary")
        self.event = {"cutoff_index": len(self.hidden), "summary_message": summary, "after_id": self.after_id}
        shown = [summary, *shown[at:]]
        self.since = Since(self.tokens(shown), len(shown))
        return shown

    def check(self, shown: list[AnyMessage]) -> None:
        """Check a request: a valid history with every live message, in bounds, which repeats the last one."""
        assert history_faults(shown) == []
        live = [each.id for each in self.messages if each.id not in self.hidden]
        assert [each.id for each in shown if each.id != "summary"] == live
        assert ["summary"] * bool(self.event) == [each.id for each in shown[:1] if each.id == "summary"]
        assert count_tokens_approximately(shown) <= WINDOW
        if self.steady:
            before = self.requests[-1]
            assert all(new is old for new, old in zip(shown, before, strict=False))
            assert len(shown) > len(before)

    def check_spacing(self, tokens: int) -> None:
        """Check that there is new text of 15 % of the window since the last compaction, if that fits."""
        if self.since is not None:
            assert tokens >= min(self.since.tokens + int(0.15 * WINDOW), int(FULL * WINDOW))

    def changed(self, shown: Sequence[AnyMessage]) -> None:
        self.steady = False
        self.after_id = shown[-1].id

    def tokens(self, shown: Sequence[AnyMessage]) -> int:
        return self.meter.of(shown, None, (), after_id=self.after_id)

    def load(self, shown: Sequence[AnyMessage], tokens: int) -> Load:
        return Load(tokens, len(shown), WINDOW)

    def pieces(self, shown: Sequence[AnyMessage]) -> list[Piece]:
        return [_piece(each, size) for each, size in zip(shown, self.meter.each(shown), strict=True)]


def _belongs(message: AnyMessage) -> bool:
    return isinstance(message, ToolMessage) or MEDIA in message.additional_kwargs


def _piece(message: AnyMessage, tokens: int) -> Piece:
    if isinstance(message, AIMessage):
        return Piece("model", tokens, calls=tuple(call["id"] or "" for call in message.tool_calls))
    if isinstance(message, ToolMessage):
        return Piece("tool", tokens, answers=message.tool_call_id)
    kind: PieceKind = "summary" if message.id == "summary" else "other" if _belongs(message) else "human"
    return Piece(kind, tokens)


acts: st.SearchStrategy[Act] = st.tuples(
    st.sampled_from(["ask", "call", "call", "call", "delete", "insert", "edit"]),
    st.lists(st.integers(1, 1600), min_size=1, max_size=5),
    st.booleans(),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(acts, min_size=1, max_size=60))
def test_no_result_is_orphaned_no_live_message_hidden_and_no_bound_passed(acts: list[Act]) -> None:
    conversation = Conversation()
    for act in acts:
        conversation.act(act)


def test_a_long_conversation_is_compacted_and_clipped_many_times() -> None:
    conversation = Conversation()
    for number in range(600):
        conversation.act(("call", [(number * 37) % 900 + 1] * (number % 3 + 1), number % 7 == 0))

    summaries = {each[0].text for each in conversation.requests if each[0].id == "summary"}
    clipped = {each.id for each in conversation.messages if each.id in conversation.record}
    assert len(summaries) > 20
    assert len(clipped) > 20
