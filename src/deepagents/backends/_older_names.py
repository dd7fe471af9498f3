"""The names that listing and searching had in earlier versions: to call, and to implement."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from deepagents._async import await_thread
from deepagents._deprecation import warn_legacy
from deepagents.backends._older_shapes import coerce
from deepagents.backends.results import FileInfo, GrepMatch

OLDER_NAME: Final[Mapping[str, str]] = {"ls": "ls_info", "grep": "grep_raw", "glob": "glob_info"}
_PROTOCOL: Final = (__name__, "deepagents.backends.protocol")


class OlderNames:
    """`ls_info`, `grep_raw` and `glob_info`, which answer with lists, on every backend.

    A subclass that implements only these is found by today's names as well.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name, older in OLDER_NAME.items():
            own = [each for each in (older, f"a{older}") if _brings(cls, each)]
            if own and not overrides(cls, name) and not overrides(cls, f"a{name}"):
                said = f"{cls.__name__} implements {', '.join(own)}()"
                warn_legacy(f"{said}: implement {name}() instead, which answers with a result.")

    def ls_info(self, path: str) -> list[FileInfo]:
        """List one directory; write `ls` today."""
        return _listed(_called(self, "ls")(path), "entries")

    async def als_info(self, path: str) -> list[FileInfo]:
        """List one directory; write `als` today."""
        return _listed(await _called(self, "als")(path), "entries")

    def grep_raw(
        self, pattern: str, path: str | None = None, glob: str | None = None
    ) -> list[GrepMatch] | str:
        """Find lines, or say what is wrong; write `grep` today."""
        return _matches_or_error(_called(self, "grep")(pattern, path, glob))

    async def agrep_raw(
        self, pattern: str, path: str | None = None, glob: str | None = None
    ) -> list[GrepMatch] | str:
        """Find lines, or say what is wrong; write `agrep` today."""
        return _matches_or_error(await _called(self, "agrep")(pattern, path, glob))

    def glob_info(self, pattern: str, path: str = "/") -> list[FileInfo]:
        """Find files; write `glob` today."""
        return _listed(_called(self, "glob")(pattern, path), "matches")

    async def aglob_info(self, pattern: str, path: str = "/") -> list[FileInfo]:
        """Find files; write `aglob` today."""
        return _listed(await _called(self, "aglob")(pattern, path), "matches")


def overrides(backend: type, method: str) -> bool:
    """Tell whether a class brings a method of its own, and not only what the protocol says by default."""
    definer = _definer(backend, method)
    return definer is not None and definer.__module__ not in _PROTOCOL


def _definer(backend: type, method: str) -> type | None:
    return next((each for each in backend.__mro__ if method in vars(each)), None)


def _brings(backend: type, method: str) -> bool:
    """Tell whether a method came with this class, and not already with a backend that it inherits from."""
    definer = _definer(backend, method)
    return definer is backend or (definer is not None and not issubclass(definer, OlderNames))


def by_older_name(backend: object, method: str, *args: Any) -> Any:
    """Do what `method` does through its older name.

    Raises:
        NotImplementedError: when that is not there either.
    """
    older = OLDER_NAME.get(method, "")
    if overrides(type(backend), older):
        return coerce(method, getattr(backend, older)(*_for_older(method, args)))
    raise NotImplementedError(lacks(backend, method))


async def awaited(backend: object, method: str, *args: Any, **options: Any) -> Any:
    """Await a blocking method in a thread of its own, or the awaiting one of its older name."""
    older = f"a{OLDER_NAME.get(method, '')}"
    if overrides(type(backend), older) and not overrides(type(backend), method):
        return coerce(method, await getattr(backend, older)(*_for_older(method, args)))
    return await await_thread(lambda: getattr(backend, method)(*args, **options))


def lacks(backend: object, method: str) -> str:
    """Say that a backend has no such method, and where only the awaiting one is there, how to run it."""
    said = f"{type(backend).__name__} does not implement {method}()"
    awaiting = (f"a{method}", f"a{OLDER_NAME.get(method, '')}")
    if any(overrides(type(backend), name) for name in awaiting):
        return f"{said}, only {awaiting[0]}(): run the agent with ainvoke() or astream()"
    return said


def _for_older(method: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
    return (args[0], args[1] or "/") if method == "glob" else args


def _called(backend: object, name: str) -> Any:
    """Return the method that goes by this name today, and say so."""
    older = OLDER_NAME.get(name) or f"a{OLDER_NAME[name[1:]]}"
    warn_legacy(f"{older}() is deprecated: call {name}(), which answers with a result.")
    return getattr(backend, name)


def _listed(result: Any, kind: str) -> list[FileInfo]:
    if result.error:
        raise NotImplementedError(result.error)
    return list(getattr(result, kind) or ())


def _matches_or_error(result: Any) -> list[GrepMatch] | str:
    return result.error or list(result.matches or ())
