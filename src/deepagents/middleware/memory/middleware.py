"""MemoryMiddleware: read memory files when a run starts and when they change, and show them to the model."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Optional, cast

from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig

from deepagents._state.runtime import has_channel, in_graph, write_channel, writes_undone_on_failure
from deepagents.backends._resolve import warn_form
from deepagents.backends.handle import FileCalls, open_backend
from deepagents.backends.protocol import BACKEND_TYPES
from deepagents.errors import ConfigError, StackError
from deepagents.middleware._base import (
    BaseMiddleware,
    Middleware,
    Request,
    Response,
    ToolResult,
    add_section,
    inner,
    specs_of_call,
)
from deepagents.middleware.approval import find_executed_call
from deepagents.middleware.memory.contents import (
    CHANGED,
    CONTENTS,
    PROBLEMS,
    MemoryState,
    fold_changes,
    read_sources,
    sources_below,
)
from deepagents.middleware.memory.prompt import MEMORY_SYSTEM_PROMPT, check_template, format_memory
from deepagents.middleware.prompt_caching import is_chat_anthropic, with_own_mark

BACKEND_SECONDS: Final = 60.0
_log = logging.getLogger(__name__)


class MemoryMiddleware(BaseMiddleware):
    """Show memory files to the model, as data between fences.

    Files are read when a run starts, and again after `write_file`, `edit_file` or `delete` changed one, or a
    subagent has worked. A file that is not UTF-8 or cannot be read is left out and named to the model.

    Args:
        backend: where the files live.
        sources: their paths, as the backend knows them, in the order in which they are shown.
        add_cache_control: mark what stands before this part for Anthropic's prompt cache.
        system_prompt: replaces our text; `{agent_memory}` in it becomes the contents. `None` shows nothing:
            the contents are kept in state alone.
        backend_timeout: seconds that the backend may take for one operation; `None` waits for ever.

    Raises:
        ConfigError: for a template without its placeholder, and for sources that are not a list of paths or
            name a home directory.
        TypeError: for a template that is not text.
    """

    state_schema: type[Any] = MemoryState

    def __init__(
        self,
        *,
        backend: BACKEND_TYPES,
        sources: Sequence[str],
        add_cache_control: bool = False,
        system_prompt: str | None = MEMORY_SYSTEM_PROMPT,
        backend_timeout: float | None = BACKEND_SECONDS,
    ) -> None:
        super().__init__()
        _check_sources(sources)
        check_template(system_prompt)
        warn_form(backend)
        self.sources = list(sources)
        self.system_prompt = system_prompt
        self._add_cache_control = add_cache_control
        self._handle = open_backend(backend, backend_timeout)

    def modify_request(self, request: Request) -> Request:
        """Return the request with the memory of its state in the system prompt."""
        if self._add_cache_control and is_chat_anthropic(request.model):
            # Before memory, not behind it: another memory then leaves what stands before it in the cache.
            request = with_own_mark(request)
        if self.sources and self.system_prompt is not None:
            state = cast("Mapping[str, Any]", request.state)
            contents: Mapping[str, str] = state.get(CONTENTS) or {}
            problems: Mapping[str, str] = state.get(PROBLEMS) or {}
            text = format_memory(self.system_prompt, self.sources, contents, problems)
            request = add_section(request, text)
        return request

    async def _before_agent(
        self,
        state: Mapping[str, Any],
        runtime: Any,
        config: Optional[RunnableConfig] = None,  # noqa: UP045 - LangGraph knows this spelling alone
    ) -> dict[str, Any] | None:
        """Read all sources together; what is in state already is not written again."""
        if not self.sources:
            return None
        update = await self._read(state, self.sources, runtime)
        if problems := update.get(PROBLEMS):
            _log.warning("memory files could not be read: %s", {k: v for k, v in problems.items() if v})
        if state.get(CONTENTS) is None:
            update = dict[str, Any]({CONTENTS: {}}) | update
        return update | ({CHANGED: False} if state.get(CHANGED) else {}) or None

    async def _around_model(self, request: Request, handler: Callable[[Request], Response]) -> Response:
        with writes_undone_on_failure():
            state = cast("Mapping[str, Any]", request.state)
            if state.get(CHANGED) and self.sources and in_graph():
                update = await self._read(state, self.sources, request.runtime)
                _write({**update, CHANGED: False})
                folded = {key: fold_changes(state.get(key), [change]) for key, change in update.items()}
                request = request.override(state=cast(Any, {**state, **folded}))
            return await inner(handler, self.modify_request(request))

    async def _around_tool(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolResult]
    ) -> ToolResult:
        result = await inner(handler, request)
        is_error = isinstance(result, ToolMessage) and result.status == "error"
        if is_error or not self.sources or not in_graph():
            return result
        call = find_executed_call(request)
        # A subagent writes with tools of its own, so which files it changed is not seen here.
        if call["name"] == "task" and has_channel(CHANGED):
            write_channel(CHANGED, True)
        spec = specs_of_call(request).get(call["name"])
        path = spec.path_in(call["args"]) if spec and spec.changes_files else None
        if path is not None and has_channel(CONTENTS):
            runtime = cast(Any, request).runtime
            if touched := await sources_below(self._files(runtime), self.sources, path):
                _write(await self._read(cast("Mapping[str, Any]", request.state), touched, runtime))
        return result

    def _files(self, runtime: Any) -> FileCalls:
        return self._handle.files(runtime)

    async def _read(self, state: Mapping[str, Any], sources: Sequence[str], runtime: Any) -> dict[str, Any]:
        """Read sources and return what changed."""
        return (await read_sources(self._files(runtime), sources)).diff(state, sources)


def _write(update: Mapping[str, Any]) -> None:
    """Write at once: parallel tools each write their own change, and the next model call reads them."""
    for key, change in update.items():
        write_channel(key, change)


def require_sources(middleware: Middleware, sources: Sequence[str], label: str) -> Middleware:
    """Return a middleware that replaces one with these sources, if it has them all.

    Raises:
        StackError: for sources that would be dropped, naming them.
    """
    known = middleware.sources if isinstance(middleware, MemoryMiddleware) else []
    if missing := [source for source in sources if source not in known]:
        raise StackError(
            f"{label} has memory and a MemoryMiddleware of its own, which would drop {missing!r}; give all "
            "sources to one of them"
        )
    return middleware


def _check_sources(sources: Sequence[str]) -> None:
    if isinstance(sources, str) or not all(isinstance(cast(object, each), str) and each for each in sources):
        raise ConfigError(f"memory sources must be a list of paths, such as ['/AGENTS.md']; got {sources!r}")
    for source in sources:
        if source.startswith("~"):
            raise ConfigError(
                f"memory source {source!r} names a home directory, which a backend does not know; give the "
                "path as the backend sees it, such as '/AGENTS.md' below a FilesystemBackend's root_dir"
            )
