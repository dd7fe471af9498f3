"""Tools whose descriptions would fill the context are held back, found by words, and stay once loaded."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ProviderToolSearchMiddleware
from langchain_core.messages import AIMessage
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from deepagents import create_deep_agent
from deepagents.errors import ConfigError
from deepagents.events import CacheBroken
from deepagents.middleware import ToolSearchMiddleware
from deepagents.observe import observe
from deepagents.testing import Asked, ScriptedModel, WindowedModel, call, calls, prefix_breaks
from tests.conftest import CallMode
from tests.middleware.claude import serving
from tests.middleware.two_hundred import QUESTIONS, two_hundred
from tests.tokens import count_tokens

ASK = {"messages": "Go"}
THREAD: Any = {"configurable": {"thread_id": "one"}}
OTHER: Any = {"configurable": {"thread_id": "other"}}
INVOICES = "mcp__money__list_invoices"
ISSUE = "mcp__forge__create_issue"
TOOLS = two_hundred()


def search(query: str, **more: Any) -> AIMessage:
    return call("search_tools", query=query, **more)


def small(name: str, *, server: str | None = None, words: int = 10, **options: Any) -> BaseTool:
    """Make a tool that costs about as many tokens as its description has words."""
    return StructuredTool(
        name=name,
        description=f"Do {name} {'wave ' * words}".strip(),
        args_schema={"type": "object", "properties": {}},
        func=lambda: f"{name} done",
        metadata={"mcp": {"server": {"name": server}}} if server else None,
        **options,
    )


def offered(tools: Sequence[Any], tool_search: Any, window: int | None = None) -> list[str]:
    """Return which of these tools the first request shows, and the search."""
    model = ScriptedModel("Done.")
    if window:
        model.profile = {"max_input_tokens": window}
    create_deep_agent(model, tools=tools, tool_search=tool_search).invoke(ASK)
    names = {each.name for each in tools} | {"search_tools"}
    return [name for name in model.asked[0].tool_names if name in names]


def results(result: Any) -> list[Any]:
    return [each for each in result["messages"] if each.type == "tool"]


def cost(asked: Asked) -> int:
    return count_tokens(json.dumps(asked.tools) + asked.system)


def test_a_tool_is_found_loaded_and_called(call_mode: CallMode) -> None:
    asks = (search("overdue invoices", limit=2), call(INVOICES, status="overdue"), "Two.")
    with ScriptedModel(*asks) as model:
        result = call_mode.invoke(create_deep_agent(model, tools=TOOLS), ASK)

    first, second, third = (each.tool_names for each in model.asked)
    assert not any(name.startswith("mcp__") for name in first)
    assert second == third
    assert second[: len(first)] == first
    assert len(second) == len(first) + 2
    assert INVOICES in second[len(first) :]
    found, called = results(result)
    assert f"- {INVOICES}: List invoices, paid, open or overdue." in found.text
    assert called.text == "list_invoices did ['status']"
    assert "_loaded_tools" not in result


def test_two_hundred_tools_cost_a_tenth_and_at_most_2500_tokens() -> None:
    def first(tools: Sequence[BaseTool], tool_search: Any) -> int:
        with ScriptedModel("Done.") as model:
            create_deep_agent(model, tools=tools, tool_search=tool_search).invoke(ASK)
        return cost(model.asked[0])

    default, held, shown = first([], "auto"), first(TOOLS, "auto"), first(TOOLS, False)
    of_caller = first(two_hundred(None), "auto")

    assert (held - default) * 10 <= shown - default
    assert (of_caller - default) * 10 <= shown - default
    assert held - default <= 2_500


def test_the_right_tool_is_among_five_for_eighteen_of_twenty_questions() -> None:
    with ScriptedModel(*map(search, QUESTIONS), "Done.") as model:
        result = create_deep_agent(model, tools=TOOLS).invoke(ASK)

    asked = zip(QUESTIONS.items(), results(result), strict=True)
    missed = [question for (question, tool), found in asked if f"__{tool}:" not in found.text]
    assert len(missed) <= 2, missed


def test_an_agent_with_few_tools_is_as_before() -> None:
    few = [small("tide"), small("moon", server="sky")]
    with ScriptedModel("Done.", "Done.") as model:
        create_deep_agent(model, tools=few).invoke(ASK)
        create_deep_agent(model, tools=few, tool_search=False).invoke(ASK)
    with ScriptedModel("Done.") as plain:
        create_deep_agent(plain).invoke(ASK)

    auto, off = model.asked
    assert auto.tools == off.tools
    assert auto.system == off.system == plain.asked[0].system
    assert "search_tools" not in auto.tool_names


def test_each_load_breaks_the_prefix_once_and_the_description_stays() -> None:
    searches = (search("parcel"), call("ls"), search("invoice"), search("parcel"), call("ls"), "Done.")
    with ScriptedModel(*searches) as model:
        agent = create_deep_agent(model, tools=TOOLS)
        broken = [each for each in observe(agent, ASK) if isinstance(each, CacheBroken)]

    assert [each.number for each in prefix_breaks(model.asked)] == [1, 3]
    assert [(each.region, each.reason) for each in broken] == [("tools", "tool_search")] * 2
    described = {
        tool["function"]["description"]
        for each in model.asked
        for tool in each.tools
        if tool["function"]["name"] == "search_tools"
    }
    assert len(described) == 1
    assert "forge (20), calendar (20)" in described.pop()


def test_what_was_loaded_stays_through_compaction_and_a_restart(call_mode: CallMode) -> None:
    saver = InMemorySaver()

    def read_log(day: int) -> str:
        """Read a page of the log."""
        return f"Day {day}. " + "Nothing but waves. " * 200

    def agent(model: Any) -> Any:
        return create_deep_agent(model, tools=[read_log, *TOOLS], tool_search=1_000, checkpointer=saver)

    days = [call("read_log", day=n) for n in range(12)]
    # `read_log` is the caller's, which cost little by themselves.
    before = WindowedModel(search(f"select:{INVOICES},{ISSUE}"), *days, "Read.", window=8_000)
    call_mode.invoke(agent(before), ASK, THREAD)
    with ScriptedModel(call(INVOICES, status="open"), "Done.", "Done.") as after:
        result = call_mode.invoke(agent(after), ASK, THREAD)
        call_mode.invoke(agent(after), ASK, OTHER)

    assert any("<summary>" in each.messages[1].text for each in before.turns)
    assert [each for each in after.asked[0].tool_names if each.startswith("mcp__")] == [INVOICES, ISSUE]
    assert not any(each.startswith("mcp__") for each in after.asked[2].tool_names)
    assert results(result)[-1].text == "list_invoices did ['status']"


def test_subagents_load_for_themselves(call_mode: CallMode) -> None:
    with ScriptedModel(
        search(f"select:{INVOICES}"),
        call("task", description="Look", subagent_type="general-purpose"),
        search(f"select:{ISSUE}"),
        call(ISSUE, repository="a", title="b"),
        "Looked.",
        "Done.",
    ) as model:
        call_mode.invoke(create_deep_agent(model, tools=TOOLS), ASK)

    loaded = [[name for name in each.tool_names if name.startswith("mcp__")] for each in model.asked]
    assert loaded == [[], [INVOICES], [], [ISSUE], [ISSUE], [INVOICES]]


def test_a_tool_that_is_held_back_works_when_it_is_called_by_name(call_mode: CallMode) -> None:
    with ScriptedModel(call(ISSUE, repository="a"), "Done.") as model:
        result = call_mode.invoke(create_deep_agent(model, tools=TOOLS), ASK)

    assert results(result)[0].text == "create_issue did ['repository']"


def test_it_works_in_a_plain_agent_of_langchain(call_mode: CallMode) -> None:
    with ScriptedModel(search("open an issue", limit=1), call(ISSUE, repository="a"), "Done.") as model:
        agent = create_agent(model, tools=TOOLS, middleware=[ToolSearchMiddleware()])
        result = call_mode.invoke(agent, ASK)

    assert [each.tool_names for each in model.asked] == [["search_tools"], *[["search_tools", ISSUE]] * 2]
    assert results(result)[1].text == "create_issue did ['repository']"


def test_tools_that_middleware_adds_to_a_request_are_held_back_too(call_mode: CallMode) -> None:
    late = small("tide", server="sea")

    class Bring(AgentMiddleware[Any, Any, Any]):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            return handler(request.override(tools=[*request.tools, late]))

        async def awrap_model_call(self, request: Any, handler: Any) -> Any:
            return await handler(request.override(tools=[*request.tools, late]))

        def wrap_tool_call(self, request: Any, handler: Any) -> Any:
            return handler(request if request.tool else request.override(tool=late))

        async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
            return await handler(request if request.tool else request.override(tool=late))

    with ScriptedModel(search("the tide"), call("tide"), "Done.") as model:
        agent = create_deep_agent(model, middleware=[Bring()], tool_search=True)
        result = call_mode.invoke(agent, ASK)

    assert ["tide" in each.tool_names for each in model.asked] == [False, True, True]
    assert "sea (1)" in json.dumps(model.asked[0].tools)
    assert results(result)[1].text == "tide done"


def test_a_budget_holds_back_servers_first() -> None:
    tools = [small("own", words=400), small("served", server="sea", words=400)]

    assert offered(tools, "auto") == ["own", "served"]
    assert offered(tools, "auto", window=8_000) == ["own", "search_tools"]
    assert offered(tools, "auto", window=4_000) == ["search_tools"]
    assert offered(tools, 2_000) == ["own", "served"]
    assert offered(tools, 600) == ["own", "search_tools"]
    assert offered(tools, 100) == offered(tools, True) == offered(tools, 0) == ["search_tools"]
    assert offered(tools, False) == ["own", "served"]


def test_the_mark_of_a_tool_counts_before_all() -> None:
    tools = [
        small("never", server="sea", extras={"defer_loading": False}),
        small("always", extras={"defer_loading": True}),
        small("other"),
    ]

    assert offered(tools, "auto") == ["never", "other", "search_tools"]
    assert offered(tools, True) == ["never", "search_tools"]


def test_a_loaded_tool_is_sent_without_its_mark() -> None:
    tool = small("always", extras={"defer_loading": True, "other": 1})
    with serving() as claude:
        claude.will_call("search_tools", query="always")
        create_deep_agent(claude.model(), tools=[tool]).invoke(ASK)

    sent = {each["name"]: each for each in claude.asked[1]["tools"]}
    assert "always" in sent
    assert "defer_loading" not in sent["always"]
    assert "always" not in [each["name"] for each in claude.asked[0]["tools"]]


def test_the_search_of_the_provider_is_used_where_asked_for() -> None:
    with serving() as claude:
        create_deep_agent(claude.model(), tools=TOOLS, tool_search="provider").invoke(ASK)

    sent = claude.asked[0]["tools"]
    deferred = [each for each in sent if each.get("defer_loading")]
    assert len(deferred) == 200
    assert not any("cache_control" in each for each in deferred)
    assert [each["name"] for each in sent if each.get("type", "").startswith("tool_search")] == [
        "tool_search_tool_bm25"
    ]
    assert "search_tools" not in [each["name"] for each in sent]


def test_a_model_whose_provider_has_no_search_gets_ours() -> None:
    assert offered(TOOLS, "provider") == ["search_tools"]


def test_models_of_several_providers_get_ours() -> None:
    other = ScriptedModel()
    with serving() as claude:
        agent = create_deep_agent(
            claude.model(), tools=TOOLS, tool_search="provider", fallback_models=[other]
        )
        agent.invoke(ASK)

    assert "search_tools" in [each["name"] for each in claude.asked[0]["tools"]]


def test_a_search_of_the_provider_that_the_caller_set_up_is_left_alone() -> None:
    tools = [small("tide", extras={"defer_loading": True}), small("moon")]
    with serving() as claude:
        create_deep_agent(claude.model(), tools=tools, middleware=[ProviderToolSearchMiddleware()]).invoke(
            ASK
        )

    sent = {each["name"]: each for each in claude.asked[0]["tools"]}
    assert sent["tide"]["defer_loading"] is True
    assert "search_tools" not in sent
    assert not any("cache_control" in each for each in sent.values() if each.get("defer_loading"))


def test_a_tool_of_the_caller_with_the_name_of_the_search_stands() -> None:
    own = small("search_tools")
    with ScriptedModel(call("search_tools"), "Done.") as model:
        result = create_deep_agent(model, tools=[own, *TOOLS], tool_search=True).invoke(ASK)

    assert results(result)[0].text == "search_tools done"
    assert INVOICES in model.asked[0].tool_names


def test_a_tool_that_the_model_has_to_call_is_shown() -> None:
    class Force(AgentMiddleware[Any, Any, Any]):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            return handler(request.override(tool_choice=INVOICES))

    with ScriptedModel("Done.") as model:
        create_deep_agent(model, tools=TOOLS, middleware=[Force()]).invoke(ASK)

    assert [name for name in model.asked[0].tool_names if name.startswith("mcp__")] == [INVOICES]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("select:mcp__money__list_invoice", "Nearest in name: mcp__money__list_invoices"),
        ("select:", "None of the 200 tools"),
        ("zzz", "None of the 200 tools that are held back has a word of 'zzz'"),
        ("", "None of the 200 tools"),
    ],
)
def test_a_search_without_a_hit_says_what_to_try(query: str, expected: str) -> None:
    with ScriptedModel(search(query), "Done.") as model:
        result = create_deep_agent(model, tools=TOOLS).invoke(ASK)

    assert expected in results(result)[0].text
    assert results(result)[0].status == "error"
    assert model.asked[0].tools == model.asked[1].tools


def test_one_of_two_names_is_loaded_and_the_other_explained() -> None:
    with ScriptedModel(search(f"select: {INVOICES}, read_file"), "Done.") as model:
        result = create_deep_agent(model, tools=TOOLS).invoke(ASK)

    assert "No tool 'read_file' is held back." in results(result)[0].text
    assert model.asked[1].tool_names[-1] == INVOICES


def test_parallel_searches_load_all_that_they_find() -> None:
    both = calls(
        ("search_tools", {"query": f"select:{ISSUE}"}), ("search_tools", {"query": f"select:{INVOICES}"})
    )
    with ScriptedModel(both, "Done.") as model:
        create_deep_agent(model, tools=TOOLS).invoke(ASK)

    assert set(model.asked[1].tool_names[-2:]) == {ISSUE, INVOICES}


@pytest.mark.parametrize("limit", [-3, 0, 500])
def test_a_search_loads_one_to_twenty(limit: int) -> None:
    with ScriptedModel(search("list", limit=limit), "Done.") as model:
        create_deep_agent(model, tools=TOOLS).invoke(ASK)

    loaded = len(model.asked[1].tools) - len(model.asked[0].tools)
    assert loaded == (20 if limit > 0 else 1)


@pytest.mark.parametrize("wrong", ["autp", -1, None, 0.5, [5]])
def test_what_is_no_way_to_hold_tools_back_is_refused(wrong: Any) -> None:
    for make in (ToolSearchMiddleware, lambda given: create_deep_agent(ScriptedModel(), tool_search=given)):
        with pytest.raises(ConfigError, match="tool_search must be"):
            make(wrong)


def test_a_thousand_tools_and_ten_searches_take_little_time() -> None:
    many = [small(f"do_{n}_things", server=f"server{n % 40}", words=60) for n in range(1_000)]
    with ScriptedModel(*[search(f"things {n}") for n in range(10)], "Done.") as model:
        began = time.process_time()
        create_deep_agent(model, tools=many).invoke(ASK)
        spent = time.process_time() - began

    assert len(model.asked) == 11
    assert spent < 8
    assert len(json.dumps(model.asked[0].tools)) < len(json.dumps(model.asked[-1].tools))


def test_the_description_has_at_most_4000_characters_whatever_servers_are_called() -> None:
    many = [small(f"tool_{n}", server=f"\n# Server {n} " + "x" * 300) for n in range(500)]
    with ScriptedModel("Done.") as model:
        create_deep_agent(model, tools=many, tool_search=True).invoke(ASK)

    described = model.asked[0].tools[-1]["function"]["description"]
    assert len(described) <= 4_000
    assert "and 4" in described
    assert "\n" not in described


def test_a_fork_begins_with_what_its_caller_has_loaded(call_mode: CallMode) -> None:
    twin: Any = {"name": "twin", "description": "is the agent itself", "mode": "fork"}
    with ScriptedModel(
        search(f"select:{INVOICES}"),
        call("task", description="Look", subagent_type="twin"),
        search(f"select:{ISSUE}"),
        "Looked.",
        "Done.",
    ) as model:
        call_mode.invoke(create_deep_agent(model, tools=TOOLS, subagents=[twin]), ASK)

    loaded = [[name for name in each.tool_names if name.startswith("mcp__")] for each in model.asked]
    assert loaded == [[], [INVOICES], [INVOICES], [INVOICES, ISSUE], [INVOICES]]


class TideLast(AgentMiddleware[Any, Any, Any]):
    """Send one tool as the last."""

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        tools = sorted(request.tools, key=lambda each: getattr(each, "name", "") == "tide")
        return handler(request.override(tools=tools))


def test_no_mark_of_a_cache_is_set_on_a_tool_that_the_provider_loads_later() -> None:
    tool = small("tide", extras={"defer_loading": True})
    with serving() as claude:
        middleware = [ProviderToolSearchMiddleware(), TideLast()]
        create_deep_agent(claude.model(), tools=[tool], middleware=middleware, tool_search=False).invoke(ASK)

    sent = claude.asked[0]["tools"]
    marked = [each["name"] for each in sent if "cache_control" in each]
    assert sent[-1]["name"] == "tide"
    assert sent[-1]["defer_loading"] is True
    assert "tide" not in marked


def test_what_a_provider_loads_later_does_not_count_for_the_context() -> None:
    with serving() as claude:
        model = claude.model(profile={"max_input_tokens": 16_000})
        agent = create_deep_agent(model, tools=TOOLS, tool_search="provider")
        agent.invoke({"messages": [("user", "wave " * 2_000), ("ai", "Yes."), ("user", "Go")]})

    assert len(claude.asked) == 1
    assert "search_history" not in [each["name"] for each in claude.asked[0]["tools"]]


def test_threads_with_other_tools_find_their_own() -> None:
    class Bring(AgentMiddleware[Any, Any, Any]):
        """Give each thread a tool of its own."""

        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            own = small(f"tide_in_{request.messages[0].text}", server="sea")
            return handler(request.override(tools=[*request.tools, own]))

    def answer(asked: Asked) -> AIMessage | str:
        if asked.messages[-1].type == "tool":
            return asked.last
        # Another thread makes a request before the search of this one runs.
        if asked.messages[1].text == "Brest":
            agent.invoke({"messages": "Nice"}, OTHER)
        return search("tide")

    model = ScriptedModel(always=answer)
    agent = create_deep_agent(model, middleware=[Bring()], tool_search=True, checkpointer=InMemorySaver())
    result = agent.invoke({"messages": "Brest"}, THREAD)

    assert "tide_in_Brest" in result["messages"][-1].text
    assert "tide_in_Nice" not in result["messages"][-1].text


class Together(AgentMiddleware[Any, Any, Any]):
    """Let the answers of many runs come only when all have asked, and each run have a tool of its own."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._missing = most
        self._all_asked = asyncio.Event()

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        own = small(f"tide_in_{request.messages[0].text}", server="sea")
        response = await handler(request.override(tools=[*request.tools, own]))
        self._missing -= 1
        if self._missing == 0:
            self._all_asked.set()
        await self._all_asked.wait()
        return response


@pytest.mark.parametrize("are_threads", [True, False])
async def test_each_of_many_runs_at_once_finds_its_own(are_threads: bool) -> None:
    def answer(asked: Asked) -> AIMessage | str:
        return asked.last if asked.messages[-1].type == "tool" else search("tide")

    ports = [f"port{number}" for number in range(70)]
    agent = create_deep_agent(
        ScriptedModel(always=answer),
        middleware=[Together(len(ports))],
        tool_search=True,
        checkpointer=InMemorySaver() if are_threads else None,
    )
    runs = [agent.ainvoke({"messages": port}, {"configurable": {"thread_id": port}}) for port in ports]
    results = await asyncio.gather(*runs)

    for port, result in zip(ports, results, strict=True):
        assert f"- tide_in_{port}:" in result["messages"][-1].text


def test_a_search_in_a_run_that_goes_on_asks_for_another_one(call_mode: CallMode) -> None:
    class Bring(AgentMiddleware[Any, Any, Any]):
        """Add a tool to each request."""

        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            return handler(request.override(tools=[*request.tools, small("tide", server="sea")]))

        async def awrap_model_call(self, request: Any, handler: Any) -> Any:
            return await handler(request.override(tools=[*request.tools, small("tide", server="sea")]))

    saver = InMemorySaver()

    def make(*script: Any) -> Any:
        return create_deep_agent(
            ScriptedModel(*script),
            tools=[small("ask")],
            middleware=[Bring()],
            tool_search=True,
            interrupt_on={"ask": True},
            checkpointer=saver,
        )

    first = calls(
        ("ask", {}), ("search_tools", {"query": "tide"}), ("search_tools", {"query": "select:ask,tide"})
    )
    call_mode.invoke(make(first), ASK, THREAD)
    approved: Any = Command(resume={"decisions": [{"type": "approve"}]})
    result = call_mode.invoke(make(search("tide"), "Done."), approved, THREAD)

    found = [each for each in results(result) if each.name == "search_tools"]
    assert [each.additional_kwargs.get("error_code") for each in found] == ["not_run", "not_run", None]
    assert "search once more" in found[0].text
    assert "- tide:" in found[2].text
