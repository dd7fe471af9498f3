"""The documented ways to keep some files beyond the thread: a composite with a store behind one directory."""

from __future__ import annotations

import asyncio
import warnings
from typing import Any
from uuid import uuid4

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import MemorySaver
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.store.postgres import PostgresStore
from langgraph.store.postgres.aio import AsyncPostgresStore

from deepagents import FilesystemMiddleware, create_deep_agent
from deepagents.backends import CompositeBackend, StateBackend, StoreBackend
from deepagents.backends.protocol import BackendFactory
from deepagents.testing import ScriptedModel, call
from tests.conftest import CallMode


def make_backend(runtime: Any) -> CompositeBackend:
    return CompositeBackend(
        default=StateBackend(runtime),
        routes={"/memories/": StoreBackend(runtime)},
    )


def in_a_lambda() -> BackendFactory:
    return lambda rt: CompositeBackend(default=StateBackend(rt), routes={"/memories/": StoreBackend(rt)})


def remembering(model: ScriptedModel, backend: BackendFactory, **given: Any) -> Any:
    with pytest.warns(DeprecationWarning, match="backend factory") as warned:
        agent = create_deep_agent(model, backend=backend, **given)
    assert len(warned) == 1
    return agent


def write(path: str, content: str) -> AIMessage:
    return call("write_file", file_path=path, content=content)


def read(path: str) -> AIMessage:
    return call("read_file", file_path=path)


def said(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


def new_thread() -> dict[str, Any]:
    return {"configurable": {"thread_id": str(uuid4())}}


def last_read(result: Any) -> str:
    return result["messages"][-2].text


@pytest.mark.parametrize("backend", [make_backend, in_a_lambda()], ids=["function", "lambda"])
def test_a_function_that_makes_a_composite(call_mode: CallMode, backend: BackendFactory) -> None:
    with ScriptedModel(write("/draft.txt", "d"), write("/memories/report.txt", "r"), "Saved.") as model:
        agent = remembering(model, backend, store=InMemoryStore())
        result = call_mode.invoke(agent, said("Write a draft and save the report"))

    assert [each.status for each in result["messages"] if each.type == "tool"] == ["success"] * 2
    assert list(result["files"]) == ["/draft.txt"]


def test_short_lived_and_lasting_files(call_mode: CallMode) -> None:
    script = (
        write("/draft.txt", "draft"),
        "Written.",
        write("/memories/report.txt", "final"),
        "Saved.",
        call("glob", pattern="**/*.txt"),
        "That is all.",
    )
    with ScriptedModel(*script) as model:
        agent = remembering(model, make_backend, store=InMemoryStore())
        first = call_mode.invoke(agent, said("Write draft to /draft.txt"))
        second = call_mode.invoke(agent, said("Save final report to /memories/report.txt"))
        third = call_mode.invoke(agent, said("What is there?"))

    assert list(first["files"]) == ["/draft.txt"]
    assert not second.get("files")
    assert last_read(third) == "/memories/report.txt"


def test_one_thread_writes_and_another_reads(call_mode: CallMode) -> None:
    path = "/memories/preferences.txt"
    with ScriptedModel(write(path, "tea"), "Saved.", read(path), read("/draft.txt"), "Tea.") as model:
        agent = remembering(model, make_backend, store=InMemoryStore(), checkpointer=MemorySaver())
        call_mode.invoke(agent, said("Save my preferences"), config=new_thread())
        result = call_mode.invoke(agent, said("What are my preferences?"), config=new_thread())

    assert result["messages"][-4].text.split() == ["1", "tea"]
    assert result["messages"][-2].status == "error"


def test_preferences_by_prompt(call_mode: CallMode) -> None:
    prompt = "When users tell you their preferences, save them to /memories/user_preferences.txt."
    with ScriptedModel(write("/memories/user_preferences.txt", "tea"), "Noted.") as model:
        store = InMemoryStore()
        agent = remembering(model, in_a_lambda(), store=store, system_prompt=prompt)
        call_mode.invoke(agent, said("I like tea"))

    assert model.asked[0].system.startswith(prompt)
    assert [item.key for item in store.search(())] == ["/user_preferences.txt"]


def test_instructions_that_improve_themselves(call_mode: CallMode) -> None:
    path = "/memories/instructions.txt"
    script = (
        write(path, "Be brief.\n"),
        "Ok.",
        read(path),
        call("edit_file", file_path=path, old_string="brief", new_string="very brief"),
        "Ok.",
        read(path),
        "Ok.",
    )
    with ScriptedModel(*script) as model:
        agent = remembering(model, in_a_lambda(), store=InMemoryStore(), system_prompt=f"Read {path} first.")
        call_mode.invoke(agent, said("Please always be brief"))
        call_mode.invoke(agent, said("Briefer"))
        result = call_mode.invoke(agent, said("Hello"))

    assert "Be very brief." in last_read(result)


def test_two_conversations_about_one_project(call_mode: CallMode) -> None:
    path = "/memories/project_notes.txt"
    with ScriptedModel(write(path, "React"), "Saved.", call("grep", pattern="React"), "React.") as model:
        agent = remembering(model, in_a_lambda(), store=InMemoryStore())
        call_mode.invoke(agent, said("We're building a web app with React. Save project notes."))
        result = call_mode.invoke(agent, said("What framework are we using?"))

    assert last_read(result) == path


def test_research_over_several_sessions(call_mode: CallMode) -> None:
    names = ["sources.txt", "notes.txt", "report.md"]
    script = [write(f"/memories/research/{name}", name) for name in names]
    with ScriptedModel(*script, "Saved.", call("ls", path="/memories/research/"), "Going on.") as model:
        agent = remembering(model, in_a_lambda(), store=InMemoryStore())
        call_mode.invoke(agent, said("Start"))
        result = call_mode.invoke(agent, said("Go on"))

    assert all(f"/memories/research/{name}" in last_read(result) for name in names)


def test_a_store_in_a_database(postgres: str) -> None:
    with PostgresStore.from_conn_string(postgres) as store:
        store.setup()
        with ScriptedModel(write("/memories/a.txt", "kept"), "Saved.") as model:
            remembering(model, in_a_lambda(), store=store).invoke(said("Keep this"))

    async def look() -> Any:
        async with AsyncPostgresStore.from_conn_string(postgres) as store:
            with ScriptedModel(read("/memories/a.txt"), "Kept.") as model:
                return await remembering(model, in_a_lambda(), store=store).ainvoke(said("What was it?"))

    assert last_read(asyncio.run(look())).split() == ["1", "kept"]


def test_a_composite_with_a_store_of_its_own(call_mode: CallMode) -> None:
    with ScriptedModel(write("/memories/a.txt", "kept"), "Ok.", read("/memories/a.txt"), "Kept.") as model:
        agent = create_deep_agent(
            model,
            backend=CompositeBackend(
                default=StateBackend(),
                routes={"/memories/": StoreBackend(store=InMemoryStore())},
            ),
        )
        call_mode.invoke(agent, said("Keep this"))
        result = call_mode.invoke(agent, said("What was it?"))

    assert last_read(result).split() == ["1", "kept"]


def in_middleware(model: ScriptedModel, store: BaseStore, files: FilesystemMiddleware) -> Any:
    return create_agent(model=model, store=store, middleware=[files])


def test_the_middleware_alone_with_a_function_that_makes_a_composite(call_mode: CallMode) -> None:
    with ScriptedModel(write("/memories/a.txt", "kept"), call("ls", path="/"), "Ok.") as model:
        with pytest.warns(DeprecationWarning, match="backend factory"):
            files = FilesystemMiddleware(
                backend=in_a_lambda(), custom_tool_descriptions={"ls": "Look around."}
            )
        result = call_mode.invoke(in_middleware(model, InMemoryStore(), files), said("Keep this"))

    ls = next(each for each in model.asked[0].tools if each["function"]["name"] == "ls")
    assert ls["function"]["description"] == "Look around."
    assert "/memories/" in last_read(result)
    assert not result.get("files")


def test_the_middleware_alone_with_a_composite(call_mode: CallMode) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        backend = CompositeBackend(default=StateBackend(), routes={"/memories/": StoreBackend()})
        files = FilesystemMiddleware(backend=backend)
    with ScriptedModel(write("/memories/a.txt", "kept"), write("/b.txt", "b"), "Ok.") as model:
        store = InMemoryStore()
        result = call_mode.invoke(in_middleware(model, store, files), said("Keep this"))

    assert list(result["files"]) == ["/b.txt"]
    assert [item.key for item in store.search(())] == ["/a.txt"]
