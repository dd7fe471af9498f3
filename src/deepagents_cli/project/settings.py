"""Read what a person and a project have set: one TOML file each, with a sentence for whatever is wrong."""

from __future__ import annotations

import os
import tomllib
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

from deepagents._values import field, valueclass
from deepagents_cli.approval.rules import Permission
from deepagents_cli.project.project import Project, read_text
from deepagents_cli.text import one_line, reason_of
from deepagents_cli.values import MODES, read_amount, read_count, read_number, read_price, read_seconds

if TYPE_CHECKING:
    from deepagents.middleware import EditCheck

THEMES: Final = ("auto", "light", "dark", "none")
NOTIFY: Final = ("off", "bell", "desktop")
REASONING: Final = ("folded", "all", "off")
FILE: Final = "settings.toml"
_LONGEST: Final = 1 << 18
"""Bytes of a file; what a person writes is far shorter."""
_LONGEST_SHOWN: Final = 60

Owner: TypeAlias = Literal["yes", "trusted", "never"]
"""Whether a project may set a key: always, once its directory is trusted, or never."""


@valueclass
class TrustedDirectory:
    """A directory whose programs may be used, as long as their digest stays."""

    directory: Path
    digest: str


@valueclass
class Hook:
    """A command that runs at an event; for calls, of these tools only, or of all. A plugin may bring it."""

    event: str
    command: str
    tools: tuple[str, ...] = ()
    plugin: str = ""


@valueclass
class Settings:
    """What was set; `None` and empty where nothing was. `limits` has the kinds of `Limits`, and `price`."""

    model: str | None = None
    mode: str | None = None
    theme: str = "auto"
    plain: bool = False
    wakes: int = 3
    reasoning: str = "folded"
    status_line: str | None = None
    notify: str = "bell"
    editor: str | None = None
    network: tuple[str, ...] = ()
    web_search: bool = False
    undo: bool = True
    read: tuple[Path, ...] = ()
    write: tuple[Path, ...] = ()
    limits: Mapping[str, Any] = field(default_factory=dict[str, Any])
    permissions: tuple[Permission, ...] = ()
    trusted: tuple[TrustedDirectory, ...] = ()
    hooks: tuple[Hook, ...] = ()
    checks: Mapping[str, EditCheck] = field(default_factory=dict[str, "EditCheck"])
    servers: Mapping[str, Any] = field(default_factory=dict[str, Any])
    confined_servers: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()


NOTHING_SET: Final = Settings()


@valueclass
class Chosen:
    """What one file sets, by key, and what is wrong in it."""

    path: Path
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])
    notices: tuple[str, ...] = ()


@valueclass
class _Key:
    read: Callable[[Any], Any]
    project: Owner


def user_file(home: Path, environment: Mapping[str, str] = os.environ) -> Path:
    """Return the file of a person: `DEEPAGENTS_SETTINGS`, or the one in the home."""
    named = environment.get("DEEPAGENTS_SETTINGS")
    return Path(named).expanduser() if named else home / ".deepagents" / FILE


def read_user(home: Path, environment: Mapping[str, str] = os.environ) -> Chosen:
    """Read the file of a person."""
    path = user_file(home, environment)
    return _read(path, home, lambda: path.read_text("utf-8"), of_project=False)


def read_project(project: Project) -> list[Chosen]:
    """Read the files of the repository and of the directory; keys that no project may set are left out."""
    found: list[Chosen] = []
    for place in project.places():
        path = place / ".deepagents" / FILE
        found.append(_read(path, place, partial(read_text, path, place, _LONGEST), of_project=True))
    return found


def merge(user: Chosen, projects: Iterable[Chosen] = (), *, trusted: bool = False) -> Settings:
    """Merge files: a project's values win, as far as it may set them, and its limits can only be lower."""
    values, notices = dict(user.values), list(user.notices)
    for chosen in projects:
        notices += chosen.notices
        for key, value in chosen.values.items():
            # A project that is not trusted makes no mode out of plan mode.
            if trusted or not (widens(key, value) or (key, values.get(key)) == ("mode", "plan")):
                values[key] = _join(key, values.get(key), value)
    limits, checks = (
        {key.removeprefix(table): value for key, value in values.items() if key.startswith(table)}
        for table in ("limits.", "checks.")
    )
    hooks = [hook for event in EVENTS for hook in values.get(f"hooks.{event}", ())]
    plain = {key: value for key, value in values.items() if "." not in key}
    return Settings(**plain, limits=limits, hooks=tuple(hooks), checks=checks, notices=tuple(notices))


def add_values(chosen: Chosen, further: Iterable[Chosen]) -> Chosen:
    """Return a file with the lists of others joined to its own."""
    values, notices = dict(chosen.values), list(chosen.notices)
    for each in further:
        notices += each.notices
        values |= {key: _join(key, values.get(key), value) for key, value in each.values.items()}
    return Chosen(chosen.path, values, tuple(notices))


def widens(key: str, value: object) -> bool:
    """Return whether a value in a project's file lets more happen, and so needs trust."""
    return value == "auto" if key == "mode" else KEYS[_kind(key)].project == "trusted"


def as_text(value: object) -> str:
    """Return a value for people."""
    return ", ".join(map(str, cast("tuple[Any, ...]", value))) if isinstance(value, tuple) else str(value)


def check_value(key: str, value: object, base: Path) -> Any:
    """Return a value as the program uses it; directories are named from `base`.

    Raises:
        ValueError: naming key, value and the way out.
    """
    if _kind(key) not in KEYS:
        near = get_close_matches(key, KEYS, n=1)
        raise ValueError(f"{_short(key)} is not a setting" + (f"; is it {near[0]!r}?" if near else ""))
    try:
        read = KEYS[_kind(key)].read(value)
        return _in_base(read, base) if key in _DIRECTORIES else read
    except (ValueError, ArgumentTypeError) as error:
        raise ValueError(f"{key} = {_short(value)}: {error}") from error


def _kind(key: str) -> str:
    """Return the entry of `KEYS` for a key: checks have names of their own."""
    return _CHECKS if key.startswith(f"{_CHECKS}.") else key


def _join(key: str, earlier: Any, value: Any) -> Any:
    if earlier is not None and key.startswith("limits."):
        # 0 repeats are any number of them.
        return min(earlier, value) or max(earlier, value)
    return (*(earlier or ()), *value) if key.startswith("hooks.") else value


def _read(path: Path, base: Path, load: Callable[[], str], *, of_project: bool) -> Chosen:
    try:
        raw = tomllib.loads(load())
    except FileNotFoundError:
        return Chosen(path)
    # Brackets nested without end are not TOML either.
    except (OSError, ValueError, RecursionError) as error:
        return Chosen(path, notices=(one_line(f"{path} is not used: {reason_of(error)}"),))
    values: dict[str, Any] = {}
    problems: list[object] = []
    for key, value in _flat(raw):
        try:
            values[key] = _value(key, value, base, problems, of_project=of_project)
        except ValueError as error:
            problems.append(error)
    return Chosen(path, values, tuple(one_line(f"{path}: {problem}") for problem in problems))


def _flat(raw: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    for key, value in raw.items():
        if key in _TABLES and isinstance(value, dict):
            yield from ((f"{key}.{name}", each) for name, each in cast("dict[str, Any]", value).items())
        else:
            yield key, value


def _value(key: str, value: Any, base: Path, problems: list[object], *, of_project: bool) -> Any:
    if key in _TABLES:
        raise ValueError(f"{key} = {_short(value)}: write a table, [{key}]")
    if of_project and key in KEYS and (KEYS[key].project == "never" or (key, value) == ("mode", "full")):
        raise ValueError(f"{key} = {_short(value)} is ignored: only your own settings may say this")
    if key not in _LISTS or not isinstance(value, list):
        return check_value(key, value, base)
    read: list[Any] = []
    # One wrong entry takes no other with it.
    for each in cast("list[Any]", value):
        try:
            read += check_value(key, [each], base)
        except ValueError as error:
            problems.append(error)
    return tuple(read)


def _short(value: object) -> str:
    text = one_line(repr(value))
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("write a text in quotes")
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("write true or false")
    return value


def _one_of(value: Any, *, choices: tuple[str, ...]) -> str:
    if value not in choices:
        near = get_close_matches(str(value), choices, n=1)
        listed = ", ".join(f"'{each}'" for each in choices)
        raise ValueError(f"write one of {listed}" + (f"; is it {near[0]!r}?" if near else ""))
    return str(value)


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValueError("write a list of texts, as in ['a', 'b']")
    return tuple(_text(each) for each in cast("list[Any]", value))


def _hosts(value: Any) -> tuple[str, ...]:
    hosts = _texts(value)
    if any(set(each) & set("/ \t\n") for each in hosts):
        raise ValueError("write hosts, such as example.org or *.example.org, or 'all'")
    return hosts


def _in_base(paths: tuple[str, ...], base: Path) -> tuple[Path, ...]:
    found = tuple(base / Path(each).expanduser() for each in paths)
    if missing := [each for each in found if not each.is_dir()]:
        raise ValueError(f"there is no directory {str(missing[0])!r}")
    return found


def _measure(value: Any, *, read: Callable[[str], Any]) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError("write a number, or a text in quotes")
    return read(str(value))


def _tables(value: Any, *, read: Callable[[dict[str, Any]], Any]) -> tuple[Any, ...]:
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in cast("list[Any]", value)):
        raise ValueError("write a list of tables")
    return tuple(read(each) for each in cast("list[dict[str, Any]]", value))


def _table(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("write tables, as in [servers.NAME]")
    return cast("dict[str, Any]", value)


def _permission(table: dict[str, Any]) -> Permission:
    _only(table, "rule", "directory")
    directory = table.get("directory")
    return Permission(_text(table.get("rule")), None if directory is None else _absolute(directory))


def _read_trusted(table: dict[str, Any]) -> TrustedDirectory:
    _only(table, "directory", "digest")
    return TrustedDirectory(_absolute(table.get("directory")), _text(table.get("digest")))


def _absolute(value: Any) -> Path:
    path = Path(_text(value)).expanduser()
    # A rule for a directory must not become one for another because of where the program was started.
    if not path.is_absolute():
        raise ValueError(f"{str(path)!r} must begin with / or ~")
    return path


def _hooks(value: Any, *, event: str) -> tuple[Hook, ...]:
    if not isinstance(value, list):
        raise ValueError("write a list of commands, as in ['./check.sh']")
    return tuple(_hook(each, event) for each in cast("list[Any]", value))


def _hook(each: Any, event: str) -> Hook:
    if not isinstance(each, dict):
        return Hook(event, _text(each))
    table = cast("dict[str, Any]", each)
    _only(table, "command", "tools")
    return Hook(event, _text(table.get("command")), _texts(table.get("tools", [])))


def _check(value: Any) -> EditCheck:
    # Most settings name none, and the library takes long to import.
    from deepagents.errors import ConfigError
    from deepagents.middleware import EditCheck

    table = cast("dict[str, Any]", value) if isinstance(value, dict) else {"command": value}
    _only(table, "command", "files", "formats", "seconds")
    try:
        return EditCheck(
            _text(table.get("command")),
            _texts(table.get("files", [])),
            _flag(table.get("formats", False)),
            _measure(table["seconds"], read=read_seconds) if "seconds" in table else None,
        )
    except ConfigError as error:
        raise ValueError(str(error)) from error


def _only(table: dict[str, Any], *known: str) -> None:
    if unknown := table.keys() - {*known}:
        raise ValueError(f"{_short(min(unknown))} is not known here; known are {', '.join(known)}")


_CHECKS: Final = "checks"
EVENTS: Final = ("before_tool", "after_tool", "end_of_turn")

KEYS: Final[Mapping[str, _Key]] = {
    "model": _Key(_text, "trusted"),
    "mode": _Key(partial(_one_of, choices=MODES), "yes"),
    "theme": _Key(partial(_one_of, choices=THEMES), "never"),
    "plain": _Key(_flag, "never"),
    "status_line": _Key(_text, "trusted"),
    "notify": _Key(partial(_one_of, choices=NOTIFY), "never"),
    "wakes": _Key(partial(_measure, read=read_number), "never"),
    "reasoning": _Key(partial(_one_of, choices=REASONING), "never"),
    "editor": _Key(_text, "never"),
    "network": _Key(_hosts, "trusted"),
    "web_search": _Key(_flag, "never"),
    "undo": _Key(_flag, "never"),
    "read": _Key(_texts, "trusted"),
    "write": _Key(_texts, "trusted"),
    "limits.tokens": _Key(partial(_measure, read=read_count), "yes"),
    "limits.money": _Key(partial(_measure, read=read_amount), "yes"),
    "limits.seconds": _Key(partial(_measure, read=read_seconds), "yes"),
    "limits.model_calls": _Key(partial(_measure, read=read_count), "yes"),
    "limits.tool_calls": _Key(partial(_measure, read=read_count), "yes"),
    "limits.repeats": _Key(partial(_measure, read=read_number), "yes"),
    "limits.price": _Key(partial(_measure, read=read_price), "never"),
    **{f"hooks.{event}": _Key(partial(_hooks, event=event), "trusted") for event in EVENTS},
    _CHECKS: _Key(_check, "trusted"),
    "permissions": _Key(partial(_tables, read=_permission), "never"),
    "trusted": _Key(partial(_tables, read=_read_trusted), "never"),
    "servers": _Key(_table, "never"),
    "confined_servers": _Key(_texts, "never"),
}
"""Every setting: how its value is read, and whether a project may set it."""
_DIRECTORIES: Final = ("read", "write")
_TABLES: Final = ("limits", "hooks", _CHECKS)
_LISTS: Final = (
    "permissions",
    "trusted",
    "network",
    "read",
    "write",
    *(f"hooks.{event}" for event in EVENTS),
)
