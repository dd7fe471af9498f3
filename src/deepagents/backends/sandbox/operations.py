"""Perform the file operations of a sandbox, each by a small program that runs inside."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from deepagents._async import IOCall, within
from deepagents._globs import EVERY_FILE, parse_glob
from deepagents._paths import normalise, parent
from deepagents._text import EMPTY_OLD_STRING_ERROR, name_edit
from deepagents._values import valueclass
from deepagents.backends import operations as ops
from deepagents.backends._bytes import temporary_name
from deepagents.backends._failures import transfer_failure
from deepagents.backends._query import Query
from deepagents.backends._refusals import Denied, stale_version, undeletable_root
from deepagents.backends.filedata import encode_text, file_kind, validate_addition
from deepagents.backends.protocol import (
    ASYNC_GLOB_TIMEOUT,
    ASYNC_GREP_TIMEOUT,
    DEFAULT_GREP_TIMEOUT,
    Allowed,
    SandboxBackendProtocol,
    cap_matches,
)
from deepagents.backends.results import (
    DeleteResult,
    EditResult,
    GlobResult,
    GrepResult,
    LsResult,
    ReadResult,
    WriteResult,
)
from deepagents.backends.sandbox import results
from deepagents.backends.sandbox.codec import Answer, NoAnswerError, ProgramName, command, decode
from deepagents.errors import BackendError

MAX_BINARY_BYTES: Final = 500 * 1024
MAX_OUTPUT_BYTES: Final = 500 * 1024
EDIT_INLINE_MAX_BYTES: Final = 50_000
GLOB_SECONDS: Final = 5.0
_MOST_FILES = 10_000
_MOST_LINE_BYTES = 4 << 20
_NO_ANSWER: Final = "the sandbox did not answer"


@valueclass
class Operations:
    """Operations on the files below `root` of a sandbox; `prepare` may refuse a write."""

    sandbox: SandboxBackendProtocol
    root: str = "/"
    excluded: tuple[str, ...] = ()
    prepare: Callable[[str], IOCall[WriteResult | None]] | None = None

    async def ls(self, op: ops.Ls) -> LsResult:
        """List one directory."""
        shown = normalise(op.path)
        answer = await self._ask("ls", path=shown, looked_at=_bound_of(op))
        await self._check_link(answer, shown, op)
        return results.list_result(answer, shown, _make_filter(op.allowed))

    async def read(self, op: ops.Read) -> ReadResult:
        """Read a window of a file."""
        shown = normalise(op.path)
        what = f"File '{shown}'"
        _refuse_unless(op.allowed is None or op.allowed(shown), op, shown)
        media = file_kind(shown) != "text"
        answer = await self._ask(
            "read", path=shown, offset=max(int(op.offset), 0), limit=int(op.limit), media=media,
            most=MAX_OUTPUT_BYTES,
        )  # fmt: skip
        await self._check_link(answer, shown, op)
        end = results.check(answer, what, "reading").end
        if answer.whole or end["kind"] != "binary":
            return results.read_result(answer, shown)
        return results.binary_result(end, await self._download(end["real"], shown))

    async def write(self, op: ops.Write) -> WriteResult:
        """Create or replace a file, once it is prepared for."""
        if refused := await self.prepare(op.path) if self.prepare else None:
            return refused
        shown, what = _check_file_path(op.path, "writing")
        data = encode_text(op.content)
        expected = await self._check_target(shown, what, "writing", op)
        try:
            answer = await self._change(
                "write", what, shown, {"content": op.content},
                expected=expected, expected_version=op.expected_version, media=file_kind(shown) != "text",
                creates=op.creates, mode_of=op.mode_of and normalise(op.mode_of),
            )  # fmt: skip
        # Stand-ins for a sandbox in tests accept commands without running them, and keep uploads.
        except NoAnswerError:
            if expected is not None or op.expected_version is not None:
                raise
            await self._upload(shown, data, shown)
            return WriteResult(path=shown)
        end = results.check(answer, what, "writing").end
        return WriteResult(
            path=shown, version=end["version"], created=end["created"], new_folders=end["new_folders"]
        )

    async def append(self, op: ops.Append) -> WriteResult:
        """Add to the end of a file, once it is prepared for."""
        if refused := await self.prepare(op.path) if self.prepare else None:
            return refused
        shown, what = _check_file_path(op.path, "writing")
        texts = _encode_addition(shown, op.content)
        expected = await self._check_target(shown, what, "writing", op)
        answer = await self._change("append", what, shown, texts, expected=expected)
        return WriteResult(path=shown, version=results.check(answer, what, "writing").end["version"])

    async def edit(self, op: ops.Edit) -> EditResult:
        """Replace exact text in a file."""
        shown, what = _check_file_path(op.path, "editing")
        texts: dict[str, str] = {}
        for at, edit in enumerate(op.edits):
            if not edit.old:
                raise name_edit(BackendError("invalid_argument", EMPTY_OLD_STRING_ERROR), at, op.edits)
            encode_text(edit.old)
            encode_text(edit.new)
            texts |= {f"old{at}": edit.old, f"new{at}": edit.new}
        expected = await self._check_target(shown, what, "editing", op)
        answer = await self._change(
            "edit", what, shown, texts, replace_all=[each.replace_all for each in op.edits],
            expected=expected, expected_version=op.expected_version,
            media=file_kind(shown) != "text",
        )  # fmt: skip
        end = results.check_edit(answer, what, op).end
        return EditResult(path=shown, occurrences=end["count"], version=end["version"])

    async def delete(self, op: ops.Delete) -> DeleteResult:
        """Remove a path and all below it."""
        shown, allowed = normalise(op.path), op.allowed
        if shown == "/":
            raise undeletable_root(shown)
        what = f"'{shown}'"
        expected, no_directory = None, False
        if allowed is not None:
            _refuse_unless(allowed(shown), op, shown)
            # The link itself is deleted, so the rules are asked about it and not about its target.
            answer = await self._ask("where", path=shown, itself=True)
            end = results.check(answer, what, "deleting").end
            expected = end["real"]
            whole = allowed.all_below(shown) and allowed.all_below(expected)
            _refuse_unless(allowed(expected) and (whole or not end["is_dir"]), op, shown)
            no_directory = not whole
        answer = await self._ask("delete", path=shown, expected=expected, no_directory=no_directory)
        results.check(answer, what, "deleting")
        return DeleteResult(path=shown)

    async def glob(self, op: ops.Glob) -> GlobResult:
        """Find files by pattern."""
        from_root = op.path is None and op.pattern.startswith("/")
        begin = "/" if from_root else None if op.path is None else normalise(op.path)
        answer = await self._ask_for_files(begin, op.pattern, _bound_of(op))
        return results.glob_result(answer, begin or "/", _make_filter(op.allowed))

    async def grep(self, op: ops.Grep) -> GrepResult:
        """Find lines."""
        Query.of(op.pattern, expression=op.regex)
        begin = None if op.path is None else normalise(op.path)
        only = await self._find_searchable(begin, op.allowed)
        if only == []:
            return GrepResult(matches=[])
        answer = await self._ask(
            "grep", path=begin, pattern=op.pattern,
            glob=None if op.glob is None else parse_glob(op.glob).describe(),
            excluded=self.excluded, regex=op.regex, context=op.context_lines, only=only,
            max_count=op.max_count, most=_MOST_LINE_BYTES,
            seconds=DEFAULT_GREP_TIMEOUT, bound=ASYNC_GREP_TIMEOUT,
        )  # fmt: skip
        found = results.grep_result(
            answer, begin or "/", _make_filter(op.allowed), op.context_lines, op.pattern
        )
        return cap_matches(found, op.max_count)

    async def _find_searchable(self, start: str | None, allowed: Allowed | None) -> list[str] | None:
        """Return the widest paths below `start` that hold nothing denied; `None` where nothing is.

        A denied file is not even opened: the time that takes, and what then no longer fits into the result,
        would tell whether a guess is in it.
        """
        if allowed is None or allowed.all_below("/"):
            return None
        if start is not None:
            end = (await self._ask("where", path=start)).end
            if not end.get("is_dir"):
                return [""] if end.get("exists") and allowed(start) and allowed(end["real"]) else []
            if allowed.all_below(start) and allowed.all_below(end["real"]):
                return None
        files = await self._ask_for_files(start, EVERY_FILE)
        end = results.check(files, "The files", "searching").end
        if end["cut"] or not files.whole:
            raise BackendError(
                "too_large",
                f"Some files below '{end['base']}' are denied, and there are too many to search only the "
                "others. Name a directory below which all are allowed.",
            )
        names = [each[0] for each in files.items if each[3] is None]
        return results.cover_allowed(names, end["base"], end["real"], allowed)

    async def where(self, path: str, *, make_parents: bool = False) -> str:
        """Return where a path leads once links are resolved.

        Raises:
            BackendError: when there is no telling.
        """
        shown = normalise(path)
        answer = await self._ask("where", path=shown, make_parents=make_parents)
        real: str = results.check(answer, f"'{shown}'", "resolving").end["real"]
        return real

    async def _check_link(self, answer: Answer, shown: str, op: ops.Operation) -> None:
        """Refuse an answer about what a link leads to and the rules deny; also an error tells of that."""
        if op.allowed is None or op.allowed.all_below("/"):
            return
        real = answer.end.get("real") or await self.where(shown)
        _refuse_unless(real == shown or op.allowed(real), op, shown)

    async def _check_target(self, shown: str, what: str, doing: str, op: ops.Operation) -> str | None:
        """Ask the rules about a path and about where it leads; return that, to be held to."""
        if op.allowed is None or op.allowed.all_below("/"):
            return None
        _refuse_unless(op.allowed(shown), op, shown)
        real = results.check(await self._ask("where", path=shown), what, doing).end["real"]
        _refuse_unless(op.allowed(real), op, shown)
        return real

    async def _change(
        self, program: ProgramName, what: str, shown: str, texts: Mapping[str, str], **params: Any
    ) -> Answer:
        """Send short texts with the command, and upload long ones next to the file that they are for."""
        # Above that a command line may grow too long, even compressed.
        if sum(len(text.encode()) for text in texts.values()) <= EDIT_INLINE_MAX_BYTES:
            return await self._ask(program, path=shown, texts=texts, **params)
        name = temporary_name()
        end = await self._prepare_upload(program, what, shown, params.get("expected_version"), name)
        staged = end["staged"]
        try:
            await self._upload(staged, json.dumps(texts, ensure_ascii=False).encode(), shown)
            return await self._ask(program, path=shown, staged=staged, **params)
        except Exception:
            with suppress(Exception):
                # What was uploaded must not lie around when the change fails.
                await self._ask("delete", path=f"{parent(end['real']).rstrip('/')}/{name}")
            raise

    async def _prepare_upload(
        self, program: ProgramName, what: str, shown: str, expected_version: str | None, stage: str
    ) -> Mapping[str, Any]:
        is_new = program != "edit" and expected_version is None
        answer = await self._ask("where", path=shown, make_parents=is_new, stage=stage)
        end = results.check(answer, what, "writing").end
        if end["exists"] or is_new:
            return end
        if program == "edit":
            raise BackendError("file_not_found", f"{what} not found")
        raise stale_version(what, "was deleted")

    async def _upload(self, path: str, data: bytes, shown: str) -> None:
        files = [(path, data)]
        done = await IOCall(
            lambda: self.sandbox.upload_files(files), lambda: self.sandbox.aupload_files(files)
        )
        error = done[0].error if done else _NO_ANSWER
        if error:
            raise transfer_failure(shown, error)

    async def _download(self, path: str, shown: str) -> bytes:
        done = await IOCall(
            lambda: self.sandbox.download_files([path]), lambda: self.sandbox.adownload_files([path])
        )
        if not done or done[0].error or done[0].content is None:
            raise transfer_failure(shown, done[0].error or "no content returned" if done else _NO_ANSWER)
        return done[0].content

    async def _ask_for_files(self, start: str | None, pattern: str, looked_at: int | None = None) -> Answer:
        return await self._ask(
            "glob", path=start, glob=parse_glob(pattern).describe(), seconds=GLOB_SECONDS, most=_MOST_FILES,
            looked_at=looked_at, bound=ASYNC_GLOB_TIMEOUT,
        )  # fmt: skip

    async def _ask(self, program: ProgramName, bound: float | None = None, **params: Any) -> Answer:
        line = command(program, {"root": self.root, **params})
        try:
            response = await IOCall(
                lambda: self.sandbox.execute(line),
                # Only where it can be cancelled; a blocking command is bounded by the layers before it.
                lambda: within(bound, self.sandbox.aexecute(line)),
            )
        except TimeoutError as error:
            raise BackendError(
                "timeout", f"{program} timed out. Ask for less: name a path or a narrower pattern."
            ) from error
        return decode(response, self.root)


def _bound_of(op: ops.Operation) -> int | None:
    return ops.MOST_FOR_HINT if op.hint else None


def _check_file_path(path: str, doing: str) -> tuple[str, str]:
    """Return a path and what messages call it.

    Raises:
        BackendError: `is_directory` for the root.
    """
    shown = normalise(path)
    if shown == "/":
        raise BackendError("is_directory", f"Error {doing} file '/': it is a directory.")
    return shown, f"File '{shown}'"


def _make_filter(allowed: Allowed | None) -> results.IsVisible:
    """Make the test that a found path must pass, by its name and by where it leads."""
    if allowed is None or allowed.all_below("/"):
        return lambda path, real: True
    return lambda path, real: allowed(path) and (real == path or allowed(real))


def _refuse_unless(is_allowed: bool, op: ops.Operation, shown: str) -> None:
    """Refuse what the rules do not allow.

    Raises:
        BackendError: `permission_denied`.
    """
    if not is_allowed:
        raise Denied(op.right, shown)


def _encode_addition(shown: str, content: str | bytes) -> dict[str, str]:
    """Return what is to be added to a file as texts that a program takes.

    Raises:
        BackendError: for what can be added to no file.
    """
    given = validate_addition(shown, content)
    if isinstance(given, str):
        return {"content": given}
    return {"base64": base64.b64encode(given).decode()}
