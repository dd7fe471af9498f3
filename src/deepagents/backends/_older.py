"""Serve older forms of a backend's methods: names that they had, and lists or text that they answered with.

Backends may be written in any of these forms, and all of them are read as the results of today.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, cast, get_args

from deepagents._async import await_thread
from deepagents._deprecation import warn_legacy
from deepagents.backends._signatures import overrides, signature_of
from deepagents.backends.results import (
    DeleteResult,
    EditResult,
    ExecuteResponse,
    FileDownloadResponse,
    FileInfo,
    FileUploadResponse,
    GlobResult,
    GrepMatch,
    GrepResult,
    LsResult,
    ReadResult,
    WriteResult,
)
from deepagents.errors import AwaitableOnly, BackendError, ErrorCode

OLDER_NAME: Final[Mapping[str, str]] = {"ls": "ls_info", "grep": "grep_raw", "glob": "glob_info"}
_CODES: Final = frozenset(get_args(ErrorCode))
_NUMBERED: Final = re.compile(r" *(\d+)(\.\d+)?(?:\t|  )(.*)", re.DOTALL)


class OlderNames:
    """`ls_info`, `grep_raw` and `glob_info`, which answer with lists, on every backend.

    A subclass that implements only these is found by today's names as well.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name, older in OLDER_NAME.items():
            own = [each for each in (older, f"a{older}") if _brings(cls, each)]
            if own and not overrides(cls, name) and not overrides(cls, f"a{name}"):
                text = f"{cls.__name__} implements {', '.join(own)}()"
                warn_legacy(f"{text}: implement {name}() instead, which answers with a result.")

    def ls_info(self, path: str) -> list[FileInfo]:
        """List one directory; write `ls` today."""
        return _entries_or_raise(_find_current(self, "ls")(path), "entries")

    async def als_info(self, path: str) -> list[FileInfo]:
        """List one directory; write `als` today."""
        return _entries_or_raise(await _find_current(self, "als")(path), "entries")

    def grep_raw(
        self, pattern: str, path: str | None = None, glob: str | None = None
    ) -> list[GrepMatch] | str:
        """Find lines, or say what is wrong; write `grep` today."""
        return _matches_or_error(_find_current(self, "grep")(pattern, path, glob))

    async def agrep_raw(
        self, pattern: str, path: str | None = None, glob: str | None = None
    ) -> list[GrepMatch] | str:
        """Find lines, or say what is wrong; write `agrep` today."""
        return _matches_or_error(await _find_current(self, "agrep")(pattern, path, glob))

    def glob_info(self, pattern: str, path: str = "/") -> list[FileInfo]:
        """Find files; write `glob` today."""
        return _entries_or_raise(_find_current(self, "glob")(pattern, path), "matches")

    async def aglob_info(self, pattern: str, path: str = "/") -> list[FileInfo]:
        """Find files; write `aglob` today."""
        return _entries_or_raise(await _find_current(self, "aglob")(pattern, path), "matches")


def _brings(backend: type, method: str) -> bool:
    """Return whether a method came with this class, and not already with a backend that it inherits from."""
    definer = next((each for each in backend.__mro__ if method in vars(each)), None)
    return definer is backend or (definer is not None and not issubclass(definer, OlderNames))


def call_by_older_name(backend: object, method: str, argument: str, **keywords: Any) -> Any:
    """Do what `method` does through its older name.

    Raises:
        NotImplementedError: when that is not there either.
    """
    older = OLDER_NAME[method]
    if overrides(type(backend), older):
        return coerce(method, _call(backend, older, argument, **keywords))
    raise lacks(backend, method)


async def await_blocking(backend: object, method: str, *positional: Any, **keywords: Any) -> Any:
    """Await a blocking method in a thread of its own, or the awaiting one of its older name."""
    older = f"a{OLDER_NAME.get(method, '')}"
    if overrides(type(backend), older) and not overrides(type(backend), method):
        # The older methods were written before options such as `allowed` and `max_count`.
        known = {name: value for name, value in keywords.items() if name in ("path", "glob")}
        return coerce(method, await _call(backend, older, *positional, **known))
    return await await_thread(lambda: _call(backend, method, *positional, **keywords))


def _call(backend: object, name: str, *positional: Any, **keywords: Any) -> Any:
    """Call a method with the parameters that the protocol names; backends may give them other names."""
    if name.endswith("glob_info"):
        # Its path had a default, and `None` would be taken for a name.
        keywords["path"] = keywords.get("path") or "/"
    return signature_of(type(backend), name).call(getattr(backend, name), positional, keywords)


def lacks(backend: object, method: str) -> NotImplementedError:
    """Make the error for a method that a backend lacks, or has only in the form that is awaited."""
    text = f"{type(backend).__name__} does not implement {method}()"
    awaiting = (f"a{method}", f"a{OLDER_NAME.get(method, '')}")
    if any(overrides(type(backend), name) for name in awaiting):
        return AwaitableOnly(f"{text}, only {awaiting[0]}(): run the agent with ainvoke() or astream()")
    return NotImplementedError(text)


def _find_current(backend: object, name: str) -> Any:
    """Return the method that goes by this name today, and say so."""
    older = OLDER_NAME.get(name) or f"a{OLDER_NAME[name[1:]]}"
    warn_legacy(f"{older}() is deprecated: call {name}(), which answers with a result.")
    return getattr(backend, name)


def _entries_or_raise(result: Any, kind: str) -> list[FileInfo]:
    if result.error:
        raise NotImplementedError(result.error)
    return list(getattr(result, kind) or ())


def _matches_or_error(result: Any) -> list[GrepMatch] | str:
    return result.error or list(result.matches or ())


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
_TRANSFERS: Final[Mapping[str, tuple[type[Any], str]]] = {
    "upload_files": (FileUploadResponse, "error"),
    "download_files": (FileDownloadResponse, "content"),
}


def is_older(method: str, answer: object) -> bool:
    """Return whether a method answered with a list or text where a result is the answer today."""
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
    return _with_code(current)


def complete_transfer(method: str, files: Any, answer: Any) -> Any:
    """Return one answer for each file of a transfer, also for those that the backend left out.

    Raises:
        BackendError: `io_error` when these are no answers.
    """
    response, field = _TRANSFERS[method]
    if not isinstance(answer, (list, tuple)):
        raise _not_a_list(method, answer, response)
    answers = list(cast("Iterable[Any]", answer))[: len(files)]
    for each in answers:
        if not (hasattr(each, "error") and hasattr(each, field)):
            raise _not_a_list(method, each, response)
    # Callers pair files with answers by position, so a short list would shift or lose errors.
    for left_out in files[len(answers) :]:
        path = left_out if isinstance(left_out, str) else left_out[0]
        answers.append(response(path, error="io_error: the backend gave no answer for this file"))
    return answers


def _not_a_list(method: str, answer: object, wanted: type[Any]) -> BackendError:
    return BackendError(
        "io_error", f"{method} answered with a {type(answer).__name__}, not with a list of {wanted.__name__}."
    )


def _result(method: str, answer: Any) -> Any:
    if isinstance(answer, str):
        return _text_result(method, answer)
    match method:
        case "grep":
            return GrepResult(matches=list(answer))
        case "ls":
            return LsResult(entries=_as_infos(answer))
        case "glob":
            return GlobResult(matches=_as_infos(answer))
        case _:
            return answer


def _text_result(method: str, text: str) -> Any:
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


def _as_infos(entries: Iterable[FileInfo | str]) -> list[FileInfo]:
    return [FileInfo(path=each) if isinstance(each, str) else each for each in entries]


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
