"""Routes are walls: no spelling crosses them, and none of them, nor what leads to one, can be deleted."""

from __future__ import annotations

from itertools import chain

import pytest

from deepagents.backends import CompositeBackend, FilesystemBackend, StateBackend
from deepagents.testing import call, calls
from tests.attacks.harness import CANARY, HINT, Ground, every_other, on_path
from tests.conftest import CallMode


@pytest.fixture
def routed(linked: Ground) -> Ground:
    """Files in state, `/disk/` and `/a/b/` on disk; what the default holds below a route is hidden."""
    deep = linked.top / "deep-root"
    deep.mkdir()
    (deep / "kept.txt").write_text("kept\n")
    linked.options["backend"] = CompositeBackend(
        default=StateBackend(),
        routes={"/disk/": FilesystemBackend(linked.root), "/a/b/": FilesystemBackend(deep)},
    )
    hidden = {"content": CANARY, "encoding": "utf-8"}
    linked.given = {"files": {"/disk/hidden.txt": hidden, "/a/b/hidden.txt": hidden}}
    linked.kept_files = linked.given["files"]
    linked.kept += [deep / "kept.txt", linked.root / "in.txt"]
    return linked


ACROSS = {
    "dot-dot to another route": "/disk/../a/b/kept.txt",
    "dot-dot out of the root of a route": "/disk/../outside/secret.txt",
    "backslashes": "/disk\\..\\outside\\secret.txt",
    "a link out of a route": "/disk/to-directory/secret.txt",
    "a link to the parent of a route": "/disk/up/outside/secret.txt",
    "a link to another route on disk": "/disk/up/deep-root/kept.txt",
    "doubled slashes": "//disk//to-directory//secret.txt",
    "a dot before a route": "/./disk/./to-directory/secret.txt",
}


HIDDEN = {
    "dot-dot out of a route": "/disk/../hidden.txt",
    "what the default hides below a route": "/disk/hidden.txt",
    "what the default hides below a deeper route": "/a/b/hidden.txt",
}


def test_no_path_crosses_a_route(routed: Ground, call_mode: CallMode) -> None:
    assert routed.run(call_mode, *on_path(*every_other(call_mode, ACROSS))).problems() == []


def test_what_the_default_hides_below_a_route_stays_hidden(routed: Ground, call_mode: CallMode) -> None:
    routed.harmless |= {"write_file", "delete"}

    assert routed.run(call_mode, *on_path(*HIDDEN.values())).problems() == []


NOT_TO_DELETE = {
    "the root": "/",
    "the root doubled": "//",
    "the root with a dot": "/.",
    "a route": "/disk",
    "a route with a slash": "/disk/",
    "a route with a dot": "/disk/.",
    "a route with doubled slashes": "//disk//",
    "a deeper route": "/a/b",
    "what leads to a route": "/a",
    "what leads to a route, with a slash": "/a/",
    "a route by backslashes": "\\disk\\",
}


def test_neither_a_route_nor_what_leads_to_one_is_deleted(routed: Ground, call_mode: CallMode) -> None:
    attempts = [
        (call("delete", file_path=path), call("write_file", file_path=path, content="x"))
        for path in every_other(call_mode, NOT_TO_DELETE)
    ]
    run = routed.run(call_mode, *chain(*attempts))

    assert [each for each in run.problems() if "write_file" not in each] == []
    assert (routed.root / "in.txt").exists()


def test_a_name_that_begins_like_a_route_is_another_place(routed: Ground, call_mode: CallMode) -> None:
    routed.harmless |= {"write_file", "delete", "read_file"}
    run = routed.run(
        call_mode,
        call("write_file", file_path="/disk2/in.txt", content="mine"),
        call("delete", file_path="/disk2"),
        call("write_file", file_path="/Disk/in.txt", content="mine"),
    )

    assert run.problems() == []


def test_no_search_crosses_a_route(routed: Ground, call_mode: CallMode) -> None:
    run = routed.run(
        call_mode,
        calls(
            ("ls", {"path": "/"}),
            ("ls", {"path": "/disk"}),
            ("ls", {"path": "/a/b"}),
            ("glob", {"pattern": "**/*"}),
            ("glob", {"pattern": "/disk/**"}),
            ("glob", {"pattern": "/disk/to-directory/*"}),
            ("glob", {"pattern": "*", "path": "/a"}),
            ("grep", {"pattern": HINT, "output_mode": "content"}),
            ("grep", {"pattern": HINT, "path": "/disk", "output_mode": "count"}),
            ("grep", {"pattern": HINT, "glob": "/disk/**"}),
        ),
    )

    assert run.problems() == []
    assert "hidden.txt" not in "".join(answer.text for answer in run.answers)


def test_the_error_of_a_route_tells_no_real_path(routed: Ground, call_mode: CallMode) -> None:
    gone = routed.top / "gone"
    routed.options["backend"] = CompositeBackend(
        default=FilesystemBackend(gone / "x"), routes={"/disk/": FilesystemBackend(gone)}
    )
    gone.write_text("a file")
    routed.given, routed.kept_files = {}, {}

    assert routed.run(call_mode, *on_path("/disk/in.txt"), *on_path("/in.txt")).problems() == []
