"""Report what is found, what is missing, and how to get it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

from deepagents._values import valueclass
from deepagents_cli.text import one_line

State: TypeAlias = Literal["found", "missing", "needed"]
"""`needed` is what is missing, and what no task can do without."""
_MARKS: Final = {"found": "ok", "missing": "--", "needed": "!!"}


@valueclass
class Check:
    """One fact; `what` never holds the value of a key."""

    name: str
    state: State
    what: str
    way_out: str | None = None


def is_ready(checks: Sequence[Check]) -> bool:
    """Return whether a task could run."""
    return not any(each.state == "needed" for each in checks)


def describe(checks: Sequence[Check]) -> str:
    """Return a report of one line for each fact, and one for each way out."""
    lines: list[str] = []
    width = max(len(each.name) for each in checks)
    for each in checks:
        lines.append(f"{_MARKS[each.state]}  {each.name:{width}}  {one_line(each.what)}")
        # Not below the fact: there, a command would be broken in a narrow window.
        lines += [f"      {one_line(each.way_out)}"] if each.way_out else []
    lines.append(
        "A task can run here." if is_ready(checks) else "No task can run here: see the lines with !!"
    )
    return "\n".join(lines)
