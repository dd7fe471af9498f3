"""Find what one command must not change when it starts, and put it right when it has ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from deepagents.permissions import CommandAccess
from deepagents_sandbox.leftovers import Protection
from deepagents_sandbox.rules import Marks, Mode, describe_undone


@dataclass(slots=True, eq=False)
class Held:
    """The protected paths in each directory for one command, the marks of rules, and what was undone."""

    protections: Sequence[Protection]
    marks: Marks
    undone: list[str] = field(default_factory=list[str])

    @classmethod
    def look(
        cls, protected: Sequence[str], given: Mapping[Path, Mode], allowed: CommandAccess | None
    ) -> Held:
        """Look at all that is there now.

        Raises:
            BackendError: `permission_denied`, when rules speak about more files than can be mounted.
        """
        writable = [path for path, mode in given.items() if mode == "writable" and path.is_dir()]
        kept = [each for each in protected if not (allowed and each in allowed.unprotected)]
        protections = [Protection.look(path, kept, writable) for path in writable]
        return cls(protections, Marks.look(allowed, given) if allowed else Marks.none())

    @property
    def mounts(self) -> object:
        """All that a sandbox mounts to hold this."""
        return [(each.existing, each.missing) for each in self.protections], self.marks.modes

    @property
    def missing(self) -> list[Path]:
        """What must not be made."""
        return [path for each in self.protections for path in each.missing]

    @property
    def made(self) -> list[Path]:
        """What the command may make, and must not leave."""
        return [path for each in self.protections for path in each.made]

    @property
    def notes(self) -> list[str]:
        """The line for the caller of the command, if anything was undone."""
        return [describe_undone(self.undone)] if self.undone else []

    def begin(self, *_: object) -> None:
        """Keep other commands from taking what this one makes for something that may stay."""
        for each in self.protections:
            each.begin()

    def restore(self) -> None:
        """Undo what no mount could keep the command from."""
        for each in self.protections:
            each.restore()
        self.undone += self.marks.undo(lambda path: any(each.covers(path) for each in self.protections))

    def end(self) -> None:
        """Undo it for the last time, since all that could do it again is dead."""
        self.restore()
        for each in self.protections:
            each.end()
