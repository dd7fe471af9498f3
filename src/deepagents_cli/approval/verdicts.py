"""Decide what becomes of a call, as far as the mode, the rules and the facts tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from deepagents.tools import ToolSpec
from deepagents_cli.approval.guarded import Kind
from deepagents_cli.approval.rules import Rule, covers_command, covers_edit_below, covers_path
from deepagents_cli.values import Mode

PLANNING: Final = (
    "Plan mode: change nothing, and run nothing that could change anything; such calls are refused. Look "
    "into what is there, then give the person a plan to approve: the files to change, how, and how it will "
    "be checked."
)

Action: TypeAlias = Literal["edit", "delete", "read"]


class Verdict(NamedTuple):
    """What becomes of a call; a reason is for the model where the call is refused."""

    kind: Literal["allow", "ask", "refuse"]
    reason: str = ""


class Facts(NamedTuple):
    """What is known of a call beyond its text.

    `paths` are the one that it names and the one to which that leads, as this machine calls them. `guarded`
    is why one of them, or something that a command names, is guarded. `harmless`: a command that can change
    nothing, because all that it reaches is read-only.
    """

    paths: tuple[str, ...] = ()
    guarded: frozenset[Kind] = frozenset()
    confined: bool = False
    harmless: bool = False


EXACTLY: Final[frozenset[Kind]] = frozenset({"programs", "secrets"})
"""What a rule about how commands begin does not cover."""
ALLOW: Final = Verdict("allow")
ASK: Final = Verdict("ask")


def decide(
    spec: ToolSpec, args: Mapping[str, Any], mode: Mode, rules: Sequence[Rule], facts: Facts
) -> Verdict:
    """Decide about a call of a tool with these facts."""
    if mode == "full":
        return ALLOW
    if spec.effect == "run":
        return _decide_command(spec, args, mode, rules, facts)
    action = action_of(spec)
    if action != "read" and mode == "plan":
        return Verdict("refuse", PLANNING)
    paths = facts.paths
    exactly = bool(paths) and all(covers_path(rules, action, each) for each in paths)
    below = bool(paths) and action == "edit" and all(covers_edit_below(rules, each) for each in paths)
    free = action == "read" or mode == "auto" or below
    return ALLOW if exactly or (free and not facts.guarded) else ASK


def action_of(spec: ToolSpec) -> Action:
    """Return what a file tool does."""
    return "delete" if spec.effect == "delete" else "edit" if spec.changes_files else "read"


def _decide_command(
    spec: ToolSpec, args: Mapping[str, Any], mode: Mode, rules: Sequence[Rule], facts: Facts
) -> Verdict:
    command = args.get(spec.summary_arguments[0]) if not spec.about_background else None
    if mode == "plan" and not (facts.harmless and command is not None):
        return Verdict("refuse", PLANNING)
    # In plan mode it changes nothing in a repository, whatever the answer.
    guarded = facts.guarded & {"secrets"} if mode == "plan" else facts.guarded
    # Without the sandbox, how a command begins does not bound what it does.
    exactly = bool(guarded & EXACTLY) or not facts.confined
    if isinstance(command, str) and covers_command(rules, command, exactly=exactly):
        return ALLOW
    if guarded:
        return ASK
    return ALLOW if facts.harmless or (mode == "auto" and facts.confined) else ASK
