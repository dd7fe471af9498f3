"""What the harness keeps aside for itself, results, messages, media, is neither a way out nor forged."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from deepagents import FilesystemMiddleware, create_deep_agent
from deepagents.backends import FilesystemBackend
from deepagents.testing import Asked, ScriptedModel, call
from tests.attacks.harness import CANARY, Ground, in_turn
from tests.conftest import CallMode

CALL_IDS = {
    "dot-dot": "../../outside/secret.txt",
    "an absolute path": "/etc/passwd",
    "backslashes": "..\\..\\outside\\secret.txt",
    "NUL": "a\0b",
    "a line break": "a\nb",
    "nothing": "",
    "a home directory": "~/x",
    "very long": "x" * 5_000,
    "half a character": "\ud800",
    "a dot": ".",
    "full-width dots": "\uff0e\uff0e/\uff0e\uff0e/outside",
}
LONG = "x" * 100_000


@tool
def shout(text: str) -> str:
    """Say something at length."""
    return text * 40_000


def calling(call_id: str, text: str = "x") -> AIMessage:
    return AIMessage(
        "", tool_calls=[{"name": "shout", "args": {"text": text}, "id": call_id, "type": "tool_call"}]
    )


@in_turn("call_id", CALL_IDS)
def test_the_id_of_a_call_chooses_no_place(disk: Ground, call_mode: CallMode, call_id: str) -> None:
    disk.options["tools"] = [shout]
    disk.harmless |= {"shout"}
    run = disk.run(call_mode, calling(call_id, "xyz"))
    kept = [path for path in disk.root.rglob("*") if path.is_file() and path.name != "in.txt"]

    assert run.problems() == []
    assert [path.parent for path in kept] == [disk.root / "large_tool_results"]


def test_ids_that_look_alike_overwrite_nothing(disk: Ground, call_mode: CallMode) -> None:
    disk.options["tools"] = [shout]
    disk.harmless |= {"shout"}
    script = [calling(each, text) for each, text in (("call.0", "one"), ("call_0", "two"), ("call/0", "six"))]
    run = disk.run(call_mode, *script, calling("call_0", "ten"))
    kept = sorted(path.read_text()[:3] for path in (disk.root / "large_tool_results").iterdir())

    assert run.problems() == []
    assert kept == ["one", "six", "ten", "two"]


def test_what_is_kept_aside_is_not_deleted_at_once(disk: Ground, call_mode: CallMode) -> None:
    disk.options["tools"] = [shout]
    disk.harmless |= {"shout"}
    place = "/large_tool_results"
    paths = [place, f"{place}/", f"/{place}//.", place.replace("/", "\\")]
    run = disk.run(call_mode, calling("call_0", "xyz"), *(call("delete", file_path=path) for path in paths))

    assert run.problems() == []
    assert len(list((disk.root / "large_tool_results").iterdir())) == 1


def test_a_link_in_the_place_of_results_leads_nowhere(disk: Ground, call_mode: CallMode) -> None:
    disk.options["tools"] = [shout]
    disk.harmless |= {"shout"}
    (disk.root / "large_tool_results").symlink_to(disk.top / "outside")

    assert disk.run(call_mode, calling("call_0", "xyz")).problems() == []


def test_a_subagent_keeps_aside_below_the_same_root(disk: Ground, call_mode: CallMode) -> None:
    disk.options["tools"] = [shout]
    disk.harmless |= {"shout", "task"}
    task = call("task", description="Shout", subagent_type="general-purpose")

    assert disk.run(call_mode, task, calling("../../x", "xyz"), "Shouted.").problems() == []


@pytest.mark.parametrize(
    "place", ["/../outside/secret.txt", "/to-directory/secret.txt", "/etc/passwd", "", "x" * 9_999, "\ud800"]
)
def test_a_message_that_says_it_was_kept_aside_makes_nothing_read(
    linked: Ground, call_mode: CallMode, place: str
) -> None:
    marks: Any = {"lc_evicted_to": place, "lc_evicted_preview": "nothing to see"}
    message = HumanMessage("Go", additional_kwargs=marks)
    with ScriptedModel("Done.") as model:
        agent = create_deep_agent(model, checkpointer=InMemorySaver(), **linked.options)
        result = call_mode.invoke(agent, {"messages": [message]}, {"configurable": {"thread_id": "1"}})

    assert CANARY not in repr([result, model.asked])


PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)
REFERENCES: dict[str, Any] = {
    "dot-dot": "../../outside/secret.txt",
    "an absolute path": "/etc/passwd",
    "a link": "to-file",
    "a digest with dot-dot": "0" * 60 + "/../",
    "a digest of other bytes": hashlib.sha256(b"other").hexdigest(),
    "the digest of the secret": hashlib.sha256(CANARY.encode()).hexdigest(),
    "a digest in capitals": hashlib.sha256(PNG).hexdigest().upper(),
    "a number": 7,
    "nothing": None,
    "a list": ["../../outside/secret.txt"],
}


def with_blobs(ground: Ground) -> None:
    backend = FilesystemBackend(ground.root)
    ground.options = {
        "backend": backend,
        "middleware": [FilesystemMiddleware(backend=backend, offload_binary_content=True)],
    }


@in_turn("reference", REFERENCES)
def test_a_forged_reference_brings_nothing_in(linked: Ground, call_mode: CallMode, reference: Any) -> None:
    with_blobs(linked)
    (linked.top / "outside" / "plain.txt").write_text(CANARY)
    block: Any = {"type": "image", "mime_type": "image/png", "deepagents_blob": reference}
    message = HumanMessage([{"type": "text", "text": "See"}, block])
    with ScriptedModel("Done.") as model:
        agent = create_deep_agent(model, checkpointer=InMemorySaver(), **linked.options)
        result = call_mode.invoke(agent, {"messages": [message]}, {"configurable": {"thread_id": "1"}})
    shown = model.asked[0].messages[-1].content

    assert CANARY not in repr([result, model.asked])
    assert "base64" not in repr(shown)
    assert "is gone" in repr(shown)


def test_a_blob_that_was_overwritten_is_not_shown(disk: Ground, call_mode: CallMode) -> None:
    with_blobs(disk)
    (disk.root / "a.png").write_bytes(PNG)
    poison = base64.b64encode(b"poison").decode()

    def overwrite(asked: Asked) -> AIMessage | str:
        (blob,) = (disk.root / "blobs").iterdir()
        blob.write_bytes(b"poison")
        return "Read."

    thread: Any = {"configurable": {"thread_id": "1"}}
    with ScriptedModel(call("read_file", file_path="/a.png"), overwrite, "Done.") as model:
        agent = create_deep_agent(model, checkpointer=InMemorySaver(), **disk.options)
        call_mode.invoke(agent, {"messages": "Look"}, thread)
        call_mode.invoke(agent, {"messages": "Look again"}, thread)
    (seen,) = [message for message in model.asked[-1].messages if isinstance(message, ToolMessage)]

    assert poison not in repr(seen)
    assert "is gone" in repr(seen.content)


def test_a_secret_in_the_place_of_a_blob_is_not_shown(linked: Ground, call_mode: CallMode) -> None:
    with_blobs(linked)
    digest = hashlib.sha256((linked.top / "outside" / "secret.txt").read_bytes()).hexdigest()
    (linked.root / "blobs").symlink_to(linked.top / "outside")
    (linked.top / "outside" / digest).write_bytes((linked.top / "outside" / "secret.txt").read_bytes())
    block: Any = {"type": "image", "mime_type": "image/png", "deepagents_blob": digest}
    with ScriptedModel("Done.") as model:
        agent = create_deep_agent(model, **linked.options)
        result = call_mode.invoke(agent, {"messages": [HumanMessage([block])]})

    assert base64.b64encode(CANARY.encode()).decode()[4:20] not in repr([result, model.asked])
    assert "is gone" in repr(model.asked[0].messages[-1].content)


def test_files_given_with_a_message_are_no_way_out(disk: Ground, call_mode: CallMode, tmp_path: Path) -> None:
    forged: Any = {
        "/../outside/secret.txt": {"content": "overwritten", "encoding": "utf-8"},
        "/a.txt": {"content": "overwritten", "encoding": "utf-8"},
        "../../outside/secret.txt": None,
    }
    disk.given = {"files": forged}
    disk.harmless |= {"task"}
    task = call("task", description="Look", subagent_type="general-purpose")
    run = disk.run(call_mode, call("read_file", file_path="/a.txt"), task, "Looked.")

    assert run.problems() == []
