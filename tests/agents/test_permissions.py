"""Rules bind every file tool: in state and on disk, through links, in subagents, while a person thinks."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from langchain.agents import create_agent
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from deepagents import FilesystemMiddleware, FilesystemPermission, create_deep_agent
from deepagents.backends import CompositeBackend, FilesystemBackend, LocalShellBackend, StateBackend
from deepagents.backends.capabilities import Capabilities
from deepagents.backends.protocol import BackendProtocol, GlobResult, GrepResult, LsResult, ReadResult
from deepagents.errors import ConfigError, UnenforceableRule
from deepagents.testing import ScriptedModel, call, calls
from tests.conftest import CallMode

THREAD: Any = {"configurable": {"thread_id": "1"}}
FILES = {
    "/open/a.txt": "word in the open",
    "/secrets/key.txt": "word: hunter2",
    "/secrets/.env": "word: hunter2",
    "/secrets/.d/deep.txt": "word: hunter2",
}


def rule(*paths: str, mode: Any = "deny", operations: Any = ("read", "write")) -> FilesystemPermission:
    return FilesystemPermission(operations=list(operations), paths=list(paths), mode=mode)


SECRET = rule("/secrets/**")
ASK = rule("/secrets/**", mode="interrupt")


@pytest.fixture(params=["state", "disk"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """What an agent and its input need so that the files are there."""
    if request.param == "state":
        return {"given": {"files": {path: {"content": text} for path, text in FILES.items()}}}
    return {"given": {}, "backend": disk(tmp_path)}


def disk(root: Path) -> FilesystemBackend:
    for path, text in FILES.items():
        (root / path[1:]).parent.mkdir(parents=True, exist_ok=True)
        (root / path[1:]).write_text(text)
    return FilesystemBackend(root_dir=root)


def answers(result: Any) -> list[Any]:
    return [message for message in result["messages"] if message.type == "tool"]


def tried(place: dict[str, Any], *tried: tuple[str, dict[str, Any]], rules: Any) -> list[Any]:
    """Let a model make these calls in one turn, and return what it was told."""
    options = {key: value for key, value in place.items() if key != "given"}
    with ScriptedModel(calls(*tried), "Done.") as model:
        agent = create_deep_agent(model, permissions=rules, **options)
        return answers(agent.invoke({"messages": "Go", **place["given"]}))


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("read_file", {"file_path": "/secrets/key.txt"}),
        ("read_file", {"file_path": "/secrets/.env"}),
        ("read_file", {"file_path": "/secrets//.d\\deep.txt"}),
        ("write_file", {"file_path": "/secrets/key.txt", "content": "x"}),
        ("write_file", {"file_path": "/secrets/.new/x", "content": "x"}),
        ("edit_file", {"file_path": "/secrets/key.txt", "old_string": "word", "new_string": "x"}),
        ("delete", {"file_path": "/secrets/key.txt"}),
        ("delete", {"file_path": "/secrets"}),
        ("ls", {"path": "/secrets/.d"}),
        ("glob", {"pattern": "*", "path": "/secrets/.d"}),
        ("grep", {"pattern": "word", "path": "/secrets/key.txt"}),
    ],
)
def test_what_is_denied_is_refused_with_a_code(
    place: dict[str, Any], tool: str, arguments: dict[str, Any]
) -> None:
    (answer,) = tried(place, (tool, arguments), rules=[SECRET])

    assert answer.status == "error"
    assert answer.additional_kwargs["error_code"] == "permission_denied"
    operation = "write" if tool in ("write_file", "edit_file", "delete") else "read"
    assert f"permission denied for {operation} on /secrets" in answer.text
    assert "hunter2" not in answer.text


def test_listings_and_searches_pass_over_what_is_denied(place: dict[str, Any]) -> None:
    found = tried(
        place,
        ("ls", {"path": "/secrets"}),
        ("glob", {"pattern": "**/*"}),
        ("glob", {"pattern": "/secrets/.*"}),
        ("grep", {"pattern": "word", "output_mode": "content"}),
        ("grep", {"pattern": "word", "path": "/secrets"}),
        ("grep", {"pattern": "word", "output_mode": "count", "max_count": 1}),
        rules=[SECRET],
    )

    said = "\n".join(answer.text for answer in found)
    assert "/open/a.txt" in said
    assert not re.search(r"/secrets/\S|hunter2|stopped early", said)


def test_a_first_rule_that_allows_makes_an_exception(place: dict[str, Any]) -> None:
    rules = [rule("/open{,/**}", mode="allow"), rule("/**")]
    looks = [
        ("read_file", {"file_path": "/open/a.txt"}),
        ("ls", {"path": "/"}),
        ("glob", {"pattern": "*.txt"}),
    ]
    read, listed, found = tried(place, *looks, rules=rules)
    # Calls of one message run at the same time, so the deletion comes after them.
    [gone] = tried(place, ("delete", {"file_path": "/open/a.txt"}), rules=rules)

    assert "word in the open" in read.text
    assert listed.additional_kwargs["error_code"] == "permission_denied"
    assert found.text == "/open/a.txt"
    assert gone.text == "Deleted /open/a.txt"


def test_a_search_without_a_path_that_may_show_nothing_says_so(place: dict[str, Any]) -> None:
    found = tried(place, ("glob", {"pattern": "*"}), ("grep", {"pattern": "word"}), rules=[rule("/**")])

    assert all(
        "permission denied for read on /" in each.text and "Give a path" in each.text for each in found
    )


def test_an_edit_tells_nothing_about_text_that_may_not_be_read(place: dict[str, Any]) -> None:
    edit = {"file_path": "/secrets/key.txt", "old_string": "word: hunter3", "new_string": "x"}
    (answer,) = tried(place, ("edit_file", edit), rules=[rule("/secrets/**", operations=["read"])])

    assert answer.additional_kwargs["error_code"] == "no_match"
    assert "hunter2" not in answer.text


def test_a_directory_goes_only_when_all_in_it_may_go(place: dict[str, Any]) -> None:
    rules = [rule("/open/**", mode="allow"), rule("/open/keep/**", "/open/keep/**", operations=["write"])]
    kept, gone = tried(
        place, ("delete", {"file_path": "/open"}), ("delete", {"file_path": "/secrets"}), rules=rules
    )

    assert "matches deny rule(s): /open/keep/**" in kept.text
    assert gone.text == "Deleted /secrets"


def test_the_harness_keeps_its_own_directories(place: dict[str, Any]) -> None:
    kept = tried(place, *(("delete", {"file_path": each}) for each in ARTIFACTS), rules=[])

    assert [each.additional_kwargs["error_code"] for each in kept] == ["permission_denied"] * len(kept)


ARTIFACTS = ("/large_tool_results", "/conversation_history/", "/blobs")


def test_links_do_not_lead_round_a_rule(tmp_path: Path) -> None:
    backend = disk(tmp_path)
    (tmp_path / "to-file").symlink_to("secrets/key.txt")
    (tmp_path / "to-directory").symlink_to("secrets")
    (tmp_path / "open/over").symlink_to("../to-directory")
    found = tried(
        {"given": {}, "backend": backend},
        ("read_file", {"file_path": "/to-file"}),
        ("write_file", {"file_path": "/to-directory/new/x.txt", "content": "x"}),
        ("edit_file", {"file_path": "/open/over/key.txt", "old_string": "word", "new_string": "x"}),
        ("delete", {"file_path": "/to-directory/key.txt"}),
        ("delete", {"file_path": "/to-directory/.d"}),
        ("grep", {"pattern": "word", "path": "/to-file"}),
        ("ls", {"path": "/to-directory"}),
        ("glob", {"pattern": "*", "path": "/to-directory"}),
        ("grep", {"pattern": "word", "path": "/open/over"}),
        ("ls", {"path": "/"}),
        ("glob", {"pattern": "**/*"}),
        rules=[SECRET],
    )

    assert [each.additional_kwargs.get("error_code") for each in found[:6]] == ["permission_denied"] * 6
    said = "\n".join(answer.text for answer in found)
    assert "hunter2" not in said
    assert not re.search(
        r"(over|to-directory)/\S|^/to-file", "\n".join(each.text for each in found[6:]), re.M
    )
    assert sorted(each.name for each in (tmp_path / "secrets").iterdir()) == [".d", ".env", "key.txt"]
    assert (tmp_path / "secrets/key.txt").read_text() == FILES["/secrets/key.txt"]


def test_deleting_a_link_takes_the_link_alone(tmp_path: Path) -> None:
    backend = disk(tmp_path)
    (tmp_path / "link").symlink_to("secrets")
    place = {"given": {}, "backend": backend}
    (gone,) = tried(place, ("delete", {"file_path": "/link"}), rules=[SECRET])

    assert gone.text == "Deleted /link"
    assert (tmp_path / "secrets/key.txt").exists()


class Plain(BackendProtocol):
    """A backend that knows nothing of rules, with a link and a cap of its own."""

    def ls(self, path: str) -> LsResult:
        return LsResult(entries=[{"path": each} for each in ("/a", "/link", "/secrets/key.txt")])

    def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        return ReadResult(file_data={"content": "hunter2"})

    def grep(
        self, pattern: str, path: str | None = None, glob: str | None = None, *, max_count: int | None = None
    ) -> GrepResult:
        found: Any = [{"path": f"/secrets/{n}", "line": 1, "text": "word"} for n in range(5)]
        found.append({"path": "/z", "line": 1, "text": "word"})
        return GrepResult(matches=found[:max_count], truncated=max_count is not None, error="in /secrets/9")

    def real_path(self, path: str) -> str:
        return "/secrets/key.txt" if path == "/link" else path


class Careless(Plain):
    """Takes any option, and heeds none."""

    def ls(self, path: str, **options: Any) -> LsResult:
        return super().ls(path)

    def read(self, file_path: str, offset: int = 0, limit: int = 2000, **options: Any) -> ReadResult:
        return super().read(file_path)

    def grep(
        self, pattern: str, path: str | None = None, glob: str | None = None, **options: Any
    ) -> GrepResult:
        return super().grep(pattern, max_count=options.get("max_count"))


@pytest.mark.parametrize("kind", [Plain, Careless])
def test_a_backend_that_knows_no_rules_is_kept_to_them(kind: type[Plain]) -> None:
    listed, refused, found = tried(
        {"given": {}, "backend": kind()},
        ("ls", {"path": "/"}),
        ("read_file", {"file_path": "/link"}),
        ("grep", {"pattern": "word", "max_count": 1}),
        rules=[SECRET],
    )

    assert listed.text == "/a"
    assert "permission denied for read on /link" in refused.text
    assert "Search a directory in which everything is allowed" in found.text
    assert "/secrets" not in found.text


class Odd(BackendProtocol):
    """Answers with other spellings of a path than the one that rules know."""

    def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        return ReadResult(file_data={"content": "word"})

    def glob(self, pattern: str, path: str | None = None) -> GlobResult:
        return GlobResult(matches=[{"path": each} for each in ODD])

    def grep(
        self, pattern: str, path: str | None = None, glob: str | None = None, *, max_count: int | None = None
    ) -> GrepResult:
        return GrepResult(matches=[{"path": each, "line": 1, "text": "hunter2"} for each in ODD])

    def ls(self, path: str) -> LsResult:
        return LsResult(entries=[{"path": each} for each in ODD])


ODD = ("./secrets/k", "//secrets//k", "/./secrets/k", "/a/../secrets/k", "secrets/k", "/secrets/./k/", "./z")


@pytest.mark.parametrize("under", ["", "/data"])
def test_no_spelling_in_an_answer_escapes_a_rule(under: str) -> None:
    looks = [("ls", {"path": under or "/"}), ("glob", {"pattern": "**"}), ("grep", {"pattern": "word"})]
    backend = CompositeBackend(StateBackend(), {under: Odd()}) if under else Odd()
    place: dict[str, Any] = {"given": {}, "backend": backend}
    for each in tried(place, *looks, rules=[rule(f"{under}/secrets/**")]):
        assert "secrets" not in each.text
        assert "z" in each.text


class Broken(StateBackend):
    """Cannot tell where paths lead."""

    def real_path(self, path: str) -> str:
        raise ConnectionError("gone")


class Mute(StateBackend):
    """Cannot tell what it can do."""

    def capabilities(self, path: str = "/") -> Capabilities:
        raise ConnectionError("gone")


class Rootless(StateBackend):
    """Has no place for what the harness keeps."""

    def capabilities(self, path: str = "/") -> Capabilities:
        return Capabilities(artifacts_root=cast("Any", None))


def unmakeable(runtime: Any) -> StateBackend:
    raise ConnectionError("gone")


@pytest.mark.filterwarnings("ignore:Calls of this agent may wait:UserWarning")
@pytest.mark.filterwarnings("ignore:A backend factory:DeprecationWarning")
@pytest.mark.parametrize("rules", [[], [SECRET], [ASK]])
def test_a_backend_that_fails_ends_no_run(rules: Any) -> None:
    write = ("write_file", {"file_path": "/x", "content": "1"})
    seen: dict[Any, list[Any]] = {}
    for backend in (Broken(), Mute(), Rootless(), unmakeable):
        place: dict[str, Any] = {"given": {}, "backend": backend}
        seen[backend] = tried(place, write, ("execute", {"command": "cat"}), rules=rules)

    assert all("Error" in answers[1].text for answers in seen.values())
    said = seen[unmakeable][0].text
    assert "making the backend failed" in said
    assert seen[unmakeable][0].additional_kwargs["error_code"] == "io_error"


def decide(*kinds: str, **more: Any) -> Command[Any]:
    return Command(resume={"decisions": [{"type": kind, **more} for kind in kinds]})


def asking(model: ScriptedModel, place: dict[str, Any], **options: Any) -> Any:
    chosen = {key: value for key, value in place.items() if key != "given"}
    rules: Any = {"permissions": [ASK], **options}
    return create_deep_agent(model, checkpointer=InMemorySaver(), **chosen, **rules)


@pytest.mark.parametrize(
    ("tool", "arguments", "shown"),
    [
        ("read_file", {"file_path": "/secrets/.env"}, "hunter2"),
        ("write_file", {"file_path": "/secrets/key.txt", "content": "x"}, "Updated"),
        ("edit_file", {"file_path": "/secrets/key.txt", "old_string": "word", "new_string": "x"}, "replaced"),
        ("delete", {"file_path": "/secrets"}, "Deleted"),
        ("ls", {"path": "/secrets"}, "/secrets/.env"),
        ("glob", {"pattern": "*.txt", "path": "/secrets"}, "/secrets/key.txt"),
        ("grep", {"pattern": "word", "path": "/secrets"}, "/secrets/.env"),
    ],
)
def test_a_call_waits_for_a_person_and_then_does_its_work(
    call_mode: CallMode, place: dict[str, Any], tool: str, arguments: dict[str, Any], shown: str
) -> None:
    with ScriptedModel(call(tool, **arguments), "Done.") as model:
        agent = asking(model, place)
        waiting = call_mode.invoke(agent, {"messages": "Go", **place["given"]}, THREAD)
        asked = waiting["__interrupt__"][0].value
        done = call_mode.invoke(agent, decide("approve"), THREAD)

    assert asked["action_requests"][0]["name"] == tool
    assert asked["review_configs"][0]["allowed_decisions"] == ["approve", "edit", "reject", "respond"]
    assert not answers(waiting)
    assert shown in answers(done)[0].text


def test_looking_around_from_above_asks_nobody_and_says_what_it_left_out(place: dict[str, Any]) -> None:
    around = (
        ("ls", {"path": "/"}),
        ("glob", {"pattern": "**/*"}),
        ("grep", {"pattern": "word", "output_mode": "content"}),
        ("read_file", {"file_path": "/open/a.txt"}),
    )
    with ScriptedModel(calls(*around), "Done.") as model:
        result = asking(model, place).invoke({"messages": "Go", **place["given"]}, THREAD)

    listed, found, lines, read = answers(result)
    assert "/open/" in listed.text
    assert "left out" not in read.text
    for each in (found, lines):
        assert "/open/a.txt" in each.text
        assert "left out, because it needs approval: /secrets/**; name the directory" in each.text
        assert "hunter2" not in each.text
        assert "/secrets/key" not in each.text


def test_a_rejected_call_does_nothing_and_an_edited_one_is_held_to_what_is_denied(
    place: dict[str, Any],
) -> None:
    def write(path: str) -> dict[str, Any]:
        return {"name": "write_file", "args": {"file_path": path, "content": "x"}}

    asks = call("write_file", file_path="/secrets/new.txt", content="x")
    for decision, said in (
        ({"type": "reject"}, "rejected"),
        ({"type": "edit", "edited_action": write("/vault/x")}, "permission denied for write on /vault/x"),
        ({"type": "edit", "edited_action": write("/secrets/other.txt")}, "Created file /secrets/other.txt"),
    ):
        with ScriptedModel(asks, "Done.") as model:
            agent = asking(model, place, permissions=[rule("/vault/**"), ASK])
            agent.invoke({"messages": "Go", **place["given"]}, THREAD)
            done = agent.invoke(Command(resume={"decisions": [decision]}), THREAD)
        assert said in answers(done)[0].text


def test_what_is_denied_is_refused_without_asking(place: dict[str, Any]) -> None:
    with ScriptedModel(call("read_file", file_path="/secrets/key.txt"), "Done.") as model:
        agent = asking(model, place, permissions=[SECRET, ASK])
        result = agent.invoke({"messages": "Go", **place["given"]}, THREAD)

    assert answers(result)[0].additional_kwargs["error_code"] == "permission_denied"


def test_a_link_asks_about_where_it_leads_and_is_approved_for_that_alone(tmp_path: Path) -> None:
    place = {"given": {}, "backend": disk(tmp_path)}
    link, other = tmp_path / "link", rule("/vault/**", mode="interrupt")
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault/gold").write_text("gold")
    for turned_to, shown in ((None, "hunter2"), ("vault/gold", "permission denied"), ("open/a.txt", "open")):
        link.unlink(missing_ok=True)
        link.symlink_to("secrets/key.txt")
        with ScriptedModel(call("read_file", file_path="/link"), "Done.") as model:
            agent = asking(model, place, permissions=[ASK, other])
            assert agent.invoke({"messages": "Go"}, THREAD)["__interrupt__"]
            if turned_to:
                link.unlink()
                link.symlink_to(turned_to)
            done = agent.invoke(decide("approve"), THREAD)
        assert shown in answers(done)[0].text
        assert "gold" not in answers(done)[0].text


def test_a_link_turned_while_a_person_thinks_does_not_run_what_was_rejected(tmp_path: Path) -> None:
    place = {"given": {}, "backend": disk(tmp_path)}
    (tmp_path / "link").symlink_to("secrets/key.txt")
    with ScriptedModel(call("write_file", file_path="/link", content="x"), "Done.") as model:
        agent = asking(model, place)
        assert agent.invoke({"messages": "Go"}, THREAD)["__interrupt__"]
        (tmp_path / "link").unlink()
        (tmp_path / "link").symlink_to("open/a.txt")
        done = agent.invoke(decide("reject"), THREAD)

    assert "rejected" in answers(done)[0].text
    assert (tmp_path / "open/a.txt").read_text() == FILES["/open/a.txt"]


def test_a_callers_condition_and_the_rules_are_both_heard(place: dict[str, Any]) -> None:
    own: Any = {
        "allowed_decisions": ["approve"],
        "when": lambda request: request.tool_call["args"]["file_path"] == "/open/a.txt",
    }
    both = calls(*(("read_file", {"file_path": each}) for each in ("/open/a.txt", "/secrets/.env", "/z")))
    with ScriptedModel(both) as model:
        agent = asking(model, place, interrupt_on={"read_file": own})
        asked = agent.invoke({"messages": "Go", **place["given"]}, THREAD)["__interrupt__"][0].value

    assert [each["args"]["file_path"] for each in asked["action_requests"]] == [
        "/open/a.txt",
        "/secrets/.env",
    ]


def test_false_for_a_tool_lifts_no_rule(place: dict[str, Any]) -> None:
    both = calls(*(("read_file", {"file_path": each}) for each in ("/open/a.txt", "/secrets/.env")))
    with ScriptedModel(both) as model:
        agent = asking(model, place, interrupt_on={"read_file": False})
        asked = agent.invoke({"messages": "Go", **place["given"]}, THREAD)["__interrupt__"][0].value

    assert [each["args"]["file_path"] for each in asked["action_requests"]] == ["/secrets/.env"]


def worker(model: ScriptedModel, **more: Any) -> Any:
    return {"name": "helper", "description": "helps", "model": model, **more}


TASK = call("task", description="Read", subagent_type="helper")
READ = call("read_file", file_path="/secrets/key.txt")


OWN_RULES: Any = [None, [], [rule("/other/**")]]
INHERITED: Any = [({}, False), *(({"permissions": own}, True) for own in OWN_RULES)]


def test_subagents_inherit_rules_and_their_own_replace_them(place: dict[str, Any]) -> None:
    options = {key: value for key, value in place.items() if key != "given"}
    for more, allowed in INHERITED:
        with ScriptedModel(READ, "Read it.") as helper, ScriptedModel(TASK, "Done.") as model:
            agent = create_deep_agent(
                model, permissions=[SECRET], subagents=[worker(helper, **more)], **options
            )
            agent.invoke({"messages": "Go", **place["given"]})
        assert ("hunter2" in helper.asked[-1].messages[-1].text) is allowed


@pytest.mark.filterwarnings("ignore::langchain_core._api.beta_decorator.LangChainBetaWarning")
@pytest.mark.parametrize("given", [{}, {"tools": []}])
def test_rules_of_middleware_that_do_not_bind_a_subagent_on_the_same_files_are_said(
    given: dict[str, Any], tmp_path: Path
) -> None:
    rules = [FilesystemPermission(operations=["read"], paths=["/secret"], mode="deny")]
    spec: Any = {"name": "child", "description": "d", **given}
    forked: Any = {**spec, "mode": "fork"}
    free: Any = {**spec, "permissions": []}
    elsewhere = FilesystemMiddleware(backend=FilesystemBackend(root_dir=tmp_path), permissions=rules)
    here: Any = {"middleware": [FilesystemMiddleware(permissions=rules)]}

    with pytest.warns(match="FilesystemMiddleware do not bind subagent 'child'.*permissions="):
        create_deep_agent(ScriptedModel(), subagents=[spec], **here)
    create_deep_agent(ScriptedModel(), subagents=[spec], middleware=[elsewhere])
    create_deep_agent(ScriptedModel(), subagents=[spec], permissions=rules, **here)
    create_deep_agent(ScriptedModel(), subagents=[free], **here)
    create_deep_agent(ScriptedModel(), subagents=[forked], **here)


def test_the_general_purpose_agent_inherits_rules_and_asks(place: dict[str, Any]) -> None:
    task = call("task", description="Read", subagent_type="general-purpose")
    with ScriptedModel(task, READ, "Read it.", "Done.") as model:
        agent = asking(model, place)
        waiting = agent.invoke({"messages": "Go", **place["given"]}, THREAD)
        agent.invoke(decide("approve"), THREAD)

    assert waiting["__interrupt__"][0].value["action_requests"][0]["name"] == "read_file"
    assert "hunter2" in model.asked[2].messages[-1].text


def test_a_declared_subagent_asks_for_rules_of_its_own(place: dict[str, Any]) -> None:
    with ScriptedModel(READ, "Read it.") as helper, ScriptedModel(TASK, "Done.") as model:
        agent = asking(model, place, permissions=None, subagents=[worker(helper, permissions=[ASK])])
        assert agent.invoke({"messages": "Go", **place["given"]}, THREAD)["__interrupt__"]
        agent.invoke(decide("approve"), THREAD)

    assert "hunter2" in helper.asked[-1].messages[-1].text


def test_rules_that_commands_would_go_round_are_refused_while_building(tmp_path: Path) -> None:
    shell = LocalShellBackend(root_dir=tmp_path)
    for rules in ([SECRET], [ASK], [rule("/open/**", mode="allow"), rule("/secrets/key.txt")]):
        with pytest.raises(UnenforceableRule, match="'/secrets/.*execute.*tools=") as refused:
            create_deep_agent(ScriptedModel(), backend=shell, permissions=rules)
        assert isinstance(refused.value, (ConfigError, NotImplementedError))
    with pytest.raises(NotImplementedError, match="execute"):
        create_deep_agent(
            ScriptedModel(), backend=shell, subagents=[worker(ScriptedModel(), permissions=[SECRET])]
        )
    assert create_deep_agent(
        ScriptedModel(), backend=shell, permissions=[rule("/**", mode="allow")], subagents=[]
    )


def test_rules_hold_on_a_shell_backend_whose_commands_are_left_out(tmp_path: Path) -> None:
    disk(tmp_path)
    shell = LocalShellBackend(root_dir=tmp_path)
    files = FilesystemMiddleware(backend=shell, tools=["read_file", "ls"])
    with ScriptedModel(READ, "Done.") as model:
        agent = create_deep_agent(model, backend=shell, permissions=[SECRET], middleware=[files])
        result = agent.invoke({"messages": "Go"})

    assert answers(result)[0].additional_kwargs["error_code"] == "permission_denied"
    assert files.permissions == ()


@pytest.mark.filterwarnings("ignore:A backend factory:DeprecationWarning")
def test_with_a_factory_commands_are_hidden_and_refused(tmp_path: Path) -> None:
    with ScriptedModel(call("execute", command="cat secrets/key.txt"), "Done.") as model:
        agent = create_deep_agent(
            model, backend=lambda _: LocalShellBackend(root_dir=tmp_path), permissions=[SECRET]
        )
        result = agent.invoke({"messages": "Go"})

    assert answers(result)[0].additional_kwargs["error_code"] == "permission_denied"
    assert "execute" not in model.asked[0].tool_names


def test_a_backend_may_ask_a_person_whether_commands_reach_a_path(tmp_path: Path) -> None:
    class Asking(LocalShellBackend):
        def capabilities(self, path: str = "/") -> Capabilities:
            exposed = path != "/" and interrupt("Do commands reach it?") == "yes"
            return replace(super().capabilities(path), exposed=exposed)

    with ScriptedModel(call("execute", command="echo done"), "Done.") as model:
        agent = create_deep_agent(
            model, backend=Asking(tmp_path), permissions=[SECRET], checkpointer=InMemorySaver()
        )
        result = agent.invoke({"messages": "Go"}, THREAD)
        while result.get("__interrupt__"):
            result = agent.invoke(Command(resume="no"), THREAD)

    assert answers(result)[0].text.startswith("done")


def test_alone_a_rule_that_asks_refuses_until_somebody_is_set_up_to_be_asked() -> None:
    files: Any = {path: {"content": text} for path, text in FILES.items()}
    for asks in (False, True):
        with ScriptedModel(READ, "Done.") as model:
            own = FilesystemMiddleware(permissions=[ASK])
            stack: list[Any] = [own, own.approval({"write_file": True})] if asks else [own]
            agent: Any = create_agent(model, middleware=stack, checkpointer=InMemorySaver())
            result = agent.invoke({"messages": "Go", "files": files}, THREAD)
            if asks:
                assert result["__interrupt__"]
                result = agent.invoke(decide("approve"), THREAD)
        assert ("hunter2" if asks else "Add FilesystemMiddleware.approval()") in answers(result)[0].text


def test_rules_of_a_replacing_middleware_ask_too() -> None:
    with ScriptedModel(READ) as model:
        files = FilesystemMiddleware(permissions=[ASK])
        agent = create_deep_agent(model, middleware=[files], checkpointer=InMemorySaver())
        assert agent.invoke({"messages": "Go"}, THREAD)["__interrupt__"]


def test_two_lists_of_rules_must_agree() -> None:
    files = FilesystemMiddleware(permissions=[SECRET])

    assert create_deep_agent(ScriptedModel(), permissions=[rule("/secrets/**")], middleware=[files])
    with pytest.raises(ConfigError, match="two lists of permissions"):
        create_deep_agent(ScriptedModel(), permissions=[ASK], middleware=[files])


def test_the_older_name_warns_and_both_names_are_refused() -> None:
    with pytest.warns(DeprecationWarning, match="_permissions"):
        assert FilesystemMiddleware(_permissions=[SECRET]).permissions == (SECRET,)
    with pytest.raises(ValueError, match="give permissions alone"):
        FilesystemMiddleware(_permissions=[SECRET], permissions=[SECRET])


def test_an_evicted_result_is_not_advertised_where_it_may_not_be_read() -> None:
    def much() -> str:
        """Say much."""
        return "word " * 100_000

    for rules, advice in (([], "Read it in parts"), ([rule("/large_tool_results/**")], "Ask for less")):
        with ScriptedModel(call("much"), "Done.") as model:
            result = create_deep_agent(model, tools=[much], permissions=rules).invoke({"messages": "Go"})
        assert advice in answers(result)[0].text
