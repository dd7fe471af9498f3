"""The programs that run inside a sandbox, each run as a process of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepagents._globs import compile_glob
from deepagents.backends._bytes import Blocks, is_temporary, lf_bytes, temporary_name, whole_characters
from deepagents.backends.results import ExecuteResponse
from deepagents.backends.sandbox.codec import Answer, ProgramName, command, decode, join_chunks
from deepagents.backends.sandbox.scripts.common import to_json
from deepagents.backends.sandbox.scripts.read import page
from deepagents.backends.sandbox.scripts.search import matcher
from tests.backends.sandboxes import BIN

SEARCH: dict[str, Any] = {
    "path": "/", "glob": None, "excluded": [], "regex": False, "context": 0, "max_count": None, "only": None,
    "most": 1 << 20, "seconds": 5.0,
}  # fmt: skip


@pytest.fixture
def run(tmp_path: Path) -> Any:
    """Run one program below a temporary root."""

    def run(operation: ProgramName, by: Sequence[str] = (), **params: Any) -> Answer:
        shell = [*by, "/bin/sh", "-c", command(operation, {"root": str(tmp_path), **params})]
        done = subprocess.run(shell, cwd=tmp_path, env={"PATH": f"{BIN}:/usr/bin:/bin"}, capture_output=True)
        assert done.stderr == b""
        return decode(ExecuteResponse(done.stdout.decode(), done.returncode), str(tmp_path))

    return run


@pytest.mark.parametrize(
    ("operation", "params"),
    [
        ("ls", {"path": "/"}),
        ("read", {"path": "/a.txt", "offset": 0, "limit": 9, "media": False, "most": 99}),
        ("edit", {"path": "/a.txt", "texts": {"old0": "one", "new0": "two"}, "replace_all": [False]}),
        ("append", {"path": "/a.txt", "texts": {"content": "three\n"}}),
        ("delete", {"path": "/a.txt"}),
        ("grep", {**SEARCH, "path": "/a.txt", "pattern": "one"}),
    ],
)
def test_a_program_imports_nothing_that_takes_longer_than_itself(
    operation: ProgramName, params: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    line = command(operation, {"root": str(tmp_path), **params}).replace("-I", "-I -X importtime")
    done = subprocess.run(
        ["/bin/sh", "-c", line], cwd=tmp_path, env={"PATH": str(BIN)}, capture_output=True, text=True
    )

    imported = {each.rpartition("|")[2].strip() for each in done.stderr.splitlines()}
    assert "code" not in decode(ExecuteResponse(done.stdout, done.returncode)).end
    assert "binascii" in imported
    assert imported.isdisjoint({"base64", "contextlib", "enum", "json", "re", "shutil", "subprocess"})


@pytest.mark.slow
@given(
    value=st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(),
        lambda each: st.lists(each, max_size=3) | st.dictionaries(st.text(), each, max_size=3),
        max_leaves=8,
    )
)
def test_an_answer_is_json(value: Any) -> None:
    assert json.loads(to_json(value)) == value


def test_only_names_of_files_being_written_are_temporary() -> None:
    name = temporary_name()
    others = [
        f"{name}x",
        f"x{name}",
        name[:-1],
        name.replace(".tmp", "0.tmp"),
        ".deepagents-.tmp",
        ".tmp",
        "",
    ]

    assert is_temporary(name)
    assert is_temporary(name.encode())
    assert not any(is_temporary(each) or is_temporary(each.encode()) for each in others)
    assert not is_temporary(f".deepagents-{'g' * 16}.tmp")


def names(directory: Path) -> list[str]:
    return sorted(each.name for each in directory.iterdir())


def test_a_command_in_any_letters_runs_where_the_locale_has_few(tmp_path: Path) -> None:
    kept: dict[str, Any] = {"most_kept": 99, "most_inline": 99, "most_shown": 99, "most_streamed": 0}
    line = command("capture", {"root": str(tmp_path), "path": "/out", "command": "echo é", **kept})
    # Python 3.6 knows no UTF-8 mode, which newer ones take in such a locale.
    done = subprocess.run(
        ["/bin/sh", "-c", line.replace("-I", "-I -X utf8=0")],
        cwd=tmp_path, env={"PATH": f"{BIN}:/usr/bin:/bin", "LC_ALL": "C"}, capture_output=True, text=True,
    )  # fmt: skip

    answer = decode(ExecuteResponse(done.stdout, done.returncode))
    assert answer.end["exit"] == 0
    assert join_chunks(answer) == "é\n".encode()


def test_ls_gives_kind_size_time_and_where_a_link_leads(run: Any, tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "a.txt").write_bytes(b"four")
    (tmp_path / "to-a").symlink_to("a.txt")
    (tmp_path / "nowhere").symlink_to("gone")
    (tmp_path / "out").symlink_to("/etc")
    (tmp_path / f".deepagents-{'0' * 16}.tmp").touch()
    os.mkfifo(tmp_path / "pipe")

    answer = run("ls", path="/")

    entries = {name: (is_directory, size, leads_to) for name, is_directory, size, _, leads_to in answer.items}
    assert entries == {"d": (True, 0, None), "a.txt": (False, 4, None), "to-a": (False, 4, "/a.txt")}


def test_read_does_not_hang_on_a_pipe(run: Any, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert run("read", path="/pipe", offset=0, limit=1, media=False, most=10).end["code"] == "invalid_path"


def test_delete_removes_a_link_and_not_what_it_leads_to(run: Any, tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d/a.txt").touch()
    (tmp_path / "link").symlink_to("d")

    assert run("delete", path="/link").end["items"] == 0
    assert run("delete", path="/d", no_directory=True).end["code"] == "permission_denied"
    assert names(tmp_path) == ["d"]
    assert run("delete", path="/d").end.get("code") is None
    assert run("delete", path="/d").end["code"] == "file_not_found"
    assert names(tmp_path) == []


def test_a_program_refuses_another_place_than_the_one_that_was_allowed(run: Any, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("kept")
    (tmp_path / "a.txt").symlink_to("secret")

    for operation, texts in (("write", {"content": "x"}), ("edit", {"old0": "kept", "new0": "x"})):
        answer = run(operation, path="/a.txt", texts=texts, expected="/a.txt", replace_all=[False])
        assert answer.end["code"] == "permission_denied"
    assert (tmp_path / "secret").read_text() == "kept"


def test_glob_stops_when_there_is_too_much_and_says_so(run: Any, tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / f"{number}.txt").touch()
    wanted = {"path": "/", "glob": compile_glob("*.txt").describe()}

    few = run("glob", **wanted, seconds=5.0, most=3)
    exact = run("glob", **wanted, seconds=5.0, most=5)
    late = run("glob", **wanted, seconds=0.0, most=5)

    assert (len(few.items), few.end["cut"]) == (3, True)
    assert ([item[0] for item in exact.items], exact.end["cut"]) == (
        [f"{each}.txt" for each in range(5)],
        False,
    )
    assert late.end["cut"] is True


def test_glob_says_which_directories_it_could_not_read(run: Any, tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0)
    powerless = ("setpriv", "--bounding-set=-all") if os.geteuid() == 0 else ()
    if powerless and not shutil.which("setpriv"):
        pytest.skip("root reads everything, and setpriv, which takes that right away, is not installed")
    wanted = {"path": "/", "glob": compile_glob("*").describe(), "seconds": 5.0, "most": 5}

    answer = run("glob", **wanted, by=powerless)

    assert answer.end["unread"] == 1


def test_grep_stops_an_expression_without_end(run: Any, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a" * 40 + "b\n")

    endless = run("grep", **{**SEARCH, "pattern": "(a|aa)+$", "regex": True, "seconds": 0.2})

    assert endless.end["code"] == "timeout"


def test_grep_passes_over_excluded_directories_with_ripgrep_and_without(run: Any, tmp_path: Path) -> None:
    for name in (".git/a", "b/.git/c", "b/d"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("needle")
    asked = {**SEARCH, "excluded": [".git"]}

    found = run("grep", **asked, pattern="needle")
    walked = run("grep", **{**asked, "regex": True}, pattern="needle")
    inside = run("grep", **{**asked, "path": "/.git"}, pattern="needle")

    assert [item[0] for item in found.items] == [item[0] for item in walked.items] == ["b/d"]
    assert [item[0] for item in inside.items] == ["a"]


@given(
    data=st.lists(st.sampled_from([b"a", b"\r", b"\n", b"\r\n", "é".encode()]), max_size=30).map(b"".join),
    offset=st.integers(0, 8),
    limit=st.integers(1, 8),
    size=st.integers(1, 5),
)
def test_read_pages_as_a_list_of_lines_would(data: bytes, offset: int, limit: int, size: int) -> None:
    lines = lf_bytes(data).splitlines(keepends=True)

    def blocks() -> Iterator[bytes]:
        text = lf_bytes(data)
        yield from (text[at : at + size] for at in range(0, len(text), size))

    if offset >= len(lines):
        return
    found = page(blocks(), offset, limit, 1000, None)

    assert found["data"] == b"".join(lines[offset : offset + limit])
    assert found["end"] == min(offset + limit, len(lines))
    assert found["next"] == (found["end"] if found["end"] < len(lines) else None)


def test_read_cuts_whole_lines_and_only_a_first_line_inside() -> None:
    text = "one\ntwo\néééé\nlast".encode()

    whole, cut = page(iter([text]), 0, 9, 9, 4), page(iter([text]), 2, 9, 5, 4)

    assert (whole["data"], whole["next"], whole["clipped"]) == (b"one\ntwo\n", 2, False)
    assert (cut["data"].decode(), cut["end"], cut["next"], cut["clipped"]) == ("éé", 3, 3, True)
    assert whole_characters("x🙂".encode()[:-1]) == b"x"


def test_read_joins_a_line_end_that_two_blocks_share(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * (1 << 18) + b"\r\ny\r")
    fd = os.open(tmp_path / "a", os.O_RDONLY)
    try:
        assert b"".join(Blocks(fd)).endswith(b"x\ny\n")
    finally:
        os.close(fd)


@given(
    pattern=st.sampled_from(["*a*b*", "**/a/**/b", "a*/b?", "[!a]*", "**/.a/*", "{a,b}/*", "*"]),
    path=st.text("ab./", min_size=1, max_size=8).filter(
        lambda each: "//" not in each and each.strip("/") == each
    ),
)
def test_a_glob_means_the_same_where_there_are_no_atomic_groups(pattern: str, path: str) -> None:
    glob = compile_glob(pattern)
    wanted = glob.describe()
    older = {**wanted, "expression": str(wanted["expression"]).replace("(?>", "(?:")}

    assert matcher(older)(path.encode()) == glob(path) == matcher(wanted)(path.encode())
