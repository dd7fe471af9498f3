"""Packages format commands of the library themselves and run them: they do their work on a real shell."""

from __future__ import annotations

import base64
import json
import subprocess
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from deepagents.backends.results import EditResult
from deepagents.backends.sandbox import BaseSandbox


def b64(text: object) -> str:
    return base64.b64encode(str(text).encode()).decode()


def run(template: str, **keys: Any) -> subprocess.CompletedProcess[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        command = getattr(import_module("deepagents.backends.sandbox"), template).format(**keys)
    return subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=False)


def said(template: str, **keys: Any) -> Any:
    return json.loads(run(template, **keys).stdout)


def edited(path: Path, old: str, new: str, replace_all: bool = False) -> Any:
    payload = json.dumps({"path": str(path), "old": old, "new": new, "replace_all": replace_all})
    return said("_EDIT_COMMAND_TEMPLATE", payload_b64=b64(payload))


def read(path: Path, kind: str = "text", offset: int = 0, limit: int = 10) -> Any:
    return said("_READ_COMMAND_TEMPLATE", path_b64=b64(path), file_type=kind, offset=offset, limit=limit)


def test_a_window_of_a_file_is_read(tmp_path: Path) -> None:
    notes = tmp_path / "it's $HOME.md"
    notes.write_text("one\ntwö\nthree\n")

    assert read(notes, offset=1, limit=1) == {"encoding": "utf-8", "content": "twö\n"}
    assert read(notes, kind="image")["content"] == b64(notes.read_text())
    assert read(notes, offset=9) == {"error": "Line offset 9 exceeds file length (3 lines)"}
    assert read(tmp_path / "none") == {"error": "file_not_found"}
    assert read(tmp_path) == {"error": "not_a_file"}


def test_text_is_replaced(tmp_path: Path) -> None:
    notes = tmp_path / "notes.md"
    notes.write_text("a\na\nb\n")

    assert edited(notes, "b\n", "c\n") == {"count": 1}
    assert edited(notes, "a", "x") == {"error": "multiple_occurrences"}
    assert edited(notes, "a", "x", replace_all=True) == {"count": 2}
    assert edited(notes, "q", "x") == {"error": "string_not_found"}
    assert edited(tmp_path / "none", "q", "x") == {"error": "file_not_found"}
    assert notes.read_text() == "x\nx\nc\n"


def test_text_is_replaced_by_what_two_files_hold(tmp_path: Path) -> None:
    notes, old, new = (tmp_path / name for name in ("notes.md", "old", "new"))
    keys = {"old_path_b64": b64(old), "new_path_b64": b64(new), "target_b64": b64(notes)}
    for path, text in ((notes, "aa"), (old, "a"), (new, "'$b'")):
        path.write_text(text)

    assert said("_EDIT_TMPFILE_TEMPLATE", **keys, replace_all=True) == {"count": 2}
    assert notes.read_text() == "'$b''$b'"
    assert not old.exists()
    assert not new.exists()
    assert said("_EDIT_TMPFILE_TEMPLATE", **keys, replace_all=False) == {"error": "temp_read_failed"}


def test_files_are_found(tmp_path: Path) -> None:
    for name in ("a.py", "b.md", "deep/c.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    done = run("_GLOB_COMMAND_TEMPLATE", path_b64=b64(tmp_path), pattern_b64=b64("**/*.{py,txt}"))
    found = [json.loads(line) for line in done.stdout.splitlines()]

    assert sorted(each["path"] for each in found) == [f"{tmp_path}/a.py", f"{tmp_path}/deep/c.py"]
    assert {each["is_dir"] for each in found} == {False}
    missing = run("_GLOB_COMMAND_TEMPLATE", path_b64=b64(tmp_path / "x"), pattern_b64=b64("*"))
    assert missing.stdout == ""


def test_a_write_is_prepared_for(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    assert run("_WRITE_CHECK_TEMPLATE", path_b64=b64(tmp_path / "new" / "deep" / "a.md")).returncode == 0
    assert (tmp_path / "new" / "deep").is_dir()
    refused = run("_WRITE_CHECK_TEMPLATE", path_b64=b64(tmp_path / "file" / "a.md"))
    assert refused.returncode
    assert refused.stdout == "Error: not_a_directory\n"


@pytest.mark.parametrize(
    ("word", "code"),
    [("string_not_found", "no_match"), ("multiple_occurrences", "ambiguous_match"), ("odd", "io_error")],
)
def test_words_for_a_failed_edit_become_a_result(word: str, code: str) -> None:
    explain: Any = vars(BaseSandbox)["_map_edit_error"]
    result: EditResult = explain(word, "/a.md", "{old}")

    assert result.code == code
    assert "{old}" in str(result.error) or "/a.md" in str(result.error)
