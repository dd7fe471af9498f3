"""List skills to the model, pin them, and offer the tools of skills that are opened."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Optional, cast
from uuid import uuid4

from langchain.agents.middleware.types import AgentMiddleware, ToolCallRequest
from langchain_core.messages import AnyMessage, ToolMessage
from langchain_core.runnables import RunnableConfig

from deepagents._state.runtime import in_graph, read_channel, write_channel, writes_undone_on_failure
from deepagents.backends.foreign.forms import warn_form
from deepagents.backends.handle import BACKEND_SECONDS, open_backend
from deepagents.backends.protocol import BACKEND_TYPES
from deepagents.backends.state import StateBackend
from deepagents.middleware._base import BaseMiddleware, inner
from deepagents.middleware._history import tells_of_tasks
from deepagents.middleware._requests import (
    Request,
    Response,
    ToolResult,
    add_section,
    check_template,
    keeping,
    shows_delegated_work,
    specs_of_call,
    with_changes,
)
from deepagents.middleware.approval import find_executed_call
from deepagents.middleware.skills import prompt
from deepagents.middleware.skills.load import (
    SkillSource,
    digest,
    load_skills,
    parse_sources,
)
from deepagents.middleware.skills.state import (
    Loaded,
    SkillMetadata,
    SkillsState,
    find_disclosed_tools,
    find_known_skills,
)
from deepagents.middleware.skills.tools import (
    SkillTools,
    SkillToolSource,
    disclose_tools,
    find_included_names,
    find_opened_paths,
    find_tool,
    skill_paths,
)


class SkillsMiddleware(BaseMiddleware):
    """Show an agent which skills there are, so that it reads their SKILL.md when it needs them.

    Args:
        backend: where the skills are; give the one of the agent's file tools, so that `read_file` finds them.
        sources: directories, each of which holds one directory for each skill; a later one wins where two
            have skills of one name. A pair gives a directory and its label.
        system_prompt: replaces our part of the system prompt, with `{skills_locations}`,
            `{skills_load_warnings}` and `{skills_list}` in it; `None` or `""` leaves it out.
        tools: what skills include by `metadata.include_tools`, offered once such a skill is opened: a list,
            or a function of such a name and the runtime that returns tools, or an awaitable of them.
        backend_timeout: seconds that the backend may take for one operation; `None` waits for ever.

    Raises:
        TypeError: for a source, prompt or tools of a wrong type.
        ValueError: for a prompt that lacks a field, a source below `~`, or two tools of one name.
    """

    state_schema: type[Any] = SkillsState

    def __init_subclass__(cls, **options: Any) -> None:
        """Add to a subclass with only `abefore_model` a blocking twin that does nothing."""
        super().__init_subclass__(**options)
        # LangChain refuses to run such a class blocking; ours does the same work in wrap_model_call.
        if "abefore_model" in cls.__dict__ and cls.before_model is AgentMiddleware.before_model:
            cls.before_model = _do_nothing

    def __init__(
        self,
        *,
        backend: BACKEND_TYPES | None,
        sources: Sequence[SkillSource],
        system_prompt: str | None = prompt.SKILLS_SYSTEM_PROMPT,
        tools: SkillTools | None = None,
        backend_timeout: float | None = BACKEND_SECONDS,
    ) -> None:
        super().__init__()
        self._backend: BACKEND_TYPES = StateBackend() if backend is None else backend
        warn_form(self._backend)
        self._sources = parse_sources(sources)
        self._tool_source = SkillToolSource(tools)
        self._handle = open_backend(self._backend, backend_timeout)
        self.system_prompt_template = check_template(system_prompt, prompt.FIELDS)

    @property
    def sources(self) -> list[str]:
        """The directories; the last one wins."""
        return [each.path for each in self._sources]

    @property
    def source_labels(self) -> list[str]:
        """The labels of the sources, in their order."""
        return [each.label for each in self._sources]

    def modify_request(self, request: Request) -> Request:
        """Return the request with the skills of its state in the system prompt."""
        if not self.system_prompt_template or not self._sources:
            return request
        state = cast("Mapping[str, Any]", request.state)
        texts = (
            prompt.format_locations(self._sources),
            prompt.format_warnings(state.get("skills_load_errors") or ()),
            self._format_skills_list(list(find_known_skills(state))),
        )
        text = prompt.fill_template(self.system_prompt_template, texts)
        return add_section(request, text)

    def _format_skills_list(self, skills: list[SkillMetadata]) -> str:
        """List the skills for the prompt; a subclass may do it in its own way."""
        return prompt.format_skills(skills, self._sources)

    async def _before_agent(
        self,
        state: Mapping[str, Any],
        runtime: Any,
        config: Optional[RunnableConfig] = None,  # noqa: UP045 - LangGraph knows this spelling alone
    ) -> Any:
        update = await self._load(state, runtime)
        update |= await self._pin({**state, **update}, runtime)
        is_first = state.get("_skills_opened") is None
        messages: list[AnyMessage] = [*state.get("messages", ()), *update.get("messages", ())]
        update |= self._note_opened({**state, **update}, find_opened_paths(messages, with_reads=is_first))
        # An empty list says that the messages from before were looked through.
        if is_first and self._sources and in_graph():
            update.setdefault("_skills_opened", [])
        return update or None

    async def _load(self, state: Mapping[str, Any], runtime: Any) -> dict[str, Any]:
        """Load skills that are not loaded yet, or again where a source changed."""
        current, known = state.get("skills_metadata"), cast("Loaded | None", state.get("_skills_loaded"))
        update: dict[str, Any] = {"_skills_changed": False} if state.get("_skills_changed") else {}
        # A list whose digest is not the one noted was written by the caller, and stays.
        is_given = current is not None and (known is None or known["skills"] != digest(current))
        if is_given or not self._sources:
            return update
        must_read = current is None or bool(update)
        found = await load_skills(self._handle.files(runtime), self._sources, None if must_read else known)
        return update | (found or {})

    async def _pin(self, state: Mapping[str, Any], runtime: Any) -> dict[str, Any]:
        """Show the skills that wait to be pinned, as messages."""
        names = state.get("pinned_skills")
        if not names:
            return {}
        messages = await prompt.pin_skills(self._handle.files(runtime), names, find_known_skills(state))
        return {"pinned_skills": None, **({"messages": messages} if messages else {})}

    def _note_opened(self, state: Mapping[str, Any], paths: Sequence[str]) -> dict[str, Any]:
        """Note those paths that are skills."""
        known: list[str] = state.get("_skills_opened") or []
        of_skills = skill_paths(find_known_skills(state)) if paths else frozenset[str]()
        new = [path for path in paths if path in of_skills and path not in known]
        return {"_skills_opened": [*known, *new]} if new else {}

    async def _around_model(self, request: Request, handler: Callable[[Request], Response]) -> Response:
        with writes_undone_on_failure():
            request, update = await self._prepare(request)
            # Inside a graph the update is written now: an agent that stops in this step still has it.
            if in_graph():
                for key in [each for each in update if update[each] != read_channel(each)]:
                    write_channel(key, update[key])
                update = {}
            response = await inner(handler, self.modify_request(request))
        return keeping(response, update.pop("messages", ()), update)

    async def _prepare(self, request: Request) -> tuple[Request, dict[str, Any]]:
        """Return the request with what changed since the last one, and the state to keep of that."""
        state = cast("Mapping[str, Any]", request.state)
        has_changed = state.get("_skills_changed") or tells_of_tasks(state.get("messages", ()))
        noted = {**state, "_skills_changed": True}
        update = await self._load(noted, request.runtime) if has_changed else {}
        update |= await self._pin({**state, **update}, request.runtime)
        added: Sequence[AnyMessage] = update.get("messages", ())
        update |= self._note_opened({**state, **update}, find_opened_paths(added))
        state = {**state, **update, "messages": [*state.get("messages", ()), *added]}
        if update:
            request = with_changes(request, state=state, messages=[*request.messages, *added])
        request, disclosed = await self._add_tools(request, state)
        return request, update | disclosed

    async def _add_tools(self, request: Request, state: Mapping[str, Any]) -> tuple[Request, dict[str, Any]]:
        included = find_included_names(find_known_skills(state))
        names = [name for path in state.get("_skills_opened") or () for name in included.get(path, ())]
        before = find_disclosed_tools(state)
        if not names and not before:
            return request, {}
        still_included = {name for names in included.values() for name in names}
        record = {tool: include for tool, include in before.items() if include in still_included}
        update: dict[str, Any] = {}
        run: str | None = state.get("_skill_tools_run")
        if self._tool_source.has_resolver and run is None and in_graph():
            run = update["_skill_tools_run"] = str(uuid4())
        tools, record = await disclose_tools(
            self._tool_source, request.tools, names, record, request.runtime, run
        )
        if record != before:
            update["_skill_tools_disclosed"] = record
        return request.override(tools=tools), update

    async def _around_tool(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolResult]
    ) -> ToolResult:
        # The tool node knows only the tools that the agent was compiled with.
        is_unknown = request.tool is None
        if is_unknown:
            request = await self._insert_tool(request)
        result = await inner(handler, request)
        if in_graph() and not _is_error(result):
            self._note_call(request)
        return _add_error_code(result) if is_unknown and request.tool is not None else result

    async def _insert_tool(self, request: ToolCallRequest) -> ToolCallRequest:
        """Insert the tool that a skill disclosed; other tools stay unknown."""
        state = cast("Mapping[str, Any]", request.state)
        name = request.tool_call["name"]
        include = find_disclosed_tools(state).get(name)
        if include is None:
            return request
        runtime = cast(Any, request).runtime
        found = await self._tool_source.find([include], runtime, state.get("_skill_tools_run"))
        tool = find_tool(found.get(include, ()), name)
        return request if tool is None else request.override(tool=tool)

    def _note_call(self, request: ToolCallRequest) -> None:
        """Note that a call opened a skill, or may have changed the list."""
        call, specs = find_executed_call(request), specs_of_call(request)
        spec = specs.get(call["name"])
        paths = spec.paths_in(call["args"]) if spec else []
        if spec and spec.effect == "read":
            state = cast("Mapping[str, Any]", request.state)
            if paths and (update := self._note_opened(state, paths)):
                write_channel("_skills_opened", update["_skills_opened"])
            return
        changed = paths if spec and spec.changes_files else ()
        was_changed = any(each.overlaps(path) for each in self._sources for path in changed)
        if was_changed or shows_delegated_work(call, specs):
            write_channel("_skills_changed", True)


def _do_nothing(self: Any, state: Any, runtime: Any) -> None:
    """Stand in for a hook."""


def _is_error(result: ToolResult) -> bool:
    update: Any = {"messages": [result]} if isinstance(result, ToolMessage) else result.update
    messages: Any = cast("dict[str, Any]", update).get("messages", ()) if isinstance(update, dict) else ()
    return any(isinstance(each, ToolMessage) and each.status == "error" for each in messages)


def _add_error_code(result: ToolResult) -> ToolResult:
    """Add its code to the failure of a disclosed tool: layers outside take the tool for unknown."""
    if not isinstance(result, ToolMessage) or result.status != "error":
        return result
    marks = {"error_code": "tool_failed", **result.additional_kwargs}
    return result.model_copy(update={"additional_kwargs": marks})
