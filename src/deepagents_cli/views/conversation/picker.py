"""Choose one of several rows: arrows move, typing filters, what cannot be used says why."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from deepagents._values import recordclass
from deepagents_cli.protocol import Choice


@recordclass
class Picker:
    """Holds the rows, those that are found, and the row that the arrows are on."""

    title: str
    rows: Sequence[Choice]
    picked: Callable[[str], object]
    at: int = 0
    found: Sequence[Choice] = ()
    """The rows that hold every word of the filter."""

    def __post_init__(self) -> None:
        self.type("")

    def type(self, text: str) -> None:
        """Filter by this text, and go to the first row that can be used."""
        words = text.lower().split()
        self.found = [
            row for row in self.rows if all(word in f"{row.label} {row.detail}".lower() for word in words)
        ]
        self.at = next((at for at, row in enumerate(self.found) if row.usable), 0)

    def move(self, by: int) -> None:
        """Go to the next row that can be used, in either direction."""
        step = 1 if by > 0 else -1
        usable = [at for at, row in enumerate(self.found) if row.usable]
        ahead = [at for at in usable if (at - self.at) * step > 0]
        if ahead:
            ahead.sort(key=lambda at: abs(at - self.at))
            self.at = ahead[min(abs(by), len(ahead)) - 1]

    def current(self) -> Choice | None:
        """Return the row that Enter takes; `None` where it cannot be used."""
        row = self.found[self.at] if self.at < len(self.found) else None
        return row if row and row.usable else None

    def window(self, most: int) -> Sequence[tuple[Choice, bool]]:
        """Return the rows around the present one, at most so many, and whether each is it."""
        first = max(0, min(self.at - most // 2, len(self.found) - most))
        return [(row, at == self.at) for at, row in enumerate(self.found)][first : first + most]
