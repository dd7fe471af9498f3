"""Files under rules: each call asks them first, and what it returns holds nothing that they keep back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

from deepagents._paths import parent
from deepagents.backends._appending import method_for
from deepagents.backends._enforcing import RealPaths, asks, tells_all, told
from deepagents.backends._guard import Guard, exposed_rule, left_out
from deepagents.backends.calls import Files, Keep, SearchOptions
from deepagents.backends.protocol import Allowed, capped
from deepagents.backends.results import (
    DeleteResult,
    EditResult,
    ExecuteOffloadResult,
    FileInfo,
    GlobResult,
    GrepMatch,
    GrepResult,
    LsResult,
    ReadResult,
    WriteResult,
)
from deepagents.errors import BackendError, ErrorCode, ToolFailure
from deepagents.permissions import Access, DeleteAccess

Found = TypeVar("Found", FileInfo, GrepMatch)
PATHLESS_DENIED_HINT: Final = "Give a path that the rules allow."


@dataclass(frozen=True, slots=True)
class GuardedFiles(Files):
    """A backend as calls that keep to the rules of `guard`; for one call of one tool."""

    guard: Guard = field(default_factory=Guard)
    _held_back: dict[str, None] = field(default_factory=dict[str, None])

    def left_out(self) -> str | None:
        """Say in one line what earlier answers left out because it waits for a person."""
        return left_out(self._held_back, self.guard.asks)

    async def ls(self, path: str, *, allowed: Allowed | None = None) -> LsResult:
        """List a directory, without the entries that may not be known."""
        access = self.guard.searching(path)
        await self._admit(access, "ls", path)
        found = await Files.ls(self, path, allowed=access)
        entries = await self._kept(access, "ls", found.entries or [])
        return replace(found, entries=entries, error=told(self.backend, "ls", path, found.error, access))

    async def read(self, path: str, offset: int, limit: int, *, allowed: Allowed | None = None) -> ReadResult:
        """Read a window of a file that may be read."""
        access = self.guard.naming("read", path)
        await self._admit(access, "read", path)
        return await Files.read(self, path, offset, limit, allowed=access)

    async def write(
        self, path: str, content: str, expected_version: str | None, *, allowed: Allowed | None = None
    ) -> WriteResult:
        """Create or replace a file that may be written."""
        access = self.guard.naming("write", path)
        await self._admit(access, "write", path)
        return await Files.write(self, path, content, expected_version, allowed=access)

    async def append(self, path: str, text: str, *, allowed: Allowed | None = None) -> WriteResult:
        """Add to the end of a file that may be written."""
        access = self.guard.naming("write", path)
        await self._admit(access, method_for(self.backend, "append"), path)
        return await Files.append(self, path, text, allowed=access)

    async def edit(
        self,
        path: str,
        old: str,
        new: str,
        replace_all: bool,
        expected_version: str | None,
        *,
        allowed: Allowed | None = None,
    ) -> EditResult:
        """Replace exact text in a file that may be written; what is in it is told only if it may be read."""
        access = self.guard.naming("write", path)
        await self._admit(access, "edit", path)
        try:
            return await Files.edit(self, path, old, new, replace_all, expected_version, allowed=access)
        except ToolFailure as failure:
            if failure.code in ("no_match", "ambiguous_match") and not await self._is_readable(path):
                raise _untold(failure.code, path) from failure
            raise

    async def delete(self, path: str, *, allowed: Allowed | None = None) -> DeleteResult:
        """Remove a file, or a directory when all that is in it may go."""
        access = self.guard.deleting(path)
        if access is not None:
            await self._admit_deletion(access, path)
        return await Files.delete(self, path, allowed=access)

    async def glob(
        self, pattern: str, path: str | None, seconds: float | None = None, *, allowed: Allowed | None = None
    ) -> GlobResult:
        """Find files by pattern, without those that may not be known."""
        access = self.guard.searching(path or "/")
        await self._admit(access, "glob", path)
        found = await Files.glob(self, pattern, path, seconds, allowed=access)
        matches = await self._kept(access, "glob", found.matches or [])
        self._check_root(access, path, matches)
        return replace(
            found, matches=matches, error=told(self.backend, "glob", path or "/", found.error, access)
        )

    async def grep(
        self,
        pattern: str,
        path: str | None,
        glob: str | None,
        wanted: SearchOptions,
        *,
        allowed: Allowed | None = None,
    ) -> GrepResult:
        """Find lines in files that may be read; only those count for the cap."""
        access = self.guard.searching(path or "/")
        await self._admit(access, "grep", path)
        complete = tells_all(self.backend, "grep", path or "/", access)
        asked = wanted if complete else replace(wanted, max_count=None)
        found = await Files.grep(self, pattern, path, glob, asked, allowed=access)
        matches = await self._kept(access, "grep", found.matches or [])
        self._check_root(access, path, matches)
        said = told(self.backend, "grep", path or "/", found.error, access)
        return capped(replace(found, matches=matches, error=said), wanted.max_count)

    async def download(self, path: str, *, allowed: Allowed | None = None) -> bytes:
        """Read a file whole that may be read."""
        access = self.guard.naming("read", path)
        await self._admit(access, "download_files", path)
        return await Files.download(self, path, allowed=access)

    async def upload(self, path: str, content: bytes, *, allowed: Allowed | None = None) -> None:
        """Create or replace a file that may be written."""
        access = self.guard.naming("write", path)
        await self._admit(access, "upload_files", path)
        await Files.upload(self, path, content, allowed=access)

    async def execute(
        self, command: str, timeout: int | None, seconds: float | None = None, keep: Keep | None = None
    ) -> ExecuteOffloadResult:
        """Run a shell command, where none can go round a rule."""
        pattern = exposed_rule(self.backend, self.guard.rules)
        if pattern is not None:
            raise ToolFailure(
                "permission_denied",
                f"permission denied for execute: commands could go round the rule for {pattern}. Use the "
                "file tools.",
            )
        return await Files.execute(self, command, timeout, seconds, keep)

    async def _admit(self, access: Access | None, method: str, path: str | None) -> None:
        if access is None or path is None:
            return
        if not access(path):
            raise self.guard.refusal(access, path)
        if not asks(self.backend, method):
            await self._admit_real(access, path)

    async def _admit_real(self, access: Access, path: str) -> None:
        try:
            known = await self._real_paths().allowed_among([path], access)
        except BackendError as error:
            raise ToolFailure(error.code, error.text) from error
        if path not in known:
            raise self.guard.refusal(access, path)

    async def _admit_deletion(self, access: DeleteAccess, path: str) -> None:
        try:
            real = await self._real_paths().of_entry(path)
        except BackendError as error:
            raise ToolFailure(error.code, error.text) from error
        for each in dict.fromkeys((path, real)):
            if not access(each):
                raise self.guard.refusal(access, path)
            if not access.all_below(each) and not await self._is_file(path):
                raise self._blocked(access, each, path)

    def _blocked(self, access: DeleteAccess, real: str, path: str) -> ToolFailure:
        patterns = ", ".join(access.rules.deletion_blockers(real))
        if not patterns:
            waiting = access.rules.waiting_below("write", real)
            return ToolFailure(
                "permission_denied",
                f"permission denied for write on {path}: {waiting} needs a person's approval, which was not "
                "given",
            )
        return ToolFailure(
            "permission_denied",
            f"permission denied for write on {path}: it matches deny rule(s): {patterns}. Delete what is "
            "allowed in it one by one.",
        )

    async def _is_file(self, path: str) -> bool:
        """Tell whether nothing can lie below a path; in doubt, something can."""
        listed = await self._listed(path)
        if listed.code == "not_a_directory":
            return True
        if listed.error or listed.entries:
            return False
        beside = await self._listed(parent(path))
        return any(each["path"] == path and not each.get("is_dir") for each in (beside.entries or ()))

    async def _listed(self, path: str) -> LsResult:
        try:
            return await self._ask("ls", path)
        except ToolFailure as failure:
            return LsResult(error=failure.text, code=failure.code)

    async def _is_readable(self, path: str) -> bool:
        access = self.guard.unasked("read")
        return access is None or path in await self._real_paths().allowed_among([path], access)

    def _real_paths(self) -> RealPaths:
        return RealPaths(self.backend, self.patience)

    async def _kept(self, access: Access | None, method: str, found: Sequence[Found]) -> list[Found]:
        kept = await self._real_paths().kept(method, found, access)
        self._held_back.update(access.held_back if access else {})
        return kept

    def _check_root(self, access: Access | None, path: str | None, matches: Sequence[Any]) -> None:
        if access is not None and path is None and not matches and not access("/"):
            failure = self.guard.refusal(access, "/")
            raise ToolFailure(failure.code, f"{failure.text}. {PATHLESS_DENIED_HINT}")


def _untold(code: ErrorCode, path: str) -> ToolFailure:
    how_often = "was not found" if code == "no_match" else "occurs more than once"
    return ToolFailure(code, f"old_string {how_often} in {path}, whose text the rules keep from being shown")
