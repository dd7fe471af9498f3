"""FilesystemMiddleware: which file tools this backend offers, and what their results pass through."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, cast

from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import AIMessage, ToolMessage

from deepagents._flow import Flow
from deepagents._paths import normalise, overlap
from deepagents.backends._legacy import is_factory, warn_form
from deepagents.backends._patience import Patience
from deepagents.backends.calls import Files
from deepagents.backends.capabilities import Capabilities
from deepagents.backends.protocol import BACKEND_TYPES
from deepagents.backends.state import StateBackend
from deepagents.errors import BackendError, ConfigError
from deepagents.middleware._base import (
    FlowMiddleware,
    Request,
    Response,
    ToolResult,
    add_section,
    inner,
    tool_name,
)
from deepagents.middleware.filesystem.eviction import (
    CHARACTERS_PER_TOKEN,
    TOOLS_EXCLUDED_FROM_EVICTION,
    Eviction,
)
from deepagents.middleware.filesystem.state import FilesElsewhereState, FilesystemState
from deepagents.tools import FILE_TOOLS
from deepagents.tools._seen import Seen
from deepagents.tools._tool import Desk, Limits, Runtime, failure_message, make_tool

FsToolName = Literal["ls", "read_file", "write_file", "edit_file", "delete", "glob", "grep", "execute"]
ReadFormat = Literal["numbered", "header"]

FILESYSTEM_PROMPT = (
    "You have a filesystem; every path is absolute and starts with /. Look before you change: ls, glob "
    "and grep find things, "
    "read_file shows them. Call independent tools together in one turn."
)
_MUTATIONS = frozenset({"write_file", "edit_file", "delete"})


class FilesystemMiddleware(FlowMiddleware):
    """Give an agent file tools on a backend, and keep large tool results out of its context.

    Args:
        backend: where files live; default `StateBackend()`. A factory is called with the runtime of each
            call.
        system_prompt: replaces our short part of the system prompt; `""` leaves it out.
        custom_tool_descriptions: tool name to description.
        tool_token_limit_before_evict: a result above this many tokens (four characters each) moves to a file;
            `None` or 0 never moves one.
        max_execute_timeout: most seconds that a command may ask for.
        grep_max_count: most matches that one search returns; `None` for no limit.
        tools: which of the file tools to offer; default all that the backend can do.
        read_format: `numbered` lines, or the text under a `header` that says which lines it holds.
        backend_timeout: seconds that a backend may take for one operation (`glob` has ten of its own, and a
            command its own limit); `None` waits for ever.

    Raises:
        ConfigError: for a limit that is not positive, an unknown tool name, or tools without `read_file`.
        NotImplementedError: for `permissions`, `offload_binary_content` and
            `human_message_token_limit_before_evict`.
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
        permissions: Sequence[Any] | None = None,
        read_format: ReadFormat = "numbered",
        backend_timeout: float | None = 60.0,
    ) -> None:
        super().__init__()
        _refuse_later_features(
            permissions=permissions,
            offload_binary_content=offload_binary_content,
            human_message_token_limit_before_evict=human_message_token_limit_before_evict
            not in (50_000, 0, None),
        )
        _require_positive("max_execute_timeout", max_execute_timeout)
        _require_positive("grep_max_count", grep_max_count)
        self.backend: BACKEND_TYPES = StateBackend() if backend is None else backend
        warn_form(self.backend)
        self.state_schema = FilesystemState if self._may_hold_state() else FilesElsewhereState
        self.system_prompt = FILESYSTEM_PROMPT if system_prompt is None else system_prompt
        self.tool_token_limit_before_evict = tool_token_limit_before_evict
        self.read_format: ReadFormat = read_format
        self._patience = Patience(backend_timeout)
        self._limits = Limits(tool_token_limit_before_evict, grep_max_count, max_execute_timeout)
        descriptions = custom_tool_descriptions or {}
        chosen = _chosen(tools)
        self.tools = [
            make_tool(spec, self._desk, descriptions.get(spec.name))
            for spec in FILE_TOOLS
            if spec.name in chosen
        ]

    def _may_hold_state(self) -> bool:
        return is_factory(self.backend) or Files.of(self.backend, None).capabilities().state_files

    def _files(self, runtime: Any) -> Files:
        return Files.of(self.backend, runtime, self._patience)

    def _desk(self, runtime: Runtime) -> Desk:
        return Desk(self._files(runtime), Seen(), self._limits, self.read_format)

    def _around_model(self, request: Request, handler: Callable[[Request], Response]) -> Flow[Response]:
        can = Files.of(self.backend, request.runtime).capabilities()
        offered = [tool for tool in request.tools if self._offered(tool, can)]
        if len(offered) != len(request.tools):
            request = request.override(tools=offered)
        return (yield from inner(handler, add_section(request, self.system_prompt)))

    def _offered(self, tool: Any, can: Capabilities) -> bool:
        name = tool_name(tool)
        hidden = (name == "execute" and not can.execute) or (name == "delete" and not can.delete)
        return not (hidden and any(tool is own for own in self.tools))

    def _around_tool(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolResult]
    ) -> Flow[ToolResult]:
        call = request.tool_call
        if call["name"] in _MUTATIONS and _repeats_a_mutation(request):
            text = (
                "parallel file mutations to the same path are not allowed; only the first one in this turn "
                "was tried. Look at the file, then call again."
            )
            return failure_message(call["name"], call["id"] or "", "parallel_mutation", text)
        result = yield from inner(handler, request)
        limit = self.tool_token_limit_before_evict
        if not limit or (call["name"] in TOOLS_EXCLUDED_FROM_EVICTION and not _failed(result)):
            return result
        return (yield from Eviction(files, limit * CHARACTERS_PER_TOKEN, self._may_read).of(result))


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


def _require_positive(name: str, value: int | None) -> None:
    if value is not None and value <= 0:
        raise ConfigError(f"{name} must be positive, got {value}")


def _refuse_later_features(**given: Any) -> None:
    for name, value in given.items():
        if value:
            raise NotImplementedError(f"FilesystemMiddleware({name}=...) is not available in this version")


def _failed(result: ToolResult) -> bool:
    """Tell whether a call failed: arguments that were refused are repeated in the answer, however long."""
    return isinstance(result, ToolMessage) and result.status == "error"


def _repeats_a_mutation(request: ToolCallRequest) -> bool:
    target = _target(request.tool_call)
    answered: set[str] = set()
    for message in reversed(cast("Mapping[str, Any]", request.state)["messages"]):
        if isinstance(message, ToolMessage):
            answered.add(message.tool_call_id)
        if isinstance(message, AIMessage):
            earlier = _calls_before(message, request.tool_call["id"])
            running = [call for call in earlier if call["id"] not in answered]
            others = [other for call in running if (other := _target(call)) is not None]
            return target is not None and any(overlap(target, other) for other in others)
    return False


def _calls_before(message: AIMessage, call_id: str | None) -> list[Any]:
    before: list[Any] = []
    for call in message.tool_calls:
        if call["id"] == call_id:
            return before
        before.append(call)
    return []


def _target(call: Mapping[str, Any]) -> str | None:
    path = call["args"].get("file_path") if call["name"] in _MUTATIONS else None
    try:
        return normalise(path) if isinstance(path, str) else None
    except BackendError:
        return None
