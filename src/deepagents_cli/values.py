"""Read the values of options and settings; each reader names the value and the right form."""

from __future__ import annotations

import os
import re
from argparse import ArgumentTypeError
from typing import Final

from deepagents.errors import ConfigError
from deepagents.limits import Price

_SECONDS: Final = {"d": 86400, "h": 3600, "m": 60, "s": 1, "bare": 1}
_N: Final = "[0-9]{1,9}"
_TIME: Final = re.compile(
    rf"(?:(?P<d>{_N})d)?(?:(?P<h>{_N})h)?(?:(?P<m>{_N})m)?(?:(?P<s>{_N})s)?|(?P<bare>{_N})"
)


RETRIES: Final = "DEEPAGENTS_MODEL_RETRIES"
_USUAL_RETRIES: Final = 8
"""With waits of up to 30 seconds they outlast two minutes in which a provider is overloaded."""


def default_retries() -> int:
    """Return how often a failed call of a model is made again, by the environment or as usual."""
    return int(os.environ.get(RETRIES) or _USUAL_RETRIES)


def read_count(text: str) -> int:
    """Read a whole number greater than 0."""
    if not re.fullmatch(r"[0-9]{1,18}", text) or not int(text):
        raise ArgumentTypeError(f"{text!r} is no whole number greater than 0")
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
        raise ArgumentTypeError(f"{text!r} is no time; write 90s, 10m or 1h30m")
    return total


def read_age(text: str) -> int:
    """Read a time as seconds; 0 is any age."""
    return 0 if text == "0" else read_seconds(text)


def read_price(text: str) -> Price:
    """Read what a million tokens cost."""
    parts = text.split("/")
    try:
        if len(parts) not in (2, 3):
            raise ValueError(text)
        return Price(*map(float, parts))
    except (ValueError, ConfigError) as error:
        raise ArgumentTypeError(
            f"{text!r} is no price; write IN/OUT or IN/OUT/CACHED, as in 3/15/0.3"
        ) from error


def read_amount(text: str) -> float:
    """Read an amount of money."""
    try:
        if 0 < (amount := float(text)) < float("inf"):
            return amount
    except ValueError:
        pass
    raise ArgumentTypeError(f"{text!r} is no amount greater than 0")
