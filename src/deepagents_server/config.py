"""Read what to serve: a langgraph.json, or `module.py:agent`."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal, cast

from deepagents_server.errors import ServeError

CONFIG_FILE: Final = "langgraph.json"
_ENV_LINE: Final = re.compile(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*?)\s*")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")


Strategy = Literal["delete", "keep_latest"]

_KEYS: Final = (
    "graphs", "env", "dependencies", "store", "checkpointer", "auth", "http", "webhooks",
    # What LangGraph's file says about images and pages, which are not made here.
    "$schema", "python_version", "node_version", "api_version", "base_image", "image_distro",
    "pip_config_file", "pip_installer", "source", "dockerfile_lines", "keep_pkg_tools", "ui", "ui_config",
)  # fmt: skip
_KEYS_OF: Final[Mapping[str, Sequence[str]]] = MappingProxyType(
    {
        "store": ("index", "ttl"),
        "checkpointer": ("ttl",),
        "checkpointer.ttl": ("default_ttl", "strategy", "sweep_interval_minutes", "sweep_limit"),
        "auth": ("path", "disable_studio_auth", "openapi", "cache"),
        "webhooks": ("url", "headers", "env_prefix"),
        "webhooks.url": (
            "allowed_domains",
            "allowed_ports",
            "require_https",
            "disable_loopback",
            "max_url_length",
        ),  # fmt: skip
    }
)
"""The keys of each part of the file; `http` is read where its parts are."""


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class ServerConfig:
    """What a server serves; paths are relative to `directory`."""

    directory: Path
    graphs: Mapping[str, str]
    """The place of each graph, as `path.py:name` or `package.module:name`, by the name of its assistant."""
    descriptions: Mapping[str, str] = field(default_factory=dict[str, str])
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
    given = _section(read, path.name)
    _check_keys(given, path.name, _KEYS)
    directory = path.parent
    graphs = _section(given.get("graphs"), "graphs")
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
        env=_environment(given.get("env"), directory),
        import_paths=_import_paths(given.get("dependencies"), directory),
        store=_section(given.get("store"), "store"),
        http=_section(given.get("http"), "http"),
        webhooks=_webhooks(given.get("webhooks")),
        auth=_auth(given.get("auth")),
        ages=_ages(_section(given.get("checkpointer"), "checkpointer")),
    )


def _section(value: Any, name: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ServeError(f"{name} must be a JSON object, not {value!r}.")
    given = cast(dict[str, Any], value)
    _check_keys(given, name, _KEYS_OF.get(name, [*given]))
    return given


def _check_keys(given: Mapping[str, Any], name: str, known: Sequence[str]) -> None:
    """Refuse what this server does not do: what a misspelt key leaves open must not go unseen."""
    if unknown := sorted(given.keys() - set(known)):
        raise ServeError(f"{name} has no {unknown[0]!r} that this server knows; it knows {', '.join(known)}.")


def _auth(value: Any) -> dict[str, Any]:
    given = _section(value, "auth")
    if given and "path" not in given:
        raise ServeError("auth has no 'path', so nobody would be asked who calls; name your handlers there.")
    return given


def _webhooks(value: Any) -> dict[str, Any]:
    given = _section(value, "webhooks")
    _section(given.get("url"), "webhooks.url")
    return given


def _place(name: str, value: Any) -> str:
    place = cast(dict[str, Any], value).get("path") if isinstance(value, dict) else value
    if not _NAME.fullmatch(name):
        raise ServeError(f"{name!r} is no name of a graph; use letters, digits, '_', '-' and '.'.")
    if not isinstance(place, str) or ":" not in place:
        raise ServeError(f"The graph {name!r} must be given as 'path.py:name', not {place!r}.")
    return place


def _ages(checkpointer: Mapping[str, Any]) -> Ages:
    """Read `checkpointer.ttl`, whose numbers are minutes."""
    given = _section(checkpointer.get("ttl"), "checkpointer.ttl")
    strategy = given.get("strategy", "delete")
    if strategy not in ("delete", "keep_latest"):
        raise ServeError(f"checkpointer.ttl.strategy must be 'delete' or 'keep_latest', not {strategy!r}.")
    threads = _minutes(given, "default_ttl")
    return Ages(threads, strategy=strategy, every=_minutes(given, "sweep_interval_minutes") or Ages.every)


def _minutes(given: Mapping[str, Any], name: str) -> float | None:
    value = given.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 10**8:
        raise ServeError(f"checkpointer.ttl.{name} must be a number of minutes, not {value!r}.")
    return value * 60.0


def _environment(given: Any, directory: Path) -> dict[str, str]:
    """Read `env`: an object, or the name of a file with a NAME=VALUE on each line."""
    if not isinstance(given, str):
        return {name: str(value) for name, value in _section(given, "env").items()}
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
