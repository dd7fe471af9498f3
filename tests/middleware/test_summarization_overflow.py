"""A provider refuses a request as too long: what is tried, in which order, what reaches the caller."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from types import SimpleNamespace
from typing import Any

import pytest
from langchain.agents.middleware import wrap_model_call
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

from deepagents import create_deep_agent
from deepagents.backends import StateBackend
from deepagents.backends.results import WriteResult
from deepagents.middleware.summarization import SummarizationMiddleware
from deepagents.models.failures import MARKERS, is_overflow
from deepagents.testing import WindowedModel, call, calls
from tests.conftest import CallMode
from tests.middleware.archives import parse
from tests.middleware.voyages import ARCHIVE, THREAD, research, steps

TASK = "Find out all there is to know about whales."


def dig(topic: str) -> str:
    """Find out a great deal about a topic."""
    return "\n".join(f"{topic} {n}: a fact that nobody knew" for n in range(1_000))


def dense(messages: Sequence[Any], **options: Any) -> int:
    """Count twice what everybody expects."""
    return sum(len(each.text) for each in messages) // 2 + 3_000 * bool(options.get("tools"))


class Refused(Exception):
    """A provider's own error."""

    status_code = 400


def test_a_refusal_leads_to_a_summary_and_one_more_request(call_mode: CallMode) -> None:
    model = WindowedModel(*steps(30), "Done.", window=16_000, counter=dense, honesty=None)
    result = call_mode.invoke(create_deep_agent(model, tools=[research]), {"messages": TASK}, THREAD)

    assert result["messages"][-1].text == "Done."
    assert model.refused
    for refused in model.refused:
        at = model.asked.index(refused)
        assert "<summary>" in model.asked[at + 2].messages[1].text
    assert list(result["files"]) == [ARCHIVE]


@pytest.mark.parametrize("profile", [None, {"max_input_tokens": 200_000}])
def test_a_run_goes_on_in_a_window_that_is_unknown_or_smaller_than_stated(profile: Any) -> None:
    model = WindowedModel(*steps(30, much=2), "Done.", window=9_000)
    model.profile = profile
    result = create_deep_agent(model, tools=[research]).invoke({"messages": TASK}, THREAD)

    assert result["messages"][-1].text == "Done."
    assert 3 <= len(model.refused) == len(model.summaries) <= 12


def test_a_refusal_that_only_its_text_tells_counts_too() -> None:
    said = Refused("Error: This model's maximum context length is 8192 tokens.")
    model = WindowedModel(*steps(6), said, "Done.")
    result = create_deep_agent(model, tools=[research]).invoke({"messages": TASK}, THREAD)

    assert result["messages"][-1].text == "Done."
    assert len(model.summaries) == 1


def test_any_other_error_is_the_callers() -> None:
    model = WindowedModel(*steps(6), Refused("tools.3.name: does not match"))
    with pytest.raises(Refused, match="does not match"):
        create_deep_agent(model, tools=[research]).invoke({"messages": TASK}, THREAD)

    assert model.summaries == []


def test_where_the_summary_is_not_enough_large_results_move_to_files(call_mode: CallMode) -> None:
    model = WindowedModel(call("dig", topic="krill"), "Done.", window=9_000)
    result = call_mode.invoke(create_deep_agent(model, tools=[dig]), {"messages": TASK}, THREAD)
    shown = model.turns[-1].messages[-1]
    (path,) = [each for each in result["files"] if each.startswith("/large_tool_results/")]

    assert result["messages"][-1].text == "Done."
    assert path in shown.text
    assert "krill 0: a fact that nobody knew" in shown.text
    assert "krill 999: a fact that nobody knew" in shown.text
    assert len(shown.text) < 2_000
    assert result["messages"][2].text == dig("krill")
    assert "".join(result["files"][path]["content"]) == dig("krill")


def test_a_result_that_was_moved_stays_so_in_later_requests() -> None:
    model = WindowedModel(call("dig", topic="krill"), *steps(3), "Done.", window=9_000)
    create_deep_agent(model, tools=[dig, research]).invoke({"messages": TASK}, THREAD)

    assert len(model.refused) == 1
    assert model.turns[-1].messages[3] == model.turns[1].messages[3]


def test_a_page_of_a_file_points_to_that_file() -> None:
    model = WindowedModel(call("read_file", file_path="/log.txt", limit=1_000), "Done.", window=9_000)
    files = {"/log.txt": {"content": dig("log")}}
    result = create_deep_agent(model).invoke({"messages": TASK, "files": files}, THREAD)
    shown = model.turns[-1].messages[-1].text

    assert "Read on in /log.txt" in shown
    assert len(shown) < 4_500
    assert model.summaries == []
    assert list(result["files"]) == ["/log.txt"]


def test_of_several_results_each_moves_and_history_stays_valid() -> None:
    both = calls(("dig", {"topic": "krill"}), ("dig", {"topic": "squid"}), ("research", {"topic": "eyes"}))
    model = WindowedModel(*steps(4), both, "Done.", window=9_500)
    result = create_deep_agent(model, tools=[dig, research]).invoke({"messages": TASK}, THREAD)
    last = model.turns[-1].messages

    assert result["messages"][-1].text == "Done."
    assert "<summary>" in last[1].text
    assert [each.text.startswith("Tool result too large") for each in last[-3:]] == [True, True, False]
    evicted = parse("".join(result["files"][ARCHIVE]["content"]))
    assert evicted == result["messages"][: len(evicted)]


def many(count: int, size: int) -> AIMessage:
    return calls(*(("note", {"topic": f"whale {n}", "size": size}) for n in range(count)))


def note(topic: str, size: int) -> str:
    """Return a note of so many characters."""
    return (f"{topic} is large. " * size)[:size]


@pytest.mark.parametrize(("count", "size"), [(40, 4_000), (90, 1_700)])
def test_many_results_that_are_too_large_together_move_largest_first(count: int, size: int) -> None:
    both = calls(("note", {"topic": "krill", "size": 2 * size}), *pairs(many(count, size)))
    model = WindowedModel(both, "Done.", "Hello.", window=32_000)
    agent = create_deep_agent(model, tools=[note], checkpointer=InMemorySaver())
    result = agent.invoke({"messages": TASK}, THREAD)
    shown = [each.text for each in model.turns[-1].messages if each.type == "tool"]
    moved = [text.startswith("Tool result too large") for text in shown]

    assert result["messages"][-1].text == "Done."
    assert len(model.refused) == 1
    assert moved[0]
    assert any(moved[1:])
    assert "krill is large." in shown[0]
    agent.invoke({"messages": "Hello?"}, THREAD)
    assert len(model.refused) == 1


def pairs(message: AIMessage) -> list[tuple[str, dict[str, Any]]]:
    return [(each["name"], each["args"]) for each in message.tool_calls]


def test_a_turn_that_failed_leaves_a_thread_that_can_go_on() -> None:
    model = WindowedModel(many(300, 100), "Hello.", window=11_000)
    agent = create_deep_agent(model, tools=[note], checkpointer=InMemorySaver())
    with pytest.raises(ContextOverflowError):
        agent.invoke({"messages": TASK}, THREAD)
    assert len(model.refused) == 1
    result = agent.invoke({"messages": "Are you there?"}, THREAD)

    assert result["messages"][-1].text == "Hello."
    assert model.turns[-1].messages[-1].text == "Are you there?"
    kept = parse("".join(result["files"][ARCHIVE]["content"]))
    assert [each.id for each in kept] == [each.id for each in result["messages"][:-2]]


@pytest.fixture(scope="module")
def grown() -> InMemorySaver:
    """A thread that has grown in a large window."""
    kept = InMemorySaver()
    grown: list[Any] = [HumanMessage(TASK)]
    for step in steps(120):
        (made,) = step.tool_calls
        grown += [step, ToolMessage(research(**made["args"]), name="research", tool_call_id=made["id"])]
    agent = create_deep_agent(WindowedModel(), tools=[research], checkpointer=kept)
    agent.update_state(THREAD, {"messages": [*grown, AIMessage("Done.")]})
    return kept


@pytest.mark.parametrize("profile", [None, {"max_input_tokens": 200_000}])
def test_a_thread_goes_on_in_a_far_smaller_window_than_it_grew_in(
    call_mode: CallMode, grown: InMemorySaver, profile: Any
) -> None:
    kept = deepcopy(grown)
    small = WindowedModel("Hello.", window=5_000)
    small.profile = profile
    agent = create_deep_agent(small, tools=[research], checkpointer=kept)
    result = call_mode.invoke(agent, {"messages": "Are you there?"}, THREAD)

    assert result["messages"][-1].text == "Hello."
    assert small.refused[0].tokens > 60_000


def test_a_message_that_nothing_makes_fit_leaves_a_thread_that_can_go_on() -> None:
    class Full(StateBackend):
        def write(self, file_path: str, content: str, **_: Any) -> WriteResult:
            return WriteResult(error="disk full", code="io_error")

    model = WindowedModel("Hello.", window=9_000)
    agent = create_deep_agent(model, backend=Full(), checkpointer=InMemorySaver())
    with pytest.raises(ContextOverflowError):
        agent.invoke({"messages": "All of it. " * 15_000}, THREAD)
    result = agent.invoke({"messages": "Are you there?"}, THREAD)

    assert result["messages"][-1].text == "Hello."
    assert model.turns[-1].last == "Are you there?"


def test_what_a_person_said_stays_whole_before_a_reminder_at_the_end() -> None:
    @wrap_model_call
    def remind(request: Any, handler: Any) -> Any:
        return handler(request.override(messages=[*request.messages, HumanMessage("It is Monday.")]))

    model = WindowedModel(*steps(9), "Done.", "Hello.", window=16_000, counter=dense, honesty=None)
    agent = create_deep_agent(model, tools=[research], middleware=[remind], checkpointer=InMemorySaver())
    agent.invoke({"messages": TASK}, THREAD)
    request = "Say hello. " * 900
    agent.invoke({"messages": request}, THREAD)

    assert (model.asked[-3:-1]) == [*model.refused, *model.summaries]
    assert [each.text for each in model.turns[-1].messages[-2:]] == [request, "It is Monday."]


def test_one_huge_message_moves_to_a_file_and_is_answered(call_mode: CallMode) -> None:
    model = WindowedModel("I see.", "Still here.", window=9_000)
    huge = "All of it. " * 15_000 + "In French."
    agent = create_deep_agent(model, checkpointer=InMemorySaver())
    result = call_mode.invoke(agent, {"messages": huge}, THREAD)
    shown = model.turns[-1].last
    (path,) = result["files"]

    assert result["messages"][-1].text == "I see."
    assert "".join(result["files"][path]["content"]) == huge == result["messages"][0].text
    assert shown.startswith("Message too large")
    assert path in shown
    assert "In French." in shown
    call_mode.invoke(agent, {"messages": "And now?"}, THREAD)
    assert len(model.refused) == 1


def test_an_id_of_a_megabyte_does_not_fill_the_context() -> None:
    endless = AIMessage(
        "", tool_calls=[{"name": "research", "args": {"topic": "krill"}, "id": "i" * 1_000_000}]
    )
    model = WindowedModel(endless, "Done.", window=9_000)
    result = create_deep_agent(model, tools=[research]).invoke({"messages": TASK}, THREAD)

    assert result["messages"][-1].text == "Done."
    assert model.refused == []


def test_arguments_nested_without_end_are_archived() -> None:
    deep: list[Any] = []
    for _ in range(3_000):
        deep = [deep]
    endless = AIMessage("", tool_calls=[{"name": "research", "args": {"topic": deep}, "id": "1"}])
    model = WindowedModel(endless, *steps(30), "Done.", window=9_000, honesty=None)
    result = create_deep_agent(model, tools=[research]).invoke({"messages": TASK}, THREAD)

    assert result["messages"][-1].text == "Done."
    assert len(model.summaries) > 1


def test_one_huge_message_that_fits_after_all_is_answered() -> None:
    def generous(messages: Sequence[BaseMessage], **_: Any) -> int:
        return sum(len(each.text) for each in messages) // 20

    model = WindowedModel("I see.", window=30_000, counter=generous)
    result = create_deep_agent(model).invoke({"messages": "All of it. " * 15_000}, THREAD)

    assert result["messages"][-1].text == "I see."


def test_what_a_provider_said_is_kept_when_nothing_helps() -> None:
    said = Refused("prompt is too long")
    model = WindowedModel(said)
    with pytest.raises(ContextOverflowError, match="prompt is too long") as caught:
        create_deep_agent(model).invoke({"messages": TASK})

    assert caught.value.__cause__ is said


def test_a_refusal_is_met_even_without_any_trigger() -> None:
    model = WindowedModel(*steps(20, much=2), "Done.", window=12_000)
    never = SummarizationMiddleware(model, backend=StateBackend())
    agent = create_deep_agent(model, tools=[research], middleware=[never])
    result = agent.invoke({"messages": TASK}, THREAD)

    assert result["messages"][-1].text == "Done."
    assert len(model.refused) == len(model.summaries) > 0


def test_a_refusal_with_no_summarizer_leads_to_extracts() -> None:
    def down(asked: Any) -> Exception:
        return RuntimeError("down")

    model = WindowedModel(*steps(30), "Done.", window=16_000, counter=dense, honesty=None, summary=down)
    result = create_deep_agent(model, tools=[research]).invoke({"messages": TASK}, THREAD)

    assert result["messages"][-1].text == "Done."
    assert "No summary could be written" in model.turns[-1].messages[1].text


@pytest.mark.parametrize("marker", MARKERS)
def test_what_providers_say_of_a_request_that_is_too_long_is_known(marker: str) -> None:
    assert is_overflow(_error(f"Error code: 400 - {marker.upper()} (request id 7)", status_code=400))
    assert is_overflow(_error(marker, status_code=500)) is (" " in marker)
    assert is_overflow(_error("refused", body={"error": {"code": marker}}))
    assert not is_overflow(_error(marker, status_code=429))
    assert not is_overflow(_error(marker))


def test_a_body_that_is_too_large_for_a_server_is_too_long() -> None:
    assert is_overflow(_error("<html>Request Entity Too Large</html>", status_code=413))
    assert is_overflow(_error("refused", response=SimpleNamespace(status_code=413)))


def test_a_refusal_is_known_within_other_errors() -> None:
    refusal = _error("prompt is too long", status_code=400)
    wrapped = RuntimeError("the gateway failed")
    wrapped.__cause__ = refusal

    assert is_overflow(wrapped)
    assert is_overflow(ExceptionGroup("two models", [ValueError("no"), wrapped]))
    assert is_overflow(ExceptionGroup("one", [ContextOverflowError("too long")]))
    assert not is_overflow(ExceptionGroup("one", [ValueError("prompt is too long")]))


def test_an_error_that_is_its_own_cause_is_looked_at_once() -> None:
    error = ValueError("no")
    error.__cause__ = error

    assert not is_overflow(error)


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ("{'type': 'request_too_large', 'message': 'Request too large'}", 413),
        ("{'type': 'error', 'message': 'Request exceeds the maximum size'}", 413),
        ("Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8192. Given: 9000", 422),
        ("Input validation error: `inputs` must have less than 4096 tokens. Given: 4300", 422),
        ("The number of tokens to keep from the initial prompt is greater than the context length", 400),
        ("Trying to keep the first 9000 tokens when context the overflows. However, the model", 400),
        ("the input length exceeds the context length", 500),
        ("too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 4291.", 400),
    ],
)
def test_a_refusal_is_known_by_the_words_it_came_in(said: str, status: int) -> None:
    assert is_overflow(_error(said, status_code=status))


def test_a_status_is_found_where_clients_keep_it() -> None:
    said = "Input is too long for requested model."

    assert is_overflow(_error(said, code=400))
    assert is_overflow(_error(said, response=SimpleNamespace(status_code=422)))
    assert is_overflow(_error(said, response={"ResponseMetadata": {"HTTPStatusCode": 400}}))
    assert not is_overflow(_error("invalid key", status_code=400))


def _error(said: str, **marks: Any) -> Exception:
    error = Exception(said)
    vars(error).update(marks)
    return error
