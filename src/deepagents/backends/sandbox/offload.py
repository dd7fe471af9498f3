"""Commands whose output is kept in a file inside the sandbox, so that it need not be carried out of it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from deepagents._flow import Call, Flow
from deepagents._text import split_lines
from deepagents.backends.protocol import SandboxBackendProtocol, execute_accepts_timeout
from deepagents.backends.results import ExecuteOffloadResult, ExecuteResponse
from deepagents.backends.sandbox.codec import Answer, command, decode, text_of
from deepagents.errors import BackendError

EXECUTE_CAPTURE_MAX_BYTES: Final = 10 << 20

_HEAD_LINES = 10
_TAIL_LINES = 5
_SHOWN_BYTES = 4000
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Capture:
    """A command, and the file that its output goes to when it is longer than `most_inline` bytes."""

    sandbox: SandboxBackendProtocol
    command: str
    timeout: int | None
    root: str
    path: str
    most_inline: int
    most_kept: int = EXECUTE_CAPTURE_MAX_BYTES

    def plain(self) -> Flow[ExecuteOffloadResult]:
        """Run the command and take its output as it comes."""
        response = yield from self._execute(self.command)
        return ExecuteOffloadResult(offloaded=False, response=response)

    def kept(self) -> Flow[ExecuteOffloadResult]:
        """Run the command, once, and keep a long output in the file."""
        params = {
            "root": self.root, "path": self.path, "command": self.command, "most_inline": self.most_inline,
            "most_kept": self.most_kept, "most_shown": _SHOWN_BYTES,
        }  # fmt: skip
        response = yield from self._execute(command("capture", params))
        try:
            answer = decode(response, self.root)
        except BackendError as error:
            if error.code == "not_supported":
                return (yield from self.plain())
            _log.warning("The output of a command could not be kept in a file: %s", error)
            return ExecuteOffloadResult(offloaded=False, response=response)
        match answer.end.get("code"):
            case None:
                return _result(answer, response.truncated)
            case "not_kept":
                lost = f"[The output could not be kept: {answer.end['text']}]"
                return ExecuteOffloadResult(False, ExecuteResponse(lost, answer.end["exit"], truncated=True))
            case _:
                return (yield from self.plain())

    def _execute(self, line: str) -> Flow[ExecuteResponse]:
        accepted = self.timeout is not None and execute_accepts_timeout(type(self.sandbox))
        options: Mapping[str, Any] = {"timeout": self.timeout} if accepted else {}
        return (
            yield from Call(
                lambda: self.sandbox.execute(line, **options), lambda: self.sandbox.aexecute(line, **options)
            )
        )


def _result(answer: Answer, truncated: bool) -> ExecuteOffloadResult:
    end = answer.end
    truncated = truncated or end["seen"] > end["kept"]
    if "data" in end:
        whole = _text(end["data"])
        return ExecuteOffloadResult(False, ExecuteResponse(whole, end["exit"], truncated))
    preview, is_marked = _preview(end)
    return ExecuteOffloadResult(True, ExecuteResponse(preview, end["exit"], truncated), is_marked)


def _preview(end: Mapping[str, Any]) -> tuple[str, bool]:
    """Show the first 10 and the last 5 lines, or of fewer and longer lines the first bytes."""
    head, tail = _text(end["head"]), _text(end["tail"])
    if end["lines"] <= _HEAD_LINES + _TAIL_LINES:
        return f"{head}\n... [the rest was cut]", False
    is_joined = end["tail_at"] == len(text_of(end["head"]))
    first = split_lines(head + tail if is_joined else head)[:_HEAD_LINES]
    last = split_lines(head + tail if is_joined else tail)[-_TAIL_LINES:]
    marker = f"... [{end['lines'] - len(first) - len(last)} lines truncated] ..."
    return "\n".join([*first, marker, *last]), True


def _text(data: str) -> str:
    return text_of(data).decode("utf-8", "replace")
