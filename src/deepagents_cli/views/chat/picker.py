"""Choose one of several rows: arrows move, typing filters, what cannot be used says why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from deepagents_cli.protocol import Choice


@dataclass(slots=True)
class Picker:
    """Holds the rows, the filter and the row that the arrows are on."""

    title: str
    rows: Sequence[Choice]
    picked: Callable[[str], object]
    filter: str = ""
    at: int = 0
    _found: list[Choice] = field(default_factory=list[Choice])

    def __post_init__(self) -> None:
        self.type("")

    @property
    def found(self) -> Sequence[Choice]:
        """The rows that hold every word of the filter."""
        return self._found

    def type(self, text: str) -> None:
        """Filter by this text, and go to the first row that can be used."""
        self.filter = text
        words = text.lower().split()
        self._found = [
            row for row in self.rows if all(word in f"{row.label} {row.detail}".lower() for word in words)
        ]
        self.at = next((at for at, row in enumerate(self._found) if row.usable), 0)

    def move(self, by: int) -> None:
        """Go to the next row that can be used, in either direction."""
        step = 1 if by > 0 else -1
        usable = [at for at, row in enumerate(self._found) if row.usable]
        ahead = [at for at in usable if (at - self.at) * step > 0]
        if ahead:
            ahead.sort(key=lambda at: abs(at - self.at))
            self.at = ahead[min(abs(by), len(ahead)) - 1]

    def current(self) -> Choice | None:
        """Return the row that Enter takes; `None` where it cannot be used."""
        row = self._found[self.at] if self.at < len(self._found) else None
        return row if row and row.usable else None

    def window(self, most: int) -> Sequence[tuple[Choice, bool]]:
        """Return the rows around the present one, at most so many, and whether each is it."""
        first = max(0, min(self.at - most // 2, len(self._found) - most))
        return [(row, at == self.at) for at, row in enumerate(self._found)][first : first + most]
