"""Say what a request to a model may cost at most, and hold it."""

from __future__ import annotations

from math import inf
from typing import Final

from deepagents._values import valueclass
from deepagents.limits import LEAST_ANSWER, Kind, Price

HELD: Final[tuple[Kind, ...]] = ("tokens", "money")
AMPLE_ANSWER: Final = 8_192
"""The tokens of an answer that is seldom too short, so that no call waits for more."""


@valueclass
class Need:
    """What a call of a model may take: its input, and an answer of at most so many tokens.

    `estimate` is the input as it was counted here. The first `thinking` tokens of the answer are of no use
    yet. Without `is_bounded` the answer cannot be kept shorter.
    """

    estimate: int
    input: int
    answer: int
    price: Price | None = None
    thinking: int = 0
    is_bounded: bool = True

    @property
    def least(self) -> int:
        """The shortest answer that is worth the request."""
        return min(self.answer, LEAST_ANSWER + self.thinking)

    @property
    def ample(self) -> int:
        """An answer that is long enough not to wait for more."""
        return min(self.answer, AMPLE_ANSWER + self.thinking) if self.is_bounded else self.answer

    def fitting(self, kind: Kind, left: float) -> float:
        """Return how many tokens of an answer fit in what is left; below 0 where the input does not."""
        if kind == "tokens":
            return left - self.input
        if self.price is None:
            return inf
        rest, each = left - self.price.most_for(self.input), self.price.of_answer(self.input)
        return rest / each if each else (inf if rest >= 0 else -1)

    def take(self, answer: int) -> dict[Kind, float]:
        """Return what the call takes at most with such an answer."""
        price = self.price
        money = price.most_for(self.input) + answer * price.of_answer(self.input) if price else 0.0
        return {"tokens": self.input + answer, "money": money}


class Hold:
    """What is kept from others while a model answers; `answer` is how many tokens it may write."""

    __slots__ = ("answer", "estimate", "is_claimed", "is_open", "taken")

    def __init__(self, need: Need, answer: int) -> None:
        self.estimate, self.answer = need.estimate, answer
        self.taken = need.take(answer)
        self.is_open, self.is_claimed = True, False
