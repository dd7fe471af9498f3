"""Write what a session is, when it is opened and in the status line."""

from __future__ import annotations

from collections.abc import Sequence

from deepagents_cli.protocol import Ready, Status
from deepagents_cli.text import one_line, short_time


def describe_session(ready: Ready) -> list[str]:
    """Return the lines below which a session begins or goes on."""
    found = {
        "Session": [ready.name] if ready.resumed and ready.name else (),
        "Memory": ready.memory,
        "Skills": ready.skills,
        "Agents": ready.agents,
    }
    listed = [f"{label}: {', '.join(names)}" for label, names in found.items() if names]
    return [f"{ready.model} in {ready.directory}", *listed]


def status_parts(status: Status | None, seconds: float) -> list[tuple[int, str]]:
    """Return the parts of the status line, each with how soon it is left out: the lowest number stays."""
    if status is None:
        return []
    used, cost = status.input_tokens + status.output_tokens, status.cost
    # A server of one's own need not say how much it takes.
    filled = f"{short_number(status.in_context)} in context" if status.in_context else ""
    parts = [
        (1, one_line(f"{status.model} ({status.effort})" if status.effort else status.model)),
        (2, filled if status.context is None else f"{status.context:.0%} of context"),
        (4, f"{short_number(used)} tokens" if used else ""),
        (3, "" if cost is None else "< $0.01" if 0 < cost < 0.01 else f"${cost:.2f}"),
        (6, short_time(seconds) if seconds >= 1 else ""),
        (5, one_line(status.branch or "")),
        (0, status.mode),
    ]
    return [(rank, text) for rank, text in parts if text]


def status_line(parts: Sequence[tuple[int, str]], width: int, dot: str) -> str:
    """Join the parts that fit."""
    kept = list(parts)
    while len(line := f" {dot} ".join(text for _, text in kept)) > width and len(kept) > 1:
        kept.remove(max(kept, key=lambda part: part[0]))
    return line


def short_number(number: int) -> str:
    """Write a number in at most four characters."""
    if number < 1000:
        return str(number)
    if number < 1_000_000:
        return f"{number / 1000:.{0 if number >= 10_000 else 1}f}k"
    return f"{number / 1_000_000:.1f}M"
