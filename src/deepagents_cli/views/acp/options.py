"""Offer what a person may choose for a session: its mode, its model, and how much that reasons."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Literal

from acp import schema
from acp.exceptions import RequestError

from deepagents_cli.protocol import Choice, Result
from deepagents_cli.values import Mode

INVALID: Final = -32602
_ABOUT_MODES: Final[dict[Mode, tuple[str, str]]] = {
    "ask": ("Ask", "Reads go through; changes and commands are asked about"),
    "auto": ("Auto", "Changes in the directory and commands in the sandbox go through too"),
    "plan": ("Plan", "Nothing is changed; the answer is a plan"),
    "full": ("Full", "Everything goes through, secrets and .git too"),
}
_PRESENT: Final = "now"
"""What marks the present effort."""


class Options:
    """What may be chosen for one session; an option has the name of the slash command that changes it.

    Args:
        invoke: carries out such a command; without arguments it gives its choices.
    """

    def __init__(self, invoke: Callable[[str, str], Awaitable[Result]]) -> None:
        self._invoke = invoke
        self._models: Sequence[Choice] = ()
        self._efforts: Sequence[Choice] = ()
        self.mode: Mode = "ask"
        self.model = ""
        """The model as a status line shows it: behind it stands the effort, where one was chosen."""

    @property
    def modes(self) -> schema.SessionModeState:
        """The modes, for clients that know no options."""
        about = _ABOUT_MODES.items()
        known = [schema.SessionMode(id=each, name=name, description=text) for each, (name, text) in about]
        return schema.SessionModeState(available_modes=known, current_mode_id=self.mode)

    @property
    def offered(self) -> list[schema.SessionConfigOptionSelect]:
        """What may be chosen, as far as it was read."""
        effort = next((each.value for each in self._efforts if each.detail == _PRESENT), None)
        model = self.model.removesuffix(f" ({effort})")
        models = [(each.value, each.label, each.detail) for each in self._models if each.usable]
        if model not in (value for value, _, _ in models):
            models.insert(0, (model, model, ""))
        offered = [
            _option("mode", "mode", self.mode, [(each, *about) for each, about in _ABOUT_MODES.items()]),
            _option("model", "model", model, models),
        ]
        if effort is not None:
            levels = [(each.value, each.label, "") for each in self._efforts]
            offered.append(_option("effort", "thought_level", effort, levels))
        return offered

    async def read(self) -> list[schema.SessionConfigOptionSelect]:
        """Return what may be chosen now."""
        if not self._models:
            self._models = (await self._invoke("model", "")).choices
        self._efforts = (await self._invoke("effort", "")).choices
        return self.offered

    async def choose(self, option: str, value: str | bool) -> None:
        """Choose a value.

        Raises:
            RequestError: for what is not offered, or cannot be chosen now.
        """
        offered: dict[str, list[str]] = {}
        for known in self.offered:
            rows = (each for each in known.options if isinstance(each, schema.SessionConfigSelectOption))
            offered[known.id] = [each.value for each in rows]
        if option not in offered:
            raise RequestError(INVALID, f"{option!r} is not an option; there are {', '.join(offered)}.")
        if value not in offered[option]:
            there = ", ".join(offered[option])
            raise RequestError(INVALID, f"{value!r} is not a value of {option}; there are {there}.")
        result = await self._invoke(option, str(value))
        if result.error:
            raise RequestError(INVALID, result.error)


def _option(
    name: str,
    category: Literal["mode", "model", "thought_level"],
    current: str,
    rows: Sequence[tuple[str, str, str]],
) -> schema.SessionConfigOptionSelect:
    return schema.SessionConfigOptionSelect(
        type="select",
        id=name,
        name=name.capitalize(),
        category=category,
        current_value=current,
        options=[
            schema.SessionConfigSelectOption(value=v, name=n, description=d or None) for v, n, d in rows
        ],
    )
