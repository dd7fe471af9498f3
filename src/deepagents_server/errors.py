"""Define what a request, or a command, is refused for; every message is for the one who asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as NoConnection

OUTAGES: Final = (DBAPIError, NoConnection)
"""What a statement fails with while a database is away, or so slow that no connection comes free."""


class ServeError(Exception):
    """The server cannot start; the message is one sentence with the way out."""


class ApiError(Exception):
    """A request is refused: an HTTP status, and a sentence that names no path, secret or trace."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = headers or {}


def make_failure() -> ApiError:
    """Answer a failure of the server itself, which is nothing that a caller may know more about."""
    return ApiError(500, "The server failed; its log says why.")


def cannot_be_used() -> ApiError:
    """Answer while the database is away, or its disk full."""
    return ApiError(503, "The database cannot be used now; ask again soon.", {"retry-after": "5"})


def cannot_be_kept() -> ApiError:
    """Refuse a value that no database takes."""
    return ApiError(422, "A value cannot be kept, such as text with a NUL character.")


def not_found(kind: str, key: object) -> ApiError:
    """Refuse what is not there, or belongs to somebody else, which looks the same."""
    return ApiError(404, f"There is no {kind} {str(key)!r}.")


def show_cause(error: BaseException) -> str:
    """Return in a line why a database failed; SQLAlchemy adds the statement with its values."""
    (first, *_) = str(getattr(error, "orig", None) or error).splitlines() or [type(error).__name__]
    return first
