"""A person's decision holds for later calls like it, where the caller allows that, and for nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from deepagents import FilesystemPermission, create_deep_agent
from deepagents.backends import FilesystemBackend
from deepagents.errors import ConfigError
from deepagents.middleware.approval import RememberedDecisions
from deepagents.testing import ScriptedModel, call, calls
from tests.conftest import CallMode
from tests.savers import opened

THREAD: Any = {"configurable": {"thread_id": "1"}}
ALL = ["approve", "edit", "reject", "respond"]
REMEMBERING: Any = {"allowed_decisions": ALL, "remember": True}
ALWAYS = {"type": "approve", "remember": True}
NEVER = {"type": "reject", "remember": True, "message": "He moved."}
LAW = FilesystemPermission(["write"], ["/law/"], "interrupt")


@tool
def send(to: str, copies: int = 1) -> str:
    """Send a letter."""
    return f"sent to {to}"


@tool
def execute(command: str) -> str:
    """Run a command."""
    return f"ran {command}"


@tool
def shell(command: str) -> str:
    """Run a command."""
    return f"ran {command}"


def agent_with(*script: Any, **options: Any) -> Any:
    tools = options.get("tools", [send, execute, shell])
    standing: Any = {
        "tools": tools,
        "interrupt_on": dict.fromkeys((*(each.name for each in tools), "write_file"), REMEMBERING),
        "checkpointer": InMemorySaver(),
    }
    return create_deep_agent(ScriptedModel(*script), **{**standing, **options})


def decide(*decisions: Any) -> Command[Any]:
    return Command(resume={"decisions": list(decisions)})


def results(result: Any) -> list[str]:
    return [each.text for each in result["messages"] if each.type == "tool"]


def asks_again(first: Any, decision: Any, then: Any, **options: Any) -> bool:
    """Tell whether a second call waits after a decision about a first one."""
    agent = agent_with(first, then, "Done.", **options)
    agent.invoke({"messages": "Go"}, THREAD)
    return "__interrupt__" in agent.invoke(decide(decision), THREAD)


def test_a_request_offers_what_would_be_remembered_only_where_that_is_on() -> None:
    for config, offered in ((REMEMBERING, {"to": "Ada"}), (True, None)):
        agent = agent_with(call("send", to="Ada"), interrupt_on={"send": config})
        request = agent.invoke({"messages": "Go"}, THREAD)["__interrupt__"][0].value
        assert request["action_requests"][0].get("remember") == offered


def test_an_approved_call_is_not_asked_about_again_in_its_thread() -> None:
    agent = agent_with(call("send", to="Ada"), call("send", to="Ada"), "Done.", call("send", to="Ada"))
    agent.invoke({"messages": "Go"}, THREAD)
    done = agent.invoke(decide(ALWAYS), THREAD)
    other = agent.invoke({"messages": "Go"}, {"configurable": {"thread_id": "2"}})

    assert results(done) == ["sent to Ada", "sent to Ada"]
    assert "__interrupt__" in other
    assert "remembered_decisions" not in done


def test_a_rejected_call_is_answered_at_once_with_the_reason() -> None:
    both = calls(("send", {"to": "Ada"}), ("ls", {"path": "/"}))
    agent = agent_with(call("send", to="Ada"), both, "Done.")
    agent.invoke({"messages": "Go"}, THREAD)
    done = agent.invoke(decide(NEVER), THREAD)

    again = next(
        each for each in done["messages"] if getattr(each, "tool_call_id", "") == both.tool_calls[0]["id"]
    )
    assert again.additional_kwargs["error_code"] == "not_run"
    assert "He moved." in again.text
    assert len(results(done)) == 3


def test_in_one_turn_only_what_is_not_remembered_is_asked() -> None:
    turn = calls(*(("send", {"to": name}) for name in ("Ada", "Bob", "Cy")))
    agent = agent_with(calls(("send", {"to": "Ada"}), ("send", {"to": "Bob"})), turn, "Done.")
    agent.invoke({"messages": "Go"}, THREAD)
    asked = agent.invoke(decide(ALWAYS, NEVER), THREAD)["__interrupt__"][0].value
    again = agent.invoke(decide("?"), THREAD)["__interrupt__"][0].value
    done = agent.invoke(decide({"type": "approve"}), THREAD)

    assert [each["args"] for each in asked["action_requests"]] == [{"to": "Cy"}]
    assert "error" in again
    assert sorted(results(done)[2:])[1:] == ["sent to Ada", "sent to Cy"]


@pytest.mark.parametrize(
    "then",
    [
        call("send", to="ada"),
        call("send", to="Ada", copies=2),
        call("send", to="Ada", copies=True),
        call("shell", command="Ada"),
    ],
    ids=lambda each: str(each.tool_calls[0]["args"]),
)
def test_another_call_is_asked_about(then: Any) -> None:
    assert asks_again(call("send", to="Ada", copies=1), ALWAYS, then)


def test_nothing_is_remembered_unless_a_person_says_so() -> None:
    ada = call("send", to="Ada")
    assert asks_again(ada, {"type": "approve"}, call("send", to="Ada"))
    assert asks_again(ada, {"type": "approve", "remember": False}, call("send", to="Ada"))
    assert not asks_again(ada, ALWAYS, call("send", to="Ada"))


@pytest.mark.parametrize(
    ("command", "asks"),
    [
        ("git-status", False),
        ("git-status-short", False),
        ("git-status; rm -rf /", True),
        ("git-status;rm", True),
        ("git-status&&rm", True),
        ("git-status%2e%2e/rm", True),
        ("git-status|rm", True),
        ("git-status`rm`", True),
        ("git-status$(rm)", True),
        ("git-status\nrm", True),
        ("git-status>x", True),
        ("git-status/../rm", True),
        ("git-status\n", True),
        ("git-status\N{FULLWIDTH SEMICOLON}rm", True),
        ("sudo git-status", True),
    ],
    ids=repr,
)
def test_a_pattern_matches_one_plain_word_and_nothing_that_a_shell_reads(command: str, asks: bool) -> None:
    like = {"type": "approve", "remember": {"command": "git-status*"}}
    assert asks_again(call("shell", command="git-status-v"), like, call("shell", command=command)) is asks


def test_a_command_is_remembered_whole_or_not_at_all() -> None:
    agent = agent_with(call("execute", command="git status"), call("execute", command="git status; rm -rf /"))
    agent.invoke({"messages": "Go"}, THREAD)
    for pattern in ("git status*", "**", "*"):
        wrong = {"type": "approve", "remember": {"command": pattern}}
        again = agent.invoke(decide(wrong), THREAD)["__interrupt__"][0].value
        assert "'command' of 'execute' can be remembered only as it is" in again["error"]
    asked = agent.invoke(decide(ALWAYS), THREAD)["__interrupt__"][0].value

    assert asked["action_requests"][0]["args"]["command"] == "git status; rm -rf /"


def test_what_a_request_offers_can_be_sent_back_and_widens_nothing() -> None:
    offered = {"type": "approve", "remember": {"command": "ls *"}}
    assert asks_again(call("shell", command="ls *"), offered, call("shell", command="ls x"))
    assert not asks_again(call("shell", command="ls *"), offered, call("shell", command="ls *"))


WRITE = call("write_file", file_path="/notes/a", content="1")


@pytest.mark.parametrize(
    ("path", "content", "asks"),
    [
        ("/notes/b", "2", False),
        ("/notes/deep/b c;d", "anything; at `all`", False),
        ("/notes/x/../b", "2", True),
        ("/notes/../law/b", "2", True),
        ("/notesb", "2", True),
        ("/law/b", "2", True),
    ],
)
def test_a_pattern_for_a_path_means_what_it_means_in_permissions(path: str, content: str, asks: bool) -> None:
    like = {"type": "approve", "remember": {"file_path": "/notes/**", "content": "**"}}
    assert asks_again(WRITE, like, call("write_file", file_path=path, content=content)) is asks


def test_an_argument_that_a_pattern_leaves_out_stays_as_it_was() -> None:
    like = {"type": "approve", "remember": {"file_path": "/notes/**"}}
    assert asks_again(WRITE, like, call("write_file", file_path="/notes/b", content="2"))
    assert not asks_again(WRITE, like, call("write_file", file_path="/notes/b", content="1"))


@pytest.mark.parametrize(
    ("decision", "said"),
    [
        (
            {"type": "edit", "remember": True, "edited_action": {"name": "send", "args": {"to": "B"}}},
            "'edit'",
        ),
        ({"type": "respond", "remember": True, "message": "no"}, "'respond'"),
        ({"type": "approve", "remember": "always"}, "'always'"),
        ({"type": "approve", "remember": {"from": "*"}}, "'from'"),
        ({"type": "approve", "remember": {"to": 5}}, "5"),
        ({"type": "approve", "remember": {"to": "m*"}}, "'m*' does not match 'to' of this call, 'Ada'"),
        ({"type": "approve", "remember": {"to": ""}}, "does not match"),
        ({"type": "approve", "remember": {"to": "["}}, "does not match"),
        ({"type": "approve", "remember": {"to": "\ud800"}}, "does not match"),
    ],
    ids=repr,
)
def test_what_cannot_be_remembered_is_a_wrong_answer(decision: Any, said: str) -> None:
    agent = agent_with(call("send", to="Ada"), "Done.")
    agent.invoke({"messages": "Go"}, THREAD)
    again = agent.invoke(decide(decision), THREAD)["__interrupt__"][0].value
    done = agent.invoke(decide({"type": "approve"}), THREAD)

    assert said in again["error"]
    assert results(done) == ["sent to Ada"]


@pytest.mark.parametrize(
    ("pattern", "first", "then", "asks"),
    [
        ("a*@example.com", "ada@example.com", "alan@example.com", False),
        ("a*@example.com", "ada@example.com", "a@evil.com@example.com", True),
        ("https://good.com:*", "https://good.com:80/", "https://good.com:443/", False),
        ("https://good.com:*", "https://good.com:80/", "https://good.com:pw@evil.com/", True),
        ("*", "status", "--output=x", True),
        ("?*", "status", "-v", True),
        ("-*", "-v", "-q", False),
        ("git*", "git", "git=1", True),
    ],
)
def test_only_a_pattern_that_names_them_matches_what_turns_a_word_into_another(
    pattern: str, first: str, then: str, asks: bool
) -> None:
    like = {"type": "approve", "remember": {"to": pattern}}
    assert asks_again(call("send", to=first), like, call("send", to=then)) is asks


def test_a_pattern_for_a_path_matches_the_call_it_is_given_with() -> None:
    agent = agent_with(WRITE)
    agent.invoke({"messages": "Go"}, THREAD)
    wrong = {"type": "approve", "remember": {"file_path": "/other/**"}}

    assert "does not match" in agent.invoke(decide(wrong), THREAD)["__interrupt__"][0].value["error"]


def test_a_pattern_that_is_no_path_is_a_wrong_answer_too() -> None:
    agent = agent_with(WRITE)
    agent.invoke({"messages": "Go"}, THREAD)
    for pattern in ("notes/**", "/notes/../**"):
        wrong = {"type": "approve", "remember": {"file_path": pattern}}
        assert pattern in agent.invoke(decide(wrong), THREAD)["__interrupt__"][0].value["error"]


def test_where_it_is_not_on_nothing_is_remembered() -> None:
    agent = agent_with(call("send", to="Ada"), interrupt_on={"send": True})
    agent.invoke({"messages": "Go"}, THREAD)
    assert "not remembered here" in agent.invoke(decide(ALWAYS), THREAD)["__interrupt__"][0].value["error"]
    with pytest.raises(TypeError, match="'remember' of 'send'"):
        agent_with(interrupt_on={"send": {**REMEMBERING, "remember": "yes"}})


def test_a_rule_that_asks_is_lifted_only_where_the_pattern_speaks_of_that_place() -> None:
    write = call("write_file", file_path="/law/a", content="1")
    then = call("write_file", file_path="/law/b", content="2")
    options: Any = {"permissions": [LAW]}
    for pattern, asks in (("/**", True), ("**", True), ("/law/**", False)):
        like = {"type": "approve", "remember": {"file_path": pattern, "content": "**"}}
        assert asks_again(write, like, then, **options) is asks
    assert not asks_again(write, ALWAYS, call("write_file", file_path="/law/a", content="1"), **options)


def test_a_link_that_leads_elsewhere_is_asked_about_again(tmp_path: Path) -> None:
    for name in ("law", "w"):
        (tmp_path / name).mkdir()
    (tmp_path / "w/link").symlink_to("../law/x")
    write = call("write_file", file_path="/w/link", content="1")
    options: Any = {"permissions": [LAW], "backend": FilesystemBackend(tmp_path)}

    assert asks_again(write, ALWAYS, call("write_file", file_path="/w/link", content="1"), **options)


def helper(*script: Any, **own: Any) -> Any:
    return {"name": "helper", "description": "helps", "model": ScriptedModel(*script), **own}


TASK = call("task", description="Send", subagent_type="helper")


@pytest.mark.parametrize("only_below", [False, True])
def test_what_a_subagent_remembers_holds_when_it_is_called_again(
    call_mode: CallMode, only_below: bool
) -> None:
    ada = call("send", to="Ada")
    own: Any = {"interrupt_on": {"send": REMEMBERING}} if only_below else {}
    spec = helper(ada, "once", call("send", to="Ada"), "twice", **own)
    task = call("task", description="Send", subagent_type="helper")
    agent = agent_with(
        TASK, task, "Done.", subagents=[spec], **({"interrupt_on": None} if only_below else {})
    )
    call_mode.invoke(agent, {"messages": "Go"}, THREAD)
    done = call_mode.invoke(agent, decide(ALWAYS), THREAD)

    assert results(done) == ["once", "twice"]


def test_what_a_fork_remembers_holds_for_the_next_one() -> None:
    spec: Any = {"name": "helper", "description": "helps", "mode": "fork"}
    task = call("task", description="Send", subagent_type="helper")
    script = [TASK, call("send", to="Ada"), "once", task, call("send", to="Ada"), "twice", "Done."]
    agent = agent_with(*script, subagents=[spec])
    agent.invoke({"messages": "Go"}, THREAD)

    assert results(agent.invoke(decide(ALWAYS), THREAD)) == ["once", "twice"]


def test_a_subagent_that_does_not_remember_asks_all_the_same() -> None:
    spec = helper(call("send", to="Ada"), interrupt_on={"send": True})
    rules = {"send": REMEMBERING}
    agent = agent_with(call("send", to="Ada"), TASK, subagents=[spec], interrupt_on=rules)
    agent.invoke({"messages": "Go"}, THREAD)

    assert "__interrupt__" in agent.invoke(decide(ALWAYS), THREAD)


def test_it_survives_a_restart_and_can_be_listed_and_forgotten(call_mode: CallMode, tmp_path: Path) -> None:
    place = str(tmp_path / "threads.db")
    ada = call("send", to="Ada")
    with opened("sqlite", call_mode, place) as saver:
        agent = agent_with(TASK, "Done.", subagents=[helper(ada, "sent")], checkpointer=saver)
        call_mode.invoke(agent, {"messages": "Go"}, THREAD)
    with opened("sqlite", call_mode, place) as saver:
        agent = agent_with("Done.", subagents=[helper("sent")], checkpointer=saver)
        call_mode.invoke(agent, decide(ALWAYS), THREAD)
    with opened("sqlite", call_mode, place) as saver:
        again = [call("task", description="Send", subagent_type="helper") for _ in range(2)]
        below = helper(call("send", to="Ada"), "sent again", call("send", to="Ada"))
        agent = agent_with(again[0], "Done.", again[1], subagents=[below], checkpointer=saver)
        done = call_mode.invoke(agent, {"messages": "Again"}, THREAD)
        decisions = RememberedDecisions(agent, THREAD)
        (found,) = call_mode.call(decisions, "all")
        call_mode.call(decisions, "forget", found.key)
        assert call_mode.call(decisions, "all") == []
        asked = call_mode.invoke(agent, {"messages": "Again"}, THREAD)

    assert results(done)[-1] == "sent again"
    assert (found.name, found.type, found.exact, found.patterns) == ("send", "approve", {"to": "Ada"}, {})
    assert found.subagents == ("helper",)
    assert "__interrupt__" in asked


def test_nothing_is_forgotten_while_a_question_waits() -> None:
    agent = agent_with(call("send", to="Ada"), call("send", to="Bob"))
    agent.invoke({"messages": "Go"}, THREAD)
    agent.invoke(decide(ALWAYS), THREAD)
    decisions = RememberedDecisions(agent, THREAD)
    (found,) = decisions.all()

    with pytest.raises(ConfigError, match="waits"):
        decisions.forget(found.key)
    with pytest.raises(ConfigError, match="'nothing'"):
        decisions.forget("nothing")


def test_nobody_can_bring_decisions_in() -> None:
    record = {"name": "send", "type": "approve", "args": {"to": {"is": "Ada"}}}
    given: Any = {"messages": "Go", "remembered_decisions": {"k": record}}

    assert "__interrupt__" in agent_with(call("send", to="Ada")).invoke(given, THREAD)


def sender(server: str) -> Any:
    @tool
    def send(to: str, copies: int = 1) -> str:
        """Send a letter."""
        return f"sent to {to} by {server}"

    return send


@pytest.mark.parametrize("before", [True, False], ids=["down", "up"])
def test_a_decision_holds_for_the_agent_it_was_given_for_and_no_other(before: bool) -> None:
    spec = helper(call("send", to="Ada"), "below", tools=[sender("there")])
    turns = [call("send", to="Ada"), TASK] if before else [TASK, call("send", to="Ada")]
    agent = agent_with(*turns, "Done.", tools=[sender("here")], subagents=[spec])
    agent.invoke({"messages": "Go"}, THREAD)
    asked = agent.invoke(decide(ALWAYS), THREAD)
    done = agent.invoke(decide({"type": "approve"}), THREAD)

    assert "__interrupt__" in asked
    assert set(results(done)) == {"sent to Ada by here", "below"}


def test_a_decision_of_a_subagent_holds_for_that_subagent() -> None:
    ada = [call("send", to="Ada"), "sent"]
    specs = [
        helper(*ada, call("send", to="Ada"), "again", tools=[sender("there")]),
        {**helper(call("send", to="Ada"), tools=[sender("elsewhere")]), "name": "other"},
    ]
    tasks = [call("task", description="Send", subagent_type=name) for name in ("helper", "helper", "other")]
    agent = agent_with(*tasks, "Done.", tools=[sender("here")], subagents=specs)
    agent.invoke({"messages": "Go"}, THREAD)
    asked = agent.invoke(decide(ALWAYS), THREAD)

    assert results(asked) == ["sent", "again"]
    assert "__interrupt__" in asked
    assert [each.subagents for each in RememberedDecisions(agent, THREAD).all()] == [("helper",)]


def test_a_task_that_a_person_gives_to_another_subagent_takes_no_decisions_along() -> None:
    specs = [
        helper(call("send", to="Ada"), "sent", tools=[sender("there")]),
        {**helper(call("send", to="Ada"), tools=[sender("elsewhere")]), "name": "other"},
    ]
    agent = agent_with(
        TASK,
        call("task", description="Send", subagent_type="helper"),
        subagents=specs,
        interrupt_on={"send": REMEMBERING, "task": {"allowed_decisions": ["approve", "edit"]}},
    )
    agent.invoke({"messages": "Go"}, THREAD)
    agent.invoke(decide({"type": "approve"}), THREAD)
    agent.invoke(decide(ALWAYS), THREAD)
    other = {"name": "task", "args": {"description": "Send", "subagent_type": "other"}}
    asked = agent.invoke(decide({"type": "edit", "edited_action": other}), THREAD)

    assert asked["__interrupt__"][0].value["action_requests"][0]["name"] == "send"


def test_an_agent_that_a_tool_calls_knows_no_decisions_of_its_caller() -> None:
    other = agent_with(call("send", to="Ada"), "sent", checkpointer=True)

    @tool
    def ask_other() -> str:
        """Ask."""
        return other.invoke({"messages": "Go"})["messages"][-1].text

    agent = agent_with(call("send", to="Ada"), call("ask_other"), "Done.", tools=[send, ask_other])
    agent.invoke({"messages": "Go"}, THREAD)

    assert "__interrupt__" in agent.invoke(decide(ALWAYS), THREAD)


def test_nor_does_one_that_a_tool_of_a_subagent_calls_that_asks_nobody() -> None:
    other = agent_with(call("send", to="Ada"), "sent", checkpointer=None)

    @tool
    def ask_other() -> str:
        """Ask."""
        return other.invoke({"messages": "Go"})["messages"][-1].text

    spec = helper(call("ask_other"), "asked", tools=[ask_other], interrupt_on={})
    rules = {"send": REMEMBERING}
    agent = agent_with(call("send", to="Ada"), TASK, "Done.", subagents=[spec], interrupt_on=rules)
    agent.invoke({"messages": "Go"}, THREAD)

    assert "__interrupt__" in agent.invoke(decide(ALWAYS), THREAD)


def test_a_decision_is_forgotten_without_waking_a_finished_thread() -> None:
    @tool(return_direct=True)
    def post(to: str) -> str:
        """Post a letter."""
        return f"posted to {to}"

    model = ScriptedModel(call("post", to="Ada"), "Again.", "Too much.")
    agent = create_deep_agent(
        model, tools=[post], interrupt_on={"post": REMEMBERING}, checkpointer=InMemorySaver()
    )
    agent.invoke({"messages": "Go"}, THREAD)
    agent.invoke(decide(ALWAYS), THREAD)
    decisions = RememberedDecisions(agent, THREAD)
    (found,) = decisions.all()
    decisions.forget(found.key)

    assert decisions.all() == []
    assert agent.get_state(THREAD).next == ()
    assert agent.invoke({"messages": "Go on"}, THREAD)["messages"][-1].text == "Again."
    assert len(model.asked) == 2
