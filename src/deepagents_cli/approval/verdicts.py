"""Decide what becomes of a call: by what is known of it, by the mode, and by the rules; pure."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from pathlib import PurePath
from typing import Final, Literal, NamedTuple

from deepagents_cli.approval.guarded import Kind
from deepagents_cli.approval.rules import Action, Rule, covers, is_host, offers_for_command, offers_for_tool
from deepagents_cli.values import Mode

PLANNING: Final = (
    "Plan mode: change nothing, and run nothing that could change anything; such calls are refused. Look "
    "into what is there, then give the person a plan to approve: the files to change, how, and how it will "
    "be checked."
)
UNNAMED: Final = (
    "Nobody is asked about hosts now, and this one was not named at the start (--network HOST names one). "
    "Go on without the page, or tell the person that it is needed."
)
_ON_FILES: Final = {"edit": "changes", "delete": "deletions", "read": "reads"}
EXACTLY: Final[frozenset[Kind]] = frozenset({"programs", "secrets"})
"""What a rule about how commands begin does not cover."""


class Verdict(NamedTuple):
    """What becomes of a call; a reason is for the model where the call is refused."""

    kind: Literal["allow", "ask", "refuse"]
    reason: str = ""


ALLOW: Final = Verdict("allow")
ASK: Final = Verdict("ask")


class Facts(NamedTuple):
    """What is known of a call beyond its text.

    `about` is the command; the host of a page; the name of a server's tool; or the path that it names and
    those to which that leads, as this machine calls them. `guarded` is why one of them, or something that a
    command names, is guarded. `harmless`: a command changes nothing in plan mode, because all that it reaches
    is read-only then. What is typed into a command that runs is `about` nothing that a rule could name.
    """

    action: Action
    about: tuple[str, ...] = ()
    guarded: frozenset[Kind] = frozenset()
    confined: bool = False
    harmless: bool = False

    @property
    def exactly(self) -> bool:
        """Whether only a rule about just this lets it through."""
        if self.action == "command":
            # Without the sandbox, how a command begins does not bound what it does.
            return bool(self.guarded & EXACTLY) or not self.confined
        return bool(self.guarded)


def merge_facts(found: Sequence[Facts]) -> Facts:
    """Return what is known of a call on several paths: all of them, and what is the most about any."""
    first = next((each for each in found if each.action == "delete"), found[0])
    about = dict.fromkeys(path for each in found for path in each.about)
    guarded = frozenset[Kind]().union(*(each.guarded for each in found))
    return Facts(first.action, (*about,), guarded, first.confined, first.harmless)


def decide(facts: Facts, mode: Mode, rules: Sequence[Rule]) -> Verdict:
    """Decide about a call with these facts."""
    action, about = facts.action, facts.about
    if action == "fetch":
        # What a rule lets through does not come here: the tool asks about the other hosts alone.
        return Verdict("refuse", UNNAMED) if mode == "full" else ASK
    if mode == "full":
        return ALLOW
    if mode == "plan" and action == "tool":
        # Nobody knows whether it changes something, so the person says, whatever holds in other modes.
        return ASK
    may_plan = action == "read" or (action == "command" and about and facts.harmless)
    if mode == "plan" and not may_plan:
        return Verdict("refuse", PLANNING)
    if about and all(covers(rules, action, each, exactly=facts.exactly) for each in about):
        return ALLOW
    # A command that is harmless changes nothing in a repository, whatever the answer.
    planned = mode == "plan" and action == "command"
    guarded = facts.guarded & {"secrets"} if planned else facts.guarded
    free = (
        action == "read"
        or planned
        or (mode == "auto" and (facts.confined or action not in ("command", "tool")))
    )
    return ALLOW if free and not guarded else ASK


def offers_for(facts: Facts, directory: PurePath, servers: Collection[str] = ()) -> dict[str, str]:
    """Return what "always" can mean for a call of an agent in this directory: rules, and what they mean.

    `servers` are the MCP servers whose tools the agent has.
    """
    # A call by way of a link is about two paths, and the link may lead elsewhere later.
    if len(facts.about) != 1 or not (path := facts.about[0]).isprintable():
        return {}
    if facts.action == "command":
        return offers_for_command(path, exactly=facts.exactly)
    if facts.action == "fetch":
        return {f"fetch: {path}": f"pages of {path}"} if is_host(path) else {}
    if facts.action == "tool":
        return offers_for_tool(path, servers)
    offers = {f"{facts.action}: {path}": f"{_ON_FILES[facts.action]} of {os.path.relpath(path, directory)}"}
    if facts.action == "edit" and not facts.guarded:
        above = PurePath(path).parent
        if above != directory:
            offers[f"edits: {above}"] = f"changes below {os.path.relpath(above, directory)}/"
        offers[f"edits: {directory}"] = "changes of all files in the directory"
    return offers
