"""A request is counted by an estimate of all, or by the last report and an estimate of what came since."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, cast

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    HumanMessage,
    InvalidToolCall,
    SystemMessage,
    ToolCall,
    ToolMessage,
)
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.tools import tool
from langchain_openai import AzureChatOpenAI, ChatOpenAI

from deepagents.middleware.summarization.counting import ContextCounter, TokenTotal
from deepagents.models.traits import model_provider
from tests.middleware.claude import serving as serving_claude
from tests.models.test_local_server import Server as OpenAIServer
from tests.models.test_local_server import serving as serving_openai

SYSTEM = SystemMessage("You work on files. " * 20)


@tool
def look_up(word: str) -> str:
    """Look a word up."""
    return word


def answer(text: str = "", *, total: int = 0, by: str | None = None, **options: Any) -> AIMessage:
    """A message of the model, with what the provider reports."""
    usage: Any = {"input_tokens": total - 1, "output_tokens": 1, "total_tokens": total} if total else None
    metadata = {"model_provider": by} if by else {}
    return AIMessage(text, usage_metadata=usage, response_metadata=metadata, **options)


def estimate(*messages: AnyMessage) -> int:
    return count_tokens_approximately(list(messages))


def count(
    messages: Sequence[AnyMessage],
    counter: ContextCounter | None = None,
    *,
    system: SystemMessage | None = None,
    tools: Sequence[Any] = (),
    provider: str | None = None,
    old: int = 0,
) -> int:
    counter = counter or ContextCounter()
    total = counter.add_old(TokenTotal(), messages[:old])
    total = counter.add(total, messages[old:], provider)
    return counter.size(total, messages, system, tools)[0]


# From a report on.


def test_without_a_report_all_is_estimated() -> None:
    messages = [HumanMessage("hello " * 50), AIMessage("hi"), HumanMessage("what now?")]
    tools = [look_up, {"name": "search", "parameters": {"type": "object"}}]

    assert count(messages, system=SYSTEM, tools=tools) == estimate(
        SYSTEM, *messages
    ) + count_tokens_approximately([], tools=tools)


def test_a_report_counts_for_the_request_and_estimates_for_what_came_since() -> None:
    messages = [HumanMessage("hello"), answer("hi", total=700), HumanMessage("what now?")]

    assert count(messages) == 699 + estimate(*messages[1:])


def test_the_last_report_counts() -> None:
    messages = [HumanMessage("hello"), answer(total=700), HumanMessage("so"), answer(total=900)]

    assert count(messages) == 899 + estimate(messages[-1])


@pytest.mark.parametrize("input_tokens", [0, -7])
def test_a_report_of_nothing_is_none(input_tokens: int) -> None:
    usage: Any = {"input_tokens": input_tokens, "output_tokens": 0, "total_tokens": 0}
    messages = [HumanMessage("hello " * 90), AIMessage("a", usage_metadata=usage)]

    assert count(messages) == estimate(*messages)


def test_an_estimate_that_is_larger_than_a_report_counts() -> None:
    messages = [HumanMessage("hello " * 900), answer("hi", total=30)]

    assert count(messages) == estimate(*messages)


@pytest.mark.parametrize(
    ("by", "provider"),
    [
        (None, "openai"),
        ("openai", "openai"),
        ("openai", None),
        ("bedrock", "amazon_bedrock"),
        ("bedrock_converse", "amazon_bedrock"),
        ("openai", "openai-mantle"),
        ("anthropic", "anthropic-mantle"),
        ("openai", "azure"),
        ("openai", "openai-codex"),
        ("mistralai", "mistral"),
    ],
)
def test_reports_of_the_same_provider_count(by: str | None, provider: str | None) -> None:
    assert count([HumanMessage("hello"), answer(total=700, by=by)], provider=provider) > 699


def test_reports_of_another_provider_do_not_count() -> None:
    messages = [HumanMessage("hello"), answer("hi", total=700, by="openai")]

    assert count(messages, provider="anthropic") == estimate(*messages)


def test_a_report_from_before_the_context_changed_does_not_count() -> None:
    messages = [HumanMessage("hello"), answer("hi", total=700), answer("hi", total=800)]

    assert count(messages, old=3) == estimate(*messages)
    assert count(messages, old=2) == 799 + estimate(messages[2])


def test_the_output_of_an_answer_counts_by_what_is_sent_again() -> None:
    usage: Any = {"input_tokens": 1_000, "output_tokens": 5_000, "total_tokens": 6_000}

    assert count([HumanMessage("hello"), AIMessage("Done.", usage_metadata=usage)]) < 1_020
    assert count([HumanMessage("hello"), AIMessage("word " * 4_000, usage_metadata=usage)]) > 6_000


def names_one_provider(model: BaseChatModel) -> bool:
    """Tell whether what a model reports is taken for that of its own provider."""
    by = model.invoke("hi").response_metadata["model_provider"]
    return count([HumanMessage("hello"), answer(total=700, by=by)], provider=model_provider(model)) > 699


def test_a_model_and_its_answers_name_the_same_provider() -> None:
    named: dict[str, Any] = {"model": "m", "api_key": "k", "max_retries": 0}
    with serving_openai(OpenAIServer) as address:
        azure: dict[str, Any] = {
            "azure_endpoint": address,
            "api_version": "2024-10-21",
            "azure_deployment": "m",
        }
        assert names_one_provider(ChatOpenAI(**named, base_url=address))
        assert names_one_provider(AzureChatOpenAI(**named, **azure))
    with serving_claude() as claude:
        assert names_one_provider(claude.model())


# Work.


def test_a_message_is_counted_once() -> None:
    counted: list[str] = []

    def own(messages: list[AnyMessage]) -> int:
        counted.extend(each.text for each in messages)
        return 100 * len(messages)

    counter = ContextCounter(own)
    messages = [HumanMessage("a"), HumanMessage("b"), HumanMessage("c")]
    first = counter.add(TokenTotal(), messages[:2], None)
    assert counter.size(first, messages[:2], SYSTEM, [look_up]) == (300, 100)
    then = counter.add(first, messages[2:], None)

    assert counter.size(then, messages, SYSTEM, [look_up]) == (400, 100)
    assert counted == ["a", "b", SYSTEM.text, "c"]


# A counter of the caller's own.


def test_a_report_that_is_larger_than_a_callers_count_counts() -> None:
    messages = [HumanMessage("a"), answer(total=5000), HumanMessage("b")]

    assert count(messages, ContextCounter(lambda given: 200 * len(given))) == 4999 + 400
    assert count(messages, ContextCounter(lambda given: 9000 * len(given))) == 27_000


def test_tools_go_to_a_counter_whose_signature_takes_them() -> None:
    def with_tools(messages: list[AnyMessage], *, tools: list[Any]) -> int:
        return len(messages) + 100 * len(tools)

    def with_options(messages: list[AnyMessage], **options: Any) -> int:
        return len(messages) + 100 * len(options.get("tools", ()))

    def with_others(messages: list[AnyMessage], *tools: Any) -> int:
        return len(messages) + 1000 * len(tools)

    class Unknown:
        __signature__ = "none to be read"

        def __call__(self, messages: list[AnyMessage]) -> int:
            return len(messages)

    def count_with(counter: Any) -> int:
        return ContextCounter(counter).count_fixed(SYSTEM, [look_up])

    assert [count_with(each) for each in (with_tools, with_options, with_others, Unknown())] == [
        101,
        101,
        1,
        1,
    ]


def test_an_error_of_a_callers_counter_is_the_callers_to_see() -> None:
    def broken(messages: list[AnyMessage], tools: list[Any]) -> int:
        raise TypeError("cannot count this")

    with pytest.raises(TypeError, match="cannot count this"):
        count([HumanMessage("a")], ContextCounter(broken))


def test_a_counter_that_takes_no_parts_is_given_whole_requests() -> None:
    def own(messages: list[AnyMessage], tools: Any = None) -> int:
        if len(messages) < 2:
            raise ValueError("no conversation")
        return 1_000

    counter = ContextCounter(own)
    messages = [HumanMessage("hello " * 100), HumanMessage("hello " * 300)]
    total = counter.add(counter.add(TokenTotal(), messages[:1], None), messages[1:], None)

    assert counter.size(total, messages, None, ())[0] == 1_000
    assert counter.count_fixed(SYSTEM, [look_up]) == ContextCounter().count_fixed(SYSTEM, [look_up])


def test_the_usual_counter_may_have_other_settings() -> None:
    counter = ContextCounter(partial(count_tokens_approximately, chars_per_token=2.0))
    messages = [HumanMessage("hello " * 50), HumanMessage("hello " * 50)]

    assert count(messages, counter) == counter.estimate(messages) > estimate(*messages)


# One message.


def tokens_of(message: AnyMessage) -> int:
    return ContextCounter().estimate([message])


def test_arguments_count_whatever_the_form_of_the_content() -> None:
    call: ToolCall = {"name": "write_file", "args": {"content": "x" * 4000}, "id": "c", "type": "tool_call"}
    block = {"type": "tool_use", "id": "c", "name": "write_file", "input": call["args"]}
    item = {
        "type": "function_call",
        "call_id": "c",
        "id": "fc_1",
        "name": "write_file",
        "arguments": "x" * 4000,
    }

    plain = tokens_of(AIMessage("", tool_calls=[call]))
    for content in ([], [{"type": "text", "text": ""}], [block], [item]):
        assert tokens_of(AIMessage(cast(Any, content), tool_calls=[call])) == pytest.approx(plain, abs=40)


def test_malformed_calls_count() -> None:
    malformed: InvalidToolCall = {
        "name": "write_file",
        "args": "x" * 4000,
        "id": "c",
        "error": "no JSON",
        "type": "invalid_tool_call",
    }

    assert tokens_of(AIMessage("", invalid_tool_calls=[malformed])) > 1000


def test_media_count_as_a_number_each_and_not_as_text() -> None:
    film = {"type": "video", "base64": "A" * 1_000_000, "mime_type": "video/mp4"}
    message = HumanMessage(cast(Any, ["Look:", film]))

    assert 1_000 < tokens_of(message) < 5_000
    assert tokens_of(ToolMessage(cast(Any, [film]), tool_call_id="c")) < 5_000
    assert message.content == ["Look:", film]


def test_pictures_and_text_count_as_the_usual_counter_counts_them() -> None:
    picture = {"type": "image", "base64": "A" * 1_000_000, "mime_type": "image/png"}
    message = HumanMessage(cast(Any, [{"type": "text", "text": "Look: " * 100}, picture]))

    assert tokens_of(message) == estimate(message)


def test_blocks_whose_type_is_no_text_are_counted_too() -> None:
    assert tokens_of(HumanMessage(cast(Any, [{"type": ["odd"]}, {"type": None}, "x" * 400]))) > 100
