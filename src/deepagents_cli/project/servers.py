"""Find the MCP servers that a person and a project have written down, in the form of Claude Code."""

from __future__ import annotations

import json
import shlex
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast

from deepagents._values import valueclass
from deepagents.errors import ConfigError
from deepagents_cli.errors import CommandError, Exit
from deepagents_cli.project.project import Project, read_text
from deepagents_cli.text import one_line, reason_of
from deepagents_cli.values import as_list

FILE: Final = ".mcp.json"
_LONGEST: Final = 1 << 18
"""Bytes."""
Owner: TypeAlias = Literal["person", "project", "option"]
"""Whose words an entry is: the person's settings, the project's file, or a file that `--mcp` names."""


@valueclass
class Server:
    """A server, its entry as it was written, and the file in which that stands."""

    name: str
    entry: Mapping[str, Any]
    path: Path
    owner: Owner

    def describe(self) -> str:
        """Describe what is started or reached, whole: what was not shown cannot be trusted."""
        entry = dict(self.entry)
        words: list[Any] = [entry.get("command"), *as_list(entry.get("args"))]
        if all(isinstance(each, str) for each in words):
            head = shlex.join(words)
            entry = {key: value for key, value in entry.items() if key not in ("command", "args")}
        else:
            head = str(entry.pop("url", ""))
        return "\n".join([head, *(f"{key}: {json.dumps(value)}" for key, value in entry.items())])

    def placed(self) -> dict[str, Any]:
        """Return the entry with the directory in which its command starts: that of its file."""
        if "command" not in self.entry:
            return {**self.entry}
        given = self.entry.get("cwd", "")
        # What begins with a variable or the home says itself where it is.
        is_relative = isinstance(given, str) and not given.startswith(("$", "~"))
        top = Path.home() if self.owner == "person" else self.path.parent
        return {**self.entry, "cwd": str(top / given)} if is_relative else {**self.entry}

    def files(self) -> list[Path]:
        """Return the files that the command names, there or not: what is in them runs."""
        placed = self.placed()
        words: list[Any] = [placed.get("command"), *as_list(placed.get("args"))]
        named = [each for each in words if isinstance(each, str) and not each.startswith("-")]
        return [Path(placed["cwd"], each) for each in named if "/" in each or Path(each).suffix]


def find_brought(project: Project) -> tuple[list[Server], list[str]]:
    """Return the servers of the repository and of the directory, and what is wrong with their files."""
    found: list[Server] = []
    notices: list[str] = []
    for place in project.places():
        path = place / FILE
        try:
            found += read_servers(path, "project", partial(read_text, path, place, _LONGEST))
        except FileNotFoundError:
            continue
        except (OSError, ValueError, RecursionError) as error:
            notices.append(f"{path} is not used: {reason_of(error)}")
    return found, notices


def read_given(path: Path) -> list[Server]:
    """Return the servers of a file that a person named.

    Raises:
        CommandError: for a file that cannot be used.
    """
    path = path.expanduser().absolute()
    try:
        return read_servers(path, "option", path.read_text)
    except (OSError, ValueError, RecursionError) as error:
        raise CommandError(f"--mcp: {str(path)!r} cannot be used: {reason_of(error)}", Exit.USAGE) from error


def read_servers(path: Path, owner: Owner, load: Callable[[], str]) -> list[Server]:
    """Return the servers of a file.

    Raises:
        OSError, ValueError: saying why it cannot be used.
    """
    raw: object = json.loads(load())
    if not isinstance(raw, dict):
        raise ValueError("it holds no object in braces")
    servers: object = cast("dict[str, object]", raw).get("mcpServers", {})
    if not isinstance(servers, dict):
        raise ValueError("'mcpServers' is not an object that maps names to servers")
    return list(servers_in(cast("dict[str, object]", servers), path, owner))


def servers_in(table: Mapping[str, object], path: Path, owner: Owner) -> Iterator[Server]:
    """Yield the servers of a table; what is not an entry becomes one that cannot be used."""
    for name, entry in table.items():
        given = cast("dict[str, Any]", entry) if isinstance(entry, dict) else {"entry": entry}
        yield Server(name, given, path, owner)


def usable(servers: Iterable[Server]) -> tuple[dict[str, Server], list[str]]:
    """Return by name the servers that can be used, a later one before an earlier, and what is wrong."""
    found: dict[str, Server] = {}
    notices: list[str] = []
    for each in {each.name: each for each in servers}.values():
        is_usable, problems = check(each)
        notices += [one_line(f"{each.path}: {problem}") for problem in problems]
        if is_usable:
            found[each.name] = each
    return found, notices


def check(server: Server) -> tuple[bool, list[str]]:
    """Return whether the library takes an entry, and what it says of it; nothing is started."""
    from deepagents.mcp.entries import read_entries

    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            read_entries({"mcpServers": {server.name: server.placed()}})
        except ConfigError as error:
            return False, [f"{error}; it is not used"]
    return True, [str(each.message) for each in heard]
