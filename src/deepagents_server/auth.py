"""Find out who a caller is and what they may do, by the handlers of a `langgraph_sdk.Auth`."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from langgraph_sdk import Auth
from langgraph_sdk.auth.exceptions import HTTPException
from langgraph_sdk.auth.types import AuthContext
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from deepagents_server.config import ServerConfig
from deepagents_server.errors import ApiError, ServeError, make_failure
from deepagents_server.graphs import load_object
from deepagents_server.serialize import dump, load

_LONGEST_NAME: Final = 500
_TAKEN: Final[Mapping[str, Callable[[Request], Any]]] = {
    "request": lambda request: request,
    "path": lambda request: request.url.path,
    "method": lambda request: request.method,
    "path_params": lambda request: dict(request.path_params),
    "query_params": lambda request: dict(request.query_params),
    "headers": lambda request: dict(request.scope["headers"]),
    "authorization": lambda request: request.headers.get("authorization"),
}
"""What a handler that authenticates may take, by the name of its parameter."""
_log: Final = logging.getLogger("deepagents.server")


class User(dict[str, Any]):
    """A caller: what `authenticate` returned, by key and as attributes."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        known: dict[str, Any] = {"display_name": fields["identity"], "permissions": []}
        super().__init__({"is_authenticated": True, **known, **fields})

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


class Handlers:
    """The handlers that `auth` of langgraph.json names."""

    def __init__(self, auth: Auth) -> None:
        held = cast(Any, auth)
        self._authenticate: Any = held._authenticate_handler
        self._on: Mapping[tuple[str, str], list[Any]] = held._handlers
        self._every: list[Any] = held._global_handlers

    @classmethod
    def of(cls, config: ServerConfig) -> Handlers | None:
        """Load them, if any are named.

        Raises:
            ServeError: if they are not there, or one takes what there is not.
        """
        place = config.auth.get("path")
        if place is None:
            return None
        found = load_object(str(place), config.directory)
        if not isinstance(found, Auth):
            raise ServeError(f"auth.path: {place!r} is {type(found).__name__}, not a langgraph_sdk.Auth.")
        handlers = cls(found)
        if unknown := handlers._names() - _TAKEN.keys():
            raise ServeError(
                f"The handler that authenticates takes {', '.join(sorted(unknown))}; it may take "
                f"{', '.join(_TAKEN)}."
            )
        return handlers

    def _names(self) -> set[str]:
        handler = self._authenticate
        return set(inspect.signature(handler).parameters) if handler else set()

    @property
    def authenticates(self) -> bool:
        """Tell whether they say who calls; if not, API keys do."""
        return self._authenticate is not None

    @property
    def decides(self) -> bool:
        """Tell whether they say what callers may do."""
        return bool(self._on or self._every)

    async def authenticate(self, request: Request) -> User:
        """Ask who calls.

        Raises:
            ApiError: if the caller may not come in.
        """
        given = {name: _TAKEN[name](request) for name in self._names()}
        found: Any = await _ask(self._authenticate, given, refusal=401)
        user = User(_fields(found))
        name = user["identity"]
        if not user["is_authenticated"]:
            raise ApiError(401, "Unauthorized")
        if not isinstance(name, str) or not name.strip() or name == "*" or len(name) > _LONGEST_NAME:
            _log.error("The handler that authenticates gave a user whose identity is %.100r", name)
            raise make_failure()
        return user

    async def allow(
        self, user: User, resource: str, action: str, value: dict[str, Any]
    ) -> Mapping[str, Any] | None:
        """Ask whether a caller may do something; return what the metadata of the rows must hold.

        The handler may change `value`. `None` leaves the caller with what they own.

        Raises:
            ApiError: if they may not.
        """
        handler = self._find(resource, action)
        if handler is None:
            return None
        context = AuthContext(
            user=cast(Any, user),
            permissions=user["permissions"],
            resource=cast(Any, resource),
            action=cast(Any, action),
        )
        answer: Any = await _ask(handler, {"ctx": context, "value": value}, refusal=403)
        if answer is False:
            raise ApiError(403, "Forbidden")
        return cast(Mapping[str, Any], answer) if isinstance(answer, Mapping) else None

    def _find(self, resource: str, action: str) -> Any:
        for place in ((resource, action), (resource, "*"), ("*", action)):
            if found := self._on.get(place):
                return found[-1]
        return self._every[-1] if self._every else None


async def _ask(handler: Callable[..., Any], given: Mapping[str, Any], *, refusal: int) -> Any:
    """Call a handler; what it raises by accident goes to the log only."""
    try:
        # What waits for a directory of users or another server would let all callers wait with it.
        awaits = inspect.iscoroutinefunction(handler)
        answer = handler(**given) if awaits else await run_in_threadpool(handler, **given)
        return await answer if inspect.isawaitable(answer) else answer
    except HTTPException as error:
        raise ApiError(_status(error.status_code), str(error.detail), _headers(error.headers)) from error
    except AssertionError as error:
        raise ApiError(refusal, "Unauthorized" if refusal == 401 else "Forbidden") from error
    except ApiError:
        raise
    except Exception as error:
        _log.exception("A handler of auth failed")
        raise make_failure() from error


def _status(given: Any) -> int:
    return given if isinstance(given, int) and 400 <= given < 600 else 500


def _headers(given: Mapping[str, str] | None) -> dict[str, str]:
    """Leave out headers that would end the line they are in."""
    pairs = ((str(name), str(value)) for name, value in (given or {}).items())
    return {name: value for name, value in pairs if name.isascii() and (name + value).isprintable()}


def _fields(found: Any) -> dict[str, Any]:
    """Return a user as JSON keeps it: a name, a mapping, or an object with an identity."""
    if isinstance(found, str):
        return {"identity": found}
    if isinstance(found, Mapping):
        given = dict(cast(Mapping[str, Any], found))
    else:
        names = ("identity", "display_name", "is_authenticated", "permissions")
        given = {name: getattr(found, name) for name in names if hasattr(found, name)}
        given |= {name: value for name, value in getattr(found, "__dict__", {}).items() if name[:1] != "_"}
    return {"identity": None, **load(dump(given))}
