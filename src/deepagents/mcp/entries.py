"""Read what a configuration says of servers: check each entry, fill in variables, name what is wrong."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast
from urllib.parse import urlsplit

from deepagents._deprecation import did_you_mean, warn_unknown_keys
from deepagents._values import field, valueclass
from deepagents.errors import ConfigError

Transport: TypeAlias = Literal["stdio", "http", "sse", "memory"]
Servers: TypeAlias = "str | os.PathLike[str] | Mapping[str, Any]"

_TRANSPORTS: Final[Mapping[str, Transport]] = {
    "stdio": "stdio",
    "http": "http",
    "streamable-http": "http",
    "streamable_http": "http",
    "sse": "sse",
}
_VARIABLE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_KEYS: Final = ("command", "args", "env", "cwd", "url", "headers", "type", "transport", "disabled") + (
    "timeout",
    "tools",
    "excludeTools",
    "pin",
    "defer",
)
_SHORTEST_SECRET: Final = 4
"""Characters: shorter values, such as `1`, stand in any text."""


@valueclass
class ServerEntry:
    """One server, checked: how to reach it, and what of it is offered.

    Args:
        timeout: seconds that a call may take; `None` for that of all servers.
        offered, left_out: patterns of the server's own names for its tools.
        secrets: texts that stand in no error and no question.
        server: an object of the SDK that runs in this process.
    """

    name: str
    transport: Transport
    command: str = ""
    args: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    cwd: str | None = None
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    disabled: bool = False
    timeout: float | None = None
    offered: Sequence[str] = ("*",)
    left_out: Sequence[str] = ()
    pin: bool = False
    defer: bool | None = None
    secrets: Sequence[str] = field(default=(), repr=False)
    server: Any = field(default=None, repr=False)

    def offers(self, tool: str) -> bool:
        """Return whether a tool of the server is to be offered."""
        return _is_any(tool, self.offered) and not _is_any(tool, self.left_out)

    def redact(self, text: str) -> str:
        """Return a text without the secrets of this entry."""
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return text


def _is_any(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def read_entries(servers: Servers) -> list[ServerEntry]:
    """Read all entries of a file, or of a mapping, in their order.

    Raises:
        ConfigError: naming the server and the value that cannot be.
    """
    given, directory = _load(servers)
    inner: object = given.get("mcpServers", given)
    if not isinstance(inner, Mapping):
        raise ConfigError(f"'mcpServers' must map names to servers, not {type(inner).__name__}")
    return [_read(name, entry, directory) for name, entry in cast("Mapping[Any, Any]", inner).items()]


def _load(servers: Servers) -> tuple[Mapping[str, Any], str | None]:
    if isinstance(servers, Mapping):
        return servers, None
    if not isinstance(cast(object, servers), str | os.PathLike):
        raise ConfigError(
            "mcp must be a mapping of servers, the path of a file with one, or MCPServers, "
            f"not {type(servers).__name__}"
        )
    path = Path(servers)
    try:
        given: object = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"the file of MCP servers {str(path)!r} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise ConfigError(f"the file of MCP servers {str(path)!r} is not JSON: {error}") from None
    if not isinstance(given, dict):
        raise ConfigError(
            f"the file {str(path)!r} must hold an object with 'mcpServers', not {type(given).__name__}"
        )
    return cast("dict[str, Any]", given), str(path.absolute().parent)


def _read(name: Any, given: Any, directory: str | None) -> ServerEntry:
    if not isinstance(name, str) or not name:
        raise ConfigError(f"the name of an MCP server must be a text that is not empty, got {name!r}")
    if not isinstance(given, Mapping):
        return _read_object(name, given)
    reader = _Reader(name, cast("Mapping[str, Any]", given))
    warn_unknown_keys(f"MCP server {name!r}", [key for key in reader.given if key not in _KEYS], _KEYS)
    transport = reader.transport()
    timeout = reader.value("timeout", lambda each: _is_number(each) and each > 0, "milliseconds above 0")
    common: dict[str, Any] = {
        "disabled": reader.flag("disabled"),
        "timeout": None if timeout is None else timeout / 1000,
        "offered": reader.texts("tools", ("*",)),
        "left_out": reader.texts("excludeTools", ()),
        "pin": reader.flag("pin"),
        "defer": reader.value("defer", lambda each: isinstance(each, bool), "true or false"),
    }
    if transport == "stdio":
        own = {
            "command": reader.expand("command", reader.required("command")),
            "args": [reader.expand("args", each) for each in reader.texts("args", ())],
            "env": reader.mapping("env"),
            "cwd": reader.directory(directory),
        }
    else:
        own = {"url": reader.url(), "headers": reader.mapping("headers")}
    return ServerEntry(name, transport, **own, **common, secrets=reader.secrets(own))


def _read_object(name: str, given: object) -> ServerEntry:
    kinds = [f"{each.__module__}.{each.__qualname__}" for each in type(given).__mro__]
    if any(kind.startswith("mcp.client.") for kind in kinds):
        raise ConfigError(
            f"MCP server {name!r} is a {type(given).__name__}, which belongs to the event loop of its "
            "maker; give what it connects to: a mapping with 'command' or 'url', or the server object itself"
        )
    if not any(kind.startswith("mcp.server.") and not kind.startswith("mcp.server.auth") for kind in kinds):
        raise ConfigError(
            f"MCP server {name!r} must be a mapping with 'command' or 'url', or a server object of the "
            f"mcp package, not {type(given).__name__}"
        )
    return ServerEntry(name, "memory", server=given)


def _is_number(given: object) -> bool:
    return isinstance(given, int | float) and not isinstance(given, bool)


class _Reader:
    """Takes the values of one entry, and remembers which of them came from the environment."""

    def __init__(self, name: str, given: Mapping[str, Any]) -> None:
        self.name, self.given = name, given
        self._expanded: list[str] = []

    def fail(self, problem: str) -> ConfigError:
        return ConfigError(f"MCP server {self.name!r}: {problem}")

    def value(self, key: str, is_right: Callable[[Any], bool], expected: str) -> Any:
        given = self.given.get(key)
        if given is not None and not is_right(given):
            # The type alone: the value may be a secret that stands under the wrong key.
            raise self.fail(f"'{key}' must be {expected}, got a value of type {type(given).__name__}")
        return given

    def flag(self, key: str) -> bool:
        return bool(self.value(key, lambda each: isinstance(each, bool), "true or false"))

    def required(self, key: str) -> str:
        given = self.value(key, lambda each: isinstance(each, str) and bool(each), "a text that is not empty")
        if given is None:
            raise self.fail(f"it needs '{key}'")
        return given

    def texts(self, key: str, default: Sequence[str]) -> Sequence[str]:
        given = self.value(key, _is_list_of_texts, "a list of texts")
        return default if given is None else tuple(given)

    def mapping(self, key: str) -> Mapping[str, str]:
        given: Mapping[str, str] = self.value(key, _is_mapping_of_texts, "an object of texts") or {}
        return {name: self.expand(key, each) for name, each in given.items()}

    def transport(self) -> Transport:
        for key in ("type", "transport"):
            named = self.value(key, lambda each: isinstance(each, str), "a text")
            if named is not None:
                if named not in _TRANSPORTS:
                    known = ", ".join(map(repr, _TRANSPORTS))
                    raise self.fail(
                        f"'{key}' must be one of {known}, got {named!r}{did_you_mean(named, _TRANSPORTS)}"
                    )
                return _TRANSPORTS[named]
        has = [key for key in ("command", "url") if key in self.given]
        if len(has) != 1:
            found = "has both" if has else "has neither"
            raise self.fail(f"it needs 'command' or 'url', and {found}; 'type' says which counts")
        return "stdio" if has == ["command"] else "http"

    def expand(self, key: str, text: str) -> str:
        """Fill in `${VAR}` and `${VAR:-default}`, once: what comes out is not looked at again."""

        def fill(found: re.Match[str]) -> str:
            name, default = found[1], found[2]
            value = os.environ.get(name) or default
            if value is None:
                raise self.fail(
                    f"'{key}' names the environment variable {name!r}, which is not set; set it, or write "
                    f"${{{name}:-default}}"
                )
            self._expanded.append(value)
            return value

        return _VARIABLE.sub(fill, text)

    def directory(self, directory: str | None) -> str | None:
        given = self.value("cwd", lambda each: isinstance(each, str) and bool(each), "a path")
        if given is None:
            return directory
        return str(Path(directory or Path.cwd(), Path(self.expand("cwd", given)).expanduser()))

    def url(self) -> str:
        url = self.expand("url", self.required("url"))
        try:
            parts = urlsplit(url)
            is_right = parts.scheme in ("http", "https") and bool(parts.hostname)
        except ValueError:
            is_right = False
        if not is_right:
            raise self.fail("'url' must be an address that begins with http:// or https://")
        return url

    def secrets(self, own: Mapping[str, Any]) -> Sequence[str]:
        """Return all texts that may be secret, the longest first, so that none is left in part."""
        address: str = own.get("url", "")
        parts = urlsplit(address)
        found: list[str] = [*self._expanded, *own.get("env", {}).values(), parts.password or "", parts.query]
        for value in own.get("headers", {}).values():
            found += [value, *value.split()]
        found = [each for each in found if len(each) >= _SHORTEST_SECRET]
        return tuple(sorted(set(found), key=len, reverse=True))


def _is_list_of_texts(given: Any) -> bool:
    return isinstance(given, list | tuple) and all(
        isinstance(each, str) for each in cast("Sequence[Any]", given)
    )


def _is_mapping_of_texts(given: Any) -> bool:
    return isinstance(given, Mapping) and all(
        isinstance(key, str) and isinstance(value, str)
        for key, value in cast("Mapping[Any, Any]", given).items()
    )
