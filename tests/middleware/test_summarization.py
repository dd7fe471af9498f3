"""Compaction through the front door: when it comes, what a request shows then, and what is never lost."""

from __future__ import annotations

import asyncio
import logging
import re
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import ModelRetryMiddleware
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel

from deepagents import FilesystemMiddleware, FilesystemPermission, create_deep_agent
from deepagents.backends import CompositeBackend, FilesystemBackend, StateBackend
from deepagents.backends.capabilities import Capabilities
from deepagents.backends.results import WriteResult
from deepagents.errors import UnknownModel
from deepagents.middleware.summarization import (
    DEEPAGENTS_DEFAULT_SUMMARY_PROMPT,
    SUMMARIZATION_EVENT_KEY,
    SummarizationMiddleware,
    compute_summarization_defaults,
    create_summarization_middleware,
)
from deepagents.testing import (
    Asked,
    ScriptedModel,
    WindowedModel,
    call,
)
from deepagents.tools import ToolSpec
from deepagents.tools._tool import ToolOutput, make_tool
from tests.conftest import CallMode
from tests.middleware.archives import parse
from tests.middleware.voyages import ARCHIVE, PIXEL, THREAD, research, steps

TASK = "Find out all there is to know about whales, and spell 'Balaenoptera' right."


def compactions(model: WindowedModel) -> list[Asked]:
    """The requests that were the first to show a new summary."""
    first = [turn.messages[1] for turn in model.turns]
    return [
        turn
        for turn, message, before in zip(model.turns[1:], first[1:], first, strict=False)
        if "<summary>" in message.text and message.id != before.id
    ]


def words(asked: Asked) -> str:
    """All that a request says."""
    return "\n".join(each.text for each in asked.messages)


def down(asked: Asked) -> Exception:
    """A summarizer that is not there."""
    return RuntimeError("the summarizer is down")


# --- when it comes, and what is shown then ---


def test_a_long_run_is_compacted_before_its_window_is_full(call_mode: CallMode) -> None:
    model = WindowedModel(*steps(30, much=2), "Done.", window=12_000)
    agent = create_deep_agent(model, tools=[research], checkpointer=InMemorySaver())
    result = call_mode.invoke(agent, {"messages": TASK}, THREAD)

    assert result["messages"][-1].text == "Done."
    assert len(result["messages"]) == 62
    assert model.refused == []
    assert max(turn.tokens for turn in model.turns) >= 0.8 * 12_000
    assert 3 <= len(model.summaries) <= 5


def test_the_summary_names_the_archive_and_the_words_of_the_user() -> None:
    model = WindowedModel(*steps(25), "Done.", window=12_000)
    create_deep_agent(model, tools=[research]).invoke({"messages": TASK}, THREAD)
    summary = compactions(model)[0].messages[1]

    assert isinstance(summary, HumanMessage)
    assert summary.additional_kwargs["lc_source"] == "summarization"
    assert summary.id
    assert "conversation that has been summarized" in summary.text
    assert f"full conversation history has been saved to {ARCHIVE}" in summary.text
    assert "<summary>\nSummary of " in summary.text
    assert f"<user>{TASK}</user>" in summary.text


def test_the_task_is_quoted_again_when_a_later_summary_takes_over() -> None:
    model = WindowedModel(*steps(30, much=2), "Done.", window=12_000)
    create_deep_agent(model, tools=[research]).invoke({"messages": TASK}, THREAD)

    assert len(compactions(model)) > 2
    assert all(TASK in asked.messages[1].text for asked in compactions(model))


def test_a_request_that_still_stands_is_not_said_twice() -> None:
    model = WindowedModel(*steps(15), "Done.", "Hello.", window=12_000)
    agent = create_deep_agent(model, tools=[research], checkpointer=InMemorySaver())
    agent.invoke({"messages": TASK}, THREAD)
    agent.invoke({"messages": "And now say hello. " + "Please. " * 700}, THREAD)

    last = model.turns[-1]
    assert "<summary>" in last.messages[1].text
    assert "And now say hello." not in last.messages[1].text
    assert last.messages[-1].text.startswith("And now say hello.")


def test_claude_with_200k_is_compacted_at_85_percent() -> None:
    profile = {"max_input_tokens": 200_000, "max_output_tokens": 64_000}
    pages = [call("research_much", topic=str(n)) for n in range(60)]

    def research_much(topic: str) -> str:
        """Find out a lot."""
        return f"{topic} " + "fact " * 3_000

    model = WindowedModel(*pages, "Done.", window=200_000, profile=profile)
    create_deep_agent(model, tools=[research_much]).invoke({"messages": TASK})
    before = model.turns[model.turns.index(compactions(model)[0]) - 1].tokens
    step = model.turns[1].tokens - model.turns[0].tokens

    assert 0.85 * 200_000 - step - 4_000 <= before <= 0.87 * 200_000
    assert model.refused == []


@pytest.mark.parametrize(
    "trigger", [[("fraction", 0.7), ("messages", 200)], {"fraction": 1e-5, "messages": 200}]
)
def test_short_messages_are_compacted_by_their_number(trigger: Any) -> None:
    model = WindowedModel("Done.", window=200_000)
    own = SummarizationMiddleware(model, backend=StateBackend(), trigger=trigger)
    history: list[AnyMessage] = [
        HumanMessage("Where?") if n % 2 == 0 else AIMessage("There.") for n in range(251)
    ]
    create_deep_agent(model, middleware=[own]).invoke({"messages": history}, THREAD)

    assert len(model.summaries) == 1
    assert "<summary>" in model.turns[-1].messages[1].text


def test_keeping_more_than_the_trigger_does_not_summarize_every_step() -> None:
    model = WindowedModel(*steps(20, much=2), "Done.", window=40_000)
    greedy = SummarizationMiddleware(
        model, backend=StateBackend(), trigger=("tokens", 6_000), keep=("tokens", 9_000)
    )
    create_deep_agent(model, tools=[research], middleware=[greedy]).invoke({"messages": TASK}, THREAD)

    assert len(model.summaries) <= 20 * 1_050 / (0.15 * 6_000) + 1


# --- nothing is lost ---


@pytest.mark.parametrize(
    ("call_mode", "kind"), [("sync", "state"), ("async", "disk")], indirect=["call_mode"]
)
def test_every_evicted_message_stands_in_the_archive(call_mode: CallMode, tmp_path: Path, kind: str) -> None:
    backend = StateBackend() if kind == "state" else FilesystemBackend(root_dir=tmp_path, virtual_mode=True)
    model = WindowedModel(*steps(30, much=2), "Done.", window=12_000)
    agent = create_deep_agent(model, tools=[research], backend=backend, checkpointer=InMemorySaver())
    result = call_mode.invoke(agent, {"messages": TASK}, THREAD)
    evicted = agent.get_state(THREAD).values["_summarized_ids"]
    text = result["files"][ARCHIVE]["content"] if kind == "state" else (tmp_path / ARCHIVE[1:]).read_text()
    archived = parse("\n".join(text) if isinstance(text, list) else text)

    assert len(archived) > 40
    assert archived == [each for each in result["messages"] if each.id in evicted]


def test_the_archive_holds_originals_where_requests_showed_less(tmp_path: Path) -> None:
    essay = "Thar she blows. " * 1_000
    writing = [call("write_file", file_path=f"/{n}.md", content=essay) for n in range(6)]
    model = WindowedModel(*writing, *steps(30), "Done.", window=20_000)
    backend = FilesystemBackend(root_dir=tmp_path, virtual_mode=True)
    create_deep_agent(model, tools=[research], backend=backend).invoke({"messages": TASK}, THREAD)
    archived = parse((tmp_path / ARCHIVE[1:]).read_text())
    clipped = [
        made["args"]["content"]
        for turn in model.turns
        for each in turn.messages
        if isinstance(each, AIMessage)
        for made in each.tool_calls
        if made["name"] == "write_file"
    ]

    assert any("argument truncated" in content for content in clipped)
    assert [
        made["args"]["content"]
        for each in archived
        if isinstance(each, AIMessage)
        for made in each.tool_calls
        if made["name"] == "write_file"
    ] == [essay] * 6


def test_messages_deleted_after_a_summary_hide_no_live_one() -> None:
    model = WindowedModel(*steps(20), "Done.", "Still here.", window=12_000)
    agent = create_deep_agent(model, tools=[research], checkpointer=InMemorySaver())
    result = agent.invoke({"messages": TASK}, THREAD)
    shown = model.turns[-1].messages[2:]
    gone = [RemoveMessage(id=str(each.id)) for each in result["messages"][:7]]
    agent.update_state(THREAD, {"messages": gone})
    agent.invoke({"messages": "Are you there?"}, THREAD)

    assert model.turns[-1].messages[2 : 2 + len(shown)] == shown
    assert model.turns[-1].messages[-1].text == "Are you there?"
    assert "<summary>" in model.turns[-1].messages[1].text


def test_an_archive_that_cannot_be_written_is_told_and_nothing_else_is_lost() -> None:
    class ReadOnly(StateBackend):
        def write(self, file_path: str, content: str, **_: Any) -> WriteResult:
            return WriteResult(error="disk full", code="io_error")

        def append(self, file_path: str, content: Any, **_: Any) -> WriteResult:
            return WriteResult(error="disk full", code="io_error")

        def upload_files(self, files: Any, **_: Any) -> Any:
            raise OSError("disk full")

    model = WindowedModel(*steps(20), "Done.", window=12_000)
    agent = create_deep_agent(model, tools=[research], backend=ReadOnly())
    with pytest.warns(UserWarning, match="Offloading conversation history to backend failed"):
        result = agent.invoke({"messages": TASK}, THREAD)

    assert result["messages"][-1].text == "Done."
    assert "saved to" not in compactions(model)[0].messages[1].text
    assert len(result["messages"]) == 42


class Stuck(StateBackend):
    """Never adds to a file, until the test lets it go."""

    def __init__(self) -> None:
        super().__init__()
        self.let_go = threading.Event()

    def append(self, file_path: str, content: Any, **options: Any) -> WriteResult:
        self.let_go.wait(30)
        return super().append(file_path, content, **options)

    def capabilities(self, path: str = "/") -> Capabilities:
        return replace(super().capabilities(path), in_process=False, state_files=False)


@pytest.mark.parametrize("whose", ["the file tools'", "its own"])
def test_a_backend_that_never_answers_holds_a_compaction_up_for_the_timeout_alone(
    call_mode: CallMode, whose: str
) -> None:
    backend, model = Stuck(), WindowedModel(*steps(20), "Done.", window=12_000)
    own: list[Any] = [
        FilesystemMiddleware(backend=backend, backend_timeout=0.2)
        if whose == "the file tools'"
        else SummarizationMiddleware(model, backend=backend, trigger=("messages", 20), backend_timeout=0.2)
    ]
    agent = create_deep_agent(model, tools=[research], backend=backend, middleware=own)
    began = time.monotonic()
    with pytest.warns(UserWarning, match="Offloading conversation history to backend failed.*timed out"):
        result = call_mode.invoke(agent, {"messages": TASK})
    took = time.monotonic() - began
    backend.let_go.set()

    assert result["messages"][-1].text == "Done."
    assert compactions(model)
    assert took < 20


@pytest.mark.parametrize(
    ("failing", "named", "incomplete"),
    [
        ([2, 3], [True] * 4, [False, True, True, False]),
        ([1], [False, True, True, True], [False] * 4),
    ],
    ids=["the second and third time", "the first time"],
)
def test_what_could_not_be_archived_once_is_archived_with_the_next_compaction(
    tmp_path: Path, failing: list[int], named: list[bool], incomplete: list[bool]
) -> None:
    class Flaky(FilesystemBackend):
        appended = 0

        def append(self, file_path: str, content: str | bytes, **options: Any) -> WriteResult:
            self.appended += 1
            if self.appended in failing:
                return WriteResult(error="disk full", code="io_error")
            return super().append(file_path, content, **options)

    model = WindowedModel(*steps(35, much=2), "Done.", window=12_000)
    backend = Flaky(root_dir=tmp_path, virtual_mode=True)
    agent = create_deep_agent(model, tools=[research], backend=backend, checkpointer=InMemorySaver())
    with pytest.warns(UserWarning, match="Offloading conversation history to backend failed"):
        result = agent.invoke({"messages": TASK}, THREAD)
    evicted = agent.get_state(THREAD).values["_summarized_ids"]
    told = [each.messages[1].text for each in compactions(model)][:4]

    assert parse((tmp_path / ARCHIVE[1:]).read_text()) == [
        each for each in result["messages"] if each.id in evicted
    ]
    assert [f"saved to {ARCHIVE}" in each for each in told] == named
    assert ["A part of the conversation history" in each for each in told] == incomplete


def test_a_compaction_goes_on_from_one_that_an_older_version_made() -> None:
    summary = HumanMessage("They met a whale.", additional_kwargs={"lc_source": "summarization"})
    older = {"cutoff_index": 2, "summary_message": summary}
    model = WindowedModel(*steps(20), "Done.", window=12_000)
    agent = create_deep_agent(model, tools=[research], checkpointer=InMemorySaver())
    before = [HumanMessage("Call me Ishmael."), AIMessage("Ishmael."), HumanMessage("Go on.")]
    agent.update_state(THREAD, {"messages": before, SUMMARIZATION_EVENT_KEY: older}, as_node="model")
    result = agent.invoke({"messages": TASK}, THREAD)

    assert list(result["files"]) == [ARCHIVE]
    assert f"saved to {ARCHIVE}" in compactions(model)[-1].messages[1].text


@pytest.mark.parametrize("broken", ["media", "everything"])
def test_a_summarizer_is_told_of_no_file_that_could_not_be_saved(tmp_path: Path, broken: str) -> None:
    class NoMedia(FilesystemBackend):
        def upload_files(self, files: Any, **_: Any) -> Any:
            raise OSError("disk full")

        def append(self, file_path: str, content: str | bytes, **options: Any) -> WriteResult:
            if broken == "everything":
                raise OSError("disk full")
            return super().append(file_path, content, **options)

    model = WindowedModel(*steps(20), "Done.", window=12_000)
    backend = NoMedia(root_dir=tmp_path, virtual_mode=True)
    picture: Any = {"type": "image", "base64": PIXEL, "mime_type": "image/png"}
    asked = HumanMessage([{"type": "text", "text": TASK}, picture])
    with pytest.warns(UserWarning, match=r"could not be offloaded|Offloading"):
        create_deep_agent(model, tools=[research], backend=backend).invoke({"messages": [asked]}, THREAD)

    assert '<image error="failed_to_offload" />' in model.summaries[0].last
    assert "/conversation_history/media" not in model.summaries[0].last


NO_HISTORY = FilesystemPermission(["read", "write"], ["/conversation_history/**"], "deny")


@pytest.mark.parametrize("whose", ["the library's", "the caller's"])
def test_an_archive_that_may_not_be_read_is_written_but_not_named(whose: str) -> None:
    model = WindowedModel(*steps(20), call("read_file", file_path=ARCHIVE), "Done.", window=12_000)
    own = [create_summarization_middleware(model, StateBackend())] if whose == "the caller's" else []
    agent = create_deep_agent(model, tools=[research], middleware=own, permissions=[NO_HISTORY])
    result = agent.invoke({"messages": TASK}, THREAD)

    assert list(result["files"]) == [ARCHIVE]
    assert result["messages"][-2].status == "error"
    assert "/conversation_history" not in compactions(model)[0].messages[1].text
    assert "<summary>" in compactions(model)[0].messages[1].text


def test_artifacts_go_where_the_backend_wants_them() -> None:
    backend = CompositeBackend(default=StateBackend(), routes={}, artifacts_root="/workspace")
    model = WindowedModel(*steps(20), "Done.", window=12_000)
    result = create_deep_agent(model, tools=[research], backend=backend).invoke({"messages": TASK}, THREAD)

    assert list(result["files"]) == [f"/workspace{ARCHIVE}"]


def test_a_conversation_without_a_thread_gets_a_name_of_its_own() -> None:
    model = WindowedModel(*steps(20, much=2), "Done.", window=12_000)
    result = create_deep_agent(model, tools=[research]).invoke({"messages": TASK})
    (path,) = result["files"]

    assert path.startswith("/conversation_history/session_")
    assert len(compactions(model)) > 1


def test_conversations_without_a_thread_share_nothing_though_their_messages_are_numbered_alike(
    tmp_path: Path,
) -> None:
    backend = FilesystemBackend(root_dir=tmp_path, virtual_mode=True)
    for name in ("Ahab", "Starbuck"):
        model = WindowedModel(*steps(20), "Done.", window=12_000)
        agent = create_deep_agent(model, tools=[research], backend=backend)
        agent.invoke({"messages": [HumanMessage(f"I am {name}.", id="1")]}, {})
    texts = [each.read_text() for each in tmp_path.glob("conversation_history/session_*.md")]

    assert len(texts) == 2
    assert [sum(name in each for each in texts) for name in ("Ahab", "Starbuck")] == [1, 1]


def failing_after_a_summary() -> WindowedModel:
    """Make a model that fails once, when it is first shown a summary."""
    failed: list[int] = []

    def fail_once(asked: Asked) -> AIMessage | Exception:
        if any("<summary>" in each.text for each in asked.messages) and not failed:
            failed.append(1)
            return ConnectionError("the line is down")
        return steps(1)[0]

    return WindowedModel(*steps(16), *[fail_once] * 6, "Done.", window=12_000)


@pytest.mark.parametrize("config", [THREAD, {}], ids=["in a thread", "without a thread"])
def test_a_call_that_is_tried_again_gets_the_same_summary_and_has_one_archive(
    call_mode: CallMode, tmp_path: Path, config: Any
) -> None:
    model = failing_after_a_summary()
    retry = ModelRetryMiddleware(max_retries=2, initial_delay=0, jitter=False)
    backend = FilesystemBackend(root_dir=tmp_path, virtual_mode=True)
    agent = create_deep_agent(model, tools=[research], middleware=[retry], backend=backend)
    call_mode.invoke(agent, {"messages": TASK}, config)
    (archive,) = tmp_path.glob("conversation_history/*")

    assert len(model.summaries) == len(compactions(model)) == 1
    assert archive.read_text().count("## Summarized at") == 1


def test_a_summary_that_failed_in_one_conversation_holds_back_no_other() -> None:
    def down_at_first(asked: Asked) -> str | Exception:
        return ConnectionError("down") if "I am Ahab" in words(asked) else "The whale is white."

    model = WindowedModel(*steps(16), "Done.", *steps(16), "Done.", window=12_000, summary=down_at_first)
    agent = create_deep_agent(model, tools=[research])
    agent.invoke({"messages": "I am Ahab."})
    assert (len(model.summaries), len(compactions(model))) == (1, 0)
    agent.invoke({"messages": "I am Starbuck."})

    assert len(compactions(model)) == 1


def test_a_subagent_has_an_archive_of_its_own_in_the_same_thread() -> None:
    def answer(asked: Asked) -> AIMessage | str:
        done = sum(isinstance(each, ToolMessage) for each in asked.messages)
        if "You are working as a subagent" in asked.system:
            summed = sum("<summary>" in each.text for each in asked.messages)
            return "Whales are large." if summed and done > 4 else steps(1, done)[0]
        return "Done." if done else call("task", description=TASK, subagent_type="general-purpose")

    model = WindowedModel(always=answer, window=12_000)
    agent = create_deep_agent(model, tools=[research], checkpointer=InMemorySaver())
    result = agent.invoke({"messages": "Ask somebody."}, THREAD)

    assert len(result["files"]) == 1
    assert list(result["files"])[0].startswith("/conversation_history/voyage.")
    assert ARCHIVE not in result["files"]
    assert result["messages"][-2].text == "Whales are large."
    assert SUMMARIZATION_EVENT_KEY not in agent.get_state(THREAD).values


# --- failures ---


def test_a_summarizer_that_fails_does_not_end_a_run_that_fits(
    call_mode: CallMode, caplog: pytest.LogCaptureFixture
) -> None:
    model = WindowedModel(*steps(17), "Done.", window=12_000, summary=down)
    agent = create_deep_agent(model, tools=[research])
    with caplog.at_level(logging.WARNING, "deepagents"):
        result = call_mode.invoke(agent, {"messages": TASK}, THREAD)

    assert result["messages"][-1].text == "Done."
    assert compactions(model) == []
    assert "the summarizer is down" in caplog.text
    assert 1 <= len(model.summaries) <= 2


def test_where_it_no_longer_fits_extracts_take_the_place_of_the_summary() -> None:
    reading = [call("read_file", file_path="/log.txt")]
    model = WindowedModel(*reading, *steps(30), "Done.", window=12_000, summary=down)
    result = create_deep_agent(model, tools=[research]).invoke({"messages": TASK}, THREAD)
    shown = compactions(model)[0].messages[1].text

    assert result["messages"][-1].text == "Done."
    assert model.refused == []
    assert TASK in shown
    assert "read_file /log.txt" in shown
    assert ARCHIVE in shown


class PageSchema(BaseModel):
    """The arguments of `read_page`."""

    target: str


async def show_page(context: Any, target: str) -> ToolOutput:
    return ToolOutput("A page.")


def test_extracts_name_the_paths_of_other_tools_that_state_theirs() -> None:
    page = ToolSpec("read_page", "Read.", PageSchema, show_page, effect="read", path_argument="target")
    reading = [call("read_page", target="/log.txt")]
    model = WindowedModel(*reading, *steps(30), "Done.", window=12_000, summary=down)
    tools = [research, make_tool(page, lambda runtime: runtime)]
    create_deep_agent(model, tools=tools).invoke({"messages": TASK})

    assert "read_page /log.txt" in compactions(model)[0].messages[1].text


def test_a_summarizer_that_fails_once_is_asked_again_before_extracts_are_taken() -> None:
    asked: list[int] = []

    def busy_once(request: Asked) -> str | Exception:
        asked.append(1)
        return ConnectionError("429, too many requests") if len(asked) == 1 else "The whale is white."

    jump = call("research", topic="krill. " * 1_900)
    model = WindowedModel(*steps(10), jump, *steps(3, 10), "Done.", window=12_000, summary=busy_once)
    create_deep_agent(model, tools=[research]).invoke({"messages": TASK}, THREAD)

    assert len(asked) == 2
    assert model.refused == []
    assert ["The whale is white." in each.messages[1].text for each in compactions(model)] == [True]


def test_extracts_keep_the_earlier_summary_whole() -> None:
    told: list[str] = []

    def once(request: Asked) -> str | Exception:
        told.append("\n".join(f"- Fact {n} about the whale." for n in range(200)))
        return told[0] if len(told) == 1 else ConnectionError("down for good")

    model = WindowedModel(*steps(45, much=2), "Done.", window=12_000, summary=once)
    create_deep_agent(model, tools=[research]).invoke({"messages": TASK}, THREAD)
    first, second, third = [each.messages[1].text for each in compactions(model)][:3]

    assert told[0] in first
    assert "these are extracts" in second
    assert told[0] in second
    assert (third.count("these are extracts"), told[0][:2_000] in third) == (1, True)


@pytest.mark.parametrize("answer", ["", 7])
def test_an_answer_that_is_no_summary_counts_as_a_failure(answer: Any) -> None:
    model = WindowedModel(*steps(30), "Done.", window=12_000)
    own = SummarizationMiddleware(
        model,
        backend=StateBackend(),
        trigger=("fraction", 0.85),
        keep=("fraction", 0.1),
        summarizer=lambda messages: answer,
    )
    result = create_deep_agent(model, tools=[research], middleware=[own]).invoke({"messages": TASK}, THREAD)

    assert result["messages"][-1].text == "Done."
    assert "No summary could be written" in compactions(model)[0].messages[1].text


def test_a_run_taken_up_after_a_failure_does_not_pay_for_the_summary_twice() -> None:
    model = failing_after_a_summary()
    agent = create_deep_agent(model, tools=[research], checkpointer=InMemorySaver())
    with pytest.raises(ConnectionError):
        agent.invoke({"messages": TASK}, THREAD)
    result = agent.invoke(None, THREAD)

    assert len(model.summaries) == 1
    content = result["files"][ARCHIVE]["content"]
    assert "".join(content).count("## Summarized at") == 1


def test_when_awaited_the_archive_is_written_while_the_summary_is(tmp_path: Path) -> None:
    both_there = threading.Barrier(2, timeout=20)

    class Slow(FilesystemBackend):
        def append(self, file_path: str, content: str | bytes, **options: Any) -> WriteResult:
            both_there.wait()
            return super().append(file_path, content, **options)

    def sum_up(messages: list[AnyMessage]) -> str:
        both_there.wait()
        return "Whales are large."

    model = WindowedModel(*steps(17), "Done.", window=12_000)
    backend = Slow(root_dir=tmp_path, virtual_mode=True)
    own = create_summarization_middleware(model, backend, summarizer=sum_up)
    agent = create_deep_agent(model, tools=[research], backend=backend, middleware=[own])
    asyncio.run(agent.ainvoke({"messages": TASK}, THREAD))

    assert ARCHIVE in compactions(model)[0].messages[1].text
    assert "Whales are large." in compactions(model)[0].messages[1].text


# --- the summarizer ---


def test_what_the_summarizer_is_given_fits_its_window() -> None:
    small = WindowedModel(window=3_000)
    model = WindowedModel(*steps(30, much=2), "Done.", window=12_000)
    own = create_summarization_middleware(model, StateBackend(), summarizer=small)
    agent = create_deep_agent(model, tools=[research], middleware=[own])
    agent.invoke({"messages": TASK}, THREAD)

    assert small.summaries
    assert small.refused == []
    assert max(each.tokens for each in small.summaries) <= 0.75 * 3_000
    assert "characters left out" in small.summaries[0].last
    assert TASK in small.summaries[0].last
    assert model.summaries == []


def test_a_summarizer_that_counts_more_than_we_do_is_asked_for_less() -> None:
    def strict(messages: Sequence[Any], **_: Any) -> int:
        return sum(len(each.text) for each in messages) // 2

    small = WindowedModel(window=6_000, counter=strict)
    model = WindowedModel(*steps(20), "Done.", window=12_000)
    own = create_summarization_middleware(model, StateBackend(), summarizer=small)
    create_deep_agent(model, tools=[research], middleware=[own]).invoke({"messages": TASK}, THREAD)

    assert len(small.refused) == len(compactions(model)) == 1
    assert "Summary of" in compactions(model)[0].messages[1].text


def test_an_earlier_summary_is_part_of_what_is_summarized() -> None:
    model = WindowedModel(
        *steps(20, much=2), "Done.", window=12_000, summary=lambda asked: "The whale is white."
    )
    create_deep_agent(model, tools=[research]).invoke({"messages": TASK}, THREAD)

    assert "The whale is white." in words(model.summaries[1])


async def _asked_later(messages: list[AnyMessage]) -> str:
    return f"{len(messages)} messages went by"


@pytest.mark.parametrize(
    "make",
    [
        lambda: lambda messages: f"{len(messages)} messages went by",
        lambda: RunnableLambda(lambda messages: f"{len(messages)} messages went by", _asked_later),
        lambda: (
            WindowedModel(summary=lambda asked: "31 messages went by").with_config(tags=["cheap"])
            | (lambda said: said.text)
        ),
    ],
    ids=["function", "runnable", "chain"],
)
def test_whatever_returns_a_text_may_be_the_summarizer(call_mode: CallMode, make: Callable[[], Any]) -> None:
    model = WindowedModel(*steps(20), "Done.", window=12_000)
    given = make()
    own = create_summarization_middleware(model, StateBackend(), summarizer=given)
    agent = create_deep_agent(model, tools=[research], middleware=[own])
    call_mode.invoke(agent, {"messages": TASK}, THREAD)

    assert "messages went by" in compactions(model)[0].messages[1].text or "Summary of" not in str(given)
    assert model.summaries == []


def test_a_summarizer_that_can_only_be_awaited_is_refused_before_it_is_needed() -> None:
    model = WindowedModel(*steps(20), "Done.", window=12_000)
    own = create_summarization_middleware(model, StateBackend(), summarizer=_asked_later)
    agent = create_deep_agent(model, tools=[research], middleware=[own])
    with pytest.raises(TypeError, match="ainvoke"):
        agent.invoke({"messages": TASK}, THREAD)
    assert model.asked == []

    asyncio.run(agent.ainvoke({"messages": TASK}, THREAD))
    assert "messages went by" in compactions(model)[0].messages[1].text


def test_a_prompt_of_the_callers_own_is_filled_as_it_stands() -> None:
    prompt = "Sum up {this} as {'json': 1}.\n<messages>\nMessages to summarize:\n{messages}"
    model = WindowedModel(*steps(20), "Done.", window=12_000)
    own = create_summarization_middleware(model, StateBackend(), summary_prompt=prompt)
    create_deep_agent(model, tools=[research], middleware=[own]).invoke({"messages": TASK}, THREAD)

    assert model.summaries[0].last.startswith("Sum up {this} as {'json': 1}.")
    assert TASK in words(model.summaries[0])


# --- what state and schemas show ---


def test_it_serves_an_agent_of_langchain_too(call_mode: CallMode) -> None:
    model = WindowedModel(*steps(20, much=2), "Done.", window=9_000)
    own = create_summarization_middleware(model, StateBackend())
    agent: Any = create_agent(model, tools=[research], middleware=[own])
    with pytest.warns(UserWarning, match="Offloading conversation history to backend failed"):
        result = call_mode.invoke(agent, {"messages": [HumanMessage(TASK)]}, THREAD)

    assert result["messages"][-1].text == "Done."
    assert model.refused == []
    assert SUMMARIZATION_EVENT_KEY not in result


# --- settings ---


def test_the_defaults_are_shares_of_a_known_window() -> None:
    assert compute_summarization_defaults(WindowedModel(window=10_000)) == {
        "trigger": ("fraction", 0.85),
        "keep": ("fraction", 0.1),
        "truncate_args_settings": {"trigger": ("fraction", 0.5), "keep": ("fraction", 0.1)},
    }


@pytest.mark.parametrize("profile", [{}, {"max_output_tokens": 9}, None])
def test_the_defaults_are_fixed_where_no_window_is_known(profile: Any) -> None:
    assert compute_summarization_defaults(ScriptedModel(profile=profile)) == {
        "trigger": ("tokens", 170_000),
        "keep": ("messages", 6),
        "truncate_args_settings": {"trigger": ("tokens", 100_000), "keep": ("messages", 20)},
    }


def test_the_constructor_shows_what_it_was_given() -> None:
    model = WindowedModel()
    made = SummarizationMiddleware(model, backend=StateBackend(), trigger=[("messages", 9), {"tokens": 7}])

    assert (made.name, made.serialized_name) == ("SummarizationMiddleware", "SummarizationMiddleware")
    assert made.model is model
    assert made.trigger == [("messages", 9), {"tokens": 7}]
    assert made.keep == ("messages", 20)
    assert made.token_counter is count_tokens_approximately


def test_a_subclass_bears_its_own_name_and_stands_beside() -> None:
    class Mine(SummarizationMiddleware):
        pass

    model = WindowedModel("Done.")
    mine = Mine(model, backend=StateBackend())

    assert mine.name == "Mine"
    assert (
        create_deep_agent(model, middleware=[mine]).invoke({"messages": "Hi"})["messages"][-1].text == "Done."
    )


@pytest.mark.parametrize(
    ("wrong", "kind", "said"),
    [
        ({"trigger": ("fraction", 0.8)}, ValueError, "max_input_tokens"),
        ({"keep": ("fraction", 0.2)}, ValueError, "max_input_tokens"),
        ({"trigger": ("bytes", 7)}, ValueError, "bytes"),
        ({"trigger": {}}, ValueError, "empty"),
        ({"trigger": ("tokens", True)}, ValueError, "True"),
        ({"trigger": ("messages", 1.5)}, ValueError, "1.5"),
        ({"trigger": "soon"}, TypeError, "soon"),
        ({"keep": 7}, TypeError, "7"),
        ({"truncate_args_settings": {"from": 7}}, ValueError, "from"),
        ({"summary_prompt": "Sum it up."}, ValueError, "{messages}"),
        ({"summarizer": 7}, ValueError, "summarizer"),
        ({"history_path_prefix": "/old"}, TypeError, "artifacts_root"),
        ({"max_tokens": 7}, TypeError, "max_tokens"),
    ],
)
def test_a_setting_that_cannot_be_is_refused(wrong: Any, kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=re.escape(said)):
        SummarizationMiddleware(ScriptedModel(), backend=StateBackend(), **wrong)


@pytest.mark.parametrize(
    ("today", "trigger"), [({}, ("tokens", 500)), ({"trigger": ("tokens", 9)}, ("tokens", 9))]
)
def test_arguments_of_older_versions_warn_and_work_where_none_of_today_is_given(
    today: Any, trigger: Any
) -> None:
    older: Any = {"max_tokens_before_summary": 500, "messages_to_keep": 3, **today}
    with pytest.warns(DeprecationWarning, match="max_tokens_before_summary|messages_to_keep"):
        made = SummarizationMiddleware(ScriptedModel(), backend=StateBackend(), **older)

    assert (made.trigger, made.keep) == (trigger, ("messages", 3))


def test_a_name_of_a_model_is_resolved_as_everywhere() -> None:
    with pytest.raises(UnknownModel, match="nobody:nothing"):
        SummarizationMiddleware("nobody:nothing", backend=StateBackend())


def test_the_factory_wants_a_model() -> None:
    name: Any = "anthropic:claude"
    with pytest.raises(TypeError, match="BaseChatModel"):
        create_summarization_middleware(name, StateBackend())


def test_the_default_prompt_tells_what_to_keep() -> None:
    prompt = DEEPAGENTS_DEFAULT_SUMMARY_PROMPT

    assert prompt.count("{messages}") == 1
    assert "<messages>\nMessages to summarize:\n{messages}\n</messages>" in prompt
    assert [line for line in prompt.splitlines() if line.startswith("## ")] == [
        "## SESSION INTENT",
        "## SUMMARY",
        "## ARTIFACTS",
        "## NEXT STEPS",
    ]
