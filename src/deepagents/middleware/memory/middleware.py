"""MemoryMiddleware: reads memory files when a run starts and when they change, and shows them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import ToolMessage

from deepagents._channels import has_channel, in_graph, write_channel
from deepagents._flow import Flow
from deepagents.backends._legacy import warn_form
from deepagents.backends._patience import Patience
from deepagents.backends.calls import Files
from deepagents.backends.protocol import BACKEND_TYPES
from deepagents.errors import ConfigError, StackError
from deepagents.middleware._base import (
    FlowMiddleware,
    Middleware,
    Request,
    Response,
    ToolResult,
    add_section,
    inner,
)
from deepagents.middleware._cache_marks import is_chat_anthropic, with_own_mark
from deepagents.middleware.memory.prompt import MEMORY_SYSTEM_PROMPT, check_template, section
from deepagents.middleware.memory.reading import read_sources, sources_below
from deepagents.middleware.memory.state import CONTENTS, PROBLEMS, MemoryState, changes

_CHANGING: Final = frozenset({"write_file", "edit_file", "delete"})
_SECONDS: Final = 60.0
_log = logging.getLogger(__name__)


class MemoryMiddleware(FlowMiddleware):
    """Show memory files to the model, as data between fences.

    They are read when a run starts, and again after `write_file`, `edit_file` or `delete` changed one. What
    is not UTF-8 or cannot be read is left out, and the model is told so.

    Args:
        backend: where the files live.
        sources: their paths, as the backend knows them, in the order in which they are shown.
        add_cache_control: mark the end of this part for Anthropic's prompt cache.
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
        self._patience = Patience(_SECONDS)

    def _before_agent(
        self, state: Mapping[str, Any], runtime: Any, _: object = None
    ) -> Flow[dict[str, Any] | None]:
        """Read all sources at once; what state already says is not written again."""
        if not self.sources:
            return None
        read = yield from read_sources(self._files(runtime), self.sources)
        known: Mapping[str, str] | None = state.get(CONTENTS)
        said: Mapping[str, str] = state.get(PROBLEMS) or {}
        update: dict[str, Any] = {}
        if (contents := changes(known or {}, read.contents)) or known is None:
            update[CONTENTS] = contents
        if problems := changes(said, read.problems):
            update[PROBLEMS] = problems
            _log.warning("memory files could not be read: %s", read.problems)
        return update or None

    def _around_model(self, request: Request, handler: Callable[[Request], Response]) -> Flow[Response]:
        state = cast("Mapping[str, Any]", request.state)
        if self.sources and self.system_prompt is not None:
            request = add_section(request, self._section(self.system_prompt, state))
        if self._add_cache_control and is_chat_anthropic(request.model):
            request = with_own_mark(request)
        return (yield from inner(handler, request))

    def _around_tool(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolResult]
    ) -> Flow[ToolResult]:
        result = yield from inner(handler, request)
        path = _changed_path(request, result)
        if path is not None and self.sources and in_graph() and has_channel(CONTENTS):
            files = self._files(cast(Any, request).runtime)
            touched = yield from sources_below(files, self.sources, path)
            if touched:
                yield from self._read_again(files, touched, cast("Mapping[str, Any]", request.state))
        return result

    def _section(self, template: str, state: Mapping[str, Any]) -> str:
        contents: Mapping[str, str] = state.get(CONTENTS) or {}
        problems: Mapping[str, str] = state.get(PROBLEMS) or {}
        return section(template, self.sources, contents, problems)

    def _files(self, runtime: Any) -> Files:
        return Files.of(self._backend, runtime, self._patience)

    def _read_again(self, files: Files, touched: Sequence[str], state: Mapping[str, Any]) -> Flow[None]:
        """Write what became of these sources at once; each of parallel tools writes its own."""
        read = yield from read_sources(files, touched)
        for key, now in ((CONTENTS, read.contents), (PROBLEMS, read.problems)):
            before: Mapping[str, str] = state.get(key) or {}
            if changed := changes({each: before[each] for each in touched if each in before}, now):
                write_channel(key, changed)


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


def _changed_path(request: ToolCallRequest, result: ToolResult) -> str | None:
    """Return the path of a call that changed a file."""
    call = request.tool_call
    path = call["args"].get("file_path") if call["name"] in _CHANGING else None
    failed = isinstance(result, ToolMessage) and result.status == "error"
    return path if isinstance(path, str) and not failed else None
