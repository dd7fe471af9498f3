"""Keep the output of commands in a file inside the sandbox, so that it need not be carried out of it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from langgraph.errors import GraphBubbleUp

from deepagents._async import IOCall, in_thread
from deepagents._text import split_lines
from deepagents._values import field, recordclass, replace, valueclass
from deepagents.backends._signatures import method_facts
from deepagents.backends.protocol import OnOutput, SandboxBackendProtocol, execute_accepts_timeout
from deepagents.backends.results import ExecuteOffloadResult, ExecuteResponse
from deepagents.backends.sandbox.codec import MARK, Answer, command, decode, join_chunks, pieces, unpack
from deepagents.errors import BackendError

EXECUTE_CAPTURE_MAX_BYTES: Final = 10 << 20

_HEAD_LINES = 10
_TAIL_LINES = 5
_SHOWN_BYTES = 4000
_LOOK_SECONDS = 30
_log = logging.getLogger(__name__)


@valueclass
class Capture:
    """A command, and the file that its output goes to when it is longer than `most_inline` bytes."""

    sandbox: SandboxBackendProtocol
    command: str
    timeout: int | None
    root: str
    path: str
    most_inline: int
    most_kept: int = EXECUTE_CAPTURE_MAX_BYTES
    on_output: OnOutput | None = None

    async def plain(self) -> ExecuteOffloadResult:
        """Run the command and take its output as it comes."""
        response = await self._execute(self.command, self.on_output, self.timeout)
        return ExecuteOffloadResult(offloaded=False, response=response)

    async def keep(self) -> ExecuteOffloadResult:
        """Run the command, once, and keep a long output in the file."""
        try:
            line = self._line(self.command)
        except BackendError:
            return await self.plain()
        response = await self._execute(
            line, _Pieces(self.on_output) if self.on_output else None, self.timeout
        )
        try:
            answer = decode(response, self.root)
        except BackendError as error:
            if error.code == "not_supported":
                return await self.plain()
            # The command has run, perhaps with effects, so it must not be run again for its output.
            return await self._recover(response)
        if "code" in answer.end:
            return await self.plain()
        return _result(answer, response.truncated, answer.end["exit"])

    def _line(self, text: str | None) -> str:
        params = {
            "root": self.root, "path": self.path, "command": text, "most_inline": self.most_inline,
            "most_kept": self.most_kept, "most_shown": _SHOWN_BYTES,
            # As much as may come back at the end: what is kept inside is not carried out piece by piece.
            "most_streamed": self.most_inline if self.on_output else 0,
        }  # fmt: skip
        return command("capture", params)

    async def _recover(self, response: ExecuteResponse) -> ExecuteOffloadResult:
        """Find what a command that was broken off had printed until then."""
        rest = "\n".join(line for line in response.output.split("\n") if MARK not in line).strip("\r\n")
        as_printed = ExecuteOffloadResult(False, replace(response, output=rest))
        try:
            found = await self._execute(self._line(None), None, _LOOK_SECONDS)
            answer = decode(found, self.root)
        except Exception as error:
            if isinstance(error, GraphBubbleUp):
                raise
            _log.warning("The output of a command could not be kept in a file", exc_info=error)
            return as_printed
        if "code" in answer.end:
            return as_printed
        cut = response.truncated or answer.end["kept"] >= self.most_kept
        result = _result(answer, cut, response.exit_code)
        before = result.response.output
        between = "\n" if rest and before and not before.endswith(("\n", "\r")) else ""
        return replace(result, response=replace(result.response, output=f"{before}{between}{rest}"))

    async def _execute(self, line: str, on_output: OnOutput | None, timeout: int | None) -> ExecuteResponse:
        kind = type(self.sandbox)
        options: dict[str, Any] = {}
        if timeout is not None and execute_accepts_timeout(kind):
            options["timeout"] = timeout
        if on_output:
            options["on_output"] = on_output

        def block() -> ExecuteResponse:
            return self.sandbox.execute(line, **options)

        # The protocol's own `aexecute` takes none of the options that an `execute` may have.
        if on_output and method_facts(kind, "execute").awaiting is None:
            return await in_thread(block)
        return await IOCall(block, lambda: self.sandbox.aexecute(line, **options))


@recordclass
class _Pieces:
    """Finds the pieces of a command's output in what its wrapper prints while it runs."""

    on_output: OnOutput
    _begun: dict[str, str] = field(default_factory=dict[str, str])

    def __call__(self, text: str, stream: str) -> None:
        *lines, self._begun[stream] = (self._begun.get(stream, "") + text).split("\n")
        for each in pieces("\n".join(lines)):
            self.on_output(each, "stdout")


def _result(answer: Answer, truncated: bool, exit_code: int | None) -> ExecuteOffloadResult:
    end = answer.end
    truncated = truncated or end["seen"] > end["kept"] or not answer.whole
    if "head" not in end:
        whole = join_chunks(answer).decode("utf-8", "replace")
        return ExecuteOffloadResult(False, ExecuteResponse(whole, exit_code, truncated))
    if problem := end["problem"]:
        between = "" if end["joined"] else f"\n... [what stood here could not be kept: {problem}] ...\n"
        preview, is_marked = f"{_text(end['head'])}{between}{_text(end['tail'])}", False
    else:
        preview, is_marked = _preview(end)
    response = ExecuteResponse(preview, exit_code, truncated or bool(end["problem"]))
    return ExecuteOffloadResult(not end["problem"], response, is_marked)


def _preview(end: Mapping[str, Any]) -> tuple[str, bool]:
    """Show the first 10 and the last 5 lines, or of fewer and longer lines the first bytes."""
    head, tail = _text(end["head"]), _text(end["tail"])
    if end["lines"] <= _HEAD_LINES + _TAIL_LINES:
        return f"{head}\n... [the rest was cut]", False
    first = split_lines(head + tail if end["joined"] else head)[:_HEAD_LINES]
    last = split_lines(head + tail if end["joined"] else tail)[-_TAIL_LINES:]
    marker = f"... [{end['lines'] - len(first) - len(last)} lines truncated] ..."
    return "\n".join([*first, marker, *last]), True


def _text(data: str) -> str:
    return unpack(data).decode("utf-8", "replace")
