"""Run a shell command."""

from __future__ import annotations

import re
from uuid import uuid4

from pydantic import BaseModel, Field

from deepagents.backends.calls import Keep
from deepagents.backends.results import ExecuteArtifact, ExecuteResponse
from deepagents.errors import ToolFailure
from deepagents.tools._tool import (
    CHARACTERS_PER_TOKEN,
    ToolContext,
    ToolOutput,
    ToolSpec,
    artifact_name,
    read_on,
)

_NO_CHARACTER = "\ufffd"
_GRACE = 30
"""Seconds beyond the longest command in which a backend may still answer."""


class ExecuteSchema(BaseModel):
    """What `execute` takes."""

    command: str = Field(description="Shell command; quote paths that hold spaces.")
    timeout: int | None = Field(default=None, description="Seconds.")


async def _execute(desk: ToolContext, command: str, timeout: int | None = None) -> ToolOutput:
    if not desk.files.capabilities().execute:
        raise ToolFailure(
            "not_supported",
            "Execution not available. The backend cannot run commands; use a sandbox backend or "
            "LocalShellBackend.",
        )
    asked = None if timeout is None else _allowed(desk, timeout)
    keep = _keep(desk)
    ran = await desk.files.execute(command, asked, desk.limits.execute_seconds + _GRACE, keep)
    if not ran.offloaded or keep is None:
        return ToolOutput(_report(ran.response), artifact=_artifact(ran.response))
    artifact = _artifact(ran.response)
    artifact["output_file"] = keep.path
    return ToolOutput(_kept_report(ran.response, keep.path), artifact=artifact)


def _keep(desk: ToolContext) -> Keep | None:
    if not desk.limits.result_tokens:
        return None
    root = desk.files.capabilities().artifacts_root.rstrip("/")
    name = artifact_name(desk.call_id, uuid4().hex[:12])
    return Keep(f"{root}/large_tool_results/{name}", desk.limits.result_tokens * CHARACTERS_PER_TOKEN)


def _kept_report(response: ExecuteResponse, path: str) -> str:
    how_much = "the beginning of it" if response.truncated else "all of it"
    how = read_on(response.output.replace(_NO_CHARACTER, "\0"))
    said = f"Tool result too large, so {how_much} was saved to the file {path}\n{how}"
    return f"{said}\nIts beginning and end:\n\n{_report(response)}"


def _allowed(desk: ToolContext, timeout: int) -> int:
    most = desk.limits.execute_seconds
    if timeout < 0:
        raise ToolFailure("invalid_argument", f"timeout must be non-negative, got {timeout}")
    if timeout > most:
        raise ToolFailure("invalid_argument", f"timeout {timeout} s exceeds maximum allowed ({most} s)")
    return timeout


def _report(response: ExecuteResponse) -> str:
    said = [response.output]
    if response.exit_code is not None and not _says_so_itself(response):
        verdict = "succeeded" if response.exit_code == 0 else "failed"
        said.append(f"[Command {verdict} with exit code {response.exit_code}]")
    if response.truncated:
        said.append("[Output was truncated due to size limits]")
    return "\n".join(said)


def _says_so_itself(response: ExecuteResponse) -> bool:
    last = response.output.rstrip().rpartition("\n")[2]
    return re.match(rf"Exit code: {response.exit_code}\b", last) is not None


def _artifact(response: ExecuteResponse) -> ExecuteArtifact:
    artifact = ExecuteArtifact(truncated=response.truncated)
    if response.exit_code is not None:
        artifact["exit_code"] = response.exit_code
    return artifact


EXECUTE = ToolSpec(
    "execute",
    "Run a shell command. Use absolute paths. To read, find or change files prefer the file tools.",
    ExecuteSchema,
    _execute,
)
