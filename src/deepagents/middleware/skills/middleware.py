"""SkillsMiddleware: lists skills to the model, pins them, and shows the tools of those that are opened."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Optional, cast
from uuid import uuid4

from langchain.agents.middleware.types import AgentMiddleware, ToolCallRequest
from langchain_core.messages import AnyMessage, ToolMessage
from langchain_core.runnables import RunnableConfig

from deepagents._state.runtime import in_graph, read_channel, write_channel, writes_undone_on_failure
from deepagents.backends._legacy import warn_form
from deepagents.backends._patience import Patience
from deepagents.backends.calls import Files
from deepagents.backends.protocol import BACKEND_TYPES
from deepagents.backends.state import StateBackend
from deepagents.errors import StackError
from deepagents.middleware._base import (
    BaseMiddleware,
    Middleware,
    Request,
    Response,
    ToolResult,
    add_section,
    inner,
    keeping,
    specs_of_call,
)
from deepagents.middleware.approval import executed_call
from deepagents.middleware.skills import prompt
from deepagents.middleware.skills.disclosure import named, offer, opened, paths_of, with_tools
from deepagents.middleware.skills.kept import changes
from deepagents.middleware.skills.load import digest_of, load
from deepagents.middleware.skills.pinning import pinned
from deepagents.middleware.skills.resolving import SkillTools, ToolShelf
from deepagents.middleware.skills.sources import SkillSource, source_path, sources_of
from deepagents.middleware.skills.state import (
    Loaded,
    SkillMetadata,
    SkillsState,
    disclosed,
    listed,
)
from deepagents.tools import ToolSpec

_DELEGATING: Final = "task"
_SECONDS: Final = 60.0


class SkillsMiddleware(BaseMiddleware):
    """Tell an agent which skills there are, so that it reads their SKILL.md when it needs them.

    Args:
        backend: where the skills are; give the one of the agent's file tools, so that `read_file` finds them.
        sources: directories, each of which holds one directory for each skill; a later one wins where two
            have skills of one name. A pair gives a directory and its label.
        system_prompt: replaces our part of the system prompt, with `{skills_locations}`,
            `{skills_load_warnings}` and `{skills_list}` in it; `None` or `""` leaves it out.
        tools: what skills include by `metadata.include_tools`, shown once such a skill is opened: a list, or
            a function of such a name and the runtime that returns tools, or an awaitable of them.

    Raises:
        TypeError: for a source, prompt or tools of a wrong type.
        ValueError: for a prompt without a place for what is listed, a source below `~`, or two tools of one
            name.
    """

    state_schema: type[Any] = SkillsState

    def __init_subclass__(cls, **options: Any) -> None:
        """Let a subclass that works before each awaited model call be run blocking too, without that work."""
        super().__init_subclass__(**options)
        if "abefore_model" in cls.__dict__ and cls.before_model is AgentMiddleware.before_model:
            cls.before_model = _no_change

    def __init__(
        self,
        *,
        backend: BACKEND_TYPES | None,
        sources: Sequence[SkillSource],
        system_prompt: str | None = prompt.SKILLS_SYSTEM_PROMPT,
        tools: SkillTools | None = None,
    ) -> None:
        super().__init__()
        self._backend: BACKEND_TYPES = StateBackend() if backend is None else backend
        warn_form(self._backend)
        self._sources = sources_of(sources)
        self._shelf = ToolShelf(tools)
        self._patience = Patience(_SECONDS)
        self.system_prompt_template = prompt.checked_template(system_prompt)

    @property
    def sources(self) -> list[str]:
        """The directories, the strongest last."""
        return [each.path for each in self._sources]

    @property
    def source_labels(self) -> list[str]:
        """What the prompt calls the sources, in their order."""
        return [each.label for each in self._sources]

    def modify_request(self, request: Request) -> Request:
        """Return the request with the skills of its state in the system prompt."""
        if not self.system_prompt_template or not self._sources:
            return request
        state = cast("Mapping[str, Any]", request.state)
        text = prompt.filled(
            self.system_prompt_template,
            prompt.format_locations(self._sources),
            prompt.format_warnings(state.get("skills_load_errors") or ()),
            self._format_skills_list(list(listed(state))),
        )
        return add_section(request, text)

    def _format_skills_list(self, skills: list[SkillMetadata]) -> str:
        """Say in the prompt which skills there are; a subclass may say it otherwise."""
        return prompt.format_skills(skills, self._sources)

    def _files(self, runtime: Any) -> Files:
        return Files.of(self._backend, runtime, self._patience)

    async def _before_agent(
        self,
        state: Mapping[str, Any],
        runtime: Any,
        config: Optional[RunnableConfig] = None,  # noqa: UP045 - LangGraph knows this spelling alone
    ) -> Any:
        update = await self._loaded(state, runtime)
        update |= await self._pinned({**state, **update}, runtime)
        begun = state.get("_skills_opened") is not None
        messages: list[AnyMessage] = [*state.get("messages", ()), *update.get("messages", ())]
        update |= self._opened({**state, **update}, opened(messages, with_readings=not begun))
        if not begun and self._sources and in_graph():
            update.setdefault("_skills_opened", [])
        return update or None

    async def _loaded(self, state: Mapping[str, Any], runtime: Any) -> dict[str, Any]:
        """Load skills that are not loaded yet, or anew where a source changed; nothing else is touched."""
        standing, known = state.get("skills_metadata"), cast("Loaded | None", state.get("_skills_loaded"))
        changed = {"_skills_changed": False} if state.get("_skills_changed") else {}
        given = standing is not None and (known is None or known["skills"] != digest_of(standing))
        if given or not self._sources:
            return changed
        fresh = standing is None or bool(changed)
        found = await load(self._files(runtime), self._sources, None if fresh else known)
        if found is None:
            return changed
        return {
            "skills_metadata": found.skills,
            "skills_load_errors": found.problems,
            "_skills_loaded": found.loaded,
            **changed,
        }

    async def _pinned(self, state: Mapping[str, Any], runtime: Any) -> dict[str, Any]:
        names = state.get("pinned_skills")
        if not names:
            return {}
        messages = await pinned(self._files(runtime), names, listed(state))
        return {"pinned_skills": None, **({"messages": messages} if messages else {})}

    def _opened(self, state: Mapping[str, Any], paths: Sequence[str]) -> dict[str, Any]:
        """Note the skills that stand at these paths."""
        known: list[str] = state.get("_skills_opened") or []
        there = paths_of(listed(state)) if paths else frozenset[str]()
        new = [path for path in paths if path in there and path not in known]
        return {"_skills_opened": [*known, *new]} if new else {}

    async def _around_model(self, request: Request, handler: Callable[[Request], Response]) -> Response:
        with writes_undone_on_failure():
            request, update = await self._prepared(request)
            if in_graph():
                _write(update)
                update = {}
            response = await inner(handler, self.modify_request(request))
        return keeping(response, update.pop("messages", ()), update)

    async def _prepared(self, request: Request) -> tuple[Request, dict[str, Any]]:
        """Return the request with what happened since the last one, and what state is to keep of that."""
        state = cast("Mapping[str, Any]", request.state)
        update: dict[str, Any] = {}
        if state.get("_skills_changed"):
            update = await self._loaded(state, request.runtime)
        update |= await self._pinned({**state, **update}, request.runtime)
        added = update.get("messages", ())
        messages = [*request.messages, *added]
        update |= self._opened({**state, **update}, opened(added))
        kept = {**state, **update, "messages": [*state.get("messages", ()), *added]}
        if update:
            request = request.override(state=cast(Any, kept), messages=messages)
        request, shown = await self._with_tools(request, kept)
        return request, update | shown

    async def _with_tools(self, request: Request, state: Mapping[str, Any]) -> tuple[Request, dict[str, Any]]:
        paths = with_tools(listed(state))
        names = [name for path in state.get("_skills_opened") or () for name in paths.get(path, ())]
        before = disclosed(state)
        included = {name for names in paths.values() for name in names}
        record = {tool: include for tool, include in before.items() if include in included}
        if not names and not before:
            return request, {}
        run: str | None = state.get("_skill_tools_run")
        starts = self._shelf.needs_runs and run is None and in_graph()
        run = str(uuid4()) if starts else run
        found = await offer(self._shelf, request.tools, names, record, (request.runtime, run))
        update: dict[str, Any] = {"_skill_tools_run": run} if starts else {}
        if found.record != before:
            update["_skill_tools_disclosed"] = dict(found.record)
        return request.override(tools=list(found.tools)), update

    async def _around_tool(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolResult]
    ) -> ToolResult:
        unknown = request.tool is None
        if unknown:
            request = await self._admitted(request)
        result = await inner(handler, request)
        if in_graph() and not _failed(result):
            call = executed_call(request)
            self._note(
                call, specs_of_call(request).get(call["name"]), cast("Mapping[str, Any]", request.state)
            )
        return _coded(result) if unknown and request.tool is not None else result

    async def _admitted(self, request: ToolCallRequest) -> ToolCallRequest:
        """Put in the tool that a skill disclosed; what none disclosed stays unknown."""
        state = cast("Mapping[str, Any]", request.state)
        name = request.tool_call["name"]
        include = disclosed(state).get(name)
        if include is None:
            return request
        runtime = cast(Any, request).runtime
        found = await self._shelf.find([include], runtime, state.get("_skill_tools_run"))
        tool = named(found.get(include, ()), name)
        return request if tool is None else request.override(tool=tool)

    def _note(self, call: Mapping[str, Any], spec: ToolSpec | None, state: Mapping[str, Any]) -> None:
        """Note what a call that ran means for skills: one was opened, or the list may have changed."""
        concerned = spec is not None and (spec.changes_files or spec.effect == "read")
        path = spec.path_in(call["args"]) if spec and concerned else None
        if spec and spec.effect == "read":
            if path is not None and (update := self._opened(state, [path])):
                write_channel("_skills_opened", update["_skills_opened"])
        elif call["name"] == _DELEGATING or (path and any(each.meets(path) for each in self._sources)):
            write_channel("_skills_changed", True)


def _no_change(self: Any, state: Any, runtime: Any) -> None:
    """Stand in the place of a hook."""


def _write(update: Mapping[str, Any]) -> None:
    """Write at once, of lists only what changes."""
    for key, value in update.items():
        known = read_channel(key)
        if key == "skills_metadata" and known is not None:
            write_channel(key, changes(known, value))
        elif key != "skills_load_errors" or value != known:
            write_channel(key, value)


def _failed(result: ToolResult) -> bool:
    update: Any = {"messages": [result]} if isinstance(result, ToolMessage) else result.update
    messages: Any = cast("dict[str, Any]", update).get("messages", ()) if isinstance(update, dict) else ()
    return any(isinstance(each, ToolMessage) and each.status == "error" for each in messages)


def knowing(middleware: Middleware, sources: Sequence[SkillSource], who: str) -> Middleware:
    """Return a middleware that takes the place of one with these sources, and knows them all.

    Raises:
        StackError: for sources that would be dropped, naming them.
    """
    known = middleware.sources if isinstance(middleware, SkillsMiddleware) else []
    if missing := [path for path in map(source_path, sources) if path not in known]:
        raise StackError(
            f"{who} has skills and a SkillsMiddleware of its own, which would drop {missing!r}; give all "
            "sources to one of them"
        )
    return middleware


def refuse_second(sources: Sequence[SkillSource], brought: Sequence[Middleware], who: str) -> None:
    """Keep an agent from having two skills middleware, which would write one list in turn.

    Raises:
        StackError: when it has, naming the sources of each.
    """
    own = {each.name: each.sources for each in brought if isinstance(each, SkillsMiddleware)}
    if sources and all(each.name != SkillsMiddleware.__name__ for each in brought):
        own[SkillsMiddleware.__name__] = list(map(source_path, sources))
    if len(own) > 1:
        raise StackError(
            f"{who} has two skills middleware, of {' and '.join(map(repr, own.values()))}, which would "
            "overwrite each other's list; give all sources to one of them"
        )


def _coded(result: ToolResult) -> ToolResult:
    """Give the failure of a disclosed tool its code: layers outside still take the tool for unknown."""
    if not isinstance(result, ToolMessage) or result.status != "error":
        return result
    marks = {"error_code": "tool_failed", **result.additional_kwargs}
    return result.model_copy(update={"additional_kwargs": marks})
