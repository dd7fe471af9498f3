"""What a caller may know of or change, asked by the name it used and by where that really leads."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass

from deepagents.backends.protocol import Allowed
from deepagents.errors import BackendError
from deepagents.permissions import Access


@dataclass(frozen=True, slots=True)
class Permit:
    """One caller's rights for one operation; `named` gives a real place the name that rules know it by."""

    allowed: Allowed
    operation: str
    named: Callable[[tuple[str, ...]], str]

    def check(self, shown: str, parts: tuple[str, ...]) -> None:
        """Refuse a place that a caller called `shown`.

        Raises:
            BackendError: `permission_denied`.
        """
        if not (self.allowed(shown) and self.allowed(self.named(parts))):
            raise self.refusal(shown)

    def check_below(self, shown: str, parts: tuple[str, ...]) -> None:
        """Refuse a place unless everything below it is allowed.

        Raises:
            BackendError: `permission_denied`.
        """
        if not (self.allowed.all_below(shown) and self.allowed.all_below(self.named(parts))):
            raise self.refusal(shown)

    def refusal(self, shown: str) -> BackendError:
        """Say that a place is kept from the caller, without a word of where it leads."""
        return BackendError("permission_denied", f"permission denied for {self.operation} on {shown}")

    def pass_over(self, parts: tuple[str, ...]) -> None:
        """Refuse a real place as the system would.

        Raises:
            PermissionError: always when it is not allowed.
        """
        if not self.allowed(self.named(parts)):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    def inside(self, shown: str, parts: tuple[str, ...]) -> Inside:
        """Ask about paths relative to an open directory."""
        tops = dict.fromkeys(each.rstrip("/") for each in (shown, self.named(parts)))
        return Inside(self.allowed, tuple(tops))


@dataclass(frozen=True, slots=True)
class Inside:
    """An `Allowed` for paths relative to a directory that goes by all these names."""

    allowed: Allowed
    tops: tuple[str, ...]

    def __call__(self, path: str) -> bool:
        """Tell for one path."""
        if len(self.tops) == 1:
            return self.allowed(f"{self.tops[0]}/{path}")
        return all(self.allowed(f"{top}/{path}") for top in self.tops)

    def doubtful_in(self, directory: str) -> Callable[[str], object] | None:
        """Return what tells, fast, for a name right in a directory whether it need be asked about."""
        if not isinstance(self.allowed, Access):
            return None
        rules, operation = self.allowed.rules, self.allowed.operation
        tests = [rules.doubtful_names(operation, f"{top}/{directory}") for top in self.tops]
        return tests[0] if len(tests) == 1 else None

    def all_below(self, directory: str) -> bool:
        """Tell whether every path below a directory is surely allowed."""
        return all(self.allowed.all_below(f"{top}/{directory}".rstrip("/") or "/") for top in self.tops)
