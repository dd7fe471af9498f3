"""Hold the mode and the rules of a conversation, and decide by them about its calls and commands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

from langchain_core.tools import BaseTool
from pydantic import ValidationError

from deepagents import FilesystemPermission
from deepagents._values import field, recordclass, replace, valueclass
from deepagents.events import ApprovalRequest
from deepagents.middleware.approval import links_of
from deepagents.permissions import CommandAccess, Rules
from deepagents.tools import ToolSpec, specs_by_name, web_fetch
from deepagents_cli.approval.facts import Reach
from deepagents_cli.approval.guarded import command_rules, file_rules, find_protected
from deepagents_cli.approval.rules import (
    ALL_TOOLS,
    READ_RESOURCE,
    Action,
    Permission,
    Remembered,
    Rule,
    covers,
    is_of_server,
    read_rule,
    remember,
)
from deepagents_cli.approval.verdicts import (
    ALLOW,
    ASK,
    UNNAMED,
    Facts,
    Verdict,
    decide,
    merge_facts,
    offers_for,
)
from deepagents_cli.values import Mode, Scope
from deepagents_sandbox.backend import PROTECTED

HIDDEN: Final = (
    "For commands, files that look like secrets (.env, keys, credentials) are not there, and .git and "
    "settings of editors and agents are read-only. A command gets them only if its text names such a file, "
    "or git with what it shall change; a person is asked about that. For hooks and settings of git, name "
    ".git/hooks or .git/config in it, or call `git config`."
)
FREER: Final[Sequence[Mode]] = ("plan", "ask", "auto", "full")
_DECISIONS: Final = ("approve", "edit", "reject", "respond")


@valueclass
class _Seen:
    """A call that an agent made: what the agent may do at most, where its paths led, whether it waits."""

    most: Mode = "full"
    links: Mapping[str, str] = field(default_factory=dict[str, str])
    waits: bool = False


@recordclass
class Policy(Reach):
    """The mode and the rules of a conversation, which may change while it goes on.

    `offline`: commands reach no network, and no question gives them any. `yes`: every question is answered
    with yes, apart from those about guarded files and about hosts. `watched`: a person sees each change, as
    for a model that is too weak to be trusted. `web` fetches pages. `remembered` are the rules of "always";
    `keep` and `drop` keep one beyond the session, and no longer.
    """

    mode: Mode = "ask"
    remembered: list[Remembered] = field(default_factory=list[Remembered])
    offline: bool = False
    yes: bool = False
    watched: bool = False
    web: BaseTool | None = None
    keep: Callable[[Permission], None] | None = None
    drop: Callable[[Permission], None] | None = None
    _granted: Sequence[Rule] = ()
    _seen: dict[str | None, _Seen] = field(default_factory=dict[str | None, _Seen])
    _begun: dict[str, Mode] = field(default_factory=dict[str, Mode])

    def allows(self, action: Action, value: str) -> bool:
        """Return whether a rule of "always" lets an action through."""
        return covers([each.rule for each in self.remembered], action, value)

    def add_web(self, hosts: Sequence[str]) -> None:
        """Let agents fetch pages: of these hosts, of those that a rule names, and of others by a question."""
        self.web = web_fetch(
            "all" if list(hosts) == ["all"] else hosts,
            allows=lambda host: self.allows("fetch", host) or self.allows("host", host),
        )
        self.specs = specs_by_name([self.web])

    def grant(self, rules: Sequence[Rule]) -> None:
        """Let calls through by these rules until others are given; never those about guarded files."""
        # Without the sandbox a command can do anything.
        self._granted = [each for each in rules if self.confined or each.name != "command"]

    def interrupt_on(self, most: Mode = "full") -> dict[str, Any]:
        """Return what an agent is to ask about: all that changes something, for this policy to decide.

        Args:
            most: what the agent may do unasked, also where this conversation lets others do more.
        """
        can = self.backend.capabilities()
        config = {"allowed_decisions": [*_DECISIONS], "when": partial(self.asks, most=most)}
        gated = [each.name for each in self.specs.values() if each.asks_by_default and each.is_possible(can)]
        return dict.fromkeys([*gated, *((ALL_TOOLS, READ_RESOURCE) if self.servers else ())], config)

    def permissions(self) -> list[FilesystemPermission]:
        """Return the rules about paths for an agent that begins in this mode."""
        top = Path("/") if self.confined else self.directory
        own = self.own.rules(self.places, top) if self.own else ()
        return [] if self.mode == "full" else list(file_rules(own))

    def describe(self) -> str:
        """Say to the model what its commands do not see."""
        return HIDDEN if self.confined and self.mode != "full" else ""

    def asks(self, request: Any, most: Mode = "full") -> bool:
        """Return whether the agent stops at a call; once yes, always yes.

        LangChain asks again when the answer has come, and a call about which this then answered no would run,
        whatever the answer was.
        """
        call: Mapping[str, Any] = request.tool_call
        name, call_id = call["name"], call["id"]
        if not self._can_run(name, call["args"]):
            return False
        if call_id in self._seen and self._seen[call_id].waits:
            return True
        seen = _Seen(most, links_of(request.state, call_id))
        waits = self._decide(name, call["args"], seen)[0].kind != "allow"
        self._seen[call_id] = replace(seen, waits=waits)
        return waits

    def judge(self, request: ApprovalRequest) -> Verdict:
        """Decide about a call that waits: what cannot be done is refused, and only the rest asks a person."""
        seen = self._seen.get(request.tool_call_id, _Seen())
        # Also one that an earlier process asked about.
        self._seen[request.tool_call_id] = replace(seen, waits=True)
        if not (request.name in self.specs or is_of_server(request.name)):
            return ALLOW if self.mode == "full" else ASK
        verdict, facts = self._decide(request.name, request.args, seen)
        if verdict.kind != "ask":
            return verdict
        # A guarded file is not looked into unasked: whether a text is in it would be told by the refusal.
        if facts.action == "fetch":
            return Verdict("refuse", UNNAMED) if self.yes else ASK
        if refusal := self.find_refusal(request, looks="secrets" not in facts.guarded):
            return Verdict("refuse", refusal)
        return ALLOW if self.yes and not facts.guarded else ASK

    def facts_of(self, request: ApprovalRequest) -> Facts | None:
        """Find what is known of a call that waits; `None` for one of a tool that is not known."""
        seen = self._seen.get(request.tool_call_id, _Seen())
        found = self.find_facts(request.name, request.args, seen.links)
        return merge_facts(found) if found else None

    def offers(self, facts: Facts | None) -> dict[str, str]:
        """Return what "always" can mean for a call of which this is known: rules, and what they mean."""
        return {} if facts is None or self.watched else offers_for(facts, self.directory, self.servers)

    def remember(self, rule: str, scope: Scope) -> None:
        """Let calls through by a rule from now on: in this session, in this directory, or everywhere.

        Raises:
            ValueError: for what is not a rule.
        """
        brought = [name for name, is_own in self.servers.items() if not is_own]
        made = remember(read_rule(rule), scope, self.directory, confined=self.confined, brought=brought)
        # First: where it cannot be kept, it holds in this session.
        self.remembered.append(made)
        if made.kept and self.keep:
            self.keep(made.kept)

    def forget(self, rule: str) -> bool:
        """Ask again about what a rule lets through, also where it was kept; return whether there was one."""
        found = [each for each in self.remembered if each.rule.key == rule]
        for each in found:
            if each.kept and self.drop:
                self.drop(each.kept)
            self.remembered.remove(each)
        return bool(found)

    def access_of(self, command: str) -> CommandAccess:
        """Return the rights of a command that was let through, by what it names and the mode of that time."""
        return self.access_in(self._begun.get(command, self.mode), command)

    def access_in(self, mode: Mode, command: str) -> CommandAccess:
        """Return the rights of a command in a mode; a person has agreed to what it names."""
        if mode == "full":
            return CommandAccess(Rules(), True, PROTECTED)
        closed = tuple(map(str, self.places)) if mode == "plan" else ()
        rules = command_rules(self.needs(command), self.own_rules, read_only_in=closed)
        return CommandAccess(rules, False, () if closed else find_protected(command, self.given))

    def usual(self, tool: str) -> Literal["allow", "ask", "refuse"]:
        """Return what becomes of an ordinary call of a tool in the present mode."""
        known = tool in self.specs or is_of_server(tool)
        return self._decide(tool, {}, _Seen())[0].kind if known else "allow"

    def _can_run(self, tool: str, args: Mapping[str, Any]) -> bool:
        """Return whether a call would do anything, as far as its arguments show."""
        spec = self.specs.get(tool)
        return is_of_server(tool) if spec is None else _is_valid(spec, args)

    def _decide(self, tool: str, args: Mapping[str, Any], seen: _Seen) -> tuple[Verdict, Facts]:
        mode: Mode = min((self.mode, seen.most), key=FREER.index)
        spec = self.specs.get(tool)
        if spec and spec.effect == "run" and isinstance(command := args.get("command"), str):
            # A command keeps the rights of the mode in which it was let through.
            self._begun[command] = mode
        found = self.find_facts(tool, args, seen.links)
        facts, rules = merge_facts(found), [each.rule for each in self.remembered]
        if self.watched and (spec is None or spec.asks_by_default) and mode != "plan":
            mode, rules = "ask", []
        elif not facts.guarded:
            rules += self._granted
        # Of several paths, the strictest verdict is that of the call.
        strictness = ("allow", "ask", "refuse")
        verdicts = (decide(each, mode, rules) for each in found)
        return max(verdicts, key=lambda verdict: strictness.index(verdict.kind)), facts


def _is_valid(spec: ToolSpec, args: Mapping[str, Any]) -> bool:
    try:
        spec.args.model_validate(args)
    except ValidationError:
        return False
    return True
