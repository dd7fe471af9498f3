"""Keep to what the caller may know or change, on behalf of backends that do not take `allowed` themselves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from langgraph.errors import GraphBubbleUp

from deepagents._async import IOCall, await_thread, in_thread
from deepagents._globs import EVERY_FILE, parse_glob
from deepagents._paths import is_within, name, normalise_if_valid, parent, without_slash
from deepagents._values import replace, valueclass
from deepagents.backends import operations as ops
from deepagents.backends._query import Query, matches_in
from deepagents.backends._refusals import Denied
from deepagents.backends._signatures import appends, method_facts, overrides
from deepagents.backends.foreign.whole import read_whole
from deepagents.backends.guard import is_file
from deepagents.backends.operations import Operation, Perform
from deepagents.backends.protocol import Allowed, BackendProtocol, cap_matches
from deepagents.backends.results import (
    FileDownloadResponse,
    GlobResult,
    GrepResult,
    LsResult,
)
from deepagents.errors import BackendError

_PARTLY: Final = "Some of it could not be read."
_MOST_DIRECTORIES: Final = 32
_MOST_FILES: Final = 256


@valueclass
class Enforcement:
    """Enforces rules for one backend: what it is asked, and what of its answers may be known."""

    backend: BackendProtocol
    in_process: bool

    async def enforce(self, op: Operation, following: Perform) -> Any:
        """Perform an operation as its `allowed` says, where the backend does not ask for itself.

        Raises:
            Denied: for a path that is not allowed, as it is called or once links are resolved.
        """
        allowed, bare = op.allowed, replace(op, allowed=None)
        # No path tells what a command does, so a backend whose files it reaches asks for itself.
        asks = isinstance(op, ops.CommandOperation) or enforces(type(self.backend), op.method)
        if allowed is None or asks:
            return await following(op)
        match bare:
            case ops.Ls() | ops.Glob():
                return await self._filter(bare, await following(bare), allowed)
            case ops.Grep():
                if allowed.all_below(bare.at) and not self.has_links:
                    return await following(bare)
                found = await _NarrowedGrep(self, bare, allowed, following).run()
                return await self._filter(bare, found, allowed)
            case ops.Upload() | ops.Download():
                return await self._transfer(bare, allowed, following)
            case _:
                await self._check(bare, allowed, following)
                return await following(bare)

    @property
    def has_links(self) -> bool:
        """Return whether a path may lead elsewhere, for all that is known."""
        return overrides(type(self.backend), "real_path")

    async def find_allowed(self, paths: Sequence[str], allowed: Allowed) -> set[str]:
        """Return which paths are allowed, as they are called and as they are once links are resolved.

        A path is judged in its normal form. One that has none, or that cannot be resolved, is not allowed.
        """
        normal = {each: path for each in paths if (path := normalise_if_valid(each)) is not None}
        free = {above: allowed.all_below(above) for above in {parent(each) for each in normal.values()}}
        called = {each for each, path in normal.items() if free[parent(path)] or allowed(path)}
        if not self.has_links:
            return called

        def resolve() -> set[str]:
            return {each for each in called if self._leads_right(normal[each], allowed)}

        return resolve() if self.in_process else await IOCall(resolve, lambda: await_thread(resolve))

    def _leads_right(self, path: str, allowed: Allowed) -> bool:
        try:
            return allowed(without_slash(self.backend.real_path(path)))
        except Exception as error:
            if isinstance(error, GraphBubbleUp):
                raise
            # A path that cannot be resolved counts as denied, whatever the reason.
            return False

    async def _check(self, op: Operation, allowed: Allowed, following: Perform) -> None:
        whole = isinstance(op, ops.Delete)
        # A name may be allowed and be a link to what is not. Of a deleted link only the name counts.
        real: str = await following(ops.Resolve(op.at, entry=whole))
        if not (allowed(op.at) and allowed(real)):
            raise Denied(op.right, op.at)
        if not whole or (allowed.all_below(op.at) and allowed.all_below(real)):
            return
        if await is_file(following, op.at):
            return
        found: GlobResult = await following(ops.Glob(EVERY_FILE, op.at))
        below = {without_slash(each["path"]) for each in found.matches or ()}
        # What could not be listed could be denied, and a deletion cannot be taken back.
        if found.error or found.truncated or await self.find_allowed(list(below), allowed) != below:
            raise Denied(op.right, op.at)

    async def _filter(self, op: Operation, found: Any, allowed: Allowed) -> Any:
        field = "entries" if isinstance(found, LsResult) else "matches"
        entries: list[Any] = getattr(found, field) or []
        known = await self.find_allowed(
            list(dict.fromkeys(without_slash(each["path"]) for each in entries)), allowed
        )
        kept = [each for each in entries if without_slash(each["path"]) in known]
        # The backend's text may name what is denied.
        error = found.error if allowed.all_below(op.at) else found.error and _PARTLY
        return replace(found, **{field: kept, "error": error})

    async def _transfer(
        self, op: ops.Upload | ops.Download, allowed: Allowed, following: Perform
    ) -> list[Any]:
        """Move the files that are allowed, and answer for each of the others that it is not."""
        known = await self.find_allowed(op.paths, allowed)
        answers: list[Any] = [op.result(path, error="permission_denied") for path in op.paths]
        moved = [number for number, path in enumerate(op.paths) if path in known]
        if moved:
            done = await following(replace(op, files=[op.files[number] for number in moved]))
            for number, answer in zip(moved, done, strict=True):
                answers[number] = answer
        return answers


@valueclass
class _NarrowedGrep:
    """A search that reads allowed files alone.

    Filtering what a backend finds is not enough: how long it takes, and whether it was cut off, depend on
    what the denied files hold, so many guesses would find it out. The backend therefore searches directories
    that are wholly allowed, and the files elsewhere are fetched and searched here.
    """

    rules: Enforcement
    op: ops.Grep
    allowed: Allowed
    following: Perform

    async def run(self) -> GrepResult:
        """Search.

        Raises:
            BackendError: `permission_denied`, when there is too much to search in this way.
        """
        directories, files = await self._targets()
        glob = None if self.op.glob is None else parse_glob(self.op.glob)
        base = self.op.at.rstrip("/") + "/"
        # With a filter applied here, the first matches there may all be dropped, so none may be left out.
        most = self.op.max_count if glob is None else None
        found = [
            await self.following(replace(self.op, path=each, glob=None, max_count=most))
            for each in directories
        ]
        wanted = [each for each in files if glob is None or glob(_below(each, base))]
        found.append(await self._search_here(wanted))
        matches = [
            match
            for each in found
            for match in each.matches or ()
            if glob is None or glob(_below(match["path"], base))
        ]
        matches.sort(key=lambda match: (match["path"], match["line"]))
        error = next((each.error for each in found if each.error), None)
        truncated = any(each.truncated for each in found)
        code = "io_error" if error else None
        return cap_matches(GrepResult(error, matches, truncated, code=code), self.op.max_count)

    async def _targets(self) -> tuple[list[str], list[str]]:
        """Return the widest directories that are wholly allowed, and the allowed files outside of them."""
        try:
            listed: GlobResult = await self.following(ops.Glob(EVERY_FILE, self.op.path))
        except BackendError as error:
            listed = GlobResult(error=error.text)
        paths = {without_slash(each["path"]) for each in listed.matches or () if not each.get("is_dir")}
        if not paths and await is_file(self.following, self.op.at):
            paths, listed = {self.op.at}, GlobResult()
        known = await self.rules.find_allowed(sorted(paths), self.allowed)
        barred = paths - known
        directories: set[str] = set()
        files: list[str] = []
        for path in sorted(known):
            if any(is_within(path, each) for each in directories):
                continue
            widest = next((each for each in self._above(path) if self._is_free(each, barred)), None)
            if widest is None:
                files.append(path)
            else:
                directories.add(widest)
        if (
            listed.error
            or listed.truncated
            or len(directories) > _MOST_DIRECTORIES
            or len(files) > _MOST_FILES
        ):
            raise _too_wide(self.op.at, sorted(directories))
        return sorted(directories), files

    def _above(self, path: str) -> list[str]:
        """Return the directories above a path, from just below the start of the search."""
        found: list[str] = []
        while (path := parent(path)) != "/" and path != self.op.at and is_within(path, self.op.at):
            found.append(path)
        return found[::-1]

    def _is_free(self, directory: str, barred: Iterable[str]) -> bool:
        # A link in an allowed directory may lead to a denied file, so names alone do not tell.
        return self.allowed.all_below(directory) and not any(is_within(each, directory) for each in barred)

    async def _search_here(self, paths: Sequence[str]) -> GrepResult:
        if not paths:
            return GrepResult(matches=[])
        answers = await self._contents(paths)
        query = Query.of(self.op.pattern, expression=self.op.regex, context=self.op.context_lines)
        # An expression can take seconds, in which an event loop must go on.
        matches = await in_thread(
            lambda: [match for each in answers for match in matches_in(each.content or b"", each.path, query)]
        )
        failed = any(each.content is None for each in answers)
        return GrepResult(_PARTLY if failed else None, matches)

    async def _contents(self, paths: Sequence[str]) -> list[FileDownloadResponse]:
        try:
            return await self.following(ops.Download(list(paths)))
        except BackendError as error:
            if error.code != "not_supported":
                raise
        return [FileDownloadResponse(each, await read_whole(self.following, each)) for each in paths]


def enforces(kind: type[BackendProtocol], method: str) -> bool:
    """Return whether a method asks for itself what is allowed: its `**options` alone do not promise that."""
    if method == "append" and not appends(kind):
        # Without one of its own, appending ends in an upload, which is then what has to ask.
        method = "upload_files"
    return method_facts(kind, method).enforces


def _below(path: str, base: str) -> str:
    return path[len(base) :] if path.startswith(base) else name(path)


def _too_wide(path: str, directories: Sequence[str]) -> BackendError:
    such = f", such as {directories[0]!r}" if directories else ""
    return BackendError(
        "permission_denied",
        f"A search of {path!r} would read what the rules deny. Search a directory in which everything is "
        f"allowed{such}, or a single file.",
    )
