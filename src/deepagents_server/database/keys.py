"""Keep rows of API keys: made, found by what a caller sends, listed, revoked."""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from collections.abc import Mapping
from typing import Any, Final

import sqlalchemy as sa

from deepagents_server.database.engine import Database, Row
from deepagents_server.database.tables import api_keys
from deepagents_server.errors import ServeError
from deepagents_server.serialize import now

_PREFIX: Final = "da-"
_FRESH: Final = 1.0
"""Seconds for which what was read about a key is believed; so long a revoked one may still work."""
_REMEMBERED: Final = 10_000
_LONGEST_OWNER: Final = 200


def check_owner(owner: str) -> None:
    """Refuse what is not a name.

    Raises:
        ServeError: for a name that no owner can have.
    """
    if not owner.strip() or not owner.isprintable() or owner == "*" or len(owner) > _LONGEST_OWNER:
        raise ServeError(f"{owner[:40]!r} is not a name of an owner; give a name, as in 'alice'.")


async def add_key(database: Database, owner: str, expires_at: str | None = None) -> tuple[str, Row]:
    """Insert a key; return its text, which is kept nowhere, and its row.

    Raises:
        ServeError: for a name that no owner can have.
    """
    key_id = secrets.token_hex(4)
    text = f"{_PREFIX}{key_id}-{secrets.token_urlsafe(32)}"
    return text, await _add(database, owner, key_id, text, expires_at)


async def import_key(database: Database, owner: str, text: str, expires_at: str | None = None) -> str:
    """Insert a key that was made elsewhere, unless this owner has it already; return its id.

    Raises:
        ServeError: for a name that no owner can have, and for text that may be guessed, or is known here as
            a key that does not work for this owner.
    """
    if not re.fullmatch(r"[!-~]{32,500}", text):
        raise ServeError(
            "A key has 32 to 500 letters, digits and signs, and no blanks; `openssl rand -hex 32` makes one."
        )
    found = await database.row(sa.select(api_keys).where(api_keys.c.digest == _digest(text)))
    if found is None:
        return (await _add(database, owner, secrets.token_hex(4), text, expires_at))["key_id"]
    if found["owner"] != owner or not _works(found):
        raise ServeError(f"This key is here as {found['key_id']}, revoked, past, or of another owner.")
    return found["key_id"]


async def _add(database: Database, owner: str, key_id: str, text: str, expires_at: str | None) -> Row:
    check_owner(owner)
    row = {
        "key_id": key_id,
        "owner": owner,
        "digest": _digest(text),
        "created_at": now(),
        "expires_at": expires_at,
        "revoked_at": None,
    }
    await database.execute(api_keys.insert().values(row))
    return row


async def list_keys(database: Database) -> list[Row]:
    """Return all keys, also those that are revoked, oldest first."""
    return await database.rows(sa.select(api_keys).order_by(api_keys.c.created_at, api_keys.c.key_id))


async def revoke_key(database: Database, key_id: str) -> bool:
    """Let a key work no more; `False` if there is none that does."""
    revoked = (
        api_keys.update()
        .where(api_keys.c.key_id == key_id, api_keys.c.revoked_at.is_(None))
        .values(revoked_at=now())
    )
    return bool(await database.execute(revoked))


def _digest(text: str) -> str:
    # Nobody can try all keys of so many random bits: a slow digest would only slow each request.
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class Keys:
    """The keys of a server, read again each second."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._found: dict[str, tuple[float, Row]] = {}
        self._used: tuple[float, bool] = (0.0, False)

    async def are_used(self) -> bool:
        """Tell whether there ever was a key: from then on, each request needs one."""
        read_at, used = self._used
        if not used and time.monotonic() - read_at >= _FRESH:
            one = await self._database.row(sa.select(api_keys.c.key_id).limit(1))
            self._used = (time.monotonic(), one is not None)
        return self._used[1]

    async def find(self, text: str) -> Row | None:
        """Return the key that a caller has sent, if it works."""
        digest = _digest(text)
        read_at, row = self._found.get(digest, (0.0, None))
        if row is None or time.monotonic() - read_at >= _FRESH:
            row = await self._read(digest)
        return row if row and _works(row) else None

    async def _read(self, digest: str) -> Row | None:
        row = await self._database.row(sa.select(api_keys).where(api_keys.c.digest == digest))
        # What is not a key is not remembered, or callers could fill the memory.
        self._found.pop(digest, None)
        if row:
            if len(self._found) >= _REMEMBERED:
                self._found.clear()
            self._found[digest] = (time.monotonic(), row)
        return row


def _works(row: Mapping[str, Any]) -> bool:
    return row["revoked_at"] is None and (row["expires_at"] is None or row["expires_at"] > now())
