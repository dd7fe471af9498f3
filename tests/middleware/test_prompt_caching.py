"""Claude's prompts are cached: never more marks than it takes, the caller's own untouched."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ModelRequest, ModelResponse
from langchain_anthropic.middleware import AnthropicPromptCachingMiddleware as Theirs
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool

from deepagents import HarnessProfile, create_deep_agent, register_harness_profile
from deepagents.backends import StateBackend
from deepagents.middleware.filesystem import FilesystemMiddleware
from deepagents.middleware.memory import MemoryMiddleware
from deepagents.middleware.prompt_caching import AnthropicPromptCachingMiddleware
from deepagents.testing import ScriptedModel
from tests.conftest import CallMode
from tests.middleware.claude import Claude, marked_texts, marks, serving

FIVE: dict[str, str] = {"type": "ephemeral"}
HOUR: dict[str, str] = {"type": "ephemeral", "ttl": "1h"}
NOTES: dict[str, Any] = {"/AGENTS.md": {"content": "Use tabs.", "encoding": "utf-8"}}


@pytest.fixture(name="claude")
def _claude() -> Iterator[Claude]:
    with serving() as claude:
        yield claude


def said(*blocks: tuple[str, dict[str, str] | None]) -> SystemMessage:
    """Make a system message of texts, some of them marked."""
    return SystemMessage(
        content=[
            {"type": "text", "text": text, **({"cache_control": mark} if mark else {})}
            for text, mark in blocks
        ]
    )


def sent(
    claude: Claude, call_mode: CallMode, question: Any = "Hi", notes: str = "Use tabs.", **options: Any
) -> dict[str, Any]:
    """Ask an agent once, and return what went over the wire."""
    agent = create_deep_agent(claude.model(), **options)
    files = {"/AGENTS.md": {"content": notes, "encoding": "utf-8"}}
    call_mode.invoke(agent, {"messages": [HumanMessage(question)], "files": files})
    return claude.asked[-1]


def test_tools_system_and_tail_are_marked(claude: Claude, call_mode: CallMode) -> None:
    body = sent(claude, call_mode)

    assert marks(body) == [("tools", "5m"), ("system", "5m"), ("end", "5m")]
    assert "cache_control" in body["tools"][-1]
    assert "cache_control" in body["system"][-1]


def test_the_fourth_mark_keeps_what_stands_before_memory(claude: Claude, call_mode: CallMode) -> None:
    body = sent(claude, call_mode, memory=["/AGENTS.md"], system_prompt="Mine.")

    assert [part for part, _ in marks(body)] == ["tools", "system", "system", "end"]
    texts = [each["text"] for each in body["system"]]
    at = next(at for at, text in enumerate(texts) if "Use tabs." in text)
    assert texts.index(marked_texts(body)[0]) == at - 1


def test_another_memory_pays_for_nothing_before_it(claude: Claude, call_mode: CallMode) -> None:
    first, second = (
        sent(claude, call_mode, memory=["/AGENTS.md"], system_prompt="Mine.", notes=notes)
        for notes in ("Use tabs.", "Use spaces.")
    )

    kept = [each["text"] for each in first["system"]].index(marked_texts(first)[0])
    assert first["tools"] == second["tools"]
    assert first["system"][: kept + 1] == second["system"][: kept + 1]
    assert "Mine." in str(first["system"][: kept + 1])


def test_a_mark_of_the_caller_takes_the_place_of_the_least_useful_of_ours(
    claude: Claude, call_mode: CallMode
) -> None:
    body = sent(
        claude, call_mode, memory=["/AGENTS.md"], system_prompt=said(("Mine.", FIVE), ("More.", None))
    )

    assert [part for part, _ in marks(body)] == ["tools", "system", "system", "end"]
    assert marked_texts(body)[0] == "Mine."
    assert "Use tabs." not in marked_texts(body)[1]


@pytest.mark.parametrize(
    ("own", "parts"),
    [
        (1, ["tools", "system", "system", "end"]),
        (2, ["system", "system", "system", "end"]),
        (3, ["system", "system", "system", "end"]),
        (4, ["system", "system", "system", "system"]),
    ],
)
def test_there_are_never_more_than_four(
    claude: Claude, call_mode: CallMode, own: int, parts: list[str]
) -> None:
    prompt = said(*[(f"Part {at}.", FIVE) for at in range(own)])

    body = sent(claude, call_mode, memory=["/AGENTS.md"], system_prompt=prompt)

    assert [part for part, _ in marks(body)] == parts
    assert marked_texts(body)[:own] == [f"Part {at}." for at in range(own)]


def test_an_hour_of_the_caller_stays_one_and_what_stands_before_it_lasts_as_long(
    claude: Claude, call_mode: CallMode
) -> None:
    body = sent(claude, call_mode, memory=["/AGENTS.md"], system_prompt=said(("Mine.", HOUR)))

    assert marks(body) == [("tools", "1h"), ("system", "1h"), ("system", "5m"), ("end", "5m")]


class Last(AgentMiddleware[Any, Any, Any]):
    """A caller's middleware that changes the request as the test says."""

    def __init__(self, change: Callable[[Any], Any]) -> None:
        super().__init__()
        self.change = change

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        return handler(self.change(request))

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        return await handler(self.change(request))


def test_an_hour_of_the_caller_on_the_last_block_stays_one(claude: Claude, call_mode: CallMode) -> None:
    def mark(request: Any) -> Any:
        return request.override(system_message=said(("All of it.", HOUR)))

    body = sent(claude, call_mode, middleware=[Last(mark)])

    assert marks(body) == [("tools", "1h"), ("system", "1h"), ("end", "5m")]


def test_a_last_block_that_is_plain_text_keeps_its_text(claude: Claude, call_mode: CallMode) -> None:
    def plain(request: Any) -> Any:
        return request.override(system_message=SystemMessage(content=["One.", "Two."]))

    body = sent(claude, call_mode, middleware=[Last(plain)])

    assert [each["text"] for each in body["system"]] == ["One.", "Two."]
    assert marked_texts(body) == ["Two."]


def test_a_tail_that_the_caller_set_keeps_its_hour(claude: Claude, call_mode: CallMode) -> None:
    def settle(request: Any) -> Any:
        return request.override(model_settings={"cache_control": HOUR})

    body = sent(claude, call_mode, middleware=[Last(settle)])

    assert marks(body) == [("tools", "1h"), ("system", "1h"), ("end", "1h")]


def test_a_tail_that_the_model_was_made_with_keeps_its_hour(claude: Claude, call_mode: CallMode) -> None:
    agent = create_deep_agent(claude.model(model_kwargs={"cache_control": HOUR}))
    call_mode.invoke(agent, {"messages": "Hi"})

    assert marks(claude.asked[-1]) == [("tools", "1h"), ("system", "1h"), ("end", "1h")]


@pytest.mark.parametrize("mark", [FIVE, HOUR])
def test_a_mark_on_the_last_message_is_its_only_one(
    claude: Claude, call_mode: CallMode, mark: dict[str, str]
) -> None:
    body = sent(claude, call_mode, [{"type": "text", "text": "A long document.", "cache_control": mark}])

    assert [part for part, _ in marks(body)] == ["tools", "system", "messages"]
    assert {lifetime for _, lifetime in marks(body)} == {mark.get("ttl", "5m")}


PICTURE: dict[str, Any] = {"type": "image", "base64": "aGk=", "mime_type": "image/png"}


@pytest.mark.parametrize("mark", [FIVE, HOUR])
def test_a_mark_before_the_last_block_leaves_the_end_its_own(
    claude: Claude, call_mode: CallMode, mark: dict[str, str]
) -> None:
    document = {"type": "text", "text": "A long document.", "cache_control": mark}
    body = sent(claude, call_mode, [document, {"type": "text", "text": "And?"}], memory=["/AGENTS.md"])

    lifetime = mark.get("ttl", "5m")
    assert marks(body) == [("tools", lifetime), ("system", lifetime), ("messages", lifetime), ("end", "5m")]


@pytest.mark.parametrize("aside", ["extras", "metadata"])
def test_a_mark_beside_a_block_counts_where_it_is_sent(
    claude: Claude, call_mode: CallMode, aside: str
) -> None:
    said_aside = {aside: {"cache_control": HOUR}}

    picture = sent(claude, call_mode, [{**PICTURE, **said_aside}])
    assert marks(picture) == [("tools", "1h"), ("system", "1h"), ("messages", "1h")]

    plain = sent(claude, call_mode, [{"type": "text", "text": "Hi", **said_aside}])
    assert marks(plain) == [("tools", "5m"), ("system", "5m"), ("end", "5m")]


def test_a_block_of_media_has_one_mark_wherever_it_stands(claude: Claude, call_mode: CallMode) -> None:
    picture = {
        **PICTURE,
        "cache_control": HOUR,
        "extras": {"cache_control": FIVE},
        "metadata": {"cache_control": FIVE},
    }
    body = sent(claude, call_mode, [picture, {"type": "text", "text": "And?"}], memory=["/AGENTS.md"])

    assert marks(body) == [("tools", "1h"), ("system", "1h"), ("messages", "1h"), ("end", "5m")]


def test_a_mark_anywhere_in_the_last_result_of_a_tool_is_its_end(claude: Claude, call_mode: CallMode) -> None:
    content: Any = [
        {"type": "text", "text": "A document.", "cache_control": HOUR},
        {"type": "text", "text": "."},
    ]
    history = [
        HumanMessage("Look."),
        AIMessage("", tool_calls=[{"name": "ls", "args": {"path": "/"}, "id": "1"}]),
        ToolMessage(content, tool_call_id="1"),
    ]
    call_mode.invoke(create_deep_agent(claude.model()), {"messages": history})

    assert marks(claude.asked[-1]) == [("tools", "1h"), ("system", "1h"), ("messages", "1h")]


def test_an_hour_behind_five_minutes_of_the_caller_becomes_five_minutes(
    claude: Claude, call_mode: CallMode
) -> None:
    own = said(("Mine.", FIVE), ("More.", None))
    body = sent(claude, call_mode, system_prompt=own, middleware=[Theirs(ttl="1h")])

    assert marks(body) == [("tools", "1h"), ("system", "5m"), ("system", "5m"), ("end", "5m")]


def test_marks_in_older_messages_count(claude: Claude, call_mode: CallMode) -> None:
    document: Any = [{"type": "text", "text": "A document.", "cache_control": HOUR}]
    call: Any = {"name": "look", "args": {"cache_control": "no-cache"}, "id": "1"}
    history = [
        HumanMessage(document),
        AIMessage("", tool_calls=[call]),
        ToolMessage(document, tool_call_id="1"),
        HumanMessage("And?"),
    ]
    agent = create_deep_agent(claude.model(), memory=["/AGENTS.md"])

    call_mode.invoke(agent, {"messages": history, "files": NOTES})

    assert marks(claude.asked[-1]) == [
        ("system", "1h"),
        ("messages", "1h"),
        ("messages", "1h"),
        ("end", "5m"),
    ]


@tool(extras={"cache_control": {"type": "ephemeral", "ttl": "1h"}})
def look(at: str) -> str:
    """Look."""
    return at


def test_a_mark_on_the_last_tool_keeps_its_hour(claude: Claude, call_mode: CallMode) -> None:
    def last(request: Any) -> Any:
        return request.override(tools=[*(each for each in request.tools if each.name != "look"), look])

    body = sent(claude, call_mode, tools=[look], middleware=[Last(last)])

    assert marks(body) == [("tools", "1h"), ("system", "5m"), ("end", "5m")]


def test_the_middleware_that_a_caller_set_up_marks_within_the_same_bounds(
    claude: Claude, call_mode: CallMode
) -> None:
    body = sent(
        claude,
        call_mode,
        memory=["/AGENTS.md"],
        system_prompt=said(("Mine.", HOUR)),
        middleware=[Theirs(ttl="1h")],
    )

    assert marks(body) == [("tools", "1h"), ("system", "1h"), ("system", "1h"), ("end", "1h")]


def test_every_subagent_is_cached_too(claude: Claude, call_mode: CallMode) -> None:
    own: Any = {"name": "own", "description": "d", "system_prompt": "Work."}
    for worker in ("general-purpose", "own"):
        claude.will_call("task", description="Go.", subagent_type=worker)
        sent(claude, call_mode, subagents=[own])

    workers = [body for body in claude.asked if "task" not in [each["name"] for each in body["tools"]]]
    assert len(workers) == 2
    assert [marks(body) for body in workers] == [[("tools", "5m"), ("system", "5m"), ("end", "5m")]] * 2


def test_the_same_prefix_goes_out_again(claude: Claude, call_mode: CallMode) -> None:
    claude.will_call("ls", path="/")
    sent(claude, call_mode, memory=["/AGENTS.md"])

    first, second = claude.asked
    assert (first["tools"], first["system"]) == (second["tools"], second["system"])
    assert second["messages"][:1] == first["messages"]


def test_other_models_are_left_alone(call_mode: CallMode) -> None:
    seen: list[Any] = []

    def watch(request: Any) -> Any:
        seen.append(request)
        return request

    model = ScriptedModel("Done.")
    agent = create_deep_agent(model, memory=["/AGENTS.md"], middleware=[Last(watch)])
    call_mode.invoke(agent, {"messages": "Hi", "files": NOTES})

    assert model.asked[0].options == {}
    assert not any("cache_control" in each for each in seen[0].system_message.content)


def test_a_fallback_to_another_model_gets_no_mark_of_memory(claude: Claude, call_mode: CallMode) -> None:
    other = ScriptedModel("Done.")
    swap = Last(lambda request: request.override(model=other))
    agent = create_deep_agent(
        claude.model(), memory=["/AGENTS.md"], middleware=[swap], system_prompt=said(("Mine.", FIVE))
    )
    call_mode.invoke(agent, {"messages": "Hi", "files": NOTES})

    content: Any = other.asked[0].messages[0].content
    assert [each["text"] for each in content if "cache_control" in each] == ["Mine."]


def test_a_model_of_another_kind_is_called_with_the_very_same_request() -> None:
    request: Any = ModelRequest(model=ScriptedModel(), messages=[HumanMessage("Hi")])
    seen: list[Any] = []

    def handler(given: Any) -> Any:
        seen.append(given)
        return ModelResponse(result=[AIMessage("Done.")])

    AnthropicPromptCachingMiddleware().wrap_model_call(request, handler)
    assert seen[0] is request


def test_building_an_agent_imports_no_provider() -> None:
    program = """
        import sys
        from deepagents import create_deep_agent
        from deepagents.testing import ScriptedModel
        create_deep_agent(ScriptedModel("Done.")).invoke({"messages": "Hi"})
        print([each for each in sys.modules if each in ("langchain_anthropic", "langchain_aws", "anthropic")])
    """
    ended = subprocess.run(
        [sys.executable, "-c", dedent(program)], capture_output=True, text=True, check=True
    )

    assert ended.stdout.strip() == "[]"


@pytest.mark.parametrize("by", ["name", "class"])
def test_a_profile_turns_it_off(claude: Claude, call_mode: CallMode, by: str) -> None:
    excluded = Theirs if by == "class" else "AnthropicPromptCachingMiddleware"
    register_harness_profile(
        f"anthropic:uncached-{by}", HarnessProfile(excluded_middleware=frozenset({excluded}))
    )
    agent = create_deep_agent(claude.model(model=f"uncached-{by}"))
    call_mode.invoke(agent, {"messages": "Hi"})

    assert marks(claude.asked[-1]) == []


def test_it_works_without_the_rest(claude: Claude, call_mode: CallMode) -> None:
    memory = MemoryMiddleware(backend=StateBackend(), sources=["/AGENTS.md"], add_cache_control=True)
    agent = create_agent(
        claude.model(),
        system_prompt="Be brief.",
        middleware=[memory, FilesystemMiddleware(), AnthropicPromptCachingMiddleware()],
    )
    call_mode.invoke(agent, {"messages": [HumanMessage("Hi")], "files": NOTES})

    assert [part for part, _ in marks(claude.asked[-1])] == ["tools", "system", "system", "end"]


def test_a_request_without_a_system_message_is_fine(claude: Claude, call_mode: CallMode) -> None:
    agent = create_agent(claude.model(), middleware=[AnthropicPromptCachingMiddleware()])
    call_mode.invoke(agent, {"messages": [HumanMessage("Hi")]})

    assert marks(claude.asked[-1]) == [("end", "5m")]


PACKAGES = {
    "langchain_aws": "BedrockPromptCachingMiddleware",
    "langchain_fireworks": "FireworksPromptCachingMiddleware",
}
MODELS = """
from deepagents.testing import ScriptedModel
class Chat(ScriptedModel):
    pass
"""
MARKING = """
from langchain.agents.middleware import AgentMiddleware
class {name}(AgentMiddleware):
    def __init__(self, unsupported_model_behavior="warn"):
        self.behavior = unsupported_model_behavior
    def wrap_model_call(self, request, handler):
        return handler(request.override(model_settings=dict(cache_control=dict(by=self.behavior))))
    async def awrap_model_call(self, request, handler):
        return await handler(request.override(model_settings=dict(cache_control=dict(by=self.behavior))))
"""
RUN = """
import asyncio, sys
from deepagents import create_deep_agent
from {package} import Chat
assert "{package}.middleware.prompt_caching" not in sys.modules
for ask in ("invoke", "ainvoke"):
    model = Chat("One.", "Two.")
    agent = create_deep_agent(model)
    for _ in range(2):
        ended = getattr(agent, ask)({{"messages": "Hi"}})
        if ask == "ainvoke":
            asyncio.run(ended)
    print([dict(each.options) for each in model.asked])
"""


def ran_with(tmp_path: Path, package: str, marking: str | None) -> subprocess.CompletedProcess[str]:
    """Run a model of a provider's package, which has this middleware, or is of an older version."""
    home = tmp_path / package
    home.mkdir()
    (home / "__init__.py").write_text(MODELS)
    if marking is not None:
        (home / "middleware").mkdir()
        (home / "middleware" / "__init__.py").write_text("")
        (home / "middleware" / "prompt_caching.py").write_text(marking)
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{RUN.format(package=package)}"
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)


@pytest.mark.parametrize("package", PACKAGES)
def test_a_model_of_another_provider_is_marked_by_its_own_package(tmp_path: Path, package: str) -> None:
    ended = ran_with(tmp_path, package, MARKING.format(name=PACKAGES[package]))

    assert ended.stdout.splitlines() == [str([{"cache_control": {"by": "ignore"}}] * 2)] * 2, ended.stderr


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_of_an_older_version_is_no_mistake(tmp_path: Path, package: str) -> None:
    assert ran_with(tmp_path, package, None).stdout.splitlines() == [str([{}, {}])] * 2


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_without_the_name_is_no_mistake(tmp_path: Path, package: str) -> None:
    assert ran_with(tmp_path, package, "").stdout.splitlines() == [str([{}, {}])] * 2


@pytest.mark.parametrize("package", PACKAGES)
def test_another_import_that_fails_is_told(tmp_path: Path, package: str) -> None:
    ended = ran_with(tmp_path, package, "import no_such_module")

    assert "No module named 'no_such_module'" in ended.stderr
    assert ended.returncode != 0
