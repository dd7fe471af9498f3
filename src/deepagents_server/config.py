"""Read what to serve: a langgraph.json, or `module.py:agent`."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

from deepagents._values import field, valueclass
from deepagents_server.config_file import Strategy, check_file
from deepagents_server.errors import ServeError

CONFIG_FILE: Final = "langgraph.json"
_ENV_LINE: Final = re.compile(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*?)\s*")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")


@valueclass
class Ages:
    """After how many seconds without a change something goes; `None` keeps it."""

    threads: float | None = None
    runs: float | None = None
    events: float | None = None
    strategy: Strategy = "delete"
    """What happens to a thread: it goes, or only what it held before."""
    traces: float = 3600.0
    """What only the server itself has written down about runs and threads that are over."""
    every: float = 60.0
    """Seconds from one look to the next."""


@valueclass
class ServerConfig:
    """What a server serves; paths are relative to `directory`."""

    directory: Path
    graphs: Mapping[str, str]
    """The place of each graph, as `path.py:name` or `package.module:name`, by the name of its assistant."""
    descriptions: Mapping[str, str] = field(default_factory=dict[str, str])
    mcp: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The MCP servers of a graph, by its name: the path of a file, or what stands in one."""
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    import_paths: tuple[Path, ...] = ()
    store: Mapping[str, Any] = field(default_factory=dict[str, Any])
    http: Mapping[str, Any] = field(default_factory=dict[str, Any])
    webhooks: Mapping[str, Any] = field(default_factory=dict[str, Any])
    auth: Mapping[str, Any] = field(default_factory=dict[str, Any])
    ages: Ages = field(default_factory=Ages)


def load_config(target: str | None, directory: Path) -> ServerConfig:
    """Read what was named: `module.py:agent`, a JSON file, or by default the directory's langgraph.json.

    Raises:
        ServeError: for what is not there, or cannot be read.
    """
    named = target or CONFIG_FILE
    if ":" in named and not named.endswith(".json"):
        place, _, attribute = named.rpartition(":")
        name = attribute if _NAME.fullmatch(attribute) else "agent"
        return ServerConfig(directory, {name: f"{place}:{attribute}"}, import_paths=(directory,))
    path = directory / named
    if not path.is_file():
        raise ServeError(
            f"There is no {named!r} in {str(directory)!r}; name an agent, as in "
            f"`deepagents serve agent.py:agent`, or write a {CONFIG_FILE}."
        )
    return _read(path)


def _read(path: Path) -> ServerConfig:
    try:
        read = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ServeError(f"{str(path)!r} cannot be read as JSON: {error}") from error
    given = check_file(path.name, read)
    directory = path.parent
    graphs: Mapping[str, Any] = given.get("graphs") or {}
    if not graphs:
        raise ServeError(f'{path.name} names no graphs; add "graphs": {{"agent": "./agent.py:agent"}}.')
    return ServerConfig(
        directory,
        graphs={name: _place(name, value) for name, value in graphs.items()},
        descriptions={
            name: str(value["description"])
            for name, value in cast(dict[str, dict[str, Any]], graphs).items()
            if "description" in value
        },
        mcp={
            name: directory / value["mcp"] if isinstance(value["mcp"], str) else value["mcp"]
            for name, value in graphs.items()
            if isinstance(value, dict) and cast(dict[str, Any], value).get("mcp")
        },
        env=_environment(given.get("env"), directory),
        import_paths=_import_paths(given.get("dependencies"), directory),
        store=given.get("store") or {},
        http=given.get("http") or {},
        webhooks=given.get("webhooks") or {},
        auth=given.get("auth") or {},
        ages=_ages(given.get("checkpointer") or {}),
    )


def _place(name: str, value: Any) -> str:
    place = cast(dict[str, Any], value).get("path") if isinstance(value, dict) else value
    if not _NAME.fullmatch(name):
        raise ServeError(f"{name!r} is not a name of a graph; use letters, digits, '_', '-' and '.'.")
    if not isinstance(place, str) or ":" not in place:
        raise ServeError(f"The graph {name!r} must be given as 'path.py:name', not {place!r}.")
    return place


def _ages(checkpointer: Mapping[str, Any]) -> Ages:
    """Read `checkpointer.ttl`, whose numbers are minutes."""
    ttl: Mapping[str, Any] = checkpointer.get("ttl") or {}
    threads, every = ttl.get("default_ttl"), ttl.get("sweep_interval_minutes")
    return Ages(
        threads and threads * 60.0,
        strategy=ttl.get("strategy", "delete"),
        every=every * 60.0 if every else Ages.every,
    )


def _environment(given: Any, directory: Path) -> dict[str, str]:
    """Read `env`: an object, or the name of a file with a NAME=VALUE on each line."""
    if not isinstance(given, str):
        if not isinstance(given, dict | None):
            raise ServeError(f"env must be the name of a file or a JSON object, not {given!r}.")
        return {name: str(value) for name, value in cast(dict[str, Any], given or {}).items()}
    try:
        lines = (directory / given).read_text("utf-8").splitlines()
    except OSError as error:
        raise ServeError(f"The file of env, {given!r}, cannot be read: {error.strerror}.") from error
    found = (_ENV_LINE.fullmatch(line) for line in lines)
    return {each[1]: _unquote(each[2]) for each in found if each}


def _unquote(value: str) -> str:
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value


def _import_paths(given: Any, directory: Path) -> tuple[Path, ...]:
    """Return the directories among the dependencies, and what holds packages below `src`."""
    dependencies = cast(list[Any], given) if isinstance(given, list) else ["."]
    local = [directory / each for each in dependencies if isinstance(each, str) and each.startswith(".")]
    found = [path.resolve() for path in local if path.is_dir()]
    return (*found, *(path / "src" for path in found if (path / "src").is_dir()), directory.resolve())


def apply_environment(config: ServerConfig) -> None:
    """Set the variables of the configuration; what the caller's environment has already stays."""
    for name, value in config.env.items():
        os.environ.setdefault(name, value)
