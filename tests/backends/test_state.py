"""Files in graph state: what only this backend promises."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from typing import Any

import pytest
from langgraph.graph import START, StateGraph
from langgraph.types import Send

from deepagents.backends.filedata import file_data_to_string
from deepagents.backends.state import StateBackend
from deepagents.middleware.filesystem.state import FilesystemState

Work = Callable[[StateBackend], Any]


def graph_of(*work: Work) -> Any:
    """Make a graph that does each piece of work in a task of its own, all at the same time."""

    def node(task: dict[str, int]) -> dict[str, Any]:
        work[task["at"]](StateBackend())
        return {}

    def start(state: FilesystemState) -> list[Send]:
        return [Send("work", {"at": at}) for at in range(len(work))]

    graph: Any = StateGraph(FilesystemState)
    return graph.add_node("work", node).add_conditional_edges(START, start).compile()


def after(given: dict[str, Any], *work: Work) -> dict[str, Any]:
    """Return the files after some work at the same time."""
    return graph_of(*work).invoke({"messages": [], "files": given})["files"]


def contents(files: dict[str, Any]) -> dict[str, str]:
    return {path: data["content"] for path, data in files.items()}


def text(content: str) -> dict[str, Any]:
    return {"content": content, "encoding": "utf-8", "created_at": "then", "modified_at": "then"}


def seen(given: dict[str, Any], look: Work) -> Any:
    """Return what some work returns."""
    found: list[Any] = []
    after(given, lambda files: found.append(look(files)))
    return found[0]


def test_outside_a_run_there_are_no_files() -> None:
    files = StateBackend()
    work: list[Callable[[], Any]] = [
        lambda: files.ls("/"),
        lambda: files.write("/a", "x"),
        lambda: files.upload_files([("/a", b"x")]),
        lambda: files.download_files(["/a"]),
    ]
    for attempt in work:
        with pytest.raises(RuntimeError, match="inside a LangGraph graph execution"):
            attempt()
    with pytest.raises(RuntimeError, match="invoke"):
        files.read("/a")


def test_the_plain_form_warns_of_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        capable = StateBackend().capabilities()
    assert (capable.delete, capable.versions, capable.state_files, capable.execute) == (
        True,
        True,
        True,
        False,
    )


def test_nobody_changes_what_all_backends_can_do() -> None:
    capable: Any = StateBackend().capabilities()

    with pytest.raises(FrozenInstanceError):
        capable.delete = False


def test_files_may_be_given_with_the_run() -> None:
    given = {"/new": text("a\n"), "/old": {"content": ["b", "c"]}, "/plain": "d"}

    assert seen(given, lambda files: [files.read(path).file_data for path in given]) == [
        text("a\n"),
        {"content": "b\nc", "encoding": "utf-8"},
        {"content": "d", "encoding": "utf-8"},
    ]


def test_a_file_knows_when_it_was_made() -> None:
    files = after(
        {"/a": text("x"), "/c": text("x")},
        lambda files: files.write("/a", "y"),
        lambda files: files.upload_files([("/b", b"z"), ("/c", b"z")]),
    )

    assert files["/a"]["created_at"] == files["/c"]["created_at"] == "then"
    assert files["/a"]["modified_at"] > "2"
    assert files["/b"]["created_at"] == files["/b"]["modified_at"]
    assert files["/a"].keys() == text("").keys()


def test_a_task_sees_its_own_changes() -> None:
    def work(files: StateBackend) -> None:
        files.write("/a", "one\n")
        files.edit("/a", "one", "two")
        files.edit("/a", "two", "three")
        files.write("/b", "gone")
        files.delete("/b")
        files.write("/a", f"{file_data_to_string(files.read('/a').file_data or {})}four\n")

    assert contents(after({}, work)) == {"/a": "three\nfour\n"}


def test_parallel_edits_of_one_file_all_land() -> None:
    edits: list[Work] = [lambda files, n=n: files.edit("/a", f"line {n}\n", f"done {n}\n") for n in range(10)]
    before = "".join(f"line {n}\n" for n in range(10))

    assert contents(after({"/a": text(before)}, *edits)) == {"/a": before.replace("line", "done")}


def test_parallel_writes_of_one_file_are_merged() -> None:
    files = after(
        {"/a": text("a\nb\nc\n")},
        lambda files: files.write("/a", "A\nb\nc\n"),
        lambda files: files.write("/a", "a\nb\nC\n"),
    )
    assert contents(files) == {"/a": "A\nb\nC\n"}


def test_parallel_writes_that_clash_keep_both() -> None:
    files = after({}, lambda files: files.write("/a", "mine\n"), lambda files: files.write("/a", "yours\n"))
    assert contents(files) == {"/a": "<<<<<<< current\nmine\n=======\nyours\n>>>>>>> incoming\n"}


def test_a_change_outlives_a_deletion_at_the_same_time() -> None:
    def delete(files: StateBackend) -> None:
        files.delete("/d")

    def change(files: StateBackend) -> None:
        files.write("/d/a", "new")

    given = {"/d/a": text("old"), "/d/b": text("b")}

    assert contents(after(given, change, delete)) == contents(after(given, delete, change)) == {"/d/a": "new"}


def test_a_very_large_file_is_not_merged_but_replaced() -> None:
    files = after(
        {"/a": text("x\n" * 100_000)},
        lambda files: files.write("/a", "y\n" + "x\n" * 99_999),
        lambda files: files.write("/a", "x\n" * 99_999 + "y\n"),
    )
    assert contents(files) == {"/a": "x\n" * 99_999 + "y\n"}


def test_content_of_a_wrong_type_spoils_nothing_else() -> None:
    bad: dict[str, Any] = {"content": 5}

    def work(files: StateBackend) -> Any:
        found = files.grep("good")
        assert found.code == "io_error"
        assert "/bad" in (found.error or "")
        assert [match["path"] for match in found.matches or []] == ["/good"]
        listed, globbed = files.ls("/"), files.glob("*")
        assert listed.code == globbed.code == "io_error"
        assert [entry["path"] for entry in listed.entries or []] == ["/good"]
        assert [match["path"] for match in globbed.matches or []] == ["/good"]
        assert files.read("/bad").code == files.edit("/bad", "a", "b").code == "io_error"
        assert files.download_files(["/bad"])[0].error
        assert files.write("/bad", "x", expected_version="v").code == "stale_version"
        return True

    assert seen({"/bad": bad, "/good": text("good")}, work)
    assert contents(after({"/bad": bad}, lambda files: files.write("/bad", "fine"))) == {"/bad": "fine"}
    assert after({"/bad": bad}, lambda files: files.delete("/bad")) == {}


def test_bad_base64_is_told_when_downloaded() -> None:
    given = {"/a": {"content": "@", "encoding": "base64"}}
    assert "Error reading" in seen(given, lambda files: files.download_files(["/a"]))[0].error


def test_found_files_come_newest_first() -> None:
    given = {path: {"content": "", "modified_at": at} for path, at in [("/a", "1"), ("/b", "3"), ("/c", "2")]}
    given["/d"] = {"content": ""}

    found = seen(given, lambda files: files.glob("*"))
    assert [info["path"] for info in found.matches] == ["/b", "/c", "/a", "/d"]


def test_runs_in_many_threads_do_not_see_each_other() -> None:
    failed: list[BaseException] = []

    def run(number: int) -> None:
        def work(files: StateBackend) -> None:
            for step in range(5):
                files.write("/a", f"{number} {step}")

        try:
            assert contents(after({}, work)) == {"/a": f"{number} 4"}
        except AssertionError as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
