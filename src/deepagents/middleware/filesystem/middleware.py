"""FilesystemMiddleware: which file tools this backend offers, and what their results pass through."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Any, Literal, Self, cast

from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain.agents.middleware.types import ToolCallRequest

from deepagents._compat.filesystem import HonouredNames
from deepagents._state.runtime import writes_undone_on_failure
from deepagents.backends._guard import Guard, check_enforceable, exposed_rule
from deepagents.backends._legacy import is_factory, warn_form
from deepagents.backends._patience import Patience
from deepagents.backends.calls import Files
from deepagents.backends.capabilities import Capabilities
from deepagents.backends.guarded import GuardedFiles
from deepagents.backends.protocol import BACKEND_TYPES
from deepagents.backends.state import StateBackend
from deepagents.errors import ConfigError
from deepagents.middleware._base import (
    BaseMiddleware,
    Request,
    Response,
    ToolResult,
    add_section,
    inner,
    keeping,
    tool_name,
)
from deepagents.middleware._incremental import Beginnings
from deepagents.middleware.approval.middleware import Approval, InterruptOn
from deepagents.middleware.approval.path_rules import ASKED, LINKS, link_of, links, was_asked
from deepagents.middleware.filesystem.blobs import keeps_out_of_state
from deepagents.middleware.filesystem.moving import Moving
from deepagents.middleware.filesystem.outgoing import Notables
from deepagents.middleware.filesystem.parallel import repeats_a_mutation
from deepagents.middleware.filesystem.rules import bound_to, calls_in, one_of
from deepagents.middleware.filesystem.state import FilesElsewhereState, FilesystemState
from deepagents.permissions import FilesystemPermission, Rules
from deepagents.tools import FILE_TOOLS, file_tools
from deepagents.tools._file_versions import FileVersions
from deepagents.tools._tool import Runtime, ToolContext, ToolLimits, failure_message, make_tool

FsToolName = Literal["ls", "read_file", "write_file", "edit_file", "delete", "glob", "grep", "execute"]
ReadFormat = Literal["numbered", "header"]

FILESYSTEM_PROMPT = (
    "You have a filesystem; every path is absolute and starts with /. Look before you change: ls, glob "
    "and grep find things, "
    "read_file shows them. Call independent tools together in one turn."
)
_MOST_PLACES = 8
_APART = "Commands do not find what is below {places}: use the file tools there."


class FilesystemMiddleware(HonouredNames, BaseMiddleware):
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
            `approval()` beside this middleware, and refuse the call without it.
        read_format: `numbered` lines, or the text under a `header` that says which lines it holds.
        backend_timeout: seconds that a backend may take for one operation (`glob` has ten of its own, and a
            command its own limit); `None` waits for ever.

    Raises:
        ConfigError: for a limit that is not positive, an unknown tool name, or tools without `read_file`.
        UnenforceableRule: for a rule that commands would go round.
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
        backend_timeout: float | None = 60.0,
        _permissions: Sequence[FilesystemPermission] | None = None,
    ) -> None:
        super().__init__()
        _require_positive("max_execute_timeout", max_execute_timeout)
        _require_positive("grep_max_count", grep_max_count)
        _require_positive("backend_timeout", backend_timeout)
        self.backend: BACKEND_TYPES = StateBackend() if backend is None else backend
        warn_form(self.backend)
        self.state_schema = FilesystemState if self._may_hold_state() else FilesElsewhereState
        self.system_prompt = FILESYSTEM_PROMPT if system_prompt is None else system_prompt
        self.tool_token_limit_before_evict = tool_token_limit_before_evict
        self.human_message_token_limit_before_evict = human_message_token_limit_before_evict
        self.read_format: ReadFormat = read_format
        self._patience = Patience(backend_timeout)
        self._known: Notables = Beginnings()
        self._offloads = offload_binary_content and keeps_out_of_state(self.backend)
        self._limits = ToolLimits(tool_token_limit_before_evict, grep_max_count, max_execute_timeout)
        self._guard = Guard(Rules(one_of(permissions, _permissions)))
        self._descriptions = custom_tool_descriptions or {}
        chosen = _chosen(tools)
        self.tools = [self._made(spec.name) for spec in file_tools() if spec.name in chosen]
        self._check_rules()

    @property
    def permissions(self) -> tuple[FilesystemPermission, ...]:
        """The rules that bind the file tools, in their order."""
        return self._guard.rules.given

    def approval(self, interrupt_on: InterruptOn | None = None) -> HumanInTheLoopMiddleware[Any, Any, Any]:
        """Make the middleware that asks a person where the rules say so; add it to the same agent.

        `interrupt_on` names further tools that wait. `create_deep_agent` does all this by itself.
        """
        return Approval(self._guard.rules, interrupt_on)

    def with_permissions(self, permissions: Sequence[FilesystemPermission]) -> Self:
        """Return a copy under these rules, which may repeat its own but not differ from them.

        Raises:
            ConfigError: when both have rules and they differ.
        """
        if permissions and self.permissions and tuple(permissions) != self.permissions:
            raise ConfigError(
                f"two lists of permissions: {list(self.permissions)!r} in FilesystemMiddleware and "
                f"{list(permissions)!r} beside it; give them to one"
            )
        if not permissions or self.permissions:
            return self
        clone = copy.copy(self)
        clone.take_permissions(permissions)
        return clone

    def take_permissions(self, permissions: Sequence[FilesystemPermission]) -> None:
        """Put the file tools under these rules, in place of any other.

        Raises:
            UnenforceableRule: for a rule that commands would go round.
        """
        self._guard = Guard(Rules(permissions))
        self.tools = [bound_to(self._desk, tool) for tool in self.tools]
        self._check_rules()

    def _check_rules(self) -> None:
        runs = any(tool_name(tool) == "execute" for tool in self.tools)
        if self._guard.rules and runs and not is_factory(self.backend):
            check_enforceable(self._files(None).backend, self._guard.rules)

    def _may_hold_state(self) -> bool:
        return is_factory(self.backend) or Files.of(self.backend, None).capabilities().state_files

    def _create_tool(self, name: str) -> Any:
        spec = next(each for each in file_tools() if each.name == name)
        return make_tool(spec, self._desk, self._descriptions.get(name))

    def _files(self, runtime: Any) -> Files:
        return Files.of(self.backend, runtime, self._patience)

    def _desk(self, runtime: Runtime) -> ToolContext:
        files, call_id = self._guarded(runtime), runtime.tool_call_id or ""
        return ToolContext(files, FileVersions(), self._limits, self.read_format, call_id)

    def _guarded(self, runtime: Runtime) -> Files:
        files = self._files(runtime)
        if not self._guard.rules:
            return files
        named, led_to = link_of(runtime.state, runtime.tool_call_id)
        asked = was_asked(runtime.state, runtime.tool_call_id)
        guard = Guard(self._guard.rules, asked is not None, bool(asked), named, led_to)
        return GuardedFiles(files.backend, files.patience, guard)

    def _may_read(self, path: str) -> bool:
        return self._guard.rules.decide("read", path) == "allow"

    async def _around_model(self, request: Request, handler: Callable[[Request], Response]) -> Response:
        files = self._files(request.runtime)
        can = self._can(files)
        offered = [tool for tool in request.tools if self._offered(tool, can)]
        if len(offered) != len(request.tools):
            request = request.override(tools=offered)
        with writes_undone_on_failure():
            request, kept = await self._moving(files).out_of_request(request)
            response = await inner(handler, add_section(request, self._section(offered, can)))
        return keeping(response, kept, await self._links(files, request, response))

    def _section(self, offered: Sequence[Any], can: Capabilities) -> str:
        runs = any(tool_name(tool) == "execute" for tool in offered)
        if not (self.system_prompt and runs and can.apart):
            return self.system_prompt
        return f"{self.system_prompt} {_APART.format(places=_listed(can.apart))}"

    def _can(self, files: Files) -> Capabilities:
        can = files.capabilities()
        hidden = can.execute and exposed_rule(files.backend, self._guard.rules)
        return replace(can, execute=False) if hidden else can

    async def _links(self, files: Files, request: Request, response: Response) -> dict[str, Any] | None:
        """Note where the paths of new calls lead, so that a person is asked about the same place twice."""
        if not self._guard.rules.has("interrupt"):
            return None
        found = await links(files, calls_in(response))
        state = cast("Mapping[str, Any]", request.state)
        noted = {LINKS: found} if found or state.get(LINKS) else {}
        return {**noted, ASKED: None} if state.get(ASKED) is not None else noted or None

    def _moving(self, files: Files) -> Moving:
        results, messages = self.tool_token_limit_before_evict, self.human_message_token_limit_before_evict
        return Moving(files, self._may_read, results, messages, self._offloads, self._known)

    def _offered(self, tool: Any, can: Capabilities) -> bool:
        name = tool_name(tool)
        hidden = (name == "execute" and not can.execute) or (name == "delete" and not can.delete)
        return not (hidden and any(tool is own for own in self.tools))

    async def _around_tool(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolResult]
    ) -> ToolResult:
        call = request.tool_call
        if repeats_a_mutation(request):
            text = (
                "parallel file mutations to the same path are not allowed; only the first one in this turn "
                "was tried. Look at the file, then call again."
            )
            return failure_message(call["name"], call["id"] or "", "parallel_mutation", text)
        result = await inner(handler, request)
        files = self._files(cast(Any, request).runtime)
        return await self._moving(files).out_of_result(call["name"], result)


def file_tools_on(
    backend: BACKEND_TYPES, custom_tool_descriptions: Mapping[str, str] | None = None
) -> list[Any]:
    """Make the file tools of a backend, without the middleware that hides what it cannot do."""
    return list(
        FilesystemMiddleware(backend=backend, custom_tool_descriptions=custom_tool_descriptions).tools
    )


def _chosen(tools: Sequence[FsToolName] | Literal["all"] | None) -> frozenset[str]:
    known = [spec.name for spec in FILE_TOOLS]
    if tools is None or tools == "all":
        return frozenset(known)
    unknown = sorted(set(tools) - set(known))
    if unknown:
        raise ConfigError(f"tools names {unknown!r}; known are {known!r}")
    if "read_file" not in tools:
        raise ConfigError("read_file must be included in tools: it is how offloaded results are read back")
    return frozenset(tools)


def _listed(places: Sequence[str]) -> str:
    more = len(places) - _MOST_PLACES
    return ", ".join(places[:_MOST_PLACES]) + (f" and {more} more places" if more > 0 else "")


def _require_positive(name: str, value: float | None) -> None:
    if value is not None and not 0 < value < inf:
        raise ConfigError(f"{name} must be positive, got {value}")
