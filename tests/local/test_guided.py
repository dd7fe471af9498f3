from __future__ import annotations

from pathlib import Path

from deepagents import create_deep_agent
from deepagents.backends import FilesystemBackend
from deepagents_local import ChatLocal
from deepagents_local.guided import GuideTools, guide
from tests.conftest import CallMode
from tests.local.engines import ScriptedEngine, allowed_names

READ = '{"tool": "read_file", "file_path": "/a.txt"}'
WRONG = '{"tool": "edit_file", "file_path": "/a.txt", "old_string": "two", "new_string": "three"}'
EDIT = '{"tool": "edit_file", "file_path": "/a.txt", "old_string": "one", "new_string": "two"}'
PLAN = '{"tool": "write_todos", "todos": [{"content": "Say two", "status": "pending"}]}'


def test_tools_are_offered_one_by_one_until_each_has_succeeded(call_mode: CallMode, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    engine = ScriptedEngine(READ, WRONG, EDIT, "It is done.")
    agent = create_deep_agent(
        guide(ChatLocal(engine=engine)),
        backend=FilesystemBackend(tmp_path),
        middleware=[GuideTools(["read_file", "edit_file"])],
    )

    result = call_mode.invoke(agent, {"messages": "Say two in a.txt."})

    assert (tmp_path / "a.txt").read_text() == "two\n"
    assert result["messages"][-1].text == "It is done."
    offered = [allowed_names(request) for request in engine.requests if request.grammar]
    # After a call that failed it may not give up at once.
    assert offered == [["read_file"], ["edit_file", "final_answer"], ["edit_file"]]
    # Where the new text stands is seen by an example, or else one more call is written there.
    shown = [
        '{"tool": "edit_file", "file_path": "/sky.txt"}\n```' in each.turns[0]["content"]
        for each in engine.requests
    ]
    assert shown == [False, True, True, False]


def test_a_guided_model_may_plan_and_sees_the_last_request_alone(call_mode: CallMode, tmp_path: Path) -> None:
    engine = ScriptedEngine(PLAN, "That is the plan.")
    agent = create_deep_agent(
        guide(ChatLocal(engine=engine)),
        backend=FilesystemBackend(tmp_path),
        middleware=[GuideTools(["write_todos"])],
    )

    result = call_mode.invoke(agent, {"messages": [("user", "Hello."), ("ai", "Hi."), ("user", "Plan it.")]})

    assert result["todos"] == [{"content": "Say two", "status": "pending"}]
    assert not any("Hello." in turn["content"] for request in engine.requests for turn in request.turns)
