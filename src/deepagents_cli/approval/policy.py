"""Decide which calls go through, which are asked about and which are refused: by mode, rules and facts."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

from pydantic import ValidationError

from deepagents import FilesystemPermission
from deepagents.backends.filesystem import FilesystemBackend
from deepagents.backends.protocol import SandboxBackendProtocol
from deepagents.errors import BackendError
from deepagents.events import ApprovalRequest
from deepagents.middleware.approval import link_of
from deepagents.permissions import CommandAccess, Rules
from deepagents.tools import ToolSpec, specs_by_name
from deepagents.tools.preview import Preview, preview_change
from deepagents_cli.approval.backends import GuardedSandbox
from deepagents_cli.approval.guarded import (
    Kind,
    OwnFiles,
    OwnRules,
    command_rules,
    file_rules,
    find_protected,
    is_kept_from_tools,
    kind_below,
    kind_obeyed,
    kind_of,
    needs_of,
)
from deepagents_cli.approval.rules import Offer, Rule, offers_for_command, program_of, read_rule
from deepagents_cli.approval.verdicts import ALLOW, ASK, EXACTLY, Facts, Verdict, action_of, decide
from deepagents_cli.values import Mode, Scope
from deepagents_sandbox.backend import PROTECTED

HIDDEN: Final = (
    "For commands, files that look like secrets (.env, keys, credentials) are not there, and .git and "
    "settings of editors and agents are read-only. A command gets them only if its text names such a file, "
    "or git with what it shall change; a person is asked about that. For hooks and settings of git, name "
    ".git/hooks or .git/config in it, or call `git config`."
)
_LARGEST_PREVIEW: Final = 10_000_000
_FREER: Final[Sequence[Mode]] = ("plan", "ask", "auto", "full")
_DECISIONS: Final = ("approve", "edit", "reject", "respond")

Keep: TypeAlias = Callable[[str, Path | None], None]
"""Keeps a rule beyond the session: for one directory, or everywhere."""


@dataclass
class Policy:
    """The mode and the rules of a conversation, which may change while it goes on, and what was decided.

    `network`: whether commands in the sandbox reach any of it; `offline`: they reach none, and no question
    gives them any. `yes`: every question is answered with yes, apart from those about guarded files.
    `watched`: a person sees each change, as for a model that is too weak to be trusted. `own` is what this
    program obeys and keeps. `keep` and `drop` keep rules beyond the session, and no longer.
    """

    backend: FilesystemBackend
    directory: Path
    mode: Mode = "ask"
    rules: list[Rule] = field(default_factory=list[Rule])
    network: bool = False
    offline: bool = False
    yes: bool = False
    watched: bool = False
    own: OwnFiles | None = None
    keep: Keep | None = None
    drop: Callable[[str], None] | None = None
    specs: Mapping[str, ToolSpec] = field(default_factory=specs_by_name)
    _asked: set[str] = field(default_factory=set[str])
    _led_to: dict[str, str] = field(default_factory=dict[str, str])
    _granted: Sequence[Rule] = ()
    _most: dict[str, Mode] = field(default_factory=dict[str, Mode])
    _begun: dict[str, Mode] = field(default_factory=dict[str, Mode])

    @property
    def confined(self) -> bool:
        """Whether commands run in the sandbox."""
        return isinstance(self.backend, GuardedSandbox)

    @property
    def places(self) -> tuple[Path, ...]:
        """The directories that the agent was given."""
        return (*map(Path, self._directories()),) or (self.directory,)

    @cached_property
    def _own_rules(self) -> OwnRules:
        return self.own.rules(self.places) if self.own else ()

    def grant(self, rules: Sequence[Rule]) -> None:
        """Let calls through by these rules until others are given; never those about guarded files."""
        # Without the sandbox a command can do anything.
        self._granted = [each for each in rules if self.confined or not each.is_command]

    def interrupt_on(self, most: Mode = "full") -> dict[str, Any]:
        """Return what an agent is to ask about: all that changes something, for this policy to decide.

        Args:
            most: what the agent may do unasked, also where this conversation lets others do more.
        """
        can = self.backend.capabilities()
        config = {"allowed_decisions": [*_DECISIONS], "when": partial(self.asks, most=most)}
        gated = (each for each in self.specs.values() if each.asks_by_default and each.is_possible(can))
        return {spec.name: config for spec in gated}

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
        spec = self.specs.get(call["name"])
        if spec is None or not _is_valid(spec, call["args"]):
            return False
        key = _key(call.get("id"), call["name"], call["args"])
        if key in self._asked:
            return True
        self._most[key] = most
        named, led_to = link_of(request.state, call.get("id"))
        if led_to is not None and named == self._own(spec, call["args"]):
            self._led_to[key] = led_to
        if self._decide(spec, call["args"], key).kind == "allow":
            return False
        self._asked.add(key)
        return True

    def judge(self, request: ApprovalRequest) -> Verdict:
        """Decide about a call that waits: what cannot be done is refused, and only the rest asks a person."""
        key = _key(request.tool_call_id, request.name, request.args)
        # Also one that an earlier process asked about.
        self._asked.add(key)
        spec = self.specs.get(request.name)
        if spec is None:
            return ALLOW if self.mode == "full" else ASK
        verdict = self._decide(spec, request.args, key)
        if verdict.kind != "ask":
            return verdict
        facts = self._facts(spec, request.args, key)
        if error := self._find_refusal(spec, request.args):
            return Verdict("refuse", f"Error: {error.text} [{error.code}]")
        # A guarded file is not looked into unasked: whether a text is in it would be told by the refusal.
        if "secrets" not in facts.guarded and (problem := self.find_problem(request)):
            return Verdict("refuse", problem)
        return ALLOW if self.yes and not facts.guarded else ASK

    def find_guarded(self, request: ApprovalRequest) -> frozenset[Kind]:
        """Return why a call is about something guarded."""
        key = _key(request.tool_call_id, request.name, request.args)
        spec = self.specs.get(request.name)
        return frozenset() if spec is None else self._facts(spec, request.args, key).guarded

    def rules_for(self, request: ApprovalRequest) -> list[Offer]:
        """Return what "always" can mean for a call."""
        spec = self.specs.get(request.name)
        if spec is None or spec.about_background or self.watched:
            return []
        facts = self._facts(spec, request.args, _key(request.tool_call_id, request.name, request.args))
        if spec.effect == "run":
            command = str(request.args.get(spec.summary_arguments[0], ""))
            exactly = bool(facts.guarded & EXACTLY) or not self.confined
            return offers_for_command(command, exactly=exactly)
        path = facts.paths[0] if len(facts.paths) == 1 else None
        if path is None or not path.isprintable():
            return []
        kind = action_of(spec)
        verb = {"delete": "deletions", "edit": "changes", "read": "reads"}[kind]
        shown = os.path.relpath(path, self.directory)
        offers = [Offer(str(Rule(kind, path)), f"{verb} of {shown}")]
        if kind != "edit" or facts.guarded:
            return offers
        above = str(Path(path).parent)
        if above != str(self.directory):
            where = os.path.relpath(above, self.directory)
            offers.append(Offer(str(Rule("edits", above)), f"changes below {where}/"))
        offers.append(Offer(str(Rule("edits", str(self.directory))), "changes of all files in the directory"))
        return offers

    def remember(self, rule: str, scope: Scope) -> None:
        """Let calls through by a rule from now on: in this session, in this directory, or everywhere.

        Raises:
            ValueError: for what is no rule.
        """
        read = read_rule(rule)
        # First: where it cannot be kept, it holds in this session.
        self.rules.append(read)
        # Without the sandbox a command can do anything, so a rule about it is not kept for later.
        if scope != "session" and self.keep is not None and (self.confined or not read.is_command):
            here = scope == "directory" or read.is_relative
            self.keep(rule, self.directory if here else None)

    def forget(self, rule: str) -> bool:
        """Ask again about what a rule lets through, also where it was kept; return whether there was one."""
        found = [each for each in self.rules if str(each) == rule]
        if found and self.drop is not None:
            self.drop(rule)
        # The list itself: others may hold it.
        self.rules[:] = [each for each in self.rules if each not in found]
        return bool(found)

    def place_of(self, request: ApprovalRequest) -> str | None:
        """Return where on this machine the file of a call is."""
        spec = self.specs.get(request.name)
        path = None if spec is None else self._own(spec, request.args)
        return None if path is None else self._machine(path)

    def find_problem(self, request: ApprovalRequest) -> str | None:
        """Return the sentence with which a change would fail now; `None` where it can be made."""
        preview = self.preview(request)
        return None if preview is None else preview[1].failure

    def preview(self, request: ApprovalRequest) -> tuple[bytes | None, Preview] | None:
        """Return what a file holds, and what a call would make of it; `None` for what changes no content."""
        spec = self.specs.get(request.name)
        path = None if spec is None else self._own(spec, request.args)
        if spec is None or path is None or not spec.changes_files or not _is_valid(spec, request.args):
            return None
        if spec.effect == "delete":
            there = os.path.lexists(self._machine(path))
            problem = None if there else f"Error: File '{path}' not found [file_not_found]"
            return None, Preview(failure=problem)
        try:
            found = self.backend.read(path, 0, 1)
            (held,) = self.backend.download_files([path])
        except BackendError as error:
            return None, Preview(failure=f"Error: {error.text} [{error.code}]")
        if found.error and found.code != "file_not_found":
            return None, Preview(failure=f"Error: {found.error} [{found.code}]")
        arguments = {**request.args, cast("str", spec.path_argument): path}
        preview = preview_change(spec, arguments, held.content)
        is_shown = len(held.content or b"") <= _LARGEST_PREVIEW or preview.failure
        return (held.content, preview) if is_shown else None

    def access_of(self, command: str) -> CommandAccess:
        """Return the rights of a command that was let through, by what it names and the mode of that time."""
        mode = self._begun.get(command, self.mode)
        if mode == "full":
            return CommandAccess(Rules(), True, PROTECTED)
        if mode == "plan":
            rules = command_rules(
                self._needs(command), self._own_rules, read_only_in=tuple(map(str, self.places))
            )
            return CommandAccess(rules, False)
        # What it names of these, a person was asked about.
        freed = find_protected(command, self._directories())
        return CommandAccess(command_rules(self._needs(command), self._own_rules), False, freed)

    def _decide(self, spec: ToolSpec, args: Mapping[str, Any], key: str) -> Verdict:
        mode: Mode = min((self.mode, self._most.get(key, self.mode)), key=_FREER.index)
        if spec.effect == "run" and isinstance(command := args.get("command"), str):
            # A command keeps the rights of the mode in which it was let through.
            self._begun[command] = mode
        facts = self._facts(spec, args, key)
        if self.watched and spec.asks_by_default and mode != "plan":
            return decide(spec, args, "ask", (), facts)
        rules = self.rules if facts.guarded else [*self.rules, *self._granted]
        return decide(spec, args, mode, rules, facts)

    def _find_refusal(self, spec: ToolSpec, args: Mapping[str, Any]) -> BackendError | None:
        """Return the error that a call meets whatever a person answers, as far as names tell."""
        try:
            if spec.about_background and self.backend.capabilities().background:
                commands = cast("SandboxBackendProtocol", self.backend)
                commands.poll_command(str(args["command_id"]))
            elif spec.effect == "run" and isinstance(self.backend, GuardedSandbox):
                self.backend.check_program(program_of(str(args[spec.summary_arguments[0]])))
            named = args.get(spec.path_argument) if spec.path_argument else None
            if isinstance(named, str):
                self._check_path(spec, args, named)
        except BackendError as error:
            return error
        return None

    def _check_path(self, spec: ToolSpec, args: Mapping[str, Any], named: str) -> None:
        path = spec.path_in({**args, cast("str", spec.path_argument): self._paths().own(named)})
        if path is None:
            raise BackendError("invalid_path", f"{named!r} is no path of a file here; write one without '..'")
        try:
            real = self._real_path(spec, path)
        except BackendError as error:
            # A new file may lie in new directories.
            if error.code != "file_not_found" or not spec.changes_files or spec.effect == "delete":
                raise
            real = path
        if is_kept_from_tools(self._machine(real), self._own_rules):
            raise BackendError("permission_denied", f"'{path}' is of this program's own conversations")
        if not spec.changes_files and not os.path.lexists(self._machine(real)):
            raise BackendError("file_not_found", f"File '{path}' not found")
        if spec.effect == "delete" and self._machine(real) in map(str, self.places):
            raise BackendError("invalid_path", f"'{path}' is a directory that was given, and is not deleted")
        if spec.changes_files and isinstance(self.backend, GuardedSandbox):
            self.backend.check_change(real)

    def _facts(self, spec: ToolSpec, args: Mapping[str, Any], key: str) -> Facts:
        if spec.effect == "run":
            texts = [str(args.get(each, "")) for each in spec.summary_arguments]
            if started := self.find_started(args) if spec.about_background else None:
                texts.append(started)
            needs = frozenset[Kind]().union(*map(self._needs, texts))
            if started and self.mode != "full" and self._begun.get(started) == "full":
                needs |= EXACTLY
            harmless = self.mode == "plan" and self._is_harmless()
            return Facts(guarded=needs, confined=self.confined, harmless=harmless)
        path = self._own(spec, args)
        if path is None:
            return Facts()
        named = tuple(dict.fromkeys([path, self._led_to.get(key, path), self._leads_to(spec, path)]))
        paths = tuple(map(self._machine, named))
        writes, own = spec.changes_files, self._own_rules
        kinds: list[Kind | None] = [kind_of(each, writes=writes, own=own) for each in (*named, *paths)]
        if writes:
            kinds.extend(kind_obeyed(each, self.places) for each in paths)
        if spec.effect == "delete":
            kinds.extend(kind_below(each, own) for each in paths)
        guarded: frozenset[Kind] = frozenset(each for each in kinds if each is not None)
        return Facts(paths, guarded, self.confined)

    def find_started(self, args: Mapping[str, Any]) -> str | None:
        """Return the command in the background that a call is about; it keeps the rights that it has."""
        started = self.backend.started if isinstance(self.backend, GuardedSandbox) else {}
        return started.get(str(args.get("command_id")))

    def _directories(self) -> tuple[str, ...]:
        """Return the directories in which confined commands find files."""
        return self.backend.given if isinstance(self.backend, GuardedSandbox) else ()

    def _needs(self, command: str) -> frozenset[Kind]:
        return needs_of(command, self._directories())

    def _is_harmless(self) -> bool:
        return self.confined and not self.network

    def _own(self, spec: ToolSpec, args: Mapping[str, Any]) -> str | None:
        """Return the path that a call names, as the backend calls it."""
        given = args.get(spec.path_argument) if spec.path_argument else None
        if not isinstance(given, str):
            return None
        try:
            return spec.path_in({**args, cast("str", spec.path_argument): self._paths().own(given)})
        except BackendError:
            return None

    def _paths(self) -> Any:
        return self.backend.capabilities().command_paths

    def _leads_to(self, spec: ToolSpec, path: str) -> str:
        try:
            return self._real_path(spec, path)
        except BackendError:
            return path

    def _real_path(self, spec: ToolSpec, path: str) -> str:
        above, _, name = path.rpartition("/")
        # A deletion removes a link itself.
        if spec.effect == "delete" and path not in map(str, self.places):
            return f"{self.backend.real_path(above or '/').rstrip('/')}/{name}"
        return self.backend.real_path(path)

    def _machine(self, path: str) -> str:
        """Return how this machine calls a path of the backend."""
        return path if self.confined else os.path.normpath(f"{self.directory}/{path.lstrip('/')}")


def _key(call_id: str | None, name: str, args: Mapping[str, Any]) -> str:
    return call_id or repr((name, sorted(args.items(), key=lambda each: each[0])))


def _is_valid(spec: ToolSpec, args: Mapping[str, Any]) -> bool:
    try:
        spec.args.model_validate(args)
    except ValidationError:
        return False
    return True
