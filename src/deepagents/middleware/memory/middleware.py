"""MemoryMiddleware: reads memory files when a run starts and when they change, and shows them."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Optional, cast

from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig

from deepagents._state.runtime import has_channel, in_graph, write_channel, writes_undone_on_failure
from deepagents.backends._legacy import warn_form
from deepagents.backends._patience import Patience
from deepagents.backends.calls import Files
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
from deepagents.middleware.approval import executed_call
from deepagents.middleware.memory.prompt import MEMORY_SYSTEM_PROMPT, check_template, fences_of, section
from deepagents.middleware.memory.reading import Read, read_sources, sources_below
from deepagents.middleware.memory.state import CHANGED, CONTENTS, PROBLEMS, MemoryState, changes, merged
from deepagents.middleware.prompt_caching.markers import is_chat_anthropic, with_own_mark

_DELEGATING: Final = "task"
_SECONDS: Final = 60.0
_log = logging.getLogger(__name__)


class MemoryMiddleware(BaseMiddleware):
    """Show memory files to the model, as data between fences.

    They are read when a run starts, and again after `write_file`, `edit_file` or `delete` changed one, or a
    subagent has worked. What is not UTF-8 or cannot be read is left out, and the model is told so.

    Args:
        backend: where the files live.
        sources: their paths, as the backend knows them, in the order in which they are shown.
        add_cache_control: mark what stands before this part for Anthropic's prompt cache.
        system_prompt: replaces our words; `{agent_memory}` in it becomes the contents. `None` shows nothing:
            the contents are kept in state alone.

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
    ) -> None:
        super().__init__()
        _check_sources(sources)
        check_template(system_prompt)
        warn_form(backend)
        self.sources = list(sources)
        self.system_prompt = system_prompt
        self._backend = backend
        self._add_cache_control = add_cache_control
        self._fences = None if system_prompt is None else fences_of(system_prompt)
        self._patience = Patience(_SECONDS)

    async def _before_agent(
        self,
        state: Mapping[str, Any],
        runtime: Any,
        config: Optional[RunnableConfig] = None,  # noqa: UP045 - LangGraph knows this spelling alone
    ) -> dict[str, Any] | None:
        """Read all sources at once; what state already says is not written again."""
        if not self.sources:
            return None
        read = await read_sources(self._files(runtime), self.sources)
        update = self._update(state, self.sources, read)
        if PROBLEMS in update:
            _log.warning("memory files could not be read: %s", read.problems)
        if state.get(CONTENTS) is None:
            update = dict[str, Any]({CONTENTS: {}}) | update
        return update | ({CHANGED: False} if state.get(CHANGED) else {}) or None

    async def _around_model(self, request: Request, handler: Callable[[Request], Response]) -> Response:
        with writes_undone_on_failure():
            state = cast("Mapping[str, Any]", request.state)
            if state.get(CHANGED) and self.sources and in_graph():
                state = await self._refreshed(state, request.runtime)
            if self._add_cache_control and is_chat_anthropic(request.model):
                # Before memory, not behind it: another memory then leaves what stands before it in the cache.
                request = with_own_mark(request)
            if self.sources and self._fences is not None:
                request = add_section(request, self._section(self._fences, state))
            return await inner(handler, request)

    async def _around_tool(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolResult]
    ) -> ToolResult:
        result = await inner(handler, request)
        failed = isinstance(result, ToolMessage) and result.status == "error"
        if failed or not self.sources or not in_graph():
            return result
        call = executed_call(request)
        if call["name"] == _DELEGATING and has_channel(CHANGED):
            write_channel(CHANGED, True)
        spec = specs_of_call(request).get(call["name"])
        path = spec.path_in(call["args"]) if spec and spec.changes_files else None
        if path is not None and has_channel(CONTENTS):
            files = self._files(cast(Any, request).runtime)
            touched = await sources_below(files, self.sources, path)
            if touched:
                read = await read_sources(files, touched)
                self._write(self._update(cast("Mapping[str, Any]", request.state), touched, read))
        return result

    def _section(self, fences: re.Pattern[str], state: Mapping[str, Any]) -> str:
        contents: Mapping[str, str] = state.get(CONTENTS) or {}
        problems: Mapping[str, str] = state.get(PROBLEMS) or {}
        return section(cast(str, self.system_prompt), self.sources, contents, problems, fences)

    def _files(self, runtime: Any) -> Files:
        return Files.of(self._backend, runtime, self._patience)

    def _update(self, state: Mapping[str, Any], sources: Sequence[str], read: Read) -> dict[str, Any]:
        """Return what became of these sources; those of another middleware are not touched."""
        update: dict[str, Any] = {}
        for key, now in ((CONTENTS, read.contents), (PROBLEMS, read.problems)):
            known: Mapping[str, str] = state.get(key) or {}
            if changed := changes({each: known[each] for each in sources if each in known}, now):
                update[key] = changed
        return update

    def _write(self, update: Mapping[str, Any]) -> None:
        """Write at once; each of parallel tools writes its own."""
        for key, changed in update.items():
            write_channel(key, changed)

    async def _refreshed(self, state: Mapping[str, Any], runtime: Any) -> Mapping[str, Any]:
        """Read all sources again, and return the state as it is then."""
        update = self._update(state, self.sources, await read_sources(self._files(runtime), self.sources))
        self._write({**update, CHANGED: False})
        return {**state, **{key: merged(state.get(key), [change]) for key, change in update.items()}}


def remembering(middleware: Middleware, sources: Sequence[str], who: str) -> Middleware:
    """Return a middleware that takes the place of one with these sources, and shows them all.

    Raises:
        StackError: for sources that would be dropped, naming them.
    """
    known = middleware.sources if isinstance(middleware, MemoryMiddleware) else []
    if missing := [source for source in sources if source not in known]:
        raise StackError(
            f"{who} has memory and a MemoryMiddleware of its own, which would drop {missing!r}; give all "
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
