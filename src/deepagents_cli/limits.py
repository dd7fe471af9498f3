"""Parse limits as typed: numbers, times such as `1h30m`, prices such as `3/15/0.3`."""

from __future__ import annotations

import re
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from typing import Any, Final

from deepagents.errors import ConfigError
from deepagents.limits import Limits, Price

REPEATS: Final = 10
"""How often in a row the same call may be made when nothing was typed."""
_SECONDS: Final = {"h": 3600, "m": 60, "s": 1, "bare": 1}
_N: Final = "[0-9]{1,9}"
_TIME: Final = re.compile(rf"(?:(?P<h>{_N})h)?(?:(?P<m>{_N})m)?(?:(?P<s>{_N})s)?|(?P<bare>{_N})")
FLAGS: Final = {
    "tokens": "--max-tokens",
    "money": "--max-cost",
    "seconds": "--max-time",
    "model_calls": "--max-model-calls",
    "tool_calls": "--max-tool-calls",
    "repeats": "--max-repeats",
}


def add_limits(parser: ArgumentParser) -> None:
    """Describe the options that limit a run."""
    group = parser.add_argument_group("limits", "what the agent and all its subagents may use for this task")
    whole: dict[str, Any] = {"type": count, "metavar": "N"}
    group.add_argument("--max-tokens", **whole, help="tokens that models read and write")
    group.add_argument("--max-cost", type=_amount, metavar="AMOUNT", help="what these may cost")
    group.add_argument(
        "--price",
        type=price,
        metavar="IN/OUT[/CACHED]",
        help="what a million tokens cost: read, written, and read from the provider's cache",
    )
    group.add_argument(
        "--max-time", type=seconds, metavar="TIME", help="such as 90s, 10m or 1h30m; questions do not count"
    )
    group.add_argument("--max-model-calls", **whole, help="requests to models")
    group.add_argument("--max-tool-calls", **whole, help="tool calls")
    group.add_argument(
        "--max-repeats",
        type=lambda text: 0 if text == "0" else count(text),
        metavar="N",
        default=REPEATS,
        help=f"equal tool calls in a row (default: {REPEATS}; 0: any number)",
    )


def limits_of(arguments: Namespace) -> Limits | None:
    """Return the limits that were typed; `None` when nothing is limited."""
    given: dict[str, Any] = {
        "tokens": arguments.max_tokens,
        "money": arguments.max_cost,
        "seconds": arguments.max_time,
        "model_calls": arguments.max_model_calls,
        "tool_calls": arguments.max_tool_calls,
        "repeats": arguments.max_repeats or None,
    }
    prices = {"*": arguments.price} if arguments.price else {}
    return Limits(**given, prices=prices) if any(given.values()) else None


def count(text: str) -> int:
    """Read a whole number that is greater than 0.

    Raises:
        ArgumentTypeError: for anything else.
    """
    if not re.fullmatch(r"[0-9]{1,18}", text) or not int(text):
        raise ArgumentTypeError(f"{text!r} is no whole number greater than 0")
    return int(text)


def seconds(text: str) -> int:
    """Read a time.

    Raises:
        ArgumentTypeError: when it is none.
    """
    found = _TIME.fullmatch(text)
    parts = {unit: int(value) for unit, value in found.groupdict().items() if value} if found else {}
    total = sum(_SECONDS[unit] * value for unit, value in parts.items())
    if not total:
        raise ArgumentTypeError(f"{text!r} is no time; write 90s, 10m or 1h30m")
    return total


def price(text: str) -> Price:
    """Read a price.

    Raises:
        ArgumentTypeError: when it is none.
    """
    parts = text.split("/")
    try:
        if len(parts) not in (2, 3):
            raise ValueError(text)
        return Price(*map(float, parts))
    except (ValueError, ConfigError) as error:
        raise ArgumentTypeError(
            f"{text!r} is no price; write IN/OUT or IN/OUT/CACHED, as in 3/15/0.3"
        ) from error


def _amount(text: str) -> float:
    try:
        if 0 < (amount := float(text)) < float("inf"):
            return amount
    except ValueError:
        pass
    raise ArgumentTypeError(f"{text!r} is no amount greater than 0")
