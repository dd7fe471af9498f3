"""Doubles of what LangSmith hosts: a sandbox that runs real processes, and a hub that keeps commits."""

from __future__ import annotations

import subprocess
import sys
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

from langsmith.sandbox import (
    CommandTimeoutError,
    ExecutionResult,
    ResourceNotFoundError,
    SandboxConnectionError,
    SandboxOperationError,
)
from langsmith.schemas import AgentContext, FileEntry
from langsmith.utils import LangSmithConflictError, LangSmithNotFoundError

BIN = Path(sys.executable).parent


@dataclass
class LocalSandbox:
    """Answers like `langsmith.sandbox.Sandbox`, with processes and files of this machine."""

    directory: Path
    name: str = "box"
    is_gone: bool = False
    timeouts: list[int] = field(default_factory=list[int])

    def run(self, command: str, *, timeout: int = 60, **options: Any) -> ExecutionResult:
        self._reached()
        self.timeouts.append(timeout)
        try:
            done = subprocess.run(
                ["/bin/bash", "-c", command], cwd=self.directory, timeout=timeout or None, check=False,
                env={"PATH": f"{BIN}:/usr/bin:/bin"}, stdin=subprocess.DEVNULL, capture_output=True,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise CommandTimeoutError("too long", timeout) from error
        return ExecutionResult(done.stdout.decode(), done.stderr.decode(), done.returncode)

    def write(self, path: str, content: str | bytes, **options: Any) -> None:
        self._reached()
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_bytes(content.encode() if isinstance(content, str) else content)
        except OSError as error:
            raise _failed("write", error) from error

    def read(self, path: str, **options: Any) -> bytes:
        self._reached()
        try:
            return Path(path).read_bytes()
        except FileNotFoundError as error:
            raise ResourceNotFoundError(f"no {path}", resource_type="file") from error
        except OSError as error:
            raise _failed("read", error) from error

    def _reached(self) -> None:
        if self.is_gone:
            raise SandboxConnectionError("gone")


def _failed(operation: str, error: OSError) -> SandboxOperationError:
    kind = "PermissionDenied" if isinstance(error, PermissionError) else f"{operation.capitalize()}Error"
    return SandboxOperationError(str(error), operation, kind)


@dataclass
class Hub:
    """Answers like a `langsmith.Client` about one repository."""

    entries: dict[str, Any] = field(default_factory=dict[str, Any])
    commits: list[str] = field(default_factory=list[str])
    pulled: int = 0
    failure: Exception | None = None
    address: str = "https://smith.example/context/agent/{commit}?organizationId=o"
    lock: Any = field(default_factory=Lock)

    def pull_agent(self, identifier: str, *, version: str | None = None) -> AgentContext:
        with self.lock:
            self._reached()
            self.pulled += 1
            if not self.commits:
                raise LangSmithNotFoundError("none such")
            return AgentContext(
                commit_id=uuid.uuid4(), commit_hash=self.commits[-1], files=dict(self.entries)
            )

    def push_agent(self, identifier: str, *, files: dict[str, Any], parent_commit: str | None = None) -> str:
        with self.lock:
            self._reached()
            if parent_commit != (self.commits[-1][:8] if self.commits else None) and (
                not self.commits or parent_commit != self.commits[-1]
            ):
                raise LangSmithConflictError("another commit came first")
            return self.address.format(commit=self.commit(files)[:8])

    def commit(self, files: dict[str, Any]) -> str:
        """Take a commit of anybody."""
        for path, entry in files.items():
            self.entries.pop(path, None)
            if entry is not None:
                self.entries[path] = entry
        self.commits.append(uuid.uuid4().hex)
        return self.commits[-1]

    def texts(self) -> dict[str, str]:
        """Return all files."""
        return {path: each.content for path, each in self.entries.items() if isinstance(each, FileEntry)}

    def _reached(self) -> None:
        if self.failure is not None:
            raise self.failure
