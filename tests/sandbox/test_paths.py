"""A file has one name: a path that a file tool shows works in a command, and the other way round."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from deepagents import FilesystemMiddleware, FilesystemPermission, create_deep_agent
from deepagents.backends import (
    CompositeBackend,
    FilesystemBackend,
    LocalSandbox,
    LocalShellBackend,
    StateBackend,
)
from deepagents.testing import ScriptedModel, call, calls

Make: TypeAlias = Callable[[Path], Any]
THREAD: Any = {"configurable": {"thread_id": "1"}}
CONFINED = pytest.mark.skipif(LocalSandbox.available() is not None, reason=str(LocalSandbox.available()))
BACKENDS: dict[str, Make] = {
    "shell": LocalShellBackend,
    "shell without a root": lambda root: LocalShellBackend(root, virtual_mode=False),
    "shell in a tree": lambda root: CompositeBackend(LocalShellBackend(root), {"/memories": StateBackend()}),
    "sandbox": LocalSandbox,
}


@pytest.fixture(params=[pytest.param(name, marks=CONFINED if name == "sandbox" else ()) for name in BACKENDS])
def backend(request: pytest.FixtureRequest, work: Path) -> Any:
    """A backend that runs commands in the directory."""
    return BACKENDS[request.param](work)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A project with two files."""
    root = tmp_path / "work"
    (root / "src").mkdir(parents=True)
    (root / "src/main.py").write_text("print('hello')\n")
    (root / "notes.txt").write_text("hello too\n")
    return root.resolve()


def told(backend: Any, *tried: tuple[str, dict[str, Any]], **options: Any) -> tuple[list[str], ScriptedModel]:
    """Let a model make calls one after the other, and return what it reads of each."""
    with ScriptedModel(*(call(name, **arguments) for name, arguments in tried), "Done.") as model:
        agent = create_deep_agent(model, backend=backend, **options)
        result = agent.invoke({"messages": "Go"})
    return [message.text for message in result["messages"] if message.type == "tool"], model


def test_every_path_that_a_file_tool_shows_works_in_a_command(backend: Any, work: Path) -> None:
    shown, _ = told(
        backend,
        ("ls", {"path": f"{work}/src"}),
        ("glob", {"pattern": "*.txt"}),
        ("glob", {"pattern": f"{work}/**/*.py"}),
        ("grep", {"pattern": "hello"}),
        ("grep", {"pattern": "hello", "path": str(work), "glob": "*.py", "output_mode": "content"}),
        ("write_file", {"file_path": f"{work}/new.txt", "content": "new"}),
        ("edit_file", {"file_path": f"{work}/new.txt", "old_string": "new", "new_string": "newer"}),
        ("read_file", {"file_path": f"{work}/gone.txt"}),
        ("execute", {"command": f"cat {work}/src/main.py {work}/new.txt; pwd"}),
        ("delete", {"file_path": f"{work}/new.txt"}),
    )

    main, notes, new = f"{work}/src/main.py", f"{work}/notes.txt", f"{work}/new.txt"
    assert shown[0].startswith(main)
    assert shown[1] == notes
    assert shown[2] == main
    assert shown[3].split("\n") == [notes, main]
    assert shown[4].startswith(main)
    assert shown[5] == f"Created file {new}"
    assert shown[6].endswith(f"in '{new}'")
    assert f"{work}/gone.txt" in shown[7]
    assert f"hello')\nnewer{work}\n" in shown[8]
    assert shown[9] == f"Deleted {new}"
    assert not (work / str(work).strip("/")).exists()


def test_the_model_is_told_where_commands_start(backend: Any, work: Path) -> None:
    _, model = told(backend)

    assert f"Commands start in {work}, where your files are." in model.asked[0].system


def test_paths_of_the_backend_itself_still_work(work: Path) -> None:
    shown, _ = told(
        LocalShellBackend(work),
        ("read_file", {"file_path": "/notes.txt"}),
        ("ls", {"path": "/"}),
        ("write_file", {"file_path": "/src/new.py", "content": "x"}),
        ("grep", {"pattern": "hello", "path": "/src"}),
        ("read_file", {"file_path": "/gone.txt"}),
    )

    assert "hello too" in shown[0]
    assert [line.split("  ")[0] for line in shown[1].split("\n")] == [f"{work}/notes.txt", f"{work}/src/"]
    assert shown[2] == f"Created file {work}/src/new.py"
    assert shown[3] == f"{work}/src/main.py"
    assert f"{work}/gone.txt" in shown[4]
    assert (work / "src/new.py").read_text() == "x"


def test_both_names_are_one_file_for_what_was_read_before(work: Path) -> None:
    with ScriptedModel(
        call("read_file", file_path="/notes.txt"),
        "Read.",
        call("write_file", file_path=f"{work}/notes.txt", content="mine"),
        "Done.",
    ) as model:
        agent: Any = create_deep_agent(model, backend=LocalShellBackend(work), checkpointer=InMemorySaver())
        agent.invoke({"messages": "Go"}, THREAD)
        (work / "notes.txt").write_text("changed by somebody\n")
        result = agent.invoke({"messages": "Go"}, THREAD)

    assert "stale_version" in result["messages"][-2].text
    assert (work / "notes.txt").read_text() == "changed by somebody\n"


def test_two_changes_of_one_file_under_two_names_do_not_run_at_once(work: Path) -> None:
    both = calls(
        ("write_file", {"file_path": "/one.txt", "content": "1"}),
        ("write_file", {"file_path": f"{work}/one.txt", "content": "2"}),
    )
    with ScriptedModel(both, "Done.") as model:
        result = create_deep_agent(model, backend=LocalShellBackend(work)).invoke({"messages": "Go"})

    assert sum("parallel_mutation" in each.text for each in result["messages"] if each.type == "tool") == 1


def test_a_large_result_is_where_the_notice_says(work: Path) -> None:
    shown, model = told(LocalShellBackend(work), ("execute", {"command": "yes | head -c 99000"}))
    path = shown[0].partition("saved to the file ")[2].split("\n")[0]

    assert path.startswith(f"{work}/large_tool_results/")
    assert Path(path).read_text().startswith("y\ny\n")
    assert model.asked[1].messages[-1].text == shown[0]


def test_what_commands_do_not_see_keeps_its_name(work: Path) -> None:
    tree = CompositeBackend(LocalShellBackend(work), {"/memories": StateBackend()})
    (work / "memories").mkdir()
    (work / "memories/a.md").write_text("of the disk")
    shown, model = told(
        tree,
        ("write_file", {"file_path": "/memories/a.md", "content": "of the state"}),
        ("ls", {"path": "/"}),
        ("grep", {"pattern": "of the"}),
        ("read_file", {"file_path": f"{work}/memories/a.md"}),
        ("write_file", {"file_path": f"{work}/memories/a.md", "content": "x"}),
    )

    assert shown[0] == "Created file /memories/a.md"
    assert "/memories/" in shown[1].split("\n")
    assert f"{work}/notes.txt" in shown[1]
    assert shown[2] == "/memories/a.md"
    # Another file is there for commands than for the file tools, so neither may stand for the other.
    assert all("Commands alone reach" in each for each in shown[3:])
    assert "Commands do not find what is below /memories/" in model.asked[0].system


def test_rules_are_asked_about_the_path_of_the_backend_whatever_the_model_writes(work: Path) -> None:
    tree = CompositeBackend(LocalShellBackend(work), {"/law": StateBackend()})
    rules = [FilesystemPermission(["read", "write"], ["/law/**"], "interrupt")]
    named = call("write_file", file_path="/law/../law/one", content="x")
    read = call("read_file", file_path="//law/./one")
    with ScriptedModel(named, read) as model:
        agent: Any = create_deep_agent(model, backend=tree, permissions=rules, checkpointer=InMemorySaver())
        result = agent.invoke({"messages": "Go"}, THREAD)

    assert result["__interrupt__"][0].value["action_requests"][0]["name"] == "read_file"


def test_a_person_is_asked_about_the_file_that_is_then_changed(work: Path) -> None:
    with ScriptedModel(call("write_file", file_path=f"{work}/notes.txt", content="mine"), "Done.") as model:
        agent: Any = create_deep_agent(
            model,
            backend=LocalShellBackend(work),
            interrupt_on={"write_file": True},
            checkpointer=InMemorySaver(),
        )
        agent.invoke({"messages": "Go"}, THREAD)
        (work / "notes.txt").write_text("changed meanwhile\n")
        result = agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), THREAD)

    assert "changed while a person was asked" in result["messages"][-2].text
    assert (work / "notes.txt").read_text() == "changed meanwhile\n"


@pytest.mark.parametrize("make", [FilesystemBackend, LocalShellBackend])
def test_where_the_model_runs_no_commands_it_need_not_know_where_files_are(make: Make, work: Path) -> None:
    files = FilesystemMiddleware(backend=make(work), tools=["ls", "read_file"])
    shown, model = told(make(work), ("ls", {"path": "/src"}), middleware=[files])

    assert shown[0].startswith("/src/main.py")
    assert str(work) not in str(model.asked)
