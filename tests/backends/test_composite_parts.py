"""What each part of a composite keeps: its commands, abilities, versions, rules and age."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from deepagents import create_deep_agent
from deepagents.backends import CompositeBackend, FilesystemBackend, LocalShellBackend, StateBackend
from deepagents.backends.capabilities import Capabilities
from deepagents.backends.protocol import BackendProtocol, SandboxBackendProtocol
from deepagents.backends.results import (
    ExecuteResponse,
    FileDownloadResponse,
    FileUploadResponse,
    LsResult,
)
from deepagents.errors import AwaitableOnly
from deepagents.testing import ScriptedModel, call
from tests.backends.flat_backend import FlatBackend
from tests.backends.in_graph import in_graph
from tests.conftest import CallMode


def paths(found: Any) -> list[str]:
    assert found.error is None, found.error
    return [each["path"] for each in getattr(found, "entries", None) or getattr(found, "matches", ())]


@dataclass
class Shelf(BackendProtocol):
    """Compares by value, so it has no hash; answers short."""

    most: int = 99
    kept: dict[str, bytes] = field(default_factory=dict[str, bytes])

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        self.kept |= dict(files[: self.most])
        return [FileUploadResponse(path) for path, _ in files[: self.most]]

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        return [FileDownloadResponse(path, self.kept[path]) for path in paths[: self.most]]


def test_transfers_are_divided_and_answered_in_order(call_mode: CallMode) -> None:
    default, shelf = Shelf(), Shelf()
    composite = CompositeBackend(default, {"/s/": shelf, "/no": FlatBackend()})
    files = [("/s/b", b"1"), ("/a", b"2"), ("/../x", b"3"), ("/no/a", b"4"), ("s/a", b"5")]

    sent = call_mode.call(composite, "upload_files", files)
    back = call_mode.call(composite, "download_files", ["/a", "/s/a", "~", "/s/b"])

    assert [each.path for each in sent] == [path for path, _ in files]
    assert [each.error for each in sent[:3]] == [None, None, "invalid_path"]
    assert "upload_files" in sent[3].error
    assert sent[4].error is None
    assert (default.kept, shelf.kept) == ({"/a": b"2"}, {"/b": b"1", "/a": b"5"})
    assert [(each.path, each.content, each.error) for each in back] == [
        ("/a", b"2", None),
        ("/s/a", b"5", None),
        ("~", None, "invalid_path"),
        ("/s/b", b"1", None),
    ]


def test_a_transfer_that_is_answered_short_fails_for_the_rest(call_mode: CallMode) -> None:
    composite = CompositeBackend(Shelf(), {"/s": Shelf(most=1)})

    sent = call_mode.call(composite, "upload_files", [("/s/a", b""), ("/s/b", b""), ("/c", b"")])

    assert [each.path for each in sent] == ["/s/a", "/s/b", "/c"]
    assert [bool(each.error) for each in sent] == [False, True, False]


class Shell(SandboxBackendProtocol):
    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        return ExecuteResponse(f"{command} within {timeout}")


def untimed_execute(self: Any, command: str) -> ExecuteResponse:
    return ExecuteResponse(command)


Untimed: Any = type("Untimed", (SandboxBackendProtocol,), {"execute": untimed_execute})


def test_commands_run_on_the_default(call_mode: CallMode) -> None:
    composite = CompositeBackend(Shell(), {"/other": Untimed()})

    assert composite.capabilities().execute
    assert call_mode.call(composite, "execute", "ls", timeout=3).output == "ls within 3"
    assert call_mode.call(CompositeBackend(composite, {}), "execute", "ls").output == "ls within None"


def test_a_model_is_told_when_the_default_takes_no_timeout(call_mode: CallMode) -> None:
    composite = CompositeBackend(Untimed(), {})
    with ScriptedModel(call("execute", command="ls", timeout=3), "Done.") as model:
        agent = create_deep_agent(model, backend=composite)
        refused = call_mode.invoke(agent, {"messages": "Go"})["messages"][2]

    assert refused.additional_kwargs["error_code"] == "not_supported"


def test_a_default_that_runs_nothing_says_so(call_mode: CallMode) -> None:
    composite = CompositeBackend(FlatBackend(), {"/shell": Shell()})

    assert not composite.capabilities().execute
    with pytest.raises(NotImplementedError, match="doesn't support command execution"):
        call_mode.call(composite, "execute", "ls")


@dataclass(frozen=True)
class Able(BackendProtocol):
    can: Capabilities

    def capabilities(self, path: str = "/") -> Capabilities:
        return self.can


def test_abilities_are_those_at_a_path_and_everywhere_below() -> None:
    composite = CompositeBackend(
        Able(Capabilities(versions=True, in_process=True)),
        {
            "/a/state": Able(Capabilities(delete=True, state_files=True, host=False, in_process=True)),
            "/a/disk": Able(Capabilities(host=True)),
        },
    )

    root, state, disk = (composite.capabilities(path) for path in ("/", "/a/state", "/a/disk/x"))

    assert (root.delete, root.state_files, root.versions, root.host, root.in_process) == (
        (True, True, True, True, False)
    )
    assert (state.delete, state.state_files, state.versions, state.host, state.in_process) == (
        (True, True, False, False, True)
    )
    assert (disk.delete, disk.host, disk.in_process) == (False, True, False)
    assert composite.capabilities("/b").in_process


def test_a_shell_on_this_machine_reaches_the_files_of_its_routes(tmp_path: Path) -> None:
    disk = FilesystemBackend(tmp_path)
    shell = CompositeBackend(LocalShellBackend(tmp_path), {"/disk": disk, "/flat": FlatBackend()})
    elsewhere = CompositeBackend(Shell(), {"/disk": disk})

    assert [shell.capabilities(path).exposed for path in ("/", "/x", "/disk", "/flat")] == [
        True,
        True,
        True,
        False,
    ]
    assert [elsewhere.capabilities(path).exposed for path in ("/", "/disk")] == [True, False]
    assert not CompositeBackend(disk, {"/more": disk}).capabilities().exposed


def test_artifacts_go_where_the_default_can_take_them(tmp_path: Path) -> None:
    on_host = FilesystemBackend(tmp_path, virtual_mode=False)

    assert CompositeBackend(FilesystemBackend(tmp_path), {}).artifacts_root == "/"
    assert CompositeBackend(on_host, {}).artifacts_root == tmp_path.as_posix()
    assert CompositeBackend(
        on_host, {"/scratch": FlatBackend()}, artifacts_root="/scratch"
    ).artifacts_root == ("/scratch")


def test_links_are_resolved_inside_their_route(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("")
    (tmp_path / "link").symlink_to("real")
    composite = CompositeBackend(FlatBackend(), {"/disk/": FilesystemBackend(tmp_path)})

    assert composite.real_path("/disk/link") == "/disk/real"
    assert composite.real_path("/disk/") == "/disk"
    assert composite.real_path("/a/") == "/a"


def test_versions_reach_the_route(call_mode: CallMode, tmp_path: Path) -> None:
    composite = CompositeBackend(FlatBackend(), {"/disk": FilesystemBackend(tmp_path)})
    version = call_mode.call(composite, "write", "/disk/a", "one").version
    (tmp_path / "a").write_text("two!")

    assert [composite.capabilities(path).versions for path in ("/", "/disk/a")] == [False, True]
    assert (
        call_mode.call(composite, "write", "/disk/a", "x", expected_version=version).code == "stale_version"
    )
    assert call_mode.call(composite, "edit", "/disk/a", "t", "x", expected_version=version).code == (
        "stale_version"
    )
    assert call_mode.call(composite, "write", "/a", "x", expected_version="any").error is None


def test_an_expression_is_not_searched_literally_where_a_route_knows_none(
    call_mode: CallMode, tmp_path: Path
) -> None:
    (tmp_path / "a").write_text("one\nx1\n")
    composite = CompositeBackend(FilesystemBackend(tmp_path), {"/flat": FlatBackend({"/b": "x."})})

    found = call_mode.call(composite, "grep", "x.", regex=True)

    assert [each["path"] for each in found.matches] == ["/a"]
    assert (found.code, found.error.partition(":")[0]) == ("not_supported", "/flat")


def test_all_lines_have_context_or_none_has(call_mode: CallMode, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\nx\n")
    composite = CompositeBackend(FilesystemBackend(tmp_path), {"/flat": FlatBackend({"/b": "x"})})

    found = call_mode.call(composite, "grep", "x", context_lines=1)

    assert [each["context_before"] for each in found.matches] == [[{"line": 1, "text": "one"}], []]


@dataclass(frozen=True)
class Except:
    """Everything is allowed but what lies below some directories."""

    denied: tuple[str, ...]

    def __call__(self, path: str) -> bool:
        return not path.startswith(self.denied)

    def all_below(self, directory: str) -> bool:
        base = f"{directory.rstrip('/')}/"
        return not any(each.startswith(base) or base.startswith(each) for each in self.denied)


class Obedient(FlatBackend):
    """Asks for itself."""

    seen: list[tuple[bool, bool]]

    def ls(self, path: str, *, allowed: Any = None) -> LsResult:
        self.seen = [(allowed("/secret/a"), allowed.all_below("/open"))]
        return LsResult(entries=[])


def test_rules_reach_a_route_in_its_own_paths(call_mode: CallMode) -> None:
    route = Obedient()
    composite = CompositeBackend(FlatBackend(), {"/r": route})

    call_mode.call(composite, "ls", "/r", allowed=Except(("/r/secret",)))

    assert route.seen == [(False, True)]


def test_rules_bind_backends_that_know_none(call_mode: CallMode) -> None:
    files = {"/open": "x", "/secret/a": "x\nx\nx"}
    composite = CompositeBackend(FlatBackend(files), {"/r": FlatBackend(files)})
    rules = Except(("/secret", "/r/secret"))

    def ask(method: str, *args: Any, **options: Any) -> Any:
        return call_mode.call(composite, method, *args, allowed=rules, **options)

    assert paths(ask("ls", "/")) == ["/open", "/r/"]
    assert paths(ask("ls", "/r")) == ["/r/open"]
    assert paths(ask("glob", "{*,.*}")) == ["/open", "/r/open"]
    found = ask("grep", "x", max_count=2)
    assert (paths(found), found.truncated) == (["/open", "/r/open"], False)
    assert ask("read", "/r/open").error is None
    for method, *more in (("read",), ("write", "x"), ("edit", "x", "y"), ("delete",)):
        denied = ask(method, "/r/secret/a", *more)
        assert denied.code == "permission_denied"
        assert "'/r/secret/a'" in denied.error


def unruly_read(self: Any, file_path: str, offset: int = 0, limit: int = 2000) -> Any:
    return FilesystemBackend.read(self, file_path, offset, limit)


def unruly_delete(self: Any, file_path: str) -> Any:
    return FilesystemBackend.delete(self, file_path)


Unruly: Any = type("Unruly", (FilesystemBackend,), {"read": unruly_read, "delete": unruly_delete})


def test_rules_bind_what_a_link_leads_to_and_all_that_a_deletion_takes(
    call_mode: CallMode, tmp_path: Path
) -> None:
    (tmp_path / "d/secret").mkdir(parents=True)
    (tmp_path / "d/secret/a").write_text("x")
    (tmp_path / "link").symlink_to("d/secret/a")

    composite = CompositeBackend(FlatBackend(), {"/r": Unruly(tmp_path)})
    rules = Except(("/r/d/secret",))

    assert call_mode.call(composite, "read", "/r/link", allowed=rules).code == "permission_denied"
    assert call_mode.call(composite, "delete", "/r/d", allowed=rules).code == "permission_denied"
    assert call_mode.call(composite, "delete", "/r/link", allowed=rules).error is None
    assert (tmp_path / "d/secret/a").exists()


def test_a_refusal_by_link_names_the_path_in_the_tree(call_mode: CallMode, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    (tmp_path / "link").symlink_to("secret")
    composite = CompositeBackend(FlatBackend(), {"/r": FilesystemBackend(tmp_path)})

    refused = call_mode.call(composite, "read", "/r/link", allowed=Except(("/r/secret",)))

    assert refused.code == "permission_denied"
    assert "'/r/link'" in refused.error


async def half_new_ls(self: Any, path: str) -> Any:
    return self.ls(path)


async def half_new_read(self: Any, file_path: str, offset: int = 0, limit: int = 2000) -> Any:
    return self.read(file_path, offset, limit)


HalfNew: Any = type("HalfNew", (FilesystemBackend,), {"als": half_new_ls, "aread": half_new_read})


def test_rules_bind_a_backend_of_which_one_form_knows_them(tmp_path: Path) -> None:
    for each in ("open", "secret"):
        (tmp_path / each).write_text("x")
    composite: Any = CompositeBackend(FlatBackend(), {"/r": HalfNew(tmp_path)})
    rules = Except(("/r/secret",))

    assert paths(asyncio.run(composite.als("/r", allowed=rules))) == ["/r/open"]
    assert asyncio.run(composite.aread("/r/secret", allowed=rules)).code == "permission_denied"
    with pytest.raises(AwaitableOnly, match="only aread"):
        composite.read("/r/open", allowed=rules)


def test_rules_bind_transfers(call_mode: CallMode) -> None:
    shelf = Shelf()
    composite = CompositeBackend(FlatBackend(), {"/s": shelf})
    files = [("/s/secret/a", b""), ("/s/b", b"")]

    sent = call_mode.call(composite, "upload_files", files, allowed=Except(("/s/secret",)))

    assert [each.error for each in sent] == ["permission_denied", None]
    assert list(shelf.kept) == ["/b"]


def test_a_factory_makes_its_backend_for_each_run() -> None:
    seen: list[Any] = []

    def make(runtime: Any) -> BackendProtocol:
        seen.append(runtime)
        return FlatBackend({"/a": "x"})

    with pytest.warns(DeprecationWarning, match="factory"):
        composite = CompositeBackend(StateBackend(), {"/made": make})
    assert composite.capabilities("/made").state_files
    assert seen == []

    assert in_graph(lambda: paths(composite.glob("*"))) == ["/made/a"]
    assert all(hasattr(runtime, "store") for runtime in seen)
    seen.clear()
    assert composite.read("/made/a").error is None
    assert seen[0] is None
