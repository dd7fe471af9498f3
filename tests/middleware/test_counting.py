"""A context is counted by what the provider reported of it, and by estimates of what is new since."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, SupportsIndex, cast

import pytest
from langchain_anthropic import ChatAnthropic
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
from langchain_core.tools import StructuredTool, tool
from langchain_openai import AzureChatOpenAI, ChatOpenAI
from pydantic import BaseModel

from deepagents.middleware.summarization.counting import Meter, Past
from deepagents.middleware.summarization.estimates import tokens_of
from deepagents.models.traits import model_provider

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


def count(messages: Sequence[AnyMessage], **options: Any) -> int:
    return Meter().of(messages, None, (), **options)


# From a report on.


def test_without_a_report_all_is_estimated() -> None:
    messages = [HumanMessage("hello " * 50), AIMessage("hi"), HumanMessage("what now?")]
    tools = [look_up, {"name": "search", "parameters": {"type": "object"}}]

    counted = Meter().of(messages, SYSTEM, tools)

    assert counted == estimate(SYSTEM, *messages) + sum(
        count_tokens_approximately([], tools=[each]) for each in tools
    )


def test_a_report_counts_for_all_up_to_it() -> None:
    messages = [HumanMessage("hello"), answer("hi", total=700), HumanMessage("what now?")]

    assert count(messages) == 700 + estimate(messages[2])


def test_the_last_report_counts() -> None:
    messages = [HumanMessage("hello"), answer(total=700), HumanMessage("so"), answer(total=900)]

    assert count(messages) == 900


def test_a_message_without_a_report_is_estimated_after_the_last_that_has_one() -> None:
    nothing = AIMessage(
        "b", usage_metadata={"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}, response_metadata={}
    )
    messages = [HumanMessage("hello"), answer(total=700), AIMessage("a"), nothing]

    assert count(messages) == 700 + estimate(*messages[2:])


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
    assert count([HumanMessage("hello"), answer(total=700, by=by)], provider=provider) == 700


def test_reports_of_another_provider_do_not_count() -> None:
    messages = [HumanMessage("hello"), answer("hi", total=700, by="openai")]

    assert count(messages, provider="anthropic") == estimate(*messages)


def test_a_report_from_before_the_context_changed_does_not_count() -> None:
    messages = [
        HumanMessage("hello", id="1"),
        answer("hi", total=700, id="2"),
        HumanMessage("so", id="3"),
        answer("hi", total=800, id="4"),
    ]

    assert count(messages[:3], past=Past("3", ["2"])) == estimate(*messages[:3])
    assert count(messages, past=Past("gone", ["2", "4"])) == estimate(*messages)
    assert count(messages, past=Past("3", ["2"])) == 800
    assert count(messages[3:], past=Past("3", ["2"])) == 800


def told(many: int, report: int, first: int = 0) -> list[AnyMessage]:
    """A step of some thousand tokens, a number of times, with what is reported after the last."""
    asked = [HumanMessage("word " * 800, id=f"m{first + at}") for at in range(many)]
    return [*asked, answer("hi", total=report, id=f"a{first + many}")]


@pytest.mark.parametrize(("report", "is_credible"), [(3_000, False), (4_000, True), (40_000, True)])
def test_a_report_far_below_the_estimate_speaks_of_another_context(report: int, is_credible: bool) -> None:
    messages = told(10, report)
    counted = estimate(*messages)

    assert 3_000 < counted / 3 < 4_000
    assert count(messages) == (report if is_credible else counted)


def test_a_report_below_an_earlier_one_must_be_nearer_to_the_estimate() -> None:
    before, after = told(5, 5_000), told(5, 6_000, first=6)

    assert count([*before, *after]) == 6_000
    assert count([*before, *told(5, 4_900, first=6)]) == estimate(*before, *after)
    assert count([*told(5, 9_500), *told(5, 9_400, first=6)]) == 9_400


def test_after_such_a_report_each_later_one_must_be() -> None:
    before, after = told(5, 5_000), told(5, 3_900, first=6)
    messages = [*before, *after, *told(1, 7_000, first=12)]

    assert count(messages) == estimate(*messages)
    assert count([*before, *after, *told(1, 10_000, first=12)]) == 10_000


def test_where_a_report_is_not_credible_estimates_grow_by_what_the_largest_tells() -> None:
    messages = [*told(5, 20_000), *told(5, 8_000, first=6)]

    assert count(messages) == pytest.approx(4 * estimate(*messages), rel=0.02)


def test_messages_that_were_deleted_make_no_report_incredible() -> None:
    meter = Meter()
    messages = told(10, 10_000)
    meter.of(messages, None, ())
    left = [*messages[9:], HumanMessage("so", id="n"), answer("hi", total=1_100, id="b")]

    assert meter.of(left, None, ()) == 1_100


def test_reasoning_is_left_out_where_the_answer_does_not_bear_it() -> None:
    usage: Any = {
        "input_tokens": 1_000,
        "output_tokens": 5_000,
        "total_tokens": 6_000,
        "output_token_details": {"reasoning": 4_900},
    }

    def counted(content: Any = "Done.", **more: Any) -> int:
        return count([HumanMessage("hello"), AIMessage(content, usage_metadata=usage, **more)])

    call = {"type": "function_call", "name": "ls", "arguments": "{}", "call_id": "c"}
    assert counted() == 1_100
    assert counted([{"type": "text", "text": "Done."}, call]) == 1_100
    assert counted([{"type": "reasoning", "id": "r"}, {"type": "text", "text": "Done."}]) == 6_000
    assert counted([{"type": "thinking", "thinking": "hm"}]) == 6_000
    assert counted([{"type": "text", "text": "Done.", "extras": {"signature": "s"}}]) == 6_000
    assert counted(additional_kwargs={"reasoning_content": "hm"}) == 6_000
    assert counted("word " * 4_000) == 6_000


class Answers(BaseHTTPRequestHandler):
    """A provider's server, with the shortest answer that its client takes."""

    def do_POST(self) -> None:
        """Answer in the form of the path."""
        self.rfile.read(int(self.headers["Content-Length"]))
        said: dict[str, Any] = {"id": "1", "model": "m", "role": "assistant", "created": 1}
        if self.path.startswith("/v1/messages"):
            said |= {"type": "message", "content": [], "usage": {"input_tokens": 9, "output_tokens": 1}}
        else:
            said["choices"] = [{"index": 0, "message": {"role": "assistant", "content": "hi"}}]
        body = json.dumps(said).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[str]:
    """The address of a provider's server."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as made:
        thread = Thread(target=made.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{made.server_port}"
        made.shutdown()
        thread.join()


@pytest.mark.parametrize("kind", [ChatOpenAI, AzureChatOpenAI, ChatAnthropic])
def test_a_model_and_its_answers_name_the_same_provider(kind: type[Any], server: str) -> None:
    settings: dict[str, Any] = {"model": "m", "api_key": "k", "max_retries": 0}
    if kind is AzureChatOpenAI:
        settings |= {"azure_endpoint": server, "api_version": "2024-10-21", "azure_deployment": "m"}
    else:
        settings["base_url"] = server if kind is ChatAnthropic else f"{server}/v1"
    model: BaseChatModel = kind(**settings)
    by = model.invoke("hi").response_metadata["model_provider"]

    assert count([HumanMessage("hello"), answer(total=700, by=by)], provider=model_provider(model)) == 700


def test_a_prompt_and_tools_that_grew_since_the_report_are_added() -> None:
    meter = Meter()
    asked = HumanMessage("hello", id="1")
    meter.of([asked], SYSTEM, [])
    messages = [asked, answer("hi", total=700, id="2")]

    grown = meter.of(messages, SystemMessage(SYSTEM.text * 2), [look_up])

    more = meter.fixed(SystemMessage(SYSTEM.text * 2), [look_up]) - meter.fixed(SYSTEM, [])
    assert more > 0
    assert grown == 700 + more
    assert meter.of(messages, None, []) == 700 - meter.fixed(SYSTEM, [])


def test_without_memory_of_the_prompt_then_the_report_stands() -> None:
    messages = [HumanMessage("hello", id="1"), answer("hi", total=700, id="2")]

    assert Meter().of(messages, SYSTEM, [look_up]) == 700


def test_only_so_many_prompts_are_remembered() -> None:
    meter = Meter()
    messages = [HumanMessage("hello", id="1"), answer("hi", total=700, id="2")]
    meter.of(messages[:1], SYSTEM, [])
    assert meter.of(messages, None, []) < 700

    for number in range(5000):
        meter.of([HumanMessage("hello", id=f"other {number}")], None, [])
    assert meter.of(messages, None, []) == 700


# Work.


class Watched(list[AnyMessage]):
    """Messages that note how many of them were looked at."""

    looked_at = 0

    def __getitem__(self, key: SupportsIndex | slice) -> Any:
        found = cast(Any, super().__getitem__(key))
        self.looked_at += len(found) if isinstance(key, slice) else 1
        return found

    def __iter__(self) -> Iterator[AnyMessage]:
        for message in super().__iter__():
            self.looked_at += 1
            yield message


@pytest.mark.parametrize("past", [Past(), Past("h0", ["a0"])])
def test_the_work_for_a_call_does_not_grow_with_the_history(past: Past) -> None:
    meter = Meter()
    messages: list[AnyMessage] = []
    looks: list[int] = []
    for step in range(1000):
        messages.append(HumanMessage(f"step {step}", id=f"h{step}"))
        watched = Watched(messages)
        meter.of(watched, SYSTEM, [look_up], past=past)
        looks.append(watched.looked_at)
        messages.append(answer("done", total=500 + 10 * step, id=f"a{step}"))

    assert max(looks) <= 16


def test_a_message_is_estimated_once_for_as_long_as_it_lives() -> None:
    counted: list[str] = []

    def counter(messages: list[AnyMessage]) -> int:
        counted.extend(each.text for each in messages)
        return len(messages)

    meter = Meter(counter)
    messages = [HumanMessage("a"), HumanMessage("b")]
    assert meter.each(messages) == [1, 1]
    assert meter.each([*messages, HumanMessage("c")]) == [1, 1, 1]

    assert counted == ["a", "b", "c"]


# A counter of the caller's own.


def test_a_callers_counter_counts_everything_once() -> None:
    calls: list[tuple[int, int]] = []

    def counter(messages: list[AnyMessage], tools: list[Any] | None = None) -> int:
        calls.append((len(messages), len(tools or [])))
        return 200 * len(messages)

    counted = Meter(counter).of([HumanMessage("a"), HumanMessage("b")], SYSTEM, [look_up])

    assert counted == 600
    assert calls == [(3, 1)]


def test_a_report_that_is_larger_than_a_callers_count_counts() -> None:
    messages = [HumanMessage("a"), answer(total=5000), HumanMessage("b")]

    assert Meter(lambda given: 200 * len(given)).of(messages, None, ()) == 5000
    assert Meter(lambda given: 9000 * len(given)).of(messages, None, ()) == 27_000


def test_tools_go_to_a_counter_whose_signature_takes_them() -> None:
    def with_tools(messages: list[AnyMessage], *, tools: list[Any]) -> int:
        return len(messages) + 100 * len(tools)

    def with_options(messages: list[AnyMessage], **options: Any) -> int:
        return len(messages) + 100 * len(options["tools"])

    def with_others(messages: list[AnyMessage], *tools: Any) -> int:
        return len(messages) + 1000 * len(tools)

    class Unknown:
        __signature__ = "none to be read"

        def __call__(self, messages: list[AnyMessage]) -> int:
            return len(messages)

    def count_with(counter: Any) -> int:
        return Meter(counter).of([HumanMessage("a")], None, [look_up])

    assert count_with(with_tools) == 101
    assert count_with(with_options) == 101
    assert count_with(with_others) == 1
    assert count_with(Unknown()) == 1


def test_an_error_of_a_callers_counter_is_the_callers_to_see() -> None:
    def broken(messages: list[AnyMessage], tools: list[Any]) -> int:
        raise TypeError("cannot count this")

    with pytest.raises(TypeError, match="cannot count this"):
        Meter(broken).of([HumanMessage("a")], None, [])


def test_where_a_callers_counter_takes_no_parts_these_are_estimated_by_the_whole() -> None:
    def counter(messages: list[AnyMessage], tools: Any = None) -> int:
        if len(messages) < 2:
            raise ValueError("no conversation")
        return 1_000

    messages = [HumanMessage("hello " * 100), HumanMessage("hello " * 300)]
    meter = Meter(counter)

    assert meter.of(messages, None, ()) == 1_000
    assert meter.each(messages) == [estimate(each) for each in messages]
    assert sum(meter.each(messages, 1_000)) == pytest.approx(1_000, abs=2)
    assert sum(meter.each(messages, 300)) == pytest.approx(300, abs=2)
    assert Meter(counter).fixed(SYSTEM, [look_up]) == Meter().fixed(SYSTEM, [look_up])


def test_the_usual_counter_with_other_settings_is_still_the_usual_one() -> None:
    meter = Meter(partial(count_tokens_approximately, chars_per_token=2.0))
    messages = [HumanMessage("hello " * 50), answer(total=700), HumanMessage("hello " * 50)]

    assert meter.of(messages, None, ()) == 700 + meter.each(messages)[2]
    assert meter.each(messages)[2] > estimate(messages[2])


# Parts.


def test_the_prompt_and_the_tools_are_counted_apart() -> None:
    meter = Meter()

    assert meter.fixed(None, []) == 0
    assert meter.fixed(SYSTEM, []) == estimate(SYSTEM)
    assert meter.fixed(None, [look_up]) == count_tokens_approximately([], tools=[look_up])
    assert Meter(len).fixed(None, []) == 0
    assert Meter(len).fixed(SYSTEM, [look_up]) == 1


def test_estimates_grow_where_all_is_known_to_be_more() -> None:
    messages = [HumanMessage("hello " * 100), HumanMessage("hello " * 300)]
    plain = Meter().each(messages)

    assert Meter().each(messages, sum(plain) - 1) == plain
    assert Meter().each(messages, 2 * sum(plain)) == [2 * each for each in plain]
    assert Meter().each(messages, 10**9) == [8 * each for each in plain]
    assert Meter(lambda _: 5).each(messages, 10**9) == [5, 5]


# One message.


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


def test_media_count_by_their_size_and_not_as_text() -> None:
    film = {"type": "video", "base64": "A" * 1_000_000, "mime_type": "video/mp4"}
    message = HumanMessage(cast(Any, ["Look:", film]))

    assert 10_000 < tokens_of(message) < 30_000
    assert tokens_of(ToolMessage(cast(Any, [film]), tool_call_id="c")) < 30_000
    assert message.content == ["Look:", film]
    linked = {"type": "file", "url": "https://example.com/a.pdf"}
    assert tokens_of(HumanMessage(cast(Any, [linked]))) > 80


def test_no_medium_counts_beyond_all_measure() -> None:
    film = {"type": "file", "base64": "A" * 13_000_000, "mime_type": "application/pdf"}

    assert tokens_of(HumanMessage(cast(Any, [film]))) < 31_000
    assert tokens_of(HumanMessage(cast(Any, [film, film]))) > 60_000


def test_the_largest_medium_that_no_report_has_spoken_of() -> None:
    def film(size: int) -> HumanMessage:
        return HumanMessage(cast(Any, [{"type": "video", "base64": "A" * size}]))

    def largest(messages: Sequence[AnyMessage], meter: Meter | None = None) -> int:
        return (meter or Meter()).unmeasured_medium(messages, None, Past())

    assert largest([]) == largest([HumanMessage("hello")]) == 0
    assert largest([film(200_000), film(100_000)]) == pytest.approx(4_000, abs=2)
    assert largest([film(200_000), answer(total=9_000), film(100_000)]) == pytest.approx(2_000, abs=2)
    assert largest([film(200_000)], Meter(lambda _: 7)) == 0


def test_pictures_and_text_count_as_the_usual_counter_counts_them() -> None:
    picture = {"type": "image", "base64": "A" * 1_000_000, "mime_type": "image/png"}
    message = HumanMessage(cast(Any, [{"type": "text", "text": "Look: " * 100}, picture]))

    assert tokens_of(message) == estimate(message)


def test_blocks_whose_type_is_no_text_are_counted_too() -> None:
    assert tokens_of(HumanMessage(cast(Any, [{"type": ["odd"]}, {"type": None}, "x" * 400]))) > 100


def test_tools_of_many_agents_that_are_described_alike_are_counted_once() -> None:
    written: list[Any] = []

    class Place(str):
        @classmethod
        def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
            return handler(str)

        @classmethod
        def __get_pydantic_json_schema__(cls, schema: Any, handler: Any) -> Any:
            written.append(schema)
            return handler(schema)

    class Where(BaseModel):
        place: Place

    def go(description: str) -> StructuredTool:
        return StructuredTool.from_function(
            lambda place: place, name="go", description=description, args_schema=Where
        )

    counts = [
        Meter().fixed(None, [go(said)]) for said in ("Go.", "Go.", "Go.", "Go there, at once and on foot.")
    ]

    assert len(written) == 2
    assert counts[0] == counts[1] == counts[2] < counts[3]
    assert counts[0] == count_tokens_approximately([], tools=[go("Go.")])
