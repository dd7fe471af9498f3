"""What a model reads of a call that failed shows what to do next."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from threading import Event
from typing import Any, cast

import pytest
from langchain.tools import ToolRuntime
from langchain.tools import tool as langchain_tool
from langchain_core.messages import AIMessage, InvalidToolCall, ToolMessage

from deepagents import FilesystemPermission, HarnessProfile, create_deep_agent, register_harness_profile
from deepagents.backends import FilesystemBackend, LocalShellBackend, StateBackend
from deepagents.backends.protocol import GlobResult, LsResult
from deepagents.middleware.filesystem import FilesystemMiddleware
from deepagents.middleware.tool_exclusion import ToolExclusionMiddleware
from deepagents.testing import ScriptedModel, call
from tests.conftest import CallMode
from tests.tools.bench import Bench


def test_a_file_elsewhere_of_the_same_name_is_named(bench: Bench) -> None:
    bench.place("/src/a.py", "x")
    bench.place("/b/a.py", "x")

    for tool, more in (("read_file", {}), ("edit_file", {"old_string": "x", "new_string": "y"})):
        text = bench.use(tool, file_path="/workspace/src/a.py", **more).text
        assert "'/workspace/src/a.py' not found. There is '/src/a.py', '/b/a.py'. [" in text


def test_a_name_that_is_near_is_named(bench: Bench) -> None:
    bench.place("/src/settings.py", "x")

    assert "Near it in name: '/src/settings.py'." in bench.use("read_file", file_path="/src/setings.py").text


def test_a_long_directory_makes_no_names_alike(bench: Bench) -> None:
    bench.place("/packages/component/source/settings.py", "x")

    told = bench.use("read_file", file_path="/packages/component/source/zoo.txt").text
    assert "In '/packages/component/source': '/packages/component/source/settings.py'." in told


@pytest.mark.parametrize("bench", [("disk", "sync"), ("disk", "async")], indirect=True)
def test_what_is_there_is_named_where_a_directory_is_not(bench: Bench) -> None:
    bench.place("/src/a.py", "x")
    missing = "Path '/workspace' does not exist. In '/': '/src/'."

    assert "'/workspace': path_not_found. In '/': '/src/'. [" in bench.use("ls", path="/workspace").text
    assert missing in bench.use("grep", pattern="x", path="/workspace").text
    assert missing in bench.use("glob", pattern="*.py", path="/workspace").text


def test_a_file_that_is_to_be_made_names_the_tool_that_makes_it(bench: Bench) -> None:
    text = bench.use("read_file", file_path="/hello.py").text
    assert "'/hello.py' not found. It does not exist yet; write_file creates it." in text


def _read(path: str, root: Path, *rules: FilesystemPermission) -> str:
    model = ScriptedModel(call("read_file", file_path=path), "Done.")
    backend = FilesystemBackend(root_dir=root, virtual_mode=True)
    agent = create_deep_agent(model, backend=backend, permissions=list(rules))
    return agent.invoke({"messages": "Read."})["messages"][-2].text


def test_no_sentence_names_what_rules_deny(tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key.txt").write_text("x")
    hidden = FilesystemPermission(operations=["read"], paths=["/secret", "/secret/**"], mode="deny")
    no_writing = FilesystemPermission(operations=["write"], paths=["/**"], mode="deny")

    assert "There is '/secret/key.txt'." in _read("/key.txt", tmp_path)
    assert "secret" not in _read("/key.txt", tmp_path, hidden)
    assert "write_file" not in _read("/new.txt", tmp_path, no_writing)


def test_a_write_shows_what_it_took_away_unread(tmp_path: Path, call_mode: CallMode) -> None:
    (tmp_path / "package.json").write_text('{\n  "name": "web",\n  "version": "0.4.1"\n}\n')
    (tmp_path / "read.txt").write_text("old\n")
    (tmp_path / "blob").write_bytes(b"\0\1")
    (tmp_path / "long.txt").write_text("".join(f"{number}\n" for number in range(40)))
    model = ScriptedModel(
        call("write_file", file_path="/package.json", content='{\n  "version": "0.5.0"\n}\n'),
        call("read_file", file_path="/read.txt"),
        call("write_file", file_path="/read.txt", content="new\n"),
        call("write_file", file_path="/blob", content="text"),
        call("write_file", file_path="/long.txt", content="0\n"),
        "Done.",
    )
    agent = create_deep_agent(model, backend=FilesystemBackend(root_dir=tmp_path, virtual_mode=True))
    result = call_mode.invoke(agent, {"messages": "Set the version."})
    blind, _, seen, binary, long = (each.text for each in result["messages"] if each.type == "tool")

    assert blind == (
        "Updated file /package.json. It was there and had not been read. These lines of it are gone; "
        'put back what was not meant to go:\n  "name": "web",\n  "version": "0.4.1"'
    )
    assert seen == "Updated file /read.txt"
    assert binary == "Updated file /blob"
    assert long.endswith("30\n... and 9 more")


def test_what_rules_hide_is_not_shown_by_a_write(tmp_path: Path) -> None:
    (tmp_path / "key.txt").write_text("secret\n")
    model = ScriptedModel(call("write_file", file_path="/key.txt", content="x"), "Done.")
    hidden = FilesystemPermission(operations=["read"], paths=["/key.txt"], mode="deny")
    backend = FilesystemBackend(root_dir=tmp_path, virtual_mode=True)
    agent = create_deep_agent(model, backend=backend, permissions=[hidden])

    assert agent.invoke({"messages": "Write."})["messages"][-2].text == "Updated file /key.txt"


@pytest.mark.parametrize(
    ("tool", "arguments", "unknown"),
    [("delete", {}, "pattern"), ("write_file", {"content": "new"}, "mode")],
)
def test_what_an_unknown_argument_would_have_spared_is_not_destroyed(
    bench: Bench, tool: str, arguments: dict[str, Any], unknown: str
) -> None:
    bench.place("/guests.txt", "Ada\nChidi\n")

    text = bench.use(tool, file_path="/guests.txt", **arguments, **{unknown: "Chidi"}).text
    assert f"{tool} takes no '{unknown}'; it takes file_path" in text
    assert "Chidi" in bench.use("read_file", file_path="/guests.txt").text


def test_a_write_says_whether_it_made_the_file_and_folders(tmp_path: Path, call_mode: CallMode) -> None:
    model = ScriptedModel(
        call("write_file", file_path="/workspace/src/a.py", content="1"),
        call("write_file", file_path="/workspace/src/a.py", content="2"),
        call("write_file", file_path="/workspace/b.py", content="3"),
        "Done.",
    )
    agent = create_deep_agent(model, backend=FilesystemBackend(root_dir=tmp_path, virtual_mode=True))
    told = call_mode.invoke(agent, {"messages": "Write."})["messages"]

    assert [message.text for message in told if isinstance(message, ToolMessage)] == [
        "Created file /workspace/src/a.py, in the new folder /workspace",
        "Updated file /workspace/src/a.py",
        "Created file /workspace/b.py",
    ]


@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        (
            "read_file",
            {"filename": "/a"},
            "file_path: Field required. read_file takes no 'filename'; it takes ",
        ),
        ("ls", {"path": "/", "depth": 2}, "No files found\n[ls takes no 'depth'; it takes path]"),
        ("edit_flie", {"file_path": "/a"}, "Nearest in name: edit_file"),
    ],
)
def test_misnamed_tools_and_arguments_are_told_apart(
    bench: Bench, tool: str, arguments: dict[str, Any], told: str
) -> None:
    assert told in bench.use(tool, **arguments).text


def test_an_argument_of_another_tool_that_asks_for_nothing_is_passed_over(bench: Bench) -> None:
    written = bench.use("write_file", file_path="/a.txt", content="x", replace_all=False, encoding=None)
    refused = bench.use("write_file", file_path="/b.txt", content="x", append=True)
    # An empty text may be one that is to be written.
    empty = bench.use("write_file", file_path="/b.txt", content="x", header="")

    assert written.text == "Created file /a.txt"
    assert "write_file takes no 'append'; it takes file_path, content. Nothing was done." in refused.text
    assert "write_file takes no 'header'" in empty.text


def test_arguments_that_are_injected_are_not_named(bench: Bench) -> None:
    assert "[read_todos takes no 'all'; it takes nothing]" in bench.use("read_todos", all=True).text


def test_a_repeated_look_and_a_repeated_failure_are_told(bench: Bench) -> None:
    bench.place("/a.txt", "x")
    look, other = call("read_file", file_path="/a.txt"), call("ls", path="/")

    first, second, third = bench.run(look, look, look)
    note = "\n\nNothing new. The same call was made before, and its result stands above. Answer with"
    told = f"{note} what is known, or use other arguments, or another tool: write_file, edit_file."
    assert second.text == third.text == f"{first.text}{told}"
    failed = call("read_file", file_path="/b.txt")
    assert [note in each.text for each in bench.run(failed, failed)] == [False, True]
    assert [note in each.text for each in bench.run(look, other, look)] == [False, False, True]


def test_a_look_after_a_change_is_no_repetition(bench: Bench) -> None:
    bench.place("/a.txt", "x")
    look, change = call("read_file", file_path="/a.txt"), call("write_file", file_path="/b.txt", content="y")

    assert ["Nothing new" in each.text for each in bench.run(look, change, look)] == [False] * 3


def test_a_file_that_is_written_the_same_again_is_told(bench: Bench) -> None:
    write, other = (call("write_file", file_path="/a.txt", content=each) for each in "xy")

    told = ["Nothing new" in each.text for each in bench.run(write, write, write, other, write)]
    # What is read in between may be of somebody else.
    look = call("read_file", file_path="/a.txt")
    after = ["Nothing new" in each.text for each in bench.run(write, look, write)]

    assert told == [False, False, True, False, False]
    assert after == [False] * 3


def test_a_circle_of_looks_is_noticed(bench: Bench) -> None:
    for each in "abcde":
        bench.place(f"/{each}.txt", each)
    looks = [call("read_file", file_path=f"/{each}.txt") for each in "abcde"]

    told = ["Nothing new" in each.text for each in bench.run(*looks, *looks)]

    assert told == [False] * 5 + [True] * 5


def test_a_command_is_told_that_it_brought_the_same_and_may_still_wait(bench: Bench, tmp_path: Path) -> None:
    backend = LocalShellBackend(tmp_path)
    failing, counting = (
        call("execute", command="echo no; exit 3"),
        call("execute", command="echo >> a; wc -l a"),
    )
    note = "Nothing new. The same call was made before, and its result stands above. Unless it waits for"
    told = [each.text for each in bench.run(failing, failing, failing, backend=backend)]
    assert [note in each for each in told] == [False, True, True]
    assert told[1] == told[2]
    assert told[1].startswith(told[0])
    assert [note in each.text for each in bench.run(counting, counting, backend=backend)] == [False, False]
    waiting = [call("execute", command="true"), failing] * 2
    *_, last = bench.run(*waiting, backend=backend)
    assert note in last.text


def test_a_repeated_failure_keeps_its_picture(call_mode: CallMode) -> None:
    blocks: list[str | dict[str, Any]] = [
        {"type": "text", "text": "Failed."},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
    ]

    @langchain_tool
    def look(runtime: ToolRuntime[Any, Any]) -> ToolMessage:
        """Take a picture."""
        return ToolMessage(blocks, status="error", tool_call_id=runtime.tool_call_id, name="look")

    with ScriptedModel(call("look"), call("look"), "Done.") as model:
        told = call_mode.invoke(create_deep_agent(model, tools=[look]), {"messages": "Look."})["messages"]

    assert [each.content for each in told if each.type == "tool"] == [blocks, blocks]


def test_arguments_that_are_not_json_show_where() -> None:
    broken = InvalidToolCall(
        type="invalid_tool_call", name="ls", args='{"path": "/a" "/b"}', id="1", error="not JSON"
    )
    model = ScriptedModel(AIMessage("", invalid_tool_calls=[broken]), "Done.")
    told = create_deep_agent(model).invoke({"messages": "List."})["messages"][-2].text

    assert "Expecting ',' delimiter at character 14, after '{\"path\": \"/a\" ' and before '\"/b\"}'." in told


@pytest.mark.parametrize("by", ["profile", "middleware"])
def test_no_result_names_a_tool_that_was_not_offered(by: str, tmp_path: Path, call_mode: CallMode) -> None:
    excluded = frozenset({"write_file", "grep", "glob", "execute"})
    (tmp_path / "long.txt").write_text("x" * 100_000)
    (tmp_path / "a.zip").write_bytes(b"PK\x03\x04\0\xff")
    (tmp_path / "many").mkdir()
    for number in range(1_200):
        (tmp_path / "many" / f"{number:070}").touch()
    script = [
        call("read_file", file_path="/new.py"),
        call("write_fil", file_path="/new.py"),
        call("read_file", file_path="/long.txt"),
        call("read_file", file_path="/a.zip"),
        call("ls", path="/many"),
        "Done.",
    ]
    with ScriptedModel(*script, provider="offers", model_name=by) as model:
        register_harness_profile(
            f"offers:{by}", HarnessProfile(excluded_tools=excluded if by == "profile" else frozenset())
        )
        own = [ToolExclusionMiddleware(excluded=excluded)] if by == "middleware" else []
        backend = LocalShellBackend(root_dir=tmp_path, virtual_mode=True)
        agent = create_deep_agent(model, backend=backend, middleware=own)
        result = call_mode.invoke(agent, {"messages": "Go"})

    assert excluded.isdisjoint(model.asked[0].tool_names)
    told = [each.text for each in result["messages"] if each.type == "tool"]
    parts = ["/new.py' not found", "write_fil is not a valid tool", "longer than one result may be"]
    for each, part in zip(told, [*parts, "cannot be shown", "more entries"], strict=True):
        assert part in each
        assert [name for name in excluded if re.search(rf"\b{name}\b", each)] == []


def test_the_prompt_names_no_file_tool_that_was_not_offered(call_mode: CallMode) -> None:
    script = ["Done.", "Done.", "Done."]
    with ScriptedModel(*script, provider="offers", model_name="few") as model:
        excluded = frozenset({"write_file", "grep", "glob"})
        own = [ToolExclusionMiddleware(excluded=excluded)]
        patches = [FilesystemMiddleware(edit_form="patch")]
        few = [FilesystemMiddleware(tools=["read_file"])]
        for middleware in (own, patches, few):
            call_mode.invoke(create_deep_agent(model, middleware=middleware), {"messages": "Go"})

    assert [re.findall(r"you change: (.*?)\. Call", each.system) for each in model.asked] == [
        ["ls finds things, read_file shows them; edit_file changes them"],
        ["ls, glob and grep find things, read_file shows them; write_file and apply_patch change them"],
        ["read_file shows them"],
    ]


def test_a_listed_file_names_no_tool_that_was_not_offered(call_mode: CallMode) -> None:
    with ScriptedModel(call("ls", path="/a"), "Done.") as model:
        own = [ToolExclusionMiddleware(excluded=frozenset({"read_file"}))]
        files = {"/a": {"content": "x", "encoding": "utf-8"}}
        agent = create_deep_agent(model, middleware=own)
        result = call_mode.invoke(agent, {"messages": "Go", "files": files})

    assert result["messages"][-2].text == "Error: '/a' is a file, not a directory. [not_a_directory]"


def test_a_large_result_names_no_search_that_was_not_offered(call_mode: CallMode) -> None:
    def report() -> str:
        """Return a long report."""
        return "A line.\n" * 20_000

    with ScriptedModel(call("report"), "Done.", provider="offers", model_name="no-grep") as model:
        register_harness_profile("offers:no-grep", HarnessProfile(excluded_tools=frozenset({"grep"})))
        result = call_mode.invoke(create_deep_agent(model, [report]), {"messages": "Go"})

    (told,) = [each.text for each in result["messages"] if each.type == "tool"]
    assert "Read it in parts with read_file, for example with offset=0 and limit=100." in told
    assert "grep" not in told


def test_a_missing_path_is_looked_for_with_bounded_work(tmp_path: Path, call_mode: CallMode) -> None:
    for folder in range(40):
        (tmp_path / f"f{folder}").mkdir()
        for file in range(400):
            (tmp_path / f"f{folder}" / f"{file}.txt").touch()
    looked = CountingScans()
    sys.addaudithook(looked)
    bench = Bench("disk", tmp_path, call_mode)
    with looked:
        text = bench.use("read_file", file_path="/gone.py").text

    assert "'/gone.py' not found" in text
    # 16,000 entries are there.
    assert looked.directories < 35


class CountingScans:
    """Counts the directories that are listed meanwhile; an audit hook cannot be taken out again."""

    def __init__(self) -> None:
        self.directories = 0
        self._counts = False

    def __call__(self, event: str, _: Any) -> None:
        self.directories += self._counts and event == "os.scandir"

    def __enter__(self) -> None:
        self._counts = True

    def __exit__(self, *_: object) -> None:
        self._counts = False


class Hangs(FilesystemBackend):
    """Answers no search before the end of a test, and notes which directories are listed."""

    def __init__(self, root: Path) -> None:
        super().__init__(root_dir=root, virtual_mode=True)
        self.listed: list[str] = []
        self.end = Event()

    def glob(self, pattern: str, path: str | None = None, **options: Any) -> GlobResult:
        self.end.wait(60)
        return GlobResult(matches=[])

    def ls(self, path: str, **options: Any) -> LsResult:
        self.listed.append(path)
        return super().ls(path, **options)


def test_what_is_there_instead_is_looked_for_within_one_bound_of_time(
    tmp_path: Path, call_mode: CallMode
) -> None:
    backend = Hangs(tmp_path)
    model = ScriptedModel(call("read_file", file_path="/a.py"), "Done.")
    result = call_mode.invoke(create_deep_agent(model, backend=backend), {"messages": "Go"})
    backend.end.set()

    assert "'/a.py' not found" in result["messages"][-2].text
    assert backend.listed == []


class NoSearch(StateBackend):
    """A backend of somebody else whose searches fail."""

    def glob(self, pattern: str, path: str | None = None, **options: Any) -> GlobResult:
        raise RuntimeError("no search today")

    def ls(self, path: str, **options: Any) -> LsResult:
        return LsResult(entries=[cast("Any", {"name": "odd"})])


def test_a_hint_that_fails_leaves_the_plain_result_and_no_trace(
    call_mode: CallMode, caplog: pytest.LogCaptureFixture
) -> None:
    with ScriptedModel(call("read_file", file_path="/a.py"), "Done.") as model:
        result = call_mode.invoke(create_deep_agent(model, backend=NoSearch()), {"messages": "Go"})

    assert "'/a.py' not found" in result["messages"][-2].text
    assert [each for each in caplog.records if each.exc_info] == []


def test_an_edit_that_changes_nothing_says_so(bench: Bench) -> None:
    bench.place("/a.txt", "x\n")
    told = bench.use("edit_file", file_path="/a.txt", old_string="x", new_string="x")

    assert told.status == "error"
    assert "nothing would change" in told.text
    assert "read_file shows it" in told.text


def test_two_calls_in_turn_are_told_that_they_repeat(bench: Bench) -> None:
    bench.place("/a.txt", "x")
    look, other = call("read_file", file_path="/a.txt"), call("ls", path="/")
    told = bench.run(look, other, look, other, look, other)

    assert ["Nothing new" in each.text for each in told] == [False] * 2 + [True] * 4


def test_an_archive_is_said_to_be_one(bench: Bench) -> None:
    bench.place_bytes("/a.zip", b"PK\x03\x04\0\xff" * 100)
    told = bench.use("read_file", file_path="/a.zip").text

    assert told == (
        "'/a.zip' cannot be shown: its 600 B are not UTF-8 text (application/zip). "
        "No tool here can look into it: say so, or ask for it as text."
    )


def test_a_command_that_shows_an_archive_is_named_where_commands_run(tmp_path: Path) -> None:
    (tmp_path / "my files.zip").write_bytes(b"PK\x03\x04\0\xff")
    model = ScriptedModel(call("read_file", file_path="/my files.zip"), "Done.")
    agent = create_deep_agent(model, backend=LocalShellBackend(root_dir=tmp_path, virtual_mode=True))
    told = agent.invoke({"messages": "Read."})["messages"][-2].text

    assert told.endswith(f"""by commands: call execute with "unzip -l '{tmp_path}/my files.zip'".""")


@pytest.mark.parametrize("bench", [("disk", "sync"), ("disk", "async")], indirect=True)
def test_a_file_that_is_listed_is_said_to_be_one(bench: Bench) -> None:
    bench.place("/a.txt", "x")

    told = bench.use("ls", path="/a.txt").text
    assert told == "Error: '/a.txt' is a file, not a directory. To see it call read_file. [not_a_directory]"


def test_a_rewrite_that_breaks_off_says_what_is_gone(bench: Bench) -> None:
    lines = [f"def step_{number}():\n    return {number}\n" for number in range(6)]
    whole, ended = "\n".join(lines), "\n".join(lines[:4])
    bench.place("/a.py", whole)
    told = bench.use("edit_file", file_path="/a.py", old_string=whole, new_string=ended.replace("2", "3"))

    assert told.status == "success"
    assert "The last 6 lines of old_string are gone, from 'def step_4():' on." in told.text
    bench.place("/a.py", whole)
    told = bench.use("edit_file", file_path="/a.py", old_string=whole, new_string=whole.replace("2", "3"))
    assert "gone" not in told.text
