"""Offer what a person may choose for a session: its mode, its model, and how much that reasons."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, Literal

from acp import schema
from acp.exceptions import RequestError

from deepagents_cli.protocol import Choice, Result, Status
from deepagents_cli.session.agent.effort import DEFAULT

INVALID: Final = -32602
_CATEGORIES: Final[Mapping[str, Literal["mode", "model", "thought_level"]]] = {
    "mode": "mode", "model": "model", "effort": "thought_level",
}  # fmt: skip


class Options:
    """What may be chosen for one session; an option has the name of the slash command that changes it.

    Args:
        invoke: carries out such a command; without arguments it gives its choices.
    """

    def __init__(self, invoke: Callable[[str, str], Awaitable[Result]]) -> None:
        self._invoke = invoke
        self._choices: dict[str, Sequence[Choice]] = {}
        self.status = Status(model="", mode="ask")
        """What is chosen."""

    @property
    def modes(self) -> schema.SessionModeState:
        """The modes that were read, for clients that know no options."""
        known = [
            schema.SessionMode(id=each.value, name=each.label, description=each.detail)
            for each in self._choices["mode"]
        ]
        return schema.SessionModeState(available_modes=known, current_mode_id=self.status.mode)

    @property
    def offered(self) -> list[schema.SessionConfigOptionSelect]:
        """What may be chosen, as far as it was read."""
        status = self.status
        current = {"mode": status.mode, "model": status.model, "effort": status.effort or DEFAULT}
        return [_option(name, current[name], each) for name, each in self._choices.items() if each]

    async def read(self) -> list[schema.SessionConfigOptionSelect]:
        """Return what may be chosen now."""
        for name in _CATEGORIES:
            # The levels are those of the present model, and models come and go.
            self._choices[name] = (await self._invoke(name, "")).choices
        return self.offered

    async def choose(self, option: str, value: str | bool) -> None:
        """Choose a value.

        Raises:
            RequestError: for what is not known, or cannot be chosen now.
        """
        if option not in _CATEGORIES:
            raise RequestError(INVALID, f"{option!r} is not an option; there are {', '.join(_CATEGORIES)}.")
        result = await self._invoke(option, str(value))
        if result.error:
            raise RequestError(INVALID, result.error)


def _option(name: str, current: str, choices: Sequence[Choice]) -> schema.SessionConfigOptionSelect:
    values = [
        schema.SessionConfigSelectOption(value=each.value, name=each.label, description=each.detail or None)
        for each in choices
        if each.usable
    ]
    if all(each.value != current for each in values):
        # A model need not be one that is listed.
        values.insert(0, schema.SessionConfigSelectOption(value=current, name=current))
    return schema.SessionConfigOptionSelect(
        type="select",
        id=name,
        name=name.capitalize(),
        category=_CATEGORIES[name],
        current_value=current,
        options=values,
    )
