"""Give an agent the file tools that its backend can serve, and keep large texts out of its context."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Any, Final, Literal, Self, TypeAlias, cast

from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import AIMessage, ToolMessage

from deepagents._deprecation import warn_legacy
from deepagents._paths import HISTORY, CommandPaths, overlap
from deepagents._state.programs import is_call_of_program
from deepagents._state.runtime import writes_undone_on_failure
from deepagents.backends.capabilities import Capabilities
from deepagents.backends.foreign.forms import warn_form
from deepagents.backends.guard import CallRights, check_enforceable, check_matching, find_exposed_rule
from deepagents.backends.handle import FileCalls, open_backend
from deepagents.backends.protocol import BACKEND_TYPES
from deepagents.backends.state import StateBackend
from deepagents.errors import ConfigError
from deepagents.middleware._base import BaseMiddleware, inner
from deepagents.middleware._incremental import BoundedCache, IncrementalCache
from deepagents.middleware._requests import Request, Response, ToolResult, add_section, keeping, with_changes
from deepagents.middleware.approval import (
    LINKS,
    ApprovalMiddleware,
    InterruptOn,
    find_links,
    links_of,
    was_asked,
)
from deepagents.middleware.filesystem.blobs import Blobs, keeps_out_of_state, lands_in_state
from deepagents.middleware.filesystem.choice import choose_tools, describe_files
from deepagents.middleware.filesystem.commands import announce_ended, follow_commands
from deepagents.middleware.filesystem.offload import ResultOffload, map_messages
from deepagents.middleware.filesystem.prompt import describe_commands
from deepagents.middleware.filesystem.requests import Candidates, RequestPreparation, Shortened
from deepagents.middleware.filesystem.state import FilesElsewhereState, FilesystemState
from deepagents.permissions import FilesystemPermission, Rules
from deepagents.tools import EditForm, FsToolName, file_tools
from deepagents.tools._asked import ASKED
from deepagents.tools._command_events import CommandEvents
from deepagents.tools._tool import (
    CHARACTERS_PER_TOKEN,
    Runtime,
    SpecTool,
    ToolContext,
    ToolLimits,
    ToolSpec,
    failure_message,
    make_tool,
)
from deepagents.tools._versions import FileVersions
from deepagents.tools.edit_lines import EDIT_LINES

ReadFormat: TypeAlias = Literal["numbered", "header"]

_PARALLEL: Final = (
    "parallel file mutations to the same path are not allowed; only the first one in this turn was tried. "
    "Look at the file, then call again."
)


class FilesystemMiddleware(BaseMiddleware):
    """Give an agent file tools on a backend, and keep large tool results out of its context.

    Args:
        backend: where files live; default `StateBackend()`. A factory is called with the runtime of each
            call.
        system_prompt: replaces our short part of the system prompt; `""` leaves it out.
        custom_tool_descriptions: tool name to description.
        tool_token_limit_before_evict: a result above this many tokens (four characters each) moves to a file;
            `None` or 0 never moves one.
        human_message_token_limit_before_evict: a person's message above this many tokens is saved to a file,
            and requests show how it begins and ends; `None` or 0 never shortens one.
        max_execute_timeout: most seconds that a command may ask for.
        grep_max_count: most matches that one search returns; `None` for no limit.
        tools: which of the file tools to offer; default all that the backend can do.
        offload_binary_content: keep the bytes of media in files of the backend, not in state. Warns and does
            nothing where those files would be in state themselves.
        permissions: rules about paths that bind these tools; those that make a call wait for a person need
            `approval()` in the same agent, and refuse the call without it.
        read_format: `numbered` lines, or the text under a `header` that says which lines it holds.
        edit_form: how the model changes a part of a file: `replace` with `edit_file`, `anchors` with
            `edit_lines`, for which `read_file` shows a short hash of each line, or `patch` with
            `apply_patch`. It holds where `tools` has what the form stands for.
        backend_timeout: seconds that a backend may take for one operation (`glob` has ten of its own, and a
            command its own limit); `None` waits for ever.

    Raises:
        ConfigError: for a limit that is not positive, an unknown tool name or form, or tools without
            `read_file`.
        UnenforceableRule: for a rule that commands could bypass.
    """

    state_schema: type[Any] = FilesystemState

    def __init__(
        self,
        *,
        backend: BACKEND_TYPES | None = None,
        system_prompt: str | None = None,
        custom_tool_descriptions: Mapping[str, str] | None = None,
        tool_token_limit_before_evict: int | None = 20_000,
        human_message_token_limit_before_evict: int | None = 50_000,
        max_execute_timeout: int = 3600,
        grep_max_count: int | None = 1000,
        tools: Sequence[FsToolName] | Literal["all"] | None = None,
        offload_binary_content: bool = False,
        permissions: Sequence[FilesystemPermission] | None = None,
        read_format: ReadFormat = "numbered",
        edit_form: EditForm = "replace",
        backend_timeout: float | None = 60.0,
        _permissions: Sequence[FilesystemPermission] | None = None,
    ) -> None:
        super().__init__()
        _require_positive("max_execute_timeout", max_execute_timeout)
        _require_positive("grep_max_count", grep_max_count)
        _require_positive("backend_timeout", backend_timeout)
        self.backend: BACKEND_TYPES = StateBackend() if backend is None else backend
        warn_form(self.backend)
        self._handle = open_backend(self.backend, backend_timeout)
        # Where files are elsewhere, the state and output of the agent have no `files`.
        may_hold_state = self._handle.is_factory or self._handle.capabilities().state_files
        self.state_schema = FilesystemState if may_hold_state else FilesElsewhereState
        self.tool_token_limit_before_evict = tool_token_limit_before_evict
        self.human_message_token_limit_before_evict = human_message_token_limit_before_evict
        self.read_format: ReadFormat = read_format
        self.backend_timeout = backend_timeout
        self._candidates: Candidates = IncrementalCache()
        self._shortened: Shortened = BoundedCache()
        self._offloads = offload_binary_content and keeps_out_of_state(self._handle)
        self._commands = CommandEvents()
        self._limits = ToolLimits(tool_token_limit_before_evict, grep_max_count, max_execute_timeout)
        self._rules = Rules(_permissions_of(permissions, _permissions))
        self._descriptions = custom_tool_descriptions or {}
        self._given = tools, system_prompt
        self.take_edit_form(edit_form)
        self._check_rules()

    def take_edit_form(self, form: EditForm) -> None:
        """Make the tools, of which one changes parts of files in this form."""
        self.edit_form: EditForm = form
        given, system_prompt = self._given
        specs, chosen = choose_tools(self._tool_specs(), given, form, self.read_format)
        prompt = describe_files([name for name in specs if name in chosen])
        self.system_prompt = prompt if system_prompt is None else system_prompt
        # Where the model runs no commands, it need not know where files are on this machine.
        runs_commands = any(name in chosen and spec.effect == "run" for name, spec in specs.items())
        self._paths = self._handle.capabilities().command_paths if runs_commands else CommandPaths()
        self._specs = {name: replace(spec, paths=self._paths) for name, spec in specs.items()}
        self._readers = {name for name, spec in specs.items() if spec.effect == "read"}
        self.tools = [self._make_by_name(name) for name in self._specs if name in chosen]

    @property
    def permissions(self) -> tuple[FilesystemPermission, ...]:
        """The rules that bind the file tools, in their order."""
        return self._rules.given

    def approval(self, interrupt_on: InterruptOn | None = None) -> HumanInTheLoopMiddleware[Any, Any, Any]:
        """Make the middleware that asks a person where the rules say so; add it to the same agent.

        `interrupt_on` names further tools that wait. `create_deep_agent` does all this by itself.
        """
        return ApprovalMiddleware(self._rules, interrupt_on, specs=self._specs, backend=self.backend)

    def with_permissions(self, permissions: Sequence[FilesystemPermission]) -> Self:
        """Return a copy under these rules, which may repeat its own but not differ from them.

        Raises:
            ConfigError: when both have rules and they differ.
        """
        if permissions and self.permissions and tuple(permissions) != self.permissions:
            raise ConfigError(
                f"two lists of permissions: {list(self.permissions)!r} in FilesystemMiddleware and "
                f"{list(permissions)!r} for the agent; give them to one"
            )
        if not permissions or self.permissions:
            return self
        clone = copy.copy(self)
        clone.take_permissions(permissions)
        return clone

    def take_permissions(self, permissions: Sequence[FilesystemPermission]) -> None:
        """Put the file tools under these rules, instead of any other.

        Raises:
            UnenforceableRule: for a rule that commands could bypass.
        """
        self._rules = Rules(permissions)
        # A tool holds the method that opens its context: those of the middleware this is a copy of hold its.
        self.tools = [
            make_tool(tool.spec, self._open_context, tool.description) if isinstance(tool, SpecTool) else tool
            for tool in self.tools
        ]
        self._check_rules()

    def hide(self, rules: Sequence[FilesystemPermission]) -> Self:
        """Return a copy that obeys these rules before its own."""
        if not rules:
            return self
        clone = copy.copy(self)
        clone.take_permissions((*rules, *self.permissions))
        return clone

    def _check_rules(self) -> None:
        runs_commands = any(_effect(tool) == "run" for tool in self.tools)
        if not self._rules or self._handle.is_factory:
            return
        if runs_commands:
            check_enforceable(self._handle.files(None).capabilities_or_raise, self._rules)
        check_matching(self._handle.capabilities(), self._rules)

    def _tool_specs(self) -> Sequence[ToolSpec]:
        """Return the tools to choose from; a subclass may add its own."""
        return file_tools(background=self._handle.capabilities().background)

    def _create_tool(self, name: str) -> Any:
        return make_tool(self._specs[name], self._open_context, self._descriptions.get(name))

    # The next four are overridden or read by packages that build on this class.

    def _create_ls_tool(self) -> Any:
        return self._create_tool("ls")

    def _create_glob_tool(self) -> Any:
        return self._create_tool("glob")

    def _create_grep_tool(self) -> Any:
        return self._create_tool("grep")

    @property
    def _permissions(self) -> list[FilesystemPermission]:
        return list(self.permissions)

    def _make_by_name(self, name: str) -> Any:
        """Make a tool, by the method of a subclass if it has one."""
        make = getattr(self, f"_create_{name}_tool", None)
        return self._create_tool(name) if make is None else make()

    def _open_context(self, runtime: Runtime) -> ToolContext:
        files, call_id = self._guard_files(runtime), runtime.tool_call_id or ""
        versions = FileVersions()
        shown = "anchors" if EDIT_LINES.name in self._specs else self.read_format
        return ToolContext(files, versions, self._limits, shown, call_id, self._paths, self._commands)

    def _guard_files(self, runtime: Runtime) -> FileCalls:
        if not self._rules.given:
            return self._handle.files(runtime)
        links = links_of(runtime.state, runtime.tool_call_id)
        asked = was_asked(runtime.state, runtime.tool_call_id)
        rights = CallRights(self._rules, asked is not None, bool(asked), links)
        return self._handle.files(runtime, rights)

    def _may_read(self, path: str) -> bool:
        return self._rules.decide("read", path) == "allow"

    async def _around_model(self, request: Request, handler: Callable[[Request], Response]) -> Response:
        files = self._handle.files(request.runtime)
        can = self._capabilities(files)
        # By identity: a tool of the caller may have the same name.
        hidden = {
            id(tool) for tool in self.tools if isinstance(tool, SpecTool) and not tool.spec.is_possible(can)
        }
        offered = [tool for tool in request.tools if id(tool) not in hidden]
        if len(offered) != len(request.tools):
            request = with_changes(request, tools=offered)
        # If the call fails, what preparing it has written is taken back: a resumed run starts before it.
        with writes_undone_on_failure():
            request = await announce_ended(request, files, self._commands)
            request, for_state = await self._preparation(files).prepare(request)
            response = await inner(handler, add_section(request, self._section(offered, can)))
        return keeping(response, for_state, await self._find_links(files, request, response))

    def _section(self, offered: Sequence[Any], can: Capabilities) -> str:
        if not self.system_prompt or not can.execute:
            return self.system_prompt
        running = {id(tool) for tool in self.tools if _effect(tool) == "run"}
        has_none = running.isdisjoint(map(id, offered))
        return self.system_prompt if has_none else describe_commands(self.system_prompt, can)

    def _capabilities(self, files: FileCalls) -> Capabilities:
        can = files.capabilities()
        hidden = can.execute and find_exposed_rule(files.capabilities_or_raise, self._rules)
        return replace(can, execute=False, background=False) if hidden else can

    async def _find_links(
        self, files: FileCalls, request: Request, response: Response
    ) -> dict[str, Any] | None:
        """Note where the paths of new calls lead, so that a person is asked about that path."""
        if not self._rules.has("interrupt"):
            return None
        answers = [message for message in response.result if isinstance(message, AIMessage)]
        found = await find_links(
            files, [call for message in answers for call in message.tool_calls], self._specs
        )
        state = cast("Mapping[str, Any]", request.state)
        noted = {LINKS: found} if found or state.get(LINKS) else {}
        return {**noted, ASKED: None} if state.get(ASKED) is not None else noted or None

    def _preparation(self, files: FileCalls) -> RequestPreparation:
        limit = self.human_message_token_limit_before_evict
        root = files.capabilities().artifacts_root.rstrip("/")
        readable = self._may_read(f"{root}/{HISTORY}/any.md")
        threshold = limit * CHARACTERS_PER_TOKEN if limit and readable else None
        return RequestPreparation(
            files,
            Blobs(files, self._readers),
            threshold,
            self._keeps_blobs(files),
            self._candidates,
            self._shortened,
            self._paths,
        )

    def _keeps_blobs(self, files: FileCalls) -> bool:
        return self._offloads and not lands_in_state(files)

    async def _around_tool(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolResult]
    ) -> ToolResult:
        call = request.tool_call
        if self._repeats_a_change(call, request.state):
            return failure_message(call["name"], call["id"] or "", "parallel_mutation", _PARALLEL)
        files = self._handle.files(cast(Any, request).runtime)
        await follow_commands(request.state, files, self._commands)
        result = await inner(handler, request)
        # A program is given all of it: what the model reads is what the program makes of it.
        return result if is_call_of_program(call["id"]) else await self._offload(call["name"], result, files)

    async def _offload(self, name: str, result: ToolResult, files: FileCalls) -> ToolResult:
        spec = self._specs.get(name)
        if name in self._readers and self._keeps_blobs(files):
            result = await map_messages(result, Blobs(files, self._readers).extract)
        limit = self.tool_token_limit_before_evict
        # A tool that bounds its results does not bound the report of wrong arguments, which repeats them.
        if not limit or (spec and not spec.offload_result and not _has_failed(result)):
            return result
        offload = ResultOffload(files, limit * CHARACTERS_PER_TOKEN, self._may_read, self._paths)
        return await map_messages(result, offload.shorten)

    def _repeats_a_change(self, call: Mapping[str, Any], state: Any) -> bool:
        """Return whether an unfinished call before this one, in the same turn, changes the same path."""
        paths = self._find_changed_paths(call)
        if not paths or not isinstance(state, Mapping):
            return False
        messages: Sequence[Any] = cast("Mapping[str, Any]", state).get("messages") or ()
        answered: set[str] = set()
        for message in reversed(messages):
            if isinstance(message, ToolMessage):
                answered.add(message.tool_call_id)
            if isinstance(message, AIMessage):
                ids = [each["id"] for each in message.tool_calls]
                before = message.tool_calls[: ids.index(call["id"])] if call["id"] in ids else []
                running = [each for each in before if each["id"] not in answered]
                others = [path for each in running for path in self._find_changed_paths(each)]
                return any(overlap(path, other) for path in paths for other in others)
        return False

    def _find_changed_paths(self, call: Mapping[str, Any]) -> Sequence[str]:
        spec = self._specs.get(call["name"])
        return spec.paths_in(call["args"]) if spec and spec.changes_files else ()


def _effect(tool: Any) -> str | None:
    return tool.spec.effect if isinstance(tool, SpecTool) else None


def _has_failed(result: ToolResult) -> bool:
    return isinstance(result, ToolMessage) and result.status == "error"


def _permissions_of(
    permissions: Sequence[FilesystemPermission] | None, older: Sequence[FilesystemPermission] | None
) -> Sequence[FilesystemPermission]:
    """Return the rules, which earlier versions took under another name.

    Raises:
        ConfigError: when both are given.
    """
    if older is None:
        return permissions or ()
    if permissions is not None:
        raise ConfigError("FilesystemMiddleware got permissions and _permissions; give permissions alone")
    warn_legacy("FilesystemMiddleware(_permissions=...) is deprecated: write permissions=...")
    return older


def _require_positive(name: str, value: float | None) -> None:
    if value is not None and not 0 < value < inf:
        raise ConfigError(f"{name} must be positive, got {value}")
