"""Read the values of options and settings; each reader names the value and the right form."""

from __future__ import annotations

import os
import re
from argparse import ArgumentTypeError
from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias, cast

from deepagents.errors import ConfigError
from deepagents.limits import Price

Mode: TypeAlias = Literal["ask", "auto", "plan", "full"]
MODES: Final[tuple[Mode, ...]] = ("ask", "auto", "plan", "full")
_BEHIND: Final[Mapping[Mode, Mode]] = {"ask": "auto", "auto": "plan", "plan": "ask", "full": "ask"}
Scope: TypeAlias = Literal["session", "directory", "everywhere"]
SCOPES: Final[Mapping[Scope, str]] = {
    "session": "in this session",
    "directory": "in this directory",
    "everywhere": "everywhere",
}
"""How long a rule "always" may hold, as a person reads it; `approval/rules.py` says where it is kept."""
_SECONDS: Final = {"d": 86400, "h": 3600, "m": 60, "s": 1, "bare": 1}
_BYTES: Final = {None: 1, "kB": 1000, "MB": 1000**2, "GB": 1000**3}
_N: Final = "[0-9]{1,9}"
_TIME: Final = re.compile(
    rf"(?:(?P<d>{_N})d)?(?:(?P<h>{_N})h)?(?:(?P<m>{_N})m)?(?:(?P<s>{_N})s)?|(?P<bare>{_N})"
)


RETRIES: Final = "DEEPAGENTS_MODEL_RETRIES"
_USUAL_RETRIES: Final = 8
"""With waits of up to 30 seconds they outlast two minutes in which a provider is overloaded."""


def as_list(value: object) -> list[Any]:
    """Return a list of JSON or TOML; an empty one for what is none."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def as_table(value: object) -> Mapping[str, Any]:
    """Return a table of JSON or TOML; an empty one for what is none."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def next_mode(mode: Mode) -> Mode:
    """Return the mode behind this one; `full`, which asks about nothing, is chosen by its name alone."""
    return _BEHIND[mode]


def default_retries() -> int:
    """Return how often a failed call of a model is made again, by the environment or as usual.

    Raises:
        ConfigError: for a variable that holds no number.
    """
    given = os.environ.get(RETRIES) or str(_USUAL_RETRIES)
    if not given.isdecimal():
        raise ConfigError(f"{RETRIES} must be a whole number of 0 or more, got {given!r}")
    return int(given)


def read_count(text: str) -> int:
    """Read a whole number greater than 0."""
    if not re.fullmatch(r"[0-9]{1,18}", text) or not int(text):
        raise ArgumentTypeError(f"{text!r} is not a whole number greater than 0")
    return int(text)


def read_number(text: str) -> int:
    """Read a whole number, 0 included."""
    return 0 if text == "0" else read_count(text)


def read_seconds(text: str) -> int:
    """Read a time as seconds."""
    found = _TIME.fullmatch(text)
    parts = {unit: int(value) for unit, value in found.groupdict().items() if value} if found else {}
    total = sum(_SECONDS[unit] * value for unit, value in parts.items())
    if not total:
        raise ArgumentTypeError(f"{text!r} is not a time; write 90s, 10m or 1h30m")
    return total


def read_age(text: str) -> int:
    """Read a time as seconds; 0 is any age."""
    return 0 if text == "0" else read_seconds(text)


def read_size(text: str) -> int:
    """Read a number of bytes."""
    found = re.fullmatch(r"([0-9]{1,9})(kB|MB|GB)?", text)
    if not found or not (size := int(found[1]) * _BYTES[found[2]]):
        raise ArgumentTypeError(f"{text!r} is not a size; write 500kB, 100MB or 1GB")
    return size


def read_address(text: str) -> tuple[str, int]:
    """Read an address to listen on; a port alone is one of this machine."""
    host, _, port = text.rpartition(":")
    if not re.fullmatch("[0-9]{1,5}", port):
        raise ArgumentTypeError(f"{text!r} is not an address; write 9464, or 0.0.0.0:9464")
    return host.strip("[]") or "127.0.0.1", int(port)


def read_price(text: str) -> Price:
    """Read what a million tokens cost."""
    parts = text.split("/")
    try:
        if len(parts) not in (2, 3):
            raise ValueError(text)
        return Price(*map(float, parts))
    except (ValueError, ConfigError) as error:
        raise ArgumentTypeError(
            f"{text!r} is not a price; write IN/OUT or IN/OUT/CACHED, as in 3/15/0.3"
        ) from error


def read_amount(text: str) -> float:
    """Read an amount of money."""
    try:
        if 0 < (amount := float(text)) < float("inf"):
            return amount
    except ValueError:
        pass
    raise ArgumentTypeError(f"{text!r} is not an amount greater than 0")
