"""The rules that bind one call: what it may do, what it left out, and where commands would go round them."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from deepagents.backends.protocol import BackendProtocol
from deepagents.errors import ToolFailure, UnenforceableRule
from deepagents.permissions import Access, DeleteAccess, FilesystemOperation, Rules


@dataclass(frozen=True, slots=True)
class Guard:
    """Rules, and what a person has been asked about.

    `asks` says that somebody is set up to be asked, `asked` that it was so about this very call; `named` is
    the path of this call when the model made it, and `led_to` is where that path led then.
    """

    rules: Rules = field(default_factory=Rules)
    asks: bool = False
    asked: bool = False
    named: str | None = None
    led_to: str | None = None

    def naming(self, operation: FilesystemOperation, path: str) -> Access | None:
        """Give the rights of a call about one file that it is asked about; none when there are no rules."""
        waiting = [each for each in self._places(path) if self.rules.decide(operation, each) == "interrupt"]
        return Access(self.rules, operation, waiting) if self.rules else None

    def unasked(self, operation: FilesystemOperation) -> Access | None:
        """Give the rights to what nobody was asked about."""
        return Access(self.rules, operation) if self.rules else None

    def searching(self, path: str) -> Access | None:
        """Give the rights of a call that looks around below a path."""
        waiting = [each for each in self._places(path) if self.rules.waits("read", each)]
        return Access(self.rules, "read", waiting) if self.rules else None

    def deleting(self, path: str) -> DeleteAccess | None:
        """Give the rights of a deletion."""
        return DeleteAccess(self.rules, "write", self._places(path)) if self.rules else None

    def _places(self, path: str) -> list[str]:
        if not self.asked:
            return []
        return [path, self.led_to] if self.led_to and self.named == path else [path]

    def refusal(self, access: Access, path: str) -> ToolFailure:
        """Say that something is not permitted, and how it could be."""
        said = f"permission denied for {access.operation} on {path}"
        waits = self.rules.decide(access.operation, path) == "interrupt"
        if waits and not self.asks:
            said += (
                ": it waits for a person's approval, and nobody is set up to give it. Add "
                "FilesystemMiddleware.approval() to the agent's middleware"
            )
        return ToolFailure("permission_denied", said)


def left_out(held_back: Iterable[str], asked: bool) -> str | None:
    """Say in one line that entries wait for approval, and how to ask for it."""
    patterns = sorted(held_back)
    if not patterns:
        return None
    shown = ", ".join(patterns[:3]) + (f" and {len(patterns) - 3} more" if len(patterns) > 3 else "")
    onward = "name the directory or file itself to ask for it" if asked else "nobody is set up to give it"
    return f"(left out, because it needs approval: {shown}; {onward})"


def exposed_rule(backend: BackendProtocol, rules: Rules) -> str | None:
    """Name a pattern that denies or waits where commands can go round it, or could for all that is known."""
    with suppress(Exception):
        return _exposed(backend, rules)
    return next((pattern for pattern, _ in rules.restrictions()), None)


def _exposed(backend: BackendProtocol, rules: Rules) -> str | None:
    if not rules or not backend.capabilities().execute:
        return None
    return next(
        (pattern for pattern, path in rules.restrictions() if backend.capabilities(path).exposed), None
    )


def check_enforceable(backend: BackendProtocol, rules: Rules) -> None:
    """Refuse rules that `execute` would go round; what cannot be told now is asked again for each command.

    Raises:
        UnenforceableRule: naming the first such rule.
    """
    pattern = None
    with suppress(Exception):
        pattern = _exposed(backend, rules)
    if pattern is not None:
        raise UnenforceableRule(
            f"the rule for {pattern!r} cannot hold: execute runs commands that reach those files past every "
            "rule. Leave execute out with FilesystemMiddleware(tools=[...]), put the files on a route that "
            "commands cannot reach, or run commands in a sandbox that does not hold them"
        )
