"""What older backends answer (lists, text, results without a code) as the results of today."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, cast, get_args

from deepagents.backends.results import (
    DeleteResult,
    EditResult,
    ExecuteResponse,
    FileDownloadResponse,
    FileInfo,
    FileUploadResponse,
    GlobResult,
    GrepResult,
    LsResult,
    ReadResult,
    WriteResult,
)
from deepagents.errors import BackendError, ErrorCode

_CODES: Final = frozenset(get_args(ErrorCode))
_NUMBERED: Final = re.compile(r" *(\d+)(\.\d+)?(?:\t|  )(.*)", re.DOTALL)


@dataclass
class NumberedRead(ReadResult):
    """A page of a backend that numbers lines itself; `file_data` holds it without, where that is clear."""

    numbered: str = ""


_RESULTS: Final[Mapping[str, type[Any]]] = {
    "ls": LsResult,
    "read": ReadResult,
    "grep": GrepResult,
    "glob": GlobResult,
    "write": WriteResult,
    "append": WriteResult,
    "edit": EditResult,
    "delete": DeleteResult,
    "execute": ExecuteResponse,
}
_ABOUT_A_FILE: Final[Mapping[str, tuple[type[Any], str]]] = {
    "upload_files": (FileUploadResponse, "error"),
    "download_files": (FileDownloadResponse, "content"),
}


def is_older(method: str, answer: object) -> bool:
    """Tell whether a method answered with a list or text where a result is the answer today."""
    return method in _RESULTS and isinstance(answer, (list, tuple, str))


def coerce(method: str, answer: Any) -> Any:
    """Return what a method answered as the result that it answers today.

    Raises:
        BackendError: `io_error` when it is no answer of any version.
    """
    if method not in _RESULTS:
        return answer
    current = _result(method, answer) if is_older(method, answer) else answer
    if not hasattr(current, "output" if method == "execute" else "error"):
        wanted = _RESULTS[method].__name__
        raise BackendError("io_error", f"{method} answered with a {type(answer).__name__}, not a {wanted}.")
    return _coded(current)


def one_for_each(method: str, files: Any, answer: Any) -> Any:
    """Return one answer for each file of a transfer; of what a backend leaves out, that it did.

    Raises:
        BackendError: `io_error` when these are no answers.
    """
    if method not in _ABOUT_A_FILE:
        return answer
    response, field = _ABOUT_A_FILE[method]
    if not isinstance(answer, (list, tuple)):
        raise _no_list(method, answer, response)
    answers = list(cast("Iterable[Any]", answer))[: len(files)]
    for each in answers:
        if not (hasattr(each, "error") and hasattr(each, field)):
            raise _no_list(method, each, response)
    for left_out in files[len(answers) :]:
        path = left_out if isinstance(left_out, str) else left_out[0]
        answers.append(response(path, error="io_error: the backend gave no answer for this file"))
    return answers


def _no_list(method: str, answer: object, wanted: type[Any]) -> BackendError:
    return BackendError(
        "io_error", f"{method} answered with a {type(answer).__name__}, not with a list of {wanted.__name__}."
    )


def _result(method: str, answer: Any) -> Any:
    if isinstance(answer, str):
        return _said(method, answer)
    match method:
        case "grep":
            return GrepResult(matches=list(answer))
        case "ls":
            return LsResult(entries=_infos(answer))
        case "glob":
            return GlobResult(matches=_infos(answer))
        case _:
            return answer


def _said(method: str, text: str) -> Any:
    match method:
        case "read":
            return _page(text)
        case "execute":
            return ExecuteResponse(text)
        case "ls":
            return LsResult(error=text)
        case "grep":
            return GrepResult(error=text)
        case "glob":
            return GlobResult(error=text)
        case _:
            return text


def _infos(entries: Iterable[FileInfo | str]) -> list[FileInfo]:
    return [FileInfo(path=each) if isinstance(each, str) else each for each in entries]


def _coded(result: Any) -> Any:
    error: object = getattr(result, "error", None)
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
