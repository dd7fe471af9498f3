"""Find what is known of calls beyond their text: where paths lead, what is guarded, what cannot be done."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final, cast

from deepagents._values import field, recordclass, replace
from deepagents.backends.filesystem import FilesystemBackend
from deepagents.backends.protocol import SandboxBackendProtocol
from deepagents.errors import BackendError
from deepagents.events import ApprovalRequest
from deepagents.tools import ToolSpec, specs_by_name
from deepagents.tools.preview import Preview, preview_change
from deepagents.tools.web import host_of
from deepagents_cli.approval.backends import GuardedSandbox
from deepagents_cli.approval.guarded import Kind, OwnFiles, OwnRules, is_kept_from_tools, kinds_at, needs_of
from deepagents_cli.approval.rules import Action, is_of_server, program_of
from deepagents_cli.approval.verdicts import EXACTLY, Facts

_LARGEST_PREVIEW: Final = 10_000_000


@recordclass
class Reach:
    """The files and commands that an agent's calls reach, as this machine names them.

    `network`: whether commands in the sandbox reach any of it. `own` is what this program obeys and keeps.
    `servers` are the MCP servers, and whether each is one of the person's own.
    """

    backend: FilesystemBackend
    directory: Path
    network: bool = field(default=False, kw_only=True)
    own: OwnFiles | None = field(default=None, kw_only=True)
    servers: Mapping[str, bool] = field(default_factory=dict[str, bool], kw_only=True)
    specs: Mapping[str, ToolSpec] = field(default_factory=specs_by_name, kw_only=True)

    @property
    def sandbox(self) -> GuardedSandbox | None:
        """The sandbox in which commands run, if they run in one."""
        return self.backend if isinstance(self.backend, GuardedSandbox) else None

    @property
    def confined(self) -> bool:
        """Whether commands run in the sandbox."""
        return self.sandbox is not None

    @property
    def given(self) -> tuple[str, ...]:
        """The directories in which confined commands find files."""
        return self.sandbox.given if self.sandbox else ()

    @property
    def places(self) -> tuple[Path, ...]:
        """The directories that the agent was given."""
        return (*map(Path, self.given),) or (self.directory,)

    @cached_property
    def own_rules(self) -> OwnRules:
        """The rules about what this program obeys and keeps."""
        return self.own.rules(self.places) if self.own else ()

    def find_facts(self, name: str, args: Mapping[str, Any], links: Mapping[str, str]) -> Sequence[Facts]:
        """Find what is known of a call now, for each path that it names; nothing of a tool that is not known.

        `links` is where these led when the call was made, for those that led elsewhere.
        """
        spec = self.specs.get(name)
        if spec is None:
            return [Facts("tool", (name,))] if is_of_server(name) else []
        found = [self._find_facts(part, given, links) for part, given in spec.parts(args)]
        return found or [Facts(action_of(spec))]

    def _find_facts(self, spec: ToolSpec, args: Mapping[str, Any], links: Mapping[str, str]) -> Facts:
        action, harmless = action_of(spec), self.confined and not self.network
        if action == "fetch":
            return Facts(action, tuple(filter(None, [host_of(args)])))
        if spec.effect == "run":
            texts = [str(args.get(each, "")) for each in spec.summary_arguments]
            about = () if spec.about_background else (*texts[:1],)
            return Facts(action, about, self._find_needs(spec, args, texts), self.confined, harmless)
        path = self.path_of(spec, args)
        if path is None:
            return Facts(action)
        named = tuple(dict.fromkeys([path, links.get(path, path), self._leads_to(spec, path)]))
        paths = tuple(map(self._machine, named))
        guarded = kinds_at(named, paths, action, self.places, self.own_rules)
        return Facts(action, paths, guarded, self.confined)

    def find_started(self, args: Mapping[str, Any]) -> str | None:
        """Return the command in the background that a call is about; it keeps the rights that it has."""
        started = self.sandbox.started.get(str(args.get("command_id"))) if self.sandbox else None
        return started.command if started else None

    def find_refusal(self, request: ApprovalRequest, *, looks: bool) -> str | None:
        """Return the error that a call meets whatever a person answers, as far as names show.

        Args:
            looks: whether the content of a file may show it, too.
        """
        spec, args = self.specs.get(request.name), request.args
        if spec is None:
            return None
        try:
            if spec.about_background and self.backend.capabilities().background:
                commands = cast("SandboxBackendProtocol", self.backend)
                commands.poll_command(str(args["command_id"]))
            elif spec.effect == "run" and self.sandbox:
                self.sandbox.check_program(program_of(str(args[spec.summary_arguments[0]])))
            for part, given in spec.parts(args):
                if isinstance(named := given.get(part.path_argument or ""), str):
                    self._check_path(part, given, named)
        except BackendError as error:
            return f"Error: {error.text} [{error.code}]"
        preview = self.preview(request) if looks else None
        return preview[1].failure if preview else None

    def preview(self, request: ApprovalRequest) -> tuple[Mapping[str, bytes | None], Preview] | None:
        """Return what files hold, and what a call would make of them; `None` for what changes no content."""
        spec, paths = self.specs.get(request.name), self.paths_of(request)
        if spec is None or not spec.changes_files or (spec.path_argument and not paths):
            return None
        if spec.effect == "delete":
            there = os.path.lexists(self._machine(paths[0]))
            problem = None if there else f"Error: File '{paths[0]}' not found [file_not_found]"
            return {}, Preview(failure=problem)
        held: dict[str, bytes | None] = {}
        try:
            for path in paths:
                found = self.backend.read(path, 0, 1)
                if found.error and found.code != "file_not_found":
                    return {}, Preview(failure=f"Error: {found.error} [{found.code}]")
                held[path] = self.backend.download_files([path])[0].content
        except BackendError as error:
            return {}, Preview(failure=f"Error: {error.text} [{error.code}]")
        preview = preview_change(self._with_paths(spec), request.args, held)
        size = sum(len(content or b"") for content in held.values())
        return (held, preview) if size <= _LARGEST_PREVIEW or preview.failure else None

    def places_of(self, request: ApprovalRequest) -> list[str]:
        """Return where on this machine the files of a call are."""
        return [*map(self._machine, self.paths_of(request))]

    def paths_of(self, request: ApprovalRequest) -> list[str]:
        """Return the paths that a call names, as the backend calls them."""
        spec = self.specs.get(request.name)
        parts = spec.parts(request.args) if spec else ()
        found = (self.path_of(part, given) for part, given in parts)
        return [*dict.fromkeys(path for path in found if path is not None)]

    def path_of(self, spec: ToolSpec, args: Mapping[str, Any]) -> str | None:
        """Return the path that a call names, as the backend calls it."""
        given = args.get(spec.path_argument) if spec.path_argument else None
        if not isinstance(given, str):
            return None
        try:
            return self._as_own(spec, args, given)
        except BackendError:
            return None

    def needs(self, command: str) -> frozenset[Kind]:
        """Return what a command names of what is guarded."""
        return needs_of(command, self.given)

    def _find_needs(self, spec: ToolSpec, args: Mapping[str, Any], texts: list[str]) -> frozenset[Kind]:
        needs = frozenset[Kind]().union(*map(self.needs, texts))
        started = self.sandbox and self.sandbox.started.get(str(args.get("command_id")))
        if not spec.about_background or not started:
            return needs
        needs |= self.needs(started.command)
        return needs | EXACTLY if started.is_free else needs

    def _check_path(self, spec: ToolSpec, args: Mapping[str, Any], named: str) -> None:
        path = self._as_own(spec, args, named)
        if path is None:
            raise BackendError("invalid_path", f"{named!r} is not a path here; write one without '..'")
        try:
            real = self._real_path(spec, path)
        except BackendError as error:
            # A new file may lie in new directories.
            if error.code != "file_not_found" or not spec.changes_files or spec.effect == "delete":
                raise
            real = path
        if is_kept_from_tools(self._machine(real), self.own_rules):
            raise BackendError("permission_denied", f"'{path}' is of this program's own conversations")
        if not spec.changes_files and not os.path.lexists(self._machine(real)):
            raise BackendError("file_not_found", f"File '{path}' not found")
        if spec.effect == "delete" and self._machine(real) in map(str, self.places):
            raise BackendError("invalid_path", f"'{path}' is a directory that was given, and is not deleted")
        if spec.changes_files and self.sandbox:
            self.sandbox.check_change(real)

    def _as_own(self, spec: ToolSpec, args: Mapping[str, Any], named: str) -> str | None:
        # A path that cannot be is told apart from one of commands alone, which raises.
        self.backend.capabilities().command_paths.own(named)
        return self._with_paths(spec).path_in(args)

    def _with_paths(self, spec: ToolSpec) -> ToolSpec:
        return replace(spec, paths=self.backend.capabilities().command_paths)

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


def action_of(spec: ToolSpec) -> Action:
    """Return what a tool does."""
    if spec.find_question:
        return "fetch"
    if spec.effect == "run":
        return "command"
    return "delete" if spec.effect == "delete" else "edit" if spec.changes_files else "read"
