"""Run a shell command."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine, Mapping
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from typing import Any, Final, Protocol, TypeVar
from uuid import uuid4

from pydantic import Field

from deepagents._async import IOCall
from deepagents._paths import LARGE_RESULTS
from deepagents._state.runtime import emit, emit_anywhere
from deepagents.backends.handle import OutputCapture
from deepagents.backends.results import ExecuteArtifact, ExecuteResponse
from deepagents.errors import ToolFailure
from deepagents.tools._arguments import Arguments
from deepagents.tools._command_events import OutputEvents
from deepagents.tools._tool import ToolContext, ToolOutput, ToolSpec, artifact_name, read_on
from deepagents.tools.background import start_in_background

T = TypeVar("T")
_REPLACEMENT_CHARACTER: Final = "\ufffd"
_GRACE: Final = 30
"""Seconds beyond the longest command in which a backend may still answer."""
_LOOK_FIRST: Final = (
    "It was not started again. Look at what it has left, and call execute again if it is still needed."
)


class CommandRecord(Protocol):
    """Remembers, beyond a crash, which commands of a run have begun and ended."""

    async def begin(self, call_id: str) -> str | None:
        """Note that the command of a call begins; if it did before a crash, tell what is known."""
        ...

    async def end(self, call_id: str, exit_code: int | None) -> None:
        """Note that the command of a call is over."""
        ...


COMMAND_RECORD: ContextVar[CommandRecord | None] = ContextVar("command_record", default=None)
"""Set by what goes on with a run after a crash, as the server does."""


class ExecuteSchema(Arguments):
    """The arguments of `execute`."""

    command: str = Field(description="Shell command; quote paths that hold spaces.")
    timeout: int | None = Field(default=None, description="Seconds.")


class BackgroundExecuteSchema(ExecuteSchema):
    """The arguments of `execute` where commands can run in the background."""

    background: bool = Field(default=False, description="Return at once with an id; see read_command.")


async def _execute(
    context: ToolContext, command: str, timeout: int | None = None, background: bool = False
) -> ToolOutput:
    if not context.files.capabilities().execute:
        raise ToolFailure(
            "not_supported",
            "Execution not available. The backend cannot run commands; use a sandbox backend or "
            "LocalShellBackend.",
        )
    _check_timeout(timeout, context.limits.execute_seconds)
    record = COMMAND_RECORD.get()
    if record is None:
        return await _run(context, command, timeout, background)
    if known := await _call(partial(record.begin, context.call_id)):
        raise ToolFailure("result_lost", f"{known} {_LOOK_FIRST}")
    try:
        output = await _run(context, command, timeout, background)
    except Exception:
        await _call(partial(record.end, context.call_id, None))
        raise
    artifact: Mapping[str, Any] = output.artifact or {}
    await _call(partial(record.end, context.call_id, artifact.get("exit_code")))
    return output


def _call(method: Callable[[], Coroutine[Any, Any, T]]) -> IOCall[T]:
    return IOCall(lambda: asyncio.run(method()), method)


async def _run(context: ToolContext, command: str, timeout: int | None, background: bool) -> ToolOutput:
    if background:
        return await start_in_background(context, command, timeout)
    keep, seconds = _keep(context), context.limits.execute_seconds + _GRACE
    show = OutputEvents(context.call_id, emit=emit_anywhere())
    ran = await context.files.execute(command, timeout, seconds, keep, show)
    for sentence in ran.response.refused:
        emit("host_refused", call_id=context.call_id, text=sentence)
    artifact = ExecuteArtifact(truncated=ran.response.truncated)
    if ran.response.exit_code is not None:
        artifact["exit_code"] = ran.response.exit_code
    if not ran.offloaded or keep is None:
        return ToolOutput(_report(ran.response), artifact=artifact)
    artifact["output_file"] = keep.path
    return ToolOutput(_report_saved(ran.response, context.paths.show(keep.path)), artifact=artifact)


def _check_timeout(timeout: int | None, most: int) -> None:
    if timeout is not None and timeout < 0:
        raise ToolFailure("invalid_argument", f"timeout must be non-negative, got {timeout}")
    if timeout is not None and timeout > most:
        raise ToolFailure("invalid_argument", f"timeout {timeout} s exceeds maximum allowed ({most} s)")


def _keep(context: ToolContext) -> OutputCapture | None:
    """Return where a sandbox may leave long output, so that only a preview of it is carried here."""
    most = context.limits.result_characters
    if most is None:
        return None
    root = context.files.capabilities().artifacts_root.rstrip("/")
    return OutputCapture(f"{root}/{LARGE_RESULTS}/{artifact_name(context.call_id, uuid4().hex[:12])}", most)


def _report_saved(response: ExecuteResponse, path: str) -> str:
    how_much = "the beginning of it" if response.truncated else "all of it"
    # Bytes that are not text arrive as replacement characters; a zero makes `read_on` see them.
    how = read_on(response.output.replace(_REPLACEMENT_CHARACTER, "\0"))
    notice = f"Tool result too large, so {how_much} was saved to the file {path}\n{how}"
    return f"{notice}\nIts beginning and end:\n\n{_report(response)}"


def _report(response: ExecuteResponse) -> str:
    lines = [response.output]
    if response.exit_code is not None and not _states_exit_code(response):
        verdict = "succeeded" if response.exit_code == 0 else "failed"
        lines.append(f"[Command {verdict} with exit code {response.exit_code}]")
    if response.truncated:
        lines.append("[Output was truncated due to size limits]")
    return "\n".join(lines)


def _states_exit_code(response: ExecuteResponse) -> bool:
    # Backends such as the local shell write the exit code themselves, which need not be read twice.
    last = response.output.rstrip().rpartition("\n")[2]
    return re.match(rf"Exit code: {response.exit_code}\b", last) is not None


EXECUTE = ToolSpec(
    "execute",
    "Run a shell command. Use absolute paths. To read, find or change files prefer the file tools.",
    ExecuteSchema,
    _execute,
    effect="run",
    summary_arguments=("command",),
)
EXECUTE_IN_BACKGROUND = replace(EXECUTE, args=BackgroundExecuteSchema)
"""The same tool where the backend can run commands in the background."""
