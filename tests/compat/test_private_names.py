"""Private names that other packages look at do what they did, in terms of what there is today."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
from langchain_core.messages import HumanMessage, RemoveMessage
from langgraph.graph.message import REMOVE_ALL_MESSAGES

import deepagents
from deepagents import FilesystemPermission, create_deep_agent
from deepagents._agent.trace_version import editable_version, lc_version
from deepagents.backends import CompositeBackend, FilesystemBackend, StateBackend
from deepagents.middleware.todos import TodoListMiddleware
from deepagents.testing import ScriptedModel
from tests.compat.test_honoured import honoured

RULES = [
    FilesystemPermission(operations=["read", "write"], paths=["/keys/**"], mode="deny"),
    FilesystemPermission(operations=["write"], paths=["/plans/**"], mode="interrupt"),
]


def test_the_base_prompt_is_an_older_name_that_warns_each_time() -> None:
    for _ in range(2):
        assert honoured("graph", "BASE_AGENT_PROMPT").startswith("You are a deep agent")


def test_traces_tell_a_checkout_from_a_release() -> None:
    agent: Any = create_deep_agent(ScriptedModel())

    assert agent.config["metadata"]["lc_versions"] == {"deepagents": lc_version()}
    assert lc_version() in (deepagents.__version__, f"{deepagents.__version__}+editable")
    assert editable_version("1.0+here") == "1.0+here.editable"
    assert honoured("_version", "_lc_version").cache_clear() is None


def test_messages_are_folded() -> None:
    fold = honoured("_messages_reducer", "_messages_delta_reducer")
    one, two = HumanMessage("1", id="a"), HumanMessage("2", id="b")

    assert fold(None, [[one], two]) == [one, two]
    assert fold([one, two], [HumanMessage("3", id="a")])[0].text == "3"
    assert fold([one, two], [RemoveMessage("a"), RemoveMessage("never")]) == [two]
    assert (
        fold([one], [two, [RemoveMessage(REMOVE_ALL_MESSAGES), {"role": "user", "content": "new"}]])[0].text
        == "new"
    )


def test_middleware_is_put_in_its_place() -> None:
    apply = honoured("graph", "_apply_custom_middleware")
    names = honoured("graph", "_REQUIRED_MIDDLEWARE_NAMES")
    first, second, last = (named(name) for name in ("FilesystemMiddleware", "SubAgentMiddleware", "Tail"))
    own, new = named("SubAgentMiddleware"), named("New")

    assert apply([first, second, last], [own, new], core_names=names) == [first, own, new, last]
    assert apply([first], [new]) == [first, new]
    classes = honoured("graph", "_REQUIRED_MIDDLEWARE_CLASSES")
    assert {each.__new__(each).name for each in classes} == names


def named(name: str) -> Any:
    return type(name, (TodoListMiddleware,), {})()


def test_descriptions_of_tools_are_replaced_on_copies() -> None:
    override = honoured("_tools", "_apply_tool_description_overrides")
    tool = {"name": "search", "description": "Old."}

    assert override(None, {}) is None
    assert override([tool, len], {"search": "New."}) == [{"name": "search", "description": "New."}, len]
    assert tool["description"] == "Old."
    assert [honoured("_tools", "_tool_name")(each) for each in (tool, len)] == ["search", None]


def test_rules_are_asked_by_older_names(tmp_path: Any) -> None:
    home = "middleware.filesystem"
    check = honoured(home, "_check_fs_permission")

    assert [check(RULES, "write", path) for path in ("/keys/a", "/plans/a", "/a")] == [
        "deny",
        "interrupt",
        "allow",
    ]
    assert honoured(home, "_filter_paths_by_permission")(RULES, "read", ["/keys/a", "/a"]) == ["/a"]
    assert honoured(home, "_apply_permissions_to_glob_results")(RULES, [{"path": "/keys/a"}]) == []
    assert honoured(home, "_find_delete_deny_patterns")(RULES, "/") == ["/keys/**"]
    scoped = honoured(home, "_all_paths_scoped_to_routes")
    routed = CompositeBackend(StateBackend(), {"/keys": StateBackend(), "/plans/": StateBackend()})
    assert scoped(RULES, routed)
    assert not scoped(RULES, CompositeBackend(StateBackend(), {"/keys/": StateBackend()}))
    assert not scoped(RULES, StateBackend())


def test_small_helpers_beside_middleware() -> None:
    message = HumanMessage([{"type": "text", "text": "a"}, {"type": "image", "url": "u"}, "b"])

    assert honoured("middleware._message_eviction", "_extract_text_from_message")(message) == "a\nb"
    replaced = honoured("middleware._message_eviction", "_build_evicted_content")(message, "gone")
    assert replaced == [{"type": "text", "text": "gone"}, {"type": "image", "url": "u"}]
    assert not honoured("middleware._utils", "is_anthropic_chat_model")(ScriptedModel())
    private = honoured("middleware._state", "private_state_field_names")
    schema = import_module("deepagents.middleware.summarization").SummarizationState
    assert private(schema) >= {"_summarization_event", "_summarization_session_id", "jump_to"}


def test_links_in_a_circle_are_found(tmp_path: Any) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    look = honoured("backends.filesystem", "_raise_if_symlink_loop")

    with pytest.raises(OSError, match="symbolic links"):
        look(tmp_path / "a")
    look(tmp_path / "none")
    shown: Any = vars(FilesystemBackend)["_display_path"]
    backend = FilesystemBackend(root_dir=tmp_path)
    assert shown(backend, tmp_path / "x" / "y") == "/x/y"
    assert shown(backend, tmp_path) == "/"
    assert shown(backend, tmp_path.parent) == tmp_path.parent.name
