"""Call and implement methods of backends by the names of earlier versions, which answered with lists."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable
from typing import Any, Final

from deepagents._deprecation import warn_legacy
from deepagents.backends._signatures import signature_of
from deepagents.backends.foreign.answers import coerce
from deepagents.backends.operations import Glob, Grep, Ls
from deepagents.backends.protocol import BackendProtocol, cap_matches
from deepagents.backends.results import GlobResult, GrepResult, LsResult

_OLDER: Final = {"ls": "ls_info", "grep": "grep_raw", "glob": "glob_info"}
_TODAY: Final = {f"{a}{older}": f"{a}{name}" for name, older in _OLDER.items() for a in ("", "a")}


def call_older(backend: BackendProtocol, older: str, *args: Any, **options: Any) -> Any:
    """Do by today's method what an older name did.

    Raises:
        NotImplementedError: for an error of a listing; a list has no place for one.
    """
    name = _TODAY[older]
    warn_legacy(f"{older}() is deprecated: call {name}(), which answers with a result.")
    if older.endswith("glob_info") and len(args) == 1 and not options:
        args = (*args, "/")
    answer = getattr(backend, name)(*args, **options)
    return _await_list(answer) if inspect.isawaitable(answer) else _as_list(answer)


async def _await_list(answer: Awaitable[Any]) -> Any:
    return _as_list(await answer)


def _as_list(result: LsResult | GrepResult | GlobResult) -> Any:
    if isinstance(result, GrepResult):
        return result.error or list(result.matches or ())
    if result.error:
        raise NotImplementedError(result.error)
    return list((result.entries if isinstance(result, LsResult) else result.matches) or ())


def adapt_older_names(kind: type[BackendProtocol]) -> None:
    """Give today's methods to a class that brings those of older names alone."""
    for name, older in _OLDER.items():
        own = [each for each in (older, f"a{older}") if _brings(kind, each)]
        if not own or _has_today(kind, name):
            continue
        text = f"{kind.__name__} implements {', '.join(own)}()"
        warn_legacy(f"{text}: implement {name}() instead, which answers with a result.")
        for each in own:
            setattr(kind, _TODAY[each], vars(_MadeOfOlder)[_TODAY[each]])


def _brings(kind: type, method: str) -> bool:
    """Return whether a method came with this class, and not already with a backend that it inherits from."""
    definer = next((each for each in kind.__mro__ if method in vars(each)), None)
    return definer is kind or (definer is not None and BackendProtocol not in definer.__mro__)


def _has_today(kind: type, name: str) -> bool:
    inherited = (BackendProtocol, _MadeOfOlder)
    return not all(
        getattr(kind, each) in [getattr(base, each) for base in inherited] for each in (name, f"a{name}")
    )


class _MadeOfOlder:
    """The methods of today, for classes that have those of older names."""

    def ls(self, path: str) -> LsResult:
        return coerce(Ls, _ask(self, "ls_info", path))

    async def als(self, path: str) -> LsResult:
        return coerce(Ls, await _ask(self, "als_info", path))

    def grep(
        self, pattern: str, path: str | None = None, glob: str | None = None, *, max_count: int | None = None
    ) -> GrepResult:
        return cap_matches(coerce(Grep, _ask(self, "grep_raw", pattern, path=path, glob=glob)), max_count)

    async def agrep(
        self, pattern: str, path: str | None = None, glob: str | None = None, *, max_count: int | None = None
    ) -> GrepResult:
        answer = await _ask(self, "agrep_raw", pattern, path=path, glob=glob)
        return cap_matches(coerce(Grep, answer), max_count)

    def glob(self, pattern: str, path: str | None = None) -> GlobResult:
        # Its path had a default, and `None` would be taken for a name.
        return coerce(Glob, _ask(self, "glob_info", pattern, path=path or "/"))

    async def aglob(self, pattern: str, path: str | None = None) -> GlobResult:
        return coerce(Glob, await _ask(self, "aglob_info", pattern, path=path or "/"))


def _ask(backend: object, older: str, first: str, **keywords: Any) -> Any:
    """Call a method with the parameters that were documented; a backend may give them other names."""
    return signature_of(type(backend), older).call(getattr(backend, older), [first], keywords)
