"""Classes that users subclass claim no ordinary attribute name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from deepagents.backends import (
    CompositeBackend,
    FilesystemBackend,
    LocalShellBackend,
)
from deepagents.backends.protocol import BackendProtocol, SandboxBackendProtocol
from deepagents.backends.sandbox import BaseSandbox
from tests.backends.sandboxes import DirectorySandbox

ORDINARY = (
    "root", "path", "name", "client", "timeout", "env", "config", "cwd", "workdir", "directory", "session",
    "sandbox", "container", "api_key", "url", "options", "logger", "lock", "process", "files", "prefix",
    "commands", "state", "settings", "user", "host", "port", "image", "closed", "connection",
    "_root", "_path", "_name", "_client", "_timeout", "_config", "_session", "_sandbox", "_files", "_lock",
    "_workdir", "_container", "_prefix",
)  # fmt: skip


class Provider(DirectorySandbox):
    """A provider's sandbox that keeps what it needs under ordinary names."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        for name in ORDINARY:
            if name not in ("directory", "env", "commands"):
                setattr(self, name, object())


def test_a_sandbox_may_use_ordinary_names_for_its_own(tmp_path: Path) -> None:
    box, file = Provider(tmp_path), f"{tmp_path}/a.txt"

    assert box.write(file, "one\n").error is None
    assert box.read(file).file_data == box.read(file).file_data
    assert box.edit(file, "one", "two").error is None
    assert [entry["path"] for entry in box.ls(str(tmp_path)).entries or ()] == [file]
    assert [entry["path"] for entry in box.glob("*.txt", str(tmp_path)).matches or ()] == [file]
    assert [match["text"] for match in box.grep("two", str(tmp_path)).matches or ()] == ["two"]
    assert box.delete(file).error is None


@pytest.mark.parametrize("base", [BackendProtocol, SandboxBackendProtocol, BaseSandbox])
def test_a_base_class_claims_no_ordinary_name(base: type) -> None:
    assert [name for name in ORDINARY if hasattr(base, name)] == []


@pytest.mark.parametrize(
    "make_backend",
    [FilesystemBackend, LocalShellBackend, lambda path: CompositeBackend(FilesystemBackend(path), {})],
    ids=["disk", "shell", "composite"],
)
def test_a_backend_works_when_a_subclass_sets_ordinary_names(
    make_backend: Callable[[Path], BackendProtocol], tmp_path: Path
) -> None:
    files = make_backend(tmp_path)
    for name in ORDINARY:
        if name != "cwd":  # The documented one.
            setattr(files, name, object())

    assert files.write("/a.txt", "one\n").error is None
    assert files.edit("/a.txt", "one", "two").error is None
    assert [match["text"] for match in files.grep("two").matches or ()] == ["two"]
    assert [entry["path"] for entry in files.glob("*.txt").matches or ()] == ["/a.txt"]
    assert files.delete("/a.txt").error is None
