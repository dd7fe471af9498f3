"""Make results of what the programs in a sandbox answered."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from deepagents._text import name_edit, past_end, replace_each, to_lf
from deepagents.backends._bytes import whole_characters
from deepagents.backends._query import make_match, too_slow
from deepagents.backends._refusals import already_there, not_a_file, not_listable, not_text, stale_version
from deepagents.backends.operations import Edit
from deepagents.backends.protocol import Allowed
from deepagents.backends.results import (
    FileData,
    FileInfo,
    GlobResult,
    GrepResult,
    LsResult,
    ReadResult,
    describe_unread,
)
from deepagents.backends.sandbox.codec import Answer, join_chunks, unpack
from deepagents.errors import BackendError, ErrorCode

TRUNCATION_MSG = "\n[Output was truncated: this line is longer than what can be read at once.]"

IsVisible = Callable[[str, str], bool]
"""Tells whether the caller may see a path, given with what it leads to."""


def check(answer: Answer, what: str, doing: str) -> Answer:
    """Return an answer that is none of a failure.

    Raises:
        BackendError: what the program refused.
    """
    code = answer.end.get("code")
    if code is None:
        return answer
    if doing == "reading" and (failure := _reading_failure(answer.end, what)):
        raise failure
    raise _failure(answer.end, what, doing)


def _reading_failure(end: Mapping[str, Any], what: str) -> BackendError | None:
    match end["code"]:
        case "is_directory":
            return not_a_file(what)
        case "past_end":
            return past_end(end["offset"], end["total"])
        case "too_far":
            text = f"The first {end['most']} GB of {_lower(what)} do not reach line {end['line']}."
            return BackendError("too_large", f"{text} Find text with grep.")
        case "too_large":
            text = f"{what}: Binary file exceeds maximum preview size of {end['most']} bytes"
            return BackendError("too_large", text)
        case _:
            return None


def _failure(end: Mapping[str, Any], what: str, doing: str) -> BackendError:
    match end["code"]:
        case "stale_version":
            return stale_version(what, end["happened"])
        case "invalid_encoding":
            return not_text()
        case "already_exists":
            return already_there(what)
        case "file_not_found":
            return BackendError("file_not_found", f"{what} not found")
        case "too_large":
            text = f"{what} has {end['size']:,} bytes, over the limit of {end['most']:,} for an edit."
            return BackendError("too_large", text)
        case code:
            return BackendError(code, f"Error {doing} {_lower(what)}: {end.get('text', code)}")


def _lower(what: str) -> str:
    return what[0].lower() + what[1:]


def list_result(answer: Answer, path: str, is_visible: IsVisible) -> LsResult:
    """Make the result of `ls`."""
    match answer.end.get("code"):
        case None:
            pass
        case "file_not_found" | "not_a_directory" as code:
            raise not_listable(path, code)
        case code:
            raise BackendError(code, f"Cannot list '{path}': {answer.end.get('text') or code}")
    real = answer.end.get("real", path)
    entries: list[FileInfo] = []
    for name, is_directory, size, modified, leads_to in answer.items:
        entry = _below(path, name)
        if is_visible(entry, leads_to or _below(real, name)):
            entries.append(
                FileInfo(path=entry, is_dir=is_directory, size=size, modified_at=_moment(modified))
            )
    entries.sort(key=lambda entry: entry["path"] + "/" * entry.get("is_dir", False))
    problems = [
        f"child error: {_below(path, name)}: {reason}"
        for name, reason in answer.end.get("problems", ())
        if is_visible(_below(path, name), _below(real, name))
    ]
    if not answer.whole:
        problems.append("The listing was cut on its way here, so entries are missing.")
    error = "\n".join(problems)
    return LsResult(error=error or None, entries=entries, code="io_error" if error else None)


def read_result(answer: Answer, path: str) -> ReadResult:
    """Make the result of `read`; of a text that was cut on its way, the lines that arrived.

    Raises:
        BackendError: `too_large` when not one line did.
    """
    end = answer.end
    data = join_chunks(answer)
    if end["kind"] == "binary":
        return binary_result(end, data)
    if not answer.whole and end["kind"] == "text":
        data, end = _keep_arrived(data, end, path)
    text = data.decode("utf-8", "replace")
    if end.get("next") is not None:
        text = text.removesuffix("\n")
    file = FileData(content=text, encoding="utf-8", modified_at=_moment(end["modified"]))
    if end["kind"] != "text":
        return ReadResult(file_data=file, no_lines_requested=end["kind"] == "none", version=end["version"])
    if end["clipped"]:
        file["content"] = text + TRUNCATION_MSG
    return ReadResult(
        file_data=file,
        total_lines=end["total"],
        start_line=end["start"],
        end_line=end["end"],
        next_offset=end["next"],
        version=end["version"],
    )


def binary_result(end: Mapping[str, Any], data: bytes) -> ReadResult:
    """Make the result of reading what is not text."""
    content = base64.b64encode(data).decode("ascii")
    file = FileData(content=content, encoding="base64", modified_at=_moment(end["modified"]))
    return ReadResult(file_data=file, version=end["version"])


def _keep_arrived(data: bytes, end: Mapping[str, Any], path: str) -> tuple[bytes, Mapping[str, Any]]:
    """Keep the whole lines, or the beginning of the first, and say where to read on."""
    lines = data.count(b"\n")
    if lines:
        last = end["start"] - 1 + lines
        return data[: data.rfind(b"\n") + 1], {**end, "end": last, "next": last, "clipped": False}
    if not data:
        raise BackendError(
            "too_large",
            f"File '{path}': the sandbox's output was cut before any of line {end['start']} arrived. "
            "Read a part of it with execute.",
        )
    more = end["end"] > end["start"] or end["next"] is not None
    shown = whole_characters(data)
    return shown, {**end, "end": end["start"], "next": end["start"] if more else None, "clipped": True}


def check_edit(answer: Answer, what: str, op: Edit) -> Answer:
    """Return an answer that is none of a failure; explain a miss by the nearest lines.

    Raises:
        BackendError: what the program refused.
    """
    end = answer.end
    code: ErrorCode | None = end.get("code")
    if code not in ("no_match", "ambiguous_match"):
        return check(answer, what, "editing")
    # A short file comes along, and our own code explains the miss as for files on disk.
    if "data" in end:
        replace_each(unpack(end["data"]).decode("utf-8", "surrogateescape"), op.edits)
    at: int = end["at"]
    if code == "no_match":
        shown = to_lf(op.edits[at].old)[:200]
        text = f"String not found in file: '{shown}'. Copy the text of the file exactly."
    else:
        text = (
            f"old_string appears {end['count']} times in the file, in multiple places. Add surrounding "
            "context to name one place, or set replace_all to change them all."
        )
    raise name_edit(BackendError(code, text), at, op.edits)


def glob_result(answer: Answer, path: str, is_visible: IsVisible) -> GlobResult:
    """Make the result of `glob`."""
    if _is_nowhere(answer):
        return GlobResult(matches=[])
    end = check(answer, f"'{path}'", "searching").end
    base, real = end.get("base", path), end.get("real", path)
    matches: list[FileInfo] = []
    for below, size, modified, leads_to in answer.items:
        found = _below(base, below)
        if is_visible(found, leads_to or _below(real, below)):
            matches.append(FileInfo(path=found, is_dir=False, size=size, modified_at=_moment(modified)))
    result = GlobResult(matches=matches)
    if not answer.whole:
        result.truncated, result.truncation_reason = True, "transport"
    elif end.get("unread"):
        result.truncated, result.truncation_reason = True, "unreadable"
    elif end["cut"]:
        result.truncated, result.truncation_reason = True, "budget"
    return result


def grep_result(answer: Answer, path: str, is_visible: IsVisible, context: int, pattern: str) -> GrepResult:
    """Make the result of `grep`."""
    if _is_nowhere(answer):
        return GrepResult(matches=[])
    end = answer.end
    if end.get("code") == "timeout":
        raise too_slow(pattern, end["seconds"])
    if end.get("code") == "invalid_pattern":
        raise BackendError(
            "invalid_pattern", f"The sandbox's Python cannot use the expression {pattern!r}: {end['text']}"
        )
    check(answer, f"'{path}'", "searching")
    base, real = end.get("base", path), end.get("real", path)
    matches = [
        make_match(_below(base, item[0]), item[1], item[2], (item[3], item[4]) if context else None)
        for item in answer.items
        if is_visible(_below(base, item[0]), _below(real, item[0]))
    ]
    unread = [
        f"{_below(base, below)}: {reason}"
        for below, reason in end.get("unread", ())
        if is_visible(_below(base, below), _below(real, below))
    ]
    error = describe_unread(unread)
    truncated = bool(end.get("cut")) or not answer.whole
    return GrepResult(error=error, matches=matches, truncated=truncated, code="io_error" if error else None)


def cover_allowed(files: Sequence[str], name: str, real: str, allowed: Allowed) -> list[str]:
    """Cover the allowed ones among files below a directory, called `name` and `real`, with few paths."""

    def is_allowed(below: str, ask: Callable[[str], bool]) -> bool:
        return all(ask(_below(top, below)) for top in dict.fromkeys((name, real)))

    found: dict[str, None] = {}
    whole: dict[str, bool] = {}
    for file in files:
        parts = file.split("/")
        for above in ("/".join(parts[:depth]) for depth in range(1, len(parts))):
            if above not in whole:
                whole[above] = is_allowed(above, allowed.all_below)
            if whole[above]:
                found[above] = None
                break
        else:
            if is_allowed(file, allowed):
                found[file] = None
    return list(found)


def _is_nowhere(answer: Answer) -> bool:
    return answer.end.get("code") in ("file_not_found", "not_a_directory")


def _below(base: str, name: str) -> str:
    return f"{base.rstrip('/')}/{name}" if name else base


def _moment(modified: float) -> str:
    return datetime.fromtimestamp(modified, UTC).isoformat()
