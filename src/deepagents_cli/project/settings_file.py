"""Change the settings of a person; their comments and order stay."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from deepagents_cli.approval.rules import Permission
from deepagents_cli.errors import CommandError
from deepagents_cli.project.project import write_whole
from deepagents_cli.project.settings import TrustedDirectory

T = TypeVar("T")


def add_permission(path: Path, permission: Permission) -> None:
    """Add a rule "always", once."""
    entry = {"rule": permission.rule}
    if permission.directory is not None:
        entry["directory"] = str(permission.directory)
    _replace(path, "permissions", entry, _is_permission(permission))


def remove_permission(path: Path, permission: Permission) -> None:
    """Remove a rule "always"."""
    _replace(path, "permissions", None, _is_permission(permission))


def add_trusted(path: Path, trusted: TrustedDirectory) -> None:
    """Trust a directory as it is now."""
    entry = {"directory": str(trusted.directory), "digest": trusted.digest}
    _replace(path, "trusted", entry, lambda each: _directory_of(each) == trusted.directory)


def remove_trusted(path: Path, directory: Path) -> None:
    """Trust a directory no longer."""
    _replace(path, "trusted", None, lambda each: _directory_of(each) == directory)


def change_server(path: Path, name: str, entry: Mapping[str, Any] | None) -> bool:
    """Write the entry of an MCP server into a settings file or a `.mcp.json`, or remove it.

    Return whether there was one of that name.
    """

    def change(document: Any) -> bool:
        key = "servers" if path.suffix == ".toml" else "mcpServers"
        servers = document.setdefault(key, {})
        was_there = name in servers
        servers.pop(name, None)
        if entry:
            servers[name] = {**entry}
        if not servers:
            del document[key]
        return was_there

    return _change(path, change)


def _is_permission(permission: Permission) -> Callable[[Any], bool]:
    return lambda each: (each.get("rule"), _directory_of(each)) == (permission.rule, permission.directory)


def _directory_of(entry: Any) -> Path | None:
    named = entry.get("directory")
    return None if named is None else Path(named).expanduser()


def _replace(path: Path, key: str, entry: dict[str, str] | None, is_old: Callable[[Any], bool]) -> None:
    """Remove the entries of a list that are old, and add one."""
    # Most runs change no settings.
    import tomlkit

    def change(document: Any) -> None:
        entries: Any = document.setdefault(key, tomlkit.aot())
        for index in reversed(range(len(entries))):
            if is_old(entries[index]):
                del entries[index]
        if entry:
            entries.append(entry)
        if not entries:
            del document[key]

    _change(path, change)


def _change(path: Path, change: Callable[[Any], T]) -> T:
    """Change a file of settings, in TOML or JSON, while no other program does."""
    # Many keep such files elsewhere, and a link to them here.
    path = path.resolve()
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _alone(path.parent):
            text = path.read_text("utf-8") if path.exists() else ""
            if path.suffix == ".json":
                document: Any = json.loads(text or "{}")
                changed = change(document)
                write_whole(path, f"{json.dumps(document, indent=2, ensure_ascii=False)}\n".encode())
            else:
                document = tomlkit.parse(text)
                changed = change(document)
                write_whole(path, tomlkit.dumps(document).encode(), 0o600)
            return changed
    except (TOMLKitError, ValueError) as error:
        kind = "JSON" if path.suffix == ".json" else "TOML"
        raise CommandError(f"{path} is not {kind}, so it was left as it is: {error}") from error
    except (OSError, TypeError, AttributeError) as error:
        raise CommandError(f"{path} cannot be changed: {error}") from error


@contextmanager
def _alone(directory: Path) -> Generator[None]:
    """Hold off other programs that change settings here, so that no rule of theirs is lost."""
    if sys.platform == "win32":
        yield
        return
    import fcntl

    held = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)
