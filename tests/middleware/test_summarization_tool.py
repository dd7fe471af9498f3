"""compact_conversation: the model asks for what otherwise comes by itself."""

from __future__ import annotations

from typing import Any

import pytest
from langchain.tools import ToolRuntime
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from deepagents import FilesystemPermission, create_deep_agent
from deepagents.backends import StateBackend
from deepagents.middleware import SummarizationToolMiddleware, create_summarization_tool_middleware
from deepagents.middleware.summarization import (
    SUMMARIZATION_EVENT_KEY,
    CompactConversationSchema,
    SummarizationMiddleware,
    create_summarization_middleware,
)
from deepagents.testing import Asked, ScriptedModel, WindowedModel, call, calls
from tests.conftest import CallMode
from tests.middleware.archives import parse
from tests.middleware.voyages import ARCHIVE, PIXEL, THREAD, research, steps


def agent_of(model: WindowedModel, **options: Any) -> Any:
    tool = create_summarization_tool_middleware(model, StateBackend())
    return create_deep_agent(
        model, tools=[research], middleware=[tool], checkpointer=InMemorySaver(), **options
    )


def answers(result: Any) -> list[ToolMessage]:
    return [each for each in result["messages"] if getattr(each, "name", "") == "compact_conversation"]


def test_the_model_compacts_when_it_asks_to(call_mode: CallMode) -> None:
    model = WindowedModel(*steps(10), call("compact_conversation"), "Done.", window=12_000)
    result = call_mode.invoke(agent_of(model), {"messages": "Whales!"}, THREAD)
    (answer,) = answers(result)
    shown = model.turns[-1].messages

    assert answer.text.startswith("Conversation compacted. Summarized ")
    assert answer.status == "success"
    assert "<summary>" in shown[1].text
    assert [each.text for each in shown[-1:]] == [answer.text]
    assert isinstance(shown[-2], AIMessage)
    archived = parse("".join(result["files"][ARCHIVE]["content"]))
    assert f"Summarized {len(archived)} messages" in answer.text
    assert archived == result["messages"][: len(archived)]
    assert len(model.summaries) == 1


def test_two_calls_in_one_turn_do_it_once(call_mode: CallMode) -> None:
    both = calls(("compact_conversation", {}), ("compact_conversation", {}))
    model = WindowedModel(*steps(10), both, "Done.", window=12_000)
    result = call_mode.invoke(agent_of(model), {"messages": "Whales!"}, THREAD)
    first, second = answers(result)

    assert first.text.startswith("Conversation compacted")
    assert second.text.startswith("Nothing to compact yet")
    assert len(model.summaries) == 1
    assert "".join(result["files"][ARCHIVE]["content"]).count("## Summarized at") == 1


def test_a_call_that_a_person_rejected_leaves_the_work_to_the_next() -> None:
    both = calls(("compact_conversation", {}), ("compact_conversation", {}))
    model = WindowedModel(*steps(10), both, "Done.", window=12_000)
    agent = agent_of(model, interrupt_on={"compact_conversation": True})
    agent.invoke({"messages": "Whales!"}, THREAD)
    decisions = [{"type": "reject", "message": "not yet"}, {"type": "approve"}]
    result = agent.invoke(Command(resume={"decisions": decisions}), THREAD)
    first, second = answers(result)

    assert "not yet" in first.text
    assert second.text.startswith("Conversation compacted")
    assert len(model.summaries) == 1


def test_the_tool_names_no_archive_that_may_not_be_read() -> None:
    rules = [FilesystemPermission(["read"], ["/conversation_history/**"], "deny")]
    model = WindowedModel(*steps(10), call("compact_conversation"), "Done.", window=12_000)
    tool = create_summarization_tool_middleware(model, StateBackend(), permissions=rules)
    agent = create_deep_agent(model, tools=[research], middleware=[tool], permissions=rules)
    result = agent.invoke({"messages": "Whales!"}, THREAD)

    assert list(result["files"]) == [ARCHIVE]
    assert "/conversation_history" not in model.turns[-1].messages[1].text


def test_a_short_conversation_is_left_alone() -> None:
    model = WindowedModel(*steps(2), call("compact_conversation"), "Done.", window=12_000)
    agent = agent_of(model)
    (answer,) = answers(agent.invoke({"messages": "Whales!"}, THREAD))

    assert answer.text.startswith("Nothing to compact yet")
    assert SUMMARIZATION_EVENT_KEY not in agent.get_state(THREAD).values


def test_a_model_that_reports_no_usage_may_compact_too() -> None:
    model = WindowedModel(*steps(10), call("compact_conversation"), "Done.", window=12_000, honesty=None)
    (answer,) = answers(agent_of(model).invoke({"messages": "Whales!"}, THREAD))

    assert answer.text.startswith("Conversation compacted")


def test_a_failure_is_an_error_result_and_changes_nothing(call_mode: CallMode) -> None:
    def down(asked: Asked) -> Exception:
        return RuntimeError("the summarizer is down")

    model = WindowedModel(*steps(10), call("compact_conversation"), "Done.", window=12_000, summary=down)
    agent = agent_of(model)
    (answer,) = answers(call_mode.invoke(agent, {"messages": "Whales!"}, THREAD))

    assert answer.text.startswith("Compaction failed")
    assert "nothing has changed" in answer.text
    assert "RuntimeError: the summarizer is down" in answer.text
    assert answer.status == "error"
    assert answer.additional_kwargs["error_code"] == "tool_failed"
    assert SUMMARIZATION_EVENT_KEY not in agent.get_state(THREAD).values


def test_media_go_to_files_and_never_to_the_summarizer() -> None:
    model = WindowedModel(*steps(10), call("compact_conversation"), "Done.", window=12_000)
    picture = {"type": "image", "base64": PIXEL, "mime_type": "image/png"}
    asked = HumanMessage([{"type": "text", "text": "What is this?"}, picture])
    result = agent_of(model).invoke({"messages": [asked]}, THREAD)

    assert PIXEL not in model.summaries[0].last
    assert PIXEL not in "".join(result["files"][ARCHIVE]["content"])
    assert [path for path in result["files"] if path.startswith("/conversation_history/media/")]
    assert '<image url="/conversation_history/media/' in model.summaries[0].last


def test_the_automatic_layer_goes_on_from_there() -> None:
    model = WindowedModel(*steps(10), call("compact_conversation"), *steps(20), "Done.", window=12_000)
    agent = agent_of(model)
    result = agent.invoke({"messages": "Whales!"}, THREAD)
    archived = parse("".join(result["files"][ARCHIVE]["content"]))
    hidden = agent.get_state(THREAD).values["_summarized_ids"]

    assert len(model.summaries) == 2
    assert archived == [each for each in result["messages"] if each.id in hidden]


def test_a_person_may_be_asked_first() -> None:
    model = WindowedModel(*steps(10), call("compact_conversation"), "Done.", window=12_000)
    agent = agent_of(model, interrupt_on={"compact_conversation": True})
    agent.invoke({"messages": "Whales!"}, THREAD)

    assert model.summaries == []
    assert agent.get_state(THREAD).next


def test_it_shares_the_settings_of_an_automatic_layer() -> None:
    model = WindowedModel(*steps(4), call("compact_conversation"), "Done.")
    summarization = SummarizationMiddleware(
        model, backend=StateBackend(), trigger=("messages", 12), keep=("messages", 2)
    )
    tool = SummarizationToolMiddleware(summarization, system_prompt="Compact now and then.")
    agent = create_deep_agent(model, tools=[research], middleware=[summarization, tool])
    result = agent.invoke({"messages": "Whales!"}, THREAD)

    assert answers(result)[0].text.startswith("Conversation compacted")
    assert model.turns[0].system.endswith("Compact now and then.")


def test_it_takes_no_arguments_and_says_when_to_use_it() -> None:
    model = WindowedModel("Done.")
    agent_of(model).invoke({"messages": "Hello"}, THREAD)
    tool = next(each for each in model.turns[0].tools if each["function"]["name"] == "compact_conversation")

    assert tool["function"]["parameters"]["properties"] == {}
    assert "Takes no arguments" in tool["function"]["description"]
    assert CompactConversationSchema().model_dump(exclude={"runtime"}) == {}


def test_without_a_section_of_its_own_the_prompt_stays_as_it_is() -> None:
    plain, with_tool = WindowedModel("Done."), WindowedModel("Done.")
    create_deep_agent(plain).invoke({"messages": "Hello"})
    agent_of(with_tool).invoke({"messages": "Hello"}, THREAD)

    assert plain.turns[0].system == with_tool.turns[0].system


def test_a_section_must_be_text() -> None:
    summarization = create_summarization_middleware(WindowedModel(), StateBackend())
    wrong: Any = 7
    with pytest.raises(TypeError, match="must be str or None"):
        SummarizationToolMiddleware(summarization, system_prompt=wrong)


def test_of_two_compactions_in_one_turn_the_one_that_hides_more_is_kept() -> None:
    def hide(count: int, runtime: ToolRuntime[Any, Any]) -> Command[Any]:
        """Put a summary in the place of the first messages."""
        event = {"cutoff_index": count, "summary_message": HumanMessage(f"Hid {count}."), "file_path": None}
        told = ToolMessage("Hidden.", tool_call_id=runtime.tool_call_id)
        return Command(update={SUMMARIZATION_EVENT_KEY: event, "messages": [told]})

    both = calls(("hide", {"count": 2}), ("hide", {"count": 1}))
    with ScriptedModel(call("ls", path="/"), both, "Done.") as model:
        create_deep_agent(model, tools=[hide]).invoke({"messages": "Go"})

    assert model.asked[-1].messages[1].text == "Hid 2."
