"""Claude's prompts are cached: never more marks than it takes, the caller's own untouched."""

from __future__ import annotations

import subprocess
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
from tests import programs
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


class Last(AgentMiddleware[Any, Any, Any]):
    """A caller's middleware that changes the request as the test says."""

    def __init__(self, change: Callable[[Any], Any]) -> None:
        super().__init__()
        self.change = change

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        return handler(self.change(request))

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        return await handler(self.change(request))


def sent(
    claude: Claude, *messages: Any, notes: str = "Use tabs.", model: Any = None, **options: Any
) -> dict[str, Any]:
    """Ask an agent once, and return what went over the wire."""
    agent = create_deep_agent(claude.model(**(model or {})), **options)
    files = {"/AGENTS.md": {"content": notes, "encoding": "utf-8"}}
    agent.invoke({"messages": [*messages] or "Hi", "files": files})
    return claude.asked[-1]


def test_the_fourth_mark_keeps_what_stands_before_memory(claude: Claude) -> None:
    body = sent(claude, memory=["/AGENTS.md"], system_prompt="Mine.")

    assert [part for part, _ in marks(body)] == ["tools", "system", "system", "end"]
    texts = [each["text"] for each in body["system"]]
    at = next(at for at, text in enumerate(texts) if "Use tabs." in text)
    assert texts.index(marked_texts(body)[0]) == at - 1


def test_another_memory_pays_for_nothing_before_it(claude: Claude) -> None:
    first, second = (
        sent(claude, memory=["/AGENTS.md"], system_prompt="Mine.", notes=notes)
        for notes in ("Use tabs.", "Use spaces.")
    )

    kept = [each["text"] for each in first["system"]].index(marked_texts(first)[0])
    assert first["tools"] == second["tools"]
    assert first["system"][: kept + 1] == second["system"][: kept + 1]
    assert "Mine." in str(first["system"][: kept + 1])


def test_a_mark_of_the_caller_takes_the_place_of_the_least_useful_of_ours(claude: Claude) -> None:
    body = sent(claude, memory=["/AGENTS.md"], system_prompt=said(("Mine.", FIVE), ("More.", None)))

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
def test_there_are_never_more_than_four(claude: Claude, own: int, parts: list[str]) -> None:
    prompt = said(*[(f"Part {at}.", FIVE) for at in range(own)])

    body = sent(claude, memory=["/AGENTS.md"], system_prompt=prompt)

    assert [part for part, _ in marks(body)] == parts
    assert marked_texts(body)[:own] == [f"Part {at}." for at in range(own)]


def test_a_last_block_that_is_plain_text_keeps_its_text(claude: Claude) -> None:
    body = sent(claude, **changed(system_message=SystemMessage(content=["One.", "Two."])))

    assert [each["text"] for each in body["system"]] == ["One.", "Two."]
    assert marked_texts(body) == ["Two."]


def changed(**values: Any) -> dict[str, Any]:
    """Make the options of an agent whose caller changes each request so."""
    return {"middleware": [Last(lambda request: request.override(**values))]}


def asking(*blocks: Any) -> HumanMessage:
    return HumanMessage(content=[*blocks])


def text(content: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": content, **more}


@tool(extras={"cache_control": {"type": "ephemeral", "ttl": "1h"}})
def look(at: str) -> str:
    """Look."""
    return at


def look_last(request: Any) -> Any:
    return request.override(tools=[*(each for each in request.tools if each.name != "look"), look])


MEMORY: dict[str, Any] = {"memory": ["/AGENTS.md"]}
PICTURE: dict[str, Any] = {"type": "image", "base64": "aGk=", "mime_type": "image/png"}
AND = text("And?")
DOCUMENT = text("A long document.", cache_control=HOUR)
BESIDE: dict[str, Any] = {"cache_control": HOUR}
ALL_MARKED = PICTURE | BESIDE | dict.fromkeys(("extras", "metadata"), {"cache_control": FIVE})
CALL: Any = {"name": "look", "args": {"cache_control": "no-cache"}, "id": "1"}
CALLED = AIMessage("", tool_calls=[CALL])
FOUND = ToolMessage([DOCUMENT, text(".")], tool_call_id="1")
OLDER = [asking(DOCUMENT), CALLED, ToolMessage([DOCUMENT], tool_call_id="1"), asking(AND)]
MINE = said(("Mine.", HOUR))
MARKED: dict[str, tuple[list[Any], dict[str, Any], str]] = {
    "tools, system and tail": ([], {}, "tools 5m, system 5m, end 5m"),
    "an hour in the prompt, and before it": (
        [],
        {**MEMORY, "system_prompt": MINE},
        "tools 1h, system 1h, system 5m, end 5m",
    ),
    "an hour on the last block": ([], changed(system_message=MINE), "tools 1h, system 1h, end 5m"),
    "an hour on the tail": ([], changed(model_settings=BESIDE), "tools 1h, system 1h, end 1h"),
    "an hour of the model's": ([], {"model": {"model_kwargs": BESIDE}}, "tools 1h, system 1h, end 1h"),
    "an hour on the last tool": (
        [],
        {"tools": [look], "middleware": [Last(look_last)]},
        "tools 1h, system 5m, end 5m",
    ),
    "an hour on the last message": ([asking(DOCUMENT)], {}, "tools 1h, system 1h, messages 1h"),
    "five minutes on the last message": (
        [asking({**DOCUMENT, "cache_control": FIVE})],
        {},
        "tools 5m, system 5m, messages 5m",
    ),
    "an hour before the last block": (
        [asking(DOCUMENT, AND)],
        MEMORY,
        "tools 1h, system 1h, messages 1h, end 5m",
    ),
    "five minutes before the last block": (
        [asking({**DOCUMENT, "cache_control": FIVE}, AND)],
        MEMORY,
        "tools 5m, system 5m, messages 5m, end 5m",
    ),
    "a mark in the extras of media": (
        [asking({**PICTURE, "extras": BESIDE})],
        {},
        "tools 1h, system 1h, messages 1h",
    ),
    "a mark in the metadata of media": (
        [asking({**PICTURE, "metadata": BESIDE})],
        {},
        "tools 1h, system 1h, messages 1h",
    ),
    "a mark in the extras of text": ([asking(text("Hi", extras=BESIDE))], {}, "tools 5m, system 5m, end 5m"),
    "a mark in the metadata of text": (
        [asking(text("Hi", metadata=BESIDE))],
        {},
        "tools 5m, system 5m, end 5m",
    ),
    "media marked in every place": (
        [asking(ALL_MARKED, AND)],
        MEMORY,
        "tools 1h, system 1h, messages 1h, end 5m",
    ),
    "a mark anywhere in the last result": (
        [asking(AND), CALLED, FOUND],
        {},
        "tools 1h, system 1h, messages 1h",
    ),
    "marks in older messages": (OLDER, MEMORY, "system 1h, messages 1h, messages 1h, end 5m"),
    "no hour of LangChain's behind five minutes": (
        [],
        {"system_prompt": said(("Mine.", FIVE), ("More.", None)), "middleware": [Theirs(ttl="1h")]},
        "tools 1h, system 5m, system 5m, end 5m",
    ),
    "LangChain's within the same bounds": (
        [],
        {**MEMORY, "system_prompt": MINE, "middleware": [Theirs(ttl="1h")]},
        "tools 1h, system 1h, system 1h, end 1h",
    ),
}


@pytest.mark.parametrize("case", MARKED)
def test_marks_of_the_caller_stay_and_ours_last_as_long_as_they_must(claude: Claude, case: str) -> None:
    messages, options, expected = MARKED[case]

    body = sent(claude, *messages, **options)

    assert ", ".join(f"{part} {lifetime}" for part, lifetime in marks(body)) == expected
    assert case == "marks in older messages" or "cache_control" in body["tools"][-1]
    assert "cache_control" in body["system"][-1]


def test_every_subagent_is_cached_too(claude: Claude) -> None:
    own: Any = {"name": "own", "description": "d", "system_prompt": "Work."}
    for worker in ("general-purpose", "own"):
        claude.will_call("task", description="Go.", subagent_type=worker)
        sent(claude, subagents=[own])

    workers = [body for body in claude.asked if "task" not in [each["name"] for each in body["tools"]]]
    assert len(workers) == 2
    assert [marks(body) for body in workers] == [[("tools", "5m"), ("system", "5m"), ("end", "5m")]] * 2


def test_the_same_prefix_goes_out_again(claude: Claude) -> None:
    claude.will_call("ls", path="/")
    sent(claude, memory=["/AGENTS.md"])

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


def test_a_fallback_to_another_model_gets_no_mark_of_memory(claude: Claude) -> None:
    other = ScriptedModel("Done.")
    swap = Last(lambda request: request.override(model=other))
    agent = create_deep_agent(
        claude.model(), memory=["/AGENTS.md"], middleware=[swap], system_prompt=said(("Mine.", FIVE))
    )
    agent.invoke({"messages": "Hi", "files": NOTES})

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
    ended = programs.run(dedent(program))

    assert ended.stdout == "[]\n", ended.stderr


@pytest.mark.parametrize("by", ["name", "class"])
def test_a_profile_turns_it_off(claude: Claude, by: str) -> None:
    excluded = Theirs if by == "class" else "AnthropicPromptCachingMiddleware"
    register_harness_profile(
        f"anthropic:uncached-{by}", HarnessProfile(excluded_middleware=frozenset({excluded}))
    )
    agent = create_deep_agent(claude.model(model=f"uncached-{by}"))
    agent.invoke({"messages": "Hi"})

    assert marks(claude.asked[-1]) == []


def test_it_works_without_the_rest(claude: Claude) -> None:
    memory = MemoryMiddleware(backend=StateBackend(), sources=["/AGENTS.md"], add_cache_control=True)
    agent: Any = create_agent(
        claude.model(),
        system_prompt="Be brief.",
        middleware=[memory, FilesystemMiddleware(), AnthropicPromptCachingMiddleware()],
    )
    agent.invoke({"messages": [HumanMessage("Hi")], "files": NOTES})

    assert [part for part, _ in marks(claude.asked[-1])] == ["tools", "system", "system", "end"]


def test_a_request_without_a_system_message_is_fine(claude: Claude) -> None:
    agent: Any = create_agent(claude.model(), middleware=[AnthropicPromptCachingMiddleware()])
    agent.invoke({"messages": [HumanMessage("Hi")]})

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
    return programs.run(RUN.format(package=package), path=[tmp_path])


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
