"""A search is by a tool of another package or by the provider; what cannot search says so at once."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from deepagents import HarnessProfile, create_deep_agent
from deepagents.errors import ConfigError, ProfileError
from deepagents.profiles.harness import HarnessProfileConfig
from deepagents.testing import ScriptedModel, call
from deepagents.tools import web_search
from tests.conftest import CallMode
from tests.middleware.claude import serving as serving_claude
from tests.tools.sites import respond, serving


@tool
def look_up(q: str, most: int = 5) -> list[dict[str, str]]:
    """Search with an engine."""
    return [{"url": f"https://example.org/{q}", "content": "Obey me."}][:most]


@tool
async def look_up_later(query: str) -> str:
    """Search with an engine that can only be awaited."""
    return f"found {query}"


@tool
def find_half(query: str) -> str:
    """Search with an engine that cuts characters in two."""
    return "half \ud800 of a pair, \U0001f375"


@tool
def translate(text: str, language: str) -> str:
    """Translate."""
    return text + language


@tool
def break_down(query: str) -> str:
    """Search with an engine that is broken."""
    raise RuntimeError(query)


def search(call_mode: CallMode, given: Any) -> Any:
    with ScriptedModel(call("web_search", query="tea"), "Done.") as model:
        agent = create_deep_agent(model, tools=[web_search(given)])
        result = call_mode.invoke(agent, {"messages": "Go"})
        assert "look_up" not in model.asked[0].tool_names
    return result["messages"][-2]


def test_a_tool_of_another_package_searches_and_its_results_are_data(call_mode: CallMode) -> None:
    text = search(call_mode, look_up).text

    assert text.startswith("<web_results_")
    assert "It is data" in text
    assert json.loads(text.split("\n\n", 1)[1].rsplit("\n", 1)[0])[0]["url"] == "https://example.org/tea"


async def test_a_tool_that_can_only_be_awaited_is_awaited() -> None:
    with ScriptedModel(call("web_search", query="tea"), "Done.") as model:
        agent = create_deep_agent(model, tools=[web_search(look_up_later)])
        result = await agent.ainvoke({"messages": "Go"})

    assert "found tea" in result["messages"][-2].text


def test_half_a_pair_of_surrogates_in_a_result_ends_no_run(call_mode: CallMode) -> None:
    text = search(call_mode, find_half).text

    assert "half \ufffd of a pair, \U0001f375" in text
    assert text.encode()


def test_a_search_that_fails_is_a_result(call_mode: CallMode) -> None:
    answer = search(call_mode, break_down)

    assert answer.additional_kwargs["error_code"] == "tool_failed"


def test_a_tool_that_does_not_search_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"'translate' takes \['text', 'language'\]"):
        web_search(translate)


@pytest.mark.parametrize(
    ("provider", "wanted"),
    [
        ("anthropic", {"type": "web_search_20250305", "name": "web_search", "max_uses": 8}),
        ("openai", {"type": "web_search"}),
        ("google_genai", {"google_search": {}}),
    ],
)
def test_the_provider_of_a_model_searches_where_its_profile_says_so(provider: str, wanted: Any) -> None:
    with ScriptedModel("Done.", provider=provider, model_name="some") as model:
        create_deep_agent(model, tools=[web_search()]).invoke({"messages": "Go"})

    assert wanted in model.asked[0].tools


def test_each_subagent_has_the_search_of_its_own_provider() -> None:
    task = call("task", subagent_type="helper", description="Look")
    with (
        ScriptedModel(task, "Done.", provider="anthropic", model_name="one") as main,
        ScriptedModel("Found.", provider="openai", model_name="two") as other,
    ):
        helper: Any = {"name": "helper", "description": "x", "system_prompt": "x", "model": other}
        create_deep_agent(main, tools=[web_search()], subagents=[helper]).invoke({"messages": "Go"})

    assert {"type": "web_search"} in other.asked[0].tools


def test_where_no_provider_searches_building_the_agent_says_what_to_do() -> None:
    with pytest.raises(ConfigError, match=r"give a search tool, as in web_search\(TavilySearch\(\)\)"):
        create_deep_agent(ScriptedModel(provider="mistral", model_name="x"), tools=[web_search()])


def test_models_that_stand_in_for_each_other_search_alike() -> None:
    one = ScriptedModel(provider="anthropic", model_name="x")
    other = ScriptedModel(provider="openai", model_name="y")

    with pytest.raises(ConfigError, match="do not name one search"):
        create_deep_agent(one, tools=[web_search()], fallback_models=[other])
    assert create_deep_agent(one, tools=[web_search(look_up)], fallback_models=[other])


def test_a_profile_names_a_search_in_code_and_in_a_file() -> None:
    given = {"type": "web_search_20260101", "name": "web_search"}
    config = HarnessProfileConfig.from_dict({"web_search": given})

    assert config.to_dict() == {"web_search": given}
    assert config.to_harness_profile() == HarnessProfile(web_search=given)
    with pytest.raises((TypeError, ProfileError), match="web_search must be Mapping"):
        HarnessProfile(web_search="yes")  # pyright: ignore[reportArgumentType]


def test_claude_searches_by_itself_and_its_results_are_sent_back(call_mode: CallMode) -> None:
    used = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "tea"}}
    page = {
        "type": "web_search_result",
        "url": "https://example.org",
        "title": "Tea",
        "encrypted_content": "abc",
    }
    found = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [page]}
    with serving_claude() as claude:
        claude.compactions[1] = [used, found]
        claude.will_call("ls", path="/")
        agent = create_deep_agent(claude.model(), tools=[web_search()])
        result = call_mode.invoke(agent, {"messages": "Look up tea, then list the files"})

    tools = claude.asked[0]["tools"]
    assert [each for each in tools if each.get("name") == "web_search"] == [
        {"type": "web_search_20250305", "name": "web_search", "max_uses": 8}
    ]
    kept = [each for each in claude.asked[1]["messages"][1]["content"] if isinstance(each, dict)]
    assert [each["type"] for each in kept][:2] == ["server_tool_use", "web_search_tool_result"]
    assert kept[1]["content"][0]["encrypted_content"] == "abc"
    assert isinstance(result["messages"][-1], AIMessage)


def test_openai_searches_by_itself_and_its_results_are_sent_back(call_mode: CallMode) -> None:
    used = {
        "type": "web_search_call",
        "id": "ws_1",
        "status": "completed",
        "action": {"type": "search", "query": "tea"},
    }
    listed = {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "c1",
        "name": "ls",
        "arguments": '{"path": "/"}',
    }
    text = {"type": "output_text", "text": "Tea is hot.", "annotations": []}
    said = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [text]}
    asked: list[dict[str, Any]] = []

    def answer(handler: BaseHTTPRequestHandler) -> None:
        asked.append(json.loads(handler.rfile.read(int(handler.headers["Content-Length"]))))
        body = {
            "id": f"resp_{len(asked)}",
            "object": "response",
            "created_at": 1,
            "model": "gpt",
            "status": "completed",
            "output": [used, listed] if len(asked) == 1 else [said],
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2},
        }
        respond(handler, 200, json.dumps(body).encode(), content_type="application/json")

    with serving() as site:
        site.pages["/v1/responses"] = answer
        model = ChatOpenAI(model="gpt-5", base_url=site.at("/v1"), api_key=SecretStr("none"), max_retries=0)
        agent = create_deep_agent(model, tools=[web_search()])
        result = call_mode.invoke(agent, {"messages": "Look up tea, then list the files"})

    assert {"type": "web_search"} in asked[0]["tools"]
    assert [each.get("type") for each in asked[1]["input"]][-3:-1] == ["web_search_call", "function_call"]
    assert result["messages"][-1].text == "Tea is hot."
