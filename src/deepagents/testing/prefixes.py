"""Measure how much of one request begins the next, which is what a provider's cache can reuse."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from os.path import commonprefix
from typing import Final

from langchain_core.messages import BaseMessage

from deepagents._values import frozenclass
from deepagents.middleware.prompt_caching.prefix import Part, Region, blocks_sent, serialise
from deepagents.testing.scripted import Asked

_SHOWN: Final = 60
_REGIONS: Final[Mapping[str, Region]] = {"tool": "tools", "system": "system", "message": "messages"}
"""In the order in which providers cache them, by how a part is called here."""


@frozenclass
class SharedPrefix:
    """The common beginning of two requests, in parts: each tool, system block and message.

    Providers cache tools first, then the system prompt, then messages. `characters` and `lost` count what of
    the earlier request is shared and what is not; `difference` shows where they part, `None` when the later
    one starts with all of the earlier one. `region` and `index` say so as a `CacheBroken` of
    `deepagents.events` does: messages are counted without the system prompt.
    """

    parts: int
    messages: int
    characters: int
    lost: int
    difference: str | None
    region: Region | None = None
    index: int | None = None

    @property
    def whole(self) -> bool:
        """True when the later request starts with all of the earlier one."""
        return self.difference is None


@frozenclass
class PrefixBreak:
    """A request, the one with this number, that does not start with all of the one before it."""

    number: int
    before: Asked
    after: Asked
    shared: SharedPrefix

    def __str__(self) -> str:
        return (
            f"request {self.number} shares {self.shared.characters} characters with the one before and loses "
            f"{self.shared.lost}: {self.shared.difference}"
        )


def shared_prefix(before: Asked, after: Asked) -> SharedPrefix:
    """Measure how far two requests are the same, as a provider is sent them.

    Marks that tell a provider where to cache do not count, nor do ids and notes that are never sent.
    """
    earlier, later = _parts(before), _parts(after)
    parts = messages = characters = 0
    seen: Counter[Region] = Counter()
    for name, one in earlier:
        other = next(later, None)
        # A part that is added stands in an earlier region than the part that it replaces.
        kinds = [each.split()[0] for each in (name, other[0] if other else name)]
        region = _REGIONS[min(kinds, key=[*_REGIONS].index)]
        if (
            other is None
            or other[0] != name
            or (one is not other[1] and serialise(one) != serialise(other[1]))
        ):
            loss = _measure_loss(characters, name, one, other, earlier)
            return SharedPrefix(parts, messages, *loss, region, seen[region])
        parts += 1
        seen[region] += 1
        messages += isinstance(one, BaseMessage)
        characters += len(serialise(one))
    return SharedPrefix(parts, messages, characters, 0, None)


def prefix_breaks(
    asked: Sequence[Asked], allowed: Callable[[PrefixBreak], bool] = lambda _: False
) -> list[PrefixBreak]:
    """Find each request that does not start with all of the one before, but for those that are allowed.

    Give it the requests of one conversation, such as `WindowedModel.turns`.
    """
    found: list[PrefixBreak] = []
    for number, (before, after) in enumerate(pairwise(asked), 1):
        broken = PrefixBreak(number, before, after, shared_prefix(before, after))
        if not broken.shared.whole and not allowed(broken):
            found.append(broken)
    return found


def assert_prefix_kept(
    asked: Sequence[Asked], allowed: Callable[[PrefixBreak], bool] = lambda _: False
) -> None:
    """Fail when a request does not start with all of the one before and `allowed` does not excuse it.

    Raises:
        AssertionError: which shows for each break where the difference is.
    """
    found = prefix_breaks(asked, allowed)
    if found:
        raise AssertionError("\n".join(map(str, found)))


def _parts(asked: Asked) -> Iterator[tuple[str, Part]]:
    for tool in asked.tools:
        yield "tool", tool
    for message in asked.messages:
        if message.type == "system":
            yield from (("system", block) for block in blocks_sent(message))
    for at, message in enumerate(asked.messages):
        if message.type != "system":
            yield f"message {at} ({message.type})", message


def _measure_loss(
    shared: int, name: str, one: Part, other: tuple[str, Part] | None, rest: Iterator[tuple[str, Part]]
) -> tuple[int, int, str]:
    """Return the characters shared and lost, and a sentence that shows where two parts differ."""
    was = serialise(one)
    now = "" if other is None else serialise(other[1])
    same = len(commonprefix([was, now])) if other and other[0] == name else 0
    lost = len(was) - same + sum(len(serialise(each)) for _, each in rest)
    start = max(0, same - _SHOWN // 3)
    before, after = was[start : same + _SHOWN], now[start : same + _SHOWN]
    if other is None:
        return shared, lost, f"{name} is gone: {before!r}"
    place = name if other[0] == name else f"{name}, now {other[0]},"
    return shared + same, lost, f"{place} differs from character {same} on: {before!r} became {after!r}"
