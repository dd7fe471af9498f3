"""Read what backends of any version answer as the results of today."""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final, cast, get_args

from deepagents._deprecation import warn_legacy
from deepagents._state.runtime import has_channel, in_graph, write_channel
from deepagents._values import recordclass, replace
from deepagents.backends._signatures import overrides
from deepagents.backends.operations import Download, Operation, Upload
from deepagents.backends.protocol import BackendProtocol
from deepagents.backends.results import (
    ExecuteResponse,
    FileInfo,
    GlobResult,
    GrepResult,
    LsResult,
    ReadResult,
)
from deepagents.errors import BackendError, ErrorCode

_FILES: Final = "files"
_CODES: Final = frozenset(get_args(ErrorCode))
_NUMBERED: Final = re.compile(r" *(\d+)(\.\d+)?(?:\t|  )(.*)", re.DOTALL)


@recordclass
class NumberedRead(ReadResult):
    """A page of a backend that numbers lines itself; `file_data` holds it without, where that is clear."""

    numbered: str = ""


_LISTS: Final[Mapping[Any, str]] = {LsResult: "entries", GrepResult: "matches", GlobResult: "matches"}


def as_current_result(backend: BackendProtocol, op: Operation, answer: Any) -> Any:
    """Return an answer as today's result, and put files that it hands back into the graph's state.

    Raises:
        BackendError: `io_error` for what no version answers, and for files that there is no channel for.
    """
    if isinstance(op, (Upload, Download)):
        return _complete_transfer(op, answer)
    # Commands in the background are newer than any of this.
    if op.result is None:
        return answer
    if isinstance(answer, (list, tuple, str)):
        _warn_answer(type(backend), op.method)
    result = coerce(type(op), answer)
    files: object = getattr(result, "files_update", None)
    if not isinstance(files, Mapping) or not in_graph():
        return result
    if not has_channel(_FILES):
        raise BackendError(
            "io_error",
            f"{op.method} handed back files for the graph's state, which keeps none: let the backend's "
            "capabilities say state_files=True.",
        )
    write_channel(_FILES, dict(cast("Mapping[str, Any]", files)))
    return replace(result, files_update=None)


@lru_cache(maxsize=256)
def _warn_answer(kind: type[BackendProtocol], method: str) -> None:
    """Warn once for each method of a class, at the line where it is written."""
    text = f"{kind.__name__}.{method}() answers with a list or text: answer with a result."
    function: Any = inspect.unwrap(getattr(kind, method if overrides(kind, method) else f"a{method}"))
    # A compiled function has no line of its own, so the warning points at the caller.
    code = getattr(function, "__code__", None)
    if code is None:
        warn_legacy(text)
        return
    warnings.warn_explicit(text, DeprecationWarning, code.co_filename, code.co_firstlineno, kind.__module__)


def coerce(kind: type[Operation], answer: Any) -> Any:
    """Return what a method answered as the result that it answers today.

    Raises:
        BackendError: `io_error` when it is not an answer of any version.
    """
    wanted: Any = kind.result
    current = answer
    if isinstance(answer, str):
        current = _read_text(wanted, answer)
    elif isinstance(answer, (list, tuple)) and wanted in _LISTS:
        current = wanted(**{_LISTS[wanted]: [_as_entry(each) for each in cast("list[Any]", answer)]})
    if not hasattr(current, "output" if wanted is ExecuteResponse else "error"):
        raise _unknown(kind, cast("object", answer), f"not a {wanted.__name__}")
    return _with_code(current)


def _read_text(wanted: Any, text: str) -> Any:
    if wanted is ReadResult:
        return _page(text)
    if wanted is ExecuteResponse:
        return ExecuteResponse(text)
    return wanted(error=text) if wanted in _LISTS else text


def _as_entry(entry: Any) -> Any:
    return FileInfo(path=entry) if isinstance(entry, str) else entry


def _complete_transfer(op: Upload | Download, answer: Any) -> list[Any]:
    """Return one answer for each file of a transfer, also for those that the backend left out.

    Raises:
        BackendError: `io_error` when these are not answers.
    """
    kind, wanted = type(op), f"not with a list of {op.result.__name__}"
    if not isinstance(answer, (list, tuple)):
        raise _unknown(kind, answer, wanted)
    answers = list(cast("Iterable[Any]", answer))[: len(op.files)]
    for each in answers:
        if not (hasattr(each, "error") and (isinstance(op, Upload) or hasattr(each, "content"))):
            raise _unknown(kind, each, wanted)
    # Callers pair files with answers by position, so a short list would shift or lose errors.
    error = "the backend did not answer for this file"
    return answers + [op.result(path, error=error) for path in op.paths[len(answers) :]]


def _unknown(kind: type[Operation], answer: object, wanted: str) -> BackendError:
    return BackendError("io_error", f"{kind.method} answered with a {type(answer).__name__}, {wanted}.")


def _with_code(result: Any) -> Any:
    error: object = getattr(result, "error", None)
    # Backends that know no codes put them into `error`; `none` stands for results without the field.
    if getattr(result, "code", "none") is None and error in _CODES:
        return replace(result, code=cast("ErrorCode", error))
    return result


def _page(text: str) -> ReadResult:
    if text.startswith("Error"):
        return ReadResult(error=text)
    rows = [_NUMBERED.fullmatch(line) for line in text.removesuffix("\n").split("\n")]
    lines = _without_numbers([row for row in rows if row is not None])
    if lines is None or None in rows:
        return NumberedRead(file_data={"content": text, "encoding": "utf-8"}, numbered=text)
    start, content = lines
    return NumberedRead(
        file_data={"content": "\n".join(content), "encoding": "utf-8"},
        start_line=start,
        end_line=start + len(content) - 1,
        numbered=text,
    )


def _without_numbers(rows: list[re.Match[str]]) -> tuple[int, list[str]] | None:
    """Join the pieces of long lines and drop the numbers, when these count up without a gap."""
    lines: list[str] = []
    start = int(rows[0][1]) if rows else 0
    for row in rows:
        due = start + len(lines)
        if row[2] and int(row[1]) == due - 1:
            lines[-1] += row[3]
        elif not row[2] and int(row[1]) == due:
            lines.append(row[3])
        else:
            return None
    return (start, lines) if start > 0 else None
