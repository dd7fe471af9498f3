"""A sandbox makes every file operation out of commands, and never takes a failure for an empty answer."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import random
import re
import resource
import shlex
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from deepagents import FilesystemPermission
from deepagents._async import run
from deepagents.backends import operations as ops
from deepagents.backends.handle import open_backend
from deepagents.backends.protocol import ExecuteResponse, FileDownloadResponse, FileUploadResponse
from deepagents.backends.results import WriteResult
from deepagents.backends.sandbox import MAX_OUTPUT_BYTES, TRUNCATION_MSG, BaseSandbox
from deepagents.backends.sandbox.codec import MARK
from deepagents.testing import call
from deepagents.testing.contract.allowing import AllBut
from tests.backends.sandboxes import DirectorySandbox, rooted
from tests.conftest import CallMode
from tests.tools.bench import Bench, code_of

pytestmark = pytest.mark.slow


@pytest.fixture
def sandbox(tmp_path: Path) -> DirectorySandbox:
    return rooted(tmp_path)


@dataclass
class Answering(BaseSandbox):
    """A sandbox that gives one prepared answer to every command."""

    response: ExecuteResponse
    answers: list[FileUploadResponse] = field(default_factory=list[FileUploadResponse])
    uploaded: list[tuple[str, bytes]] = field(default_factory=list[tuple[str, bytes]])
    downloads: list[FileDownloadResponse] = field(default_factory=list[FileDownloadResponse])

    @property
    def id(self) -> str:
        return "answering"

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        return self.response

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        self.uploaded += files
        return self.answers

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        return self.downloads


CALLS: dict[str, Callable[[CallMode, BaseSandbox], Any]] = {
    "ls": lambda call_mode, box: call_mode.call(box, "ls", "/"),
    "read": lambda call_mode, box: call_mode.call(box, "read", "/a"),
    "write": lambda call_mode, box: call_mode.call(box, "write", "/a", "x"),
    "write long": lambda call_mode, box: call_mode.call(box, "write", "/a", "x" * 60_000),
    "edit": lambda call_mode, box: call_mode.call(box, "edit", "/a", "x", "y"),
    "delete": lambda call_mode, box: call_mode.call(box, "delete", "/a"),
    "glob": lambda call_mode, box: call_mode.call(box, "glob", "*"),
    "grep": lambda call_mode, box: call_mode.call(box, "grep", "x"),
    "grep by pattern": lambda call_mode, box: call_mode.call(box, "grep", "x", None, "a/*"),
}


@pytest.mark.parametrize(
    "response",
    [ExecuteResponse("", 0), ExecuteResponse("", None), ExecuteResponse("boom", 1), ExecuteResponse("", 127)],
    ids=["silent", "unknown", "failed", "not found"],
)
def test_no_answer_is_an_error_and_never_an_empty_success(
    call_mode: CallMode, response: ExecuteResponse
) -> None:
    found = {name: call(call_mode, Answering(response)) for name, call in CALLS.items()}

    assert {name: each.code for name, each in found.items()} == dict.fromkeys(CALLS, "io_error")
    for each in found.values():
        assert re.search("unexpected server response|the sandbox did not answer", each.error)


@pytest.mark.parametrize("output", ["", "ok"])
def test_a_write_goes_up_where_commands_are_a_stand_in(output: str) -> None:
    box: Any = Answering(ExecuteResponse(output, 0), [FileUploadResponse("/a.txt")])

    for content in ("short", "long" * 20_000):
        assert box.write("/a.txt", content) == WriteResult(path="/a.txt")
    assert box.uploaded == [("/a.txt", b"short"), ("/a.txt", b"long" * 20_000)]
    guarded = box.write("/a.txt", "x", expected_version="1")
    assert guarded.code == "io_error"


def test_without_python_every_operation_says_what_is_missing(call_mode: CallMode, sandbox: Any) -> None:
    sandbox.env["PATH"] = ""

    found = {name: call(call_mode, sandbox) for name, call in CALLS.items()}

    assert {name: each.code for name, each in found.items()} == dict.fromkeys(CALLS, "not_supported")
    assert all("python3" in each.error for each in found.values())


def test_awaited_operations_use_nothing_that_blocks(sandbox: Any) -> None:
    with asyncio.Runner() as runner:
        call_mode = CallMode("async", runner)
        for call in CALLS.values():
            call(call_mode, sandbox)

    assert sandbox.commands
    assert all(command.startswith("async ") for command in sandbox.commands)


@pytest.mark.parametrize("size", [50_000, 50_001])
def test_a_long_text_travels_as_a_file_and_not_in_the_command(sandbox: Any, size: int) -> None:
    content = "".join(chr(97 + number * number % 26) for number in range(size))

    assert sandbox.write("/d/a.txt", content).error is None
    assert len(sandbox.commands) == (1 if size == 50_000 else 2)
    assert sandbox.edit("/d/a.txt", content[1:], "short").occurrences == 1

    assert (sandbox.directory / "d/a.txt").read_text() == f"{content[0]}short"
    assert [each.name for each in (sandbox.directory / "d").iterdir()] == ["a.txt"]


def test_a_long_edit_of_a_missing_file_uploads_nothing(sandbox: Any) -> None:
    done = sandbox.edit("/a.txt", "x" * 60_000, "y")

    assert done.code == "file_not_found"
    assert list(sandbox.directory.iterdir()) == []


@pytest.mark.parametrize(
    ("answers", "code", "sentence"),
    [
        ([], "io_error", "File '/a': the sandbox did not answer"),
        (
            [FileUploadResponse("/a", "permission_denied")],
            "permission_denied",
            "File '/a': permission denied",
        ),
    ],
)
def test_a_failed_upload_is_a_failed_write(
    answers: list[FileUploadResponse], code: str, sentence: str
) -> None:
    there = {"items": 0, "real": "/a", "exists": True, "is_dir": False, "staged": "/staged"}
    box: Any = Answering(ExecuteResponse(f"{MARK}{json.dumps(there)}\n", 0), answers)

    done = box.write("/a", "x" * 60_000)

    assert (done.code, done.error) == (code, sentence)


@pytest.mark.parametrize(
    ("answers", "code", "sentence"),
    [
        ([], "io_error", "File '/a.png': the sandbox did not answer"),
        ([FileDownloadResponse("/a.png")], "io_error", "File '/a.png': no content returned"),
        (
            [FileDownloadResponse("/a.png", error="file_not_found")],
            "file_not_found",
            "File '/a.png' not found",
        ),
    ],
)
def test_a_failed_download_is_a_failed_read(
    answers: list[FileDownloadResponse], code: str, sentence: str
) -> None:
    cut = {"items": 1, "kind": "binary", "real": "/a.png", "modified": 0, "version": "1"}
    box: Any = Answering(ExecuteResponse(f"{MARK}{json.dumps(cut)}\n", 0, truncated=True), downloads=answers)

    done = box.read("/a.png")

    assert (done.code, done.error) == (code, sentence)


class Wrapped(DirectorySandbox):
    """Runs each command inside another one."""

    within = "sh -c {}"

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        return super().execute(self.within.format(shlex.quote(command)), timeout=timeout)

    async def aexecute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        return await super().aexecute(self.within.format(shlex.quote(command)), timeout=timeout)


class Changing(DirectorySandbox):
    """Hands over what a command printed changed."""

    def changed(self, command: str, response: ExecuteResponse) -> ExecuteResponse:
        return response

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        return self.changed(command, super().execute(command, timeout=timeout))

    async def aexecute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        return self.changed(command, await super().aexecute(command, timeout=timeout))


class Breaking(Changing):
    """Loses its connection once, right after an upload."""

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        self.env["BROKEN"] = "yes"
        return super().upload_files(files)

    def changed(self, command: str, response: ExecuteResponse) -> ExecuteResponse:
        if self.env.pop("BROKEN", None):
            raise ConnectionError("lost")
        return response

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        return super().execute(self._nothing_if_broken(command), timeout=timeout)

    async def aexecute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        return await super().aexecute(self._nothing_if_broken(command), timeout=timeout)

    def _nothing_if_broken(self, command: str) -> str:
        return "true" if "BROKEN" in self.env else command


def test_a_connection_that_breaks_leaves_nothing_of_a_staged_text(tmp_path: Path) -> None:
    box: Any = Breaking(tmp_path, virtual_root=str(tmp_path))

    with pytest.raises(ConnectionError):
        box.write("/a.txt", "x" * 60_000)

    assert list(tmp_path.iterdir()) == []


def test_a_change_sweeps_away_what_one_that_broke_off_left_an_hour_ago(sandbox: Any) -> None:
    old, new = (sandbox.directory / f".deepagents-{digit * 16}.tmp" for digit in "01")
    old.touch()
    new.touch()
    hour_ago = time.time() - 3700
    os.utime(old, (hour_ago, hour_ago))

    sandbox.write("/a.txt", "x")

    assert sorted(each.name for each in sandbox.directory.iterdir()) == [new.name, "a.txt"]


@pytest.mark.parametrize("size", [1, 60_000])
def test_a_stale_write_brings_no_directory_back(sandbox: Any, size: int) -> None:
    version = sandbox.write("/gone/a.txt", "x").version
    sandbox.delete("/gone")

    done = sandbox.write("/gone/a.txt", "x" * size, expected_version=version)

    assert done.code == "stale_version"
    assert "was deleted since it was read" in done.error
    assert list(sandbox.directory.iterdir()) == []


def within(command: str) -> type[Wrapped]:
    """Make a sandbox whose commands run in other namespaces, where the system lets them."""
    probe = command.partition(" sh -c")[0].split()
    try:
        subprocess.run([*probe, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no namespaces here: {error}")
    return type("Within", (Wrapped,), {"within": command})


def test_a_file_of_somebody_unknown_in_a_user_namespace_can_be_changed(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root gives files away")
    box: Any = within("unshare -Ur sh -c {}")(tmp_path, virtual_root=str(tmp_path))
    file = tmp_path / "a.txt"
    file.write_text("one\n")
    file.chmod(0o666)
    os.chown(file, 1000, 1000)

    done = box.edit("/a.txt", "one", "two")

    assert (done.error, file.read_text(), file.stat().st_mode & 0o777) == (None, "two\n", 0o666)


def test_a_file_that_is_mounted_by_itself_is_written_in_place(tmp_path: Path) -> None:
    outside, inside = tmp_path / "outside.txt", tmp_path / "root/inside.txt"
    inside.parent.mkdir()
    inside.touch()
    outside.write_text("a longer text\n")
    command = f"unshare -Urm sh -c 'mount --bind {outside} {inside} && exec \"$@\"' sh sh -c {{}}"
    box: Any = within(command)(tmp_path / "root", virtual_root=str(tmp_path / "root"))

    done = box.write("/inside.txt", "short\n")
    edited = box.edit("/inside.txt", "short", "next", expected_version=done.version)

    assert (done.error, edited.error, outside.read_text()) == (None, None, "next\n")
    assert list(inside.parent.iterdir()) == [inside]


class Capped(Changing):
    """Hands over no more than 60,000 characters of output."""

    def changed(self, command: str, response: ExecuteResponse) -> ExecuteResponse:
        output = response.output
        return ExecuteResponse(output[:60_000], response.exit_code, len(output) > 60_000)


def test_media_larger_than_what_a_command_may_print_come_by_download(tmp_path: Path) -> None:
    box: Any = Capped(tmp_path, virtual_root=str(tmp_path))
    data = random.Random(1).randbytes(200_000)
    (tmp_path / "a.png").write_bytes(data)
    (tmp_path / "link.png").symlink_to("a.png")

    for path in ("/a.png", "/link.png"):
        file = box.read(path).file_data
        assert (base64.b64decode(file["content"]), file["encoding"]) == (data, "base64")


def test_a_page_longer_than_what_a_command_may_print_ends_early_and_says_where_to_go_on(
    tmp_path: Path,
) -> None:
    box: Any = Capped(tmp_path, virtual_root=str(tmp_path))
    text = "".join(f"{random.Random(line).randbytes(60).hex()}\n" for line in range(2000))
    (tmp_path / "a.txt").write_text(text)
    parts: list[str] = []
    offset: int | None = 0

    while offset is not None:
        page = box.read("/a.txt", offset, 2000)
        assert (page.start_line, page.total_lines) == (offset + 1, 2000)
        parts.append(page.file_data["content"])
        offset = page.next_offset

    assert "\n".join(parts) == text
    assert len(parts) > 1


def test_a_line_longer_than_what_a_command_may_print_is_cut(tmp_path: Path) -> None:
    box: Any = Capped(tmp_path, virtual_root=str(tmp_path))
    line = random.Random(1).randbytes(100_000).hex()
    (tmp_path / "a.txt").write_text(f"{line}\nlast\n")

    page = box.read("/a.txt")
    content = page.file_data["content"]

    assert content.endswith(TRUNCATION_MSG)
    assert line.startswith(content.removesuffix(TRUNCATION_MSG))
    assert (page.end_line, page.next_offset) == (1, 1)
    assert box.read("/a.txt", page.next_offset).file_data["content"] == "last\n"


def test_a_page_of_which_no_line_arrived_is_an_error_with_a_way_out() -> None:
    page = {"items": 1, "real": "/a", "version": "1", "modified": 0.0, "kind": "text", "start": 1, "end": 1}
    cut = ExecuteResponse(f'{MARK}{json.dumps(page)}\n{MARK}[0, "abc', 0, truncated=True)

    found: Any = Answering(cut).read("/a")

    assert (found.code, found.file_data) == ("too_large", None)
    assert "Read a part of it with execute" in found.error


class Echoing(Changing):
    """Repeats each command, as a terminal does."""

    def changed(self, command: str, response: ExecuteResponse) -> ExecuteResponse:
        output = f"$ {command}\n{response.output}".replace("\n", "\r\n")
        return ExecuteResponse(output, response.exit_code)


def test_a_terminal_that_repeats_the_command_changes_no_answer(tmp_path: Path) -> None:
    box: Any = Echoing(tmp_path, virtual_root=str(tmp_path))

    assert box.write("/a.txt", "needle").error is None
    assert box.read("/a.txt").file_data["content"] == "needle"
    assert [each["path"] for each in box.grep("needle").matches] == ["/a.txt"]
    box.env["PATH"] = ""
    assert box.ls("/").code == "not_supported"


def test_what_is_too_long_for_a_command_line_is_refused(sandbox: Any) -> None:
    found = sandbox.grep(random.Random(1).randbytes(100_000).hex())

    assert found.code == "invalid_argument"
    assert "Give a shorter pattern or path" in found.error
    assert sandbox.commands == []


def test_text_with_bytes_that_are_none_late_in_it_is_read_and_edited(sandbox: Any) -> None:
    file = sandbox.directory / "a.txt"
    file.write_bytes(b"line\n" * 2000 + b"caf\xe9\n")

    page = sandbox.read("/a.txt", 2000, 1)
    done = sandbox.edit("/a.txt", "caf", "tea")

    assert page.file_data["content"] == "caf\ufffd\n"
    assert done.error is None
    assert file.read_bytes().endswith(b"line\ntea\xe9\n")


@pytest.mark.parametrize("name", ["a.txt", "a.png", "a.dat"])
def test_binaries_come_whole_up_to_a_limit(sandbox: Any, name: str) -> None:
    (sandbox.directory / name).write_bytes(b"\xff\x00" * (MAX_OUTPUT_BYTES // 2))
    assert sandbox.read(f"/{name}").file_data["encoding"] == "base64"

    (sandbox.directory / name).write_bytes(b"\xff\x00" * (MAX_OUTPUT_BYTES // 2 + 1))
    found = sandbox.read(f"/{name}")

    assert found.code == "too_large"
    assert found.error == f"File '/{name}': Binary file exceeds maximum preview size of 512000 bytes"


def test_a_page_that_is_too_long_ends_with_a_whole_line(sandbox: Any) -> None:
    line = "é" * 50_000 + "\n"
    (sandbox.directory / "a.txt").write_text(line * 8 + "x" * 600_000 + "\nlast\n")

    page = sandbox.read("/a.txt")
    cut = sandbox.read("/a.txt", 8)

    assert (page.file_data["content"], page.next_offset) == ((line * 5)[:-1], 5)
    assert cut.file_data["content"] == "x" * MAX_OUTPUT_BYTES + TRUNCATION_MSG
    assert (cut.start_line, cut.end_line, cut.next_offset) == (9, 9, 9)


def test_paging_through_a_large_file_costs_no_more_at_its_end(sandbox: Any) -> None:
    (sandbox.directory / "a.log").write_bytes((b"x" * 99 + b"\n") * 200_000)

    def seconds(offset: int) -> float:
        begun = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert sandbox.read("/a.log", offset, 10).start_line == offset + 1
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        return ended.ru_utime + ended.ru_stime - begun.ru_utime - begun.ru_stime

    first, last = min(seconds(0) for _ in range(3)), min(seconds(199_990) for _ in range(3))

    assert last - first < 1.0


def test_a_listing_that_was_cut_on_its_way_says_so() -> None:
    head = json.dumps({"items": 2, "real": "/", "problems": []})
    entry = json.dumps(["a", False, 1, 0.0, None])
    cut = ExecuteResponse(f'{MARK}{head}\n{MARK}{entry}\n{MARK}["b', 0, truncated=True)

    found: Any = Answering(cut).ls("/")

    assert [entry["path"] for entry in found.entries] == ["/a"]
    assert found.code == "io_error"


def test_a_search_that_was_cut_on_its_way_says_so() -> None:
    head = json.dumps({"items": 2, "base": "/d", "real": "/d", "unread": 0, "cut": False})
    cut = ExecuteResponse(f'{MARK}{head}\n{MARK}["a", 1, 0.0, null]\n{MARK}["b', 0, truncated=True)

    found: Any = Answering(cut).glob("*")

    assert [match["path"] for match in found.matches] == ["/d/a"]
    assert (found.truncated, found.truncation_reason) == (True, "transport")


def test_a_search_without_a_path_starts_where_commands_run(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here/a.txt").write_text("needle")
    (tmp_path / "b.txt").write_text("needle")
    box: Any = DirectorySandbox(tmp_path / "here")

    assert [each["path"] for each in box.glob("*.txt").matches] == [f"{tmp_path}/here/a.txt"]
    assert [each["path"] for each in box.grep("needle").matches] == [f"{tmp_path}/here/a.txt"]
    anywhere = box.glob(f"{tmp_path}/*.txt")
    assert [each["path"] for each in anywhere.matches] == [f"{tmp_path}/b.txt"]


def test_an_expression_that_python_does_not_know_is_refused(sandbox: Any) -> None:
    assert sandbox.grep(r"\p{L}", None, None, regex=True).code == "invalid_pattern"


def test_less_context_than_none_is_misuse(sandbox: Any) -> None:
    with pytest.raises(ValueError, match="-1"):
        sandbox.grep("x", None, None, context_lines=-1)


def test_no_link_leads_out_of_the_root_and_no_message_says_where_it_lies(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "secret.txt").write_text("needle")
    box: Any = rooted(tmp_path / "root")
    (tmp_path / "root/link.txt").symlink_to("../secret.txt")
    (tmp_path / "root/up").symlink_to("..")

    for path in ("/link.txt", "/up/secret.txt"):
        tried = [
            box.read(path),
            box.write(path, "x"),
            box.edit(path, "needle", "x"),
        ]
        assert [each.code for each in tried] == ["invalid_path"] * 3
        assert all(str(tmp_path) not in each.error for each in tried)
    assert box.ls("/").entries == []
    assert box.ls("/up").code == "invalid_path"
    assert box.glob("*.txt").matches == []
    assert box.grep("needle").matches == []
    assert box.delete("/link.txt").error is None
    assert (tmp_path / "secret.txt").read_text() == "needle"


def test_rules_bind_what_a_link_leads_to(sandbox: Any) -> None:
    secret = sandbox.directory / "secret"
    secret.mkdir()
    (secret / ".env").write_text("needle")
    (sandbox.directory / "open.txt").write_text("needle")
    (sandbox.directory / "link.txt").symlink_to("secret/.env")
    (sandbox.directory / "there").symlink_to("secret")
    rules = {"allowed": AllBut("/secret")}

    for path in ("/link.txt", "/there/.env"):
        tried = [
            sandbox.read(path, **rules),
            sandbox.write(path, "x", **rules),
            sandbox.edit(path, "needle", "x", **rules),
        ]
        assert [each.code for each in tried] == ["permission_denied"] * 3
    assert sandbox.delete("/there/.env", **rules).code == "permission_denied"
    assert [each["path"] for each in sandbox.ls("/", **rules).entries] == ["/open.txt"]
    assert sandbox.ls("/there", **rules).code == "permission_denied"
    assert [each["path"] for each in sandbox.glob("{*,.*}", **rules).matches] == ["/open.txt"]
    assert [each["path"] for each in sandbox.grep("needle", None, **rules).matches] == ["/open.txt"]
    assert sandbox.grep("needle", "/there", None, **rules).matches == []
    assert (secret / ".env").read_text() == "needle"


def test_no_error_tells_what_is_behind_a_link_to_what_is_denied(sandbox: Any) -> None:
    (sandbox.directory / "secret/deep").mkdir(parents=True)
    (sandbox.directory / "secret/plan.txt").write_text("one\ntwo\n")
    links = {"/file": "secret/plan.txt", "/directory": "secret/deep", "/nothing": "secret/gone"}
    for link, target in links.items():
        (sandbox.directory / link[1:]).symlink_to(target)
    rules = {"allowed": AllBut("/secret")}

    read = {link: sandbox.read(link, 99, 1, **rules) for link in links}
    listed = {link: sandbox.ls(link, **rules) for link in links}

    for found in (read, listed):
        assert {link: each.code for link, each in found.items()} == dict.fromkeys(links, "permission_denied")
        assert len({each.error.replace(link, "") for link, each in found.items()}) == 1


def test_a_listing_names_nothing_denied_that_it_cannot_look_at(sandbox: Any) -> None:
    # The kernel takes paths of 4,095 bytes, so what is in this directory can be listed and not looked at.
    room = 4090 - len(str(sandbox.directory))
    names = ["d" * 199] * (room // 200)
    deep = "/" + "/".join([*names, "e" * (room % 200 + 1)])[: room - 1]
    Path(f"{sandbox.directory}{deep}").mkdir(parents=True)
    directory = os.open(f"{sandbox.directory}{deep}", os.O_RDONLY)
    for name in ("open-plan", "secret-plan"):
        os.close(os.open(name, os.O_CREAT | os.O_WRONLY, dir_fd=directory))
    os.close(directory)

    found = sandbox.ls(deep, allowed=AllBut(f"{deep}/secret-plan"))

    assert (found.entries, found.code) == ([], "io_error")
    assert f"{deep}/open-plan: File name too long" in found.error
    assert "secret" not in found.error


def test_a_search_opens_no_denied_file(sandbox: Any) -> None:
    for name in ("secret/huge.log", "open/a.txt", "open/deep/b.txt", "top.txt"):
        (sandbox.directory / name).parent.mkdir(parents=True, exist_ok=True)
        (sandbox.directory / name).write_text("needle " * 2000)
    os.truncate(sandbox.directory / "secret" / "huge.log", 100 << 30)

    def search(path: str) -> Any:
        return sandbox.grep("needle", path, allowed=AllBut("/secret"), max_count=3)

    found = search("/")
    named = [search(path) for path in ("/top.txt", "/open", "/gone")]
    denied = [search(path) for path in ("/secret", "/secret/huge.log")]

    assert [match["path"] for match in found.matches] == ["/open/a.txt", "/open/deep/b.txt", "/top.txt"]
    assert (found.error, found.truncated) == (None, False)
    assert [len(each.matches) for each in named] == [1, 2, 0]
    assert [(each.matches, each.error, each.truncated) for each in denied] == [([], None, False)] * 2


def test_a_search_with_too_many_files_among_denied_ones_asks_to_be_narrowed(
    sandbox: Any,
) -> None:
    for number in range(10_001):
        (sandbox.directory / f"{number}").touch()

    found = sandbox.grep("needle", "/", allowed=AllBut("/secret"))

    assert found.code == "too_large"
    assert "Name a directory" in found.error


def test_a_real_path_has_no_links(sandbox: Any) -> None:
    (sandbox.directory / "d").mkdir()
    (sandbox.directory / "link").symlink_to("d")
    assert sandbox.real_path("/link/a.txt") == "/d/a.txt"


def test_a_sandbox_says_what_it_can_do(sandbox: Any) -> None:
    able = sandbox.capabilities()
    assert (able.execute, able.delete, able.versions, able.exposed) == (True, True, True, True)
    assert able.artifacts_root == "/tmp/deepagents"


OLDER = """
class Older(DirectorySandbox):
    def execute(self, command):
        return super().execute(command)

    def write(self, file_path, content):
        refused = self._write_preflight(file_path)
        return refused or WriteResult(path=self.upload_files([(file_path, b"own")])[0].path)
"""


def test_a_sandbox_written_for_an_earlier_protocol_works_and_claims_no_more_than_it_has(
    tmp_path: Path,
) -> None:
    names: dict[str, Any] = {"DirectorySandbox": DirectorySandbox, "WriteResult": WriteResult}
    exec(OLDER, names)
    older = names["Older"](tmp_path, virtual_root=str(tmp_path))

    assert older.write("/d/a.txt", "x").path == "/d/a.txt"
    assert older.read("/d/a.txt").file_data["content"] == "own"
    assert older.edit("/d/a.txt", "own", "new").error is None
    assert older.capabilities().versions is False


class Careful(DirectorySandbox):
    """Looks at a path before it is written."""

    def _write_preflight(self, file_path: str) -> WriteResult | None:
        return WriteResult(error="not here") if file_path.startswith("/no") else None

    async def _awrite_preflight(self, file_path: str) -> WriteResult | None:
        return self._write_preflight(file_path)


def test_what_a_subclass_does_before_a_write_is_heard(tmp_path: Path) -> None:
    box: Any = Careful(tmp_path, virtual_root=str(tmp_path))

    assert box.write("/no/a.txt", "x").error == "not here"
    assert box.write("/yes/a.txt", "x").error is None
    assert not (tmp_path / "no").exists()


def captured(call_mode: CallMode, box: Any, command: str, **options: Any) -> Any:
    """Run a command whose long output is kept in a file."""
    box.enable_capture_offload = True
    options = {"max_inline_bytes": 1000, **options}
    return call_mode.call(box, "execute_with_offload", command, "/kept/1", **options)


def test_output_past_the_cap_is_cut_and_the_exit_code_kept(call_mode: CallMode, sandbox: Any) -> None:
    found = captured(
        call_mode, sandbox, "yes é | head -n 9000; exit 7", max_inline_bytes=10, max_capture_bytes=4000
    )

    assert (found.offloaded, found.response.exit_code, found.response.truncated) == (True, 7, True)
    assert (sandbox.directory / "kept/1").read_text() == "é\n" * 1333
    assert (sandbox.directory / "kept/1").stat().st_size == 3999


def test_the_end_of_output_past_the_cap_is_shown(call_mode: CallMode, sandbox: Any) -> None:
    found = captured(
        call_mode, sandbox, "seq 1 9000; echo the end", max_inline_bytes=10, max_capture_bytes=4000
    )

    assert found.response.output.split("\n")[-3:] == ["8999", "9000", "the end"]
    assert "\n... [8986 lines truncated] ...\n" in found.response.output
    assert found.response.truncated is True
    assert (sandbox.directory / "kept/1").stat().st_size == 4000


def test_a_line_ends_at_a_return_too(call_mode: CallMode, sandbox: Any) -> None:
    progress = "for i in $(seq 1 3000); do printf 'p%s\\r' $i; done; seq 1 16; printf '17\\r\\n18\\r'"

    found = captured(call_mode, sandbox, progress)

    lines = found.response.output.split("\n")
    assert lines[:2] == ["p1", "p2"]
    assert lines[10:] == ["... [3003 lines truncated] ...", "14", "15", "16", "17", "18"]


class Full(Wrapped):
    """A sandbox in which no file grows over 4 kB."""

    within = "ulimit -f 8; sh -c {}"


@pytest.mark.parametrize("inline", [1000, 20_000])
def test_a_full_disk_costs_the_middle_of_a_long_output_and_no_second_run(
    call_mode: CallMode, tmp_path: Path, inline: int
) -> None:
    box: Any = Full(tmp_path, virtual_root=str(tmp_path))
    counted = "".join(f"{number}\n" for number in range(1, 3001))

    found = captured(call_mode, box, "echo ran >> ran; seq 1 3000; exit 3", max_inline_bytes=inline)
    said = found.response.output

    assert (tmp_path / "ran").read_text() == "ran\n"
    assert (found.offloaded, found.response.exit_code) == (False, 3)
    assert list((tmp_path / "kept").iterdir()) == []
    if inline == 20_000:
        assert (said, found.response.truncated) == (counted, False)
    else:
        before, _, after = said.partition("\n... [what stood here could not be kept: File too large] ...\n")
        assert counted.startswith(before)
        assert counted.endswith(after)
        assert found.response.truncated is True


UNTIL_KEPT = "for i in $(seq 1 2000); do grep -q {0} kept/1 2>/dev/null && break; done; kill -9 $PPID"


@pytest.mark.parametrize("most", [3, 3000])
def test_a_command_that_is_broken_off_loses_nothing_of_what_it_printed(
    call_mode: CallMode, sandbox: Any, most: int
) -> None:
    found = captured(call_mode, sandbox, f"seq 1 {most}; {UNTIL_KEPT.format(most)}")

    lines = found.response.output.split("\n")
    assert (found.offloaded, found.response.exit_code) == (most == 3000, 137)
    assert (sandbox.directory / "kept/1").exists() == found.offloaded
    assert lines[:3] == ["1", "2", "3"]
    assert lines[-2:] == [str(most), "Killed"]


class Going(Answering):
    """Breaks off its first command and is gone after it."""

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        if self.answers:
            raise ConnectionError("gone")
        self.answers.append(FileUploadResponse("/"))
        return self.response


def test_a_sandbox_that_is_gone_keeps_what_it_answered_last(
    call_mode: CallMode, caplog: pytest.LogCaptureFixture
) -> None:
    box: Any = Going(ExecuteResponse("out of memory", 137))

    found = captured(call_mode, box, "make")

    assert (found.offloaded, found.response) == (False, ExecuteResponse("out of memory", 137))
    assert "ConnectionError: gone" in caplog.text


def test_short_output_over_what_a_command_may_print_arrives_as_far_as_it_can(
    call_mode: CallMode, tmp_path: Path
) -> None:
    box: Any = Capped(tmp_path, virtual_root=str(tmp_path))
    text = random.Random(1).randbytes(50_000).hex()
    (tmp_path / "a.txt").write_text(text)

    found = captured(call_mode, box, "cat a.txt", max_inline_bytes=200_000)

    assert text.startswith(found.response.output)
    assert (len(found.response.output) > 30_000, found.response.truncated) == (True, True)


def test_few_long_lines_are_shown_from_their_start(call_mode: CallMode, sandbox: Any) -> None:
    found = captured(call_mode, sandbox, "head -c 9000 /dev/zero | tr '\\0' x")
    assert found.response.output.startswith("x" * 4000 + "\n... [")
    assert found.preview_has_truncation_marker is False


def test_a_command_in_the_background_holds_nothing_up(call_mode: CallMode, sandbox: Any) -> None:
    begun = time.perf_counter()

    found = captured(call_mode, sandbox, "sleep 25 & sleep 25 > log 2>&1 & echo hi")

    assert found.response.output == "hi\n"
    assert time.perf_counter() - begun < 15


@pytest.mark.parametrize("path", ["", "/nowhere"])
def test_a_command_runs_once_where_its_output_cannot_be_kept(
    call_mode: CallMode, sandbox: Any, path: str
) -> None:
    if path:
        (sandbox.directory / "kept").touch()
    else:
        sandbox.env["PATH"] = ""

    found = captured(call_mode, sandbox, "echo hi >> ran; echo hi")

    assert (found.offloaded, found.response.output) == (False, "hi\n")
    assert (sandbox.directory / "ran").read_text() == "hi\n"


def test_a_moved_file_keeps_its_mode_and_an_added_one_replaces_none(
    tmp_path: Path, sandbox: Any, call_mode: CallMode
) -> None:
    bench = Bench("disk", tmp_path, call_mode)
    bench.place("/run.sh", "one\n")
    bench.place("/inbox/old.txt", "theirs\n")
    (tmp_path / "run.sh").chmod(0o750)
    hidden = [FilesystemPermission(["read"], ["/inbox/**"], "deny")]
    move = "*** Update File: /run.sh\n*** Move to: /go.sh\n-one\n+two"
    script = [
        call("apply_patch", patch=f"*** Begin Patch\n{body}\n*** End Patch")
        for body in (move, "*** Add File: /inbox/old.txt\n+mine")
    ]
    moved, added = bench.run(*script, backend=sandbox, edit_form="patch", permissions=hidden, tools=[*FILES])

    assert moved.status == "success"
    assert bench.content("/go.sh") == "two\n"
    assert (tmp_path / "go.sh").stat().st_mode & 0o777 == 0o750
    assert code_of(added) == "already_exists"
    assert bench.content("/inbox/old.txt") == "theirs\n"


FILES = ("ls", "read_file", "write_file", "edit_file", "delete")


def test_a_hint_looks_at_some_entries_alone(tmp_path: Path, sandbox: Any) -> None:
    for number in range(ops.MOST_FOR_HINT + 50):
        (tmp_path / f"{number}.txt").touch()
    files = open_backend(sandbox).files(None)

    assert len(run(files.perform(ops.Ls("/", hint=True))).entries) <= ops.MOST_FOR_HINT
    assert run(files.perform(ops.Glob("*.txt", "/", hint=True))).truncated
