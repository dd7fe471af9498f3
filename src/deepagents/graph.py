"""Create a deep agent: plan, prompt, stack, compile."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, Final, cast

from langchain.agents import create_agent  # pyright: ignore[reportUnknownVariableType]
from langchain.agents.middleware.types import ContextT
from langchain.agents.structured_output import ResponseFormat
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import SystemMessage
from langchain_core.tools import BaseTool
from langgraph.cache.base import BaseCache
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore
from langgraph.types import Checkpointer

# These load on first use: type hints find them when somebody resolves these, and nothing else does.
from deepagents import mcp as _mcp
from deepagents import undo as _undo
from deepagents._agent.arguments import (
    check_fallbacks,
    check_file_history,
    check_retries,
    explain_unknown_arguments,
    open_mcp,
)
from deepagents._agent.build import Build
from deepagents._agent.compiled import AgentGraph, trace_version
from deepagents._agent.plan import AgentPlan
from deepagents._agent.prompt import assemble_prompt
from deepagents._agent.stack import SLOT_NAMES, assemble
from deepagents._agent.validation import validate
from deepagents._deprecation import legacy, warn_legacy
from deepagents._models import default_model, resolve_model
from deepagents._state.schema import DeepAgentState
from deepagents.backends.protocol import BACKEND_TYPES
from deepagents.backends.state import StateBackend
from deepagents.backends.store import check_store
from deepagents.limits import Limits
from deepagents.middleware import tool_search as _tool_search
from deepagents.middleware._base import Middleware
from deepagents.middleware.approval import InterruptOn
from deepagents.middleware.async_subagents import AsyncSubAgent
from deepagents.middleware.subagents import CompiledSubAgent, SubAgent
from deepagents.permissions import FilesystemPermission
from deepagents.profiles.harness.harness_profiles import profile_for

__all__ = [
    "Checkpointer",
    "DeepAgentState",
    "create_deep_agent",
    "get_default_model",
]

# LangGraph counts steps of any kind; long work is to end at `limits=`, not at that count.
_RECURSION_LIMIT: Final = 9_999


@explain_unknown_arguments
def create_deep_agent(
    model: str | BaseChatModel | None = None,
    tools: Sequence[BaseTool | Callable[..., Any] | dict[str, Any]] | None = None,
    *,
    system_prompt: str | SystemMessage | None = None,
    middleware: Sequence[Middleware] = (),
    subagents: Sequence[SubAgent | CompiledSubAgent | AsyncSubAgent] | None = None,
    skills: Sequence[str | tuple[str, str]] | None = None,
    memory: list[str] | None = None,
    permissions: Sequence[FilesystemPermission] | None = None,
    backend: BACKEND_TYPES | None = None,
    interrupt_on: InterruptOn | None = None,
    response_format: ResponseFormat[Any] | type[Any] | dict[str, Any] | None = None,
    state_schema: type[Any] | None = None,
    context_schema: type[ContextT] | None = None,
    checkpointer: BaseCheckpointSaver[Any] | bool | None = None,
    store: BaseStore | None = None,
    debug: bool = False,
    name: str | None = None,
    cache: BaseCache[Any] | None = None,
    limits: Limits | None = None,
    model_retries: int | None = None,
    fallback_models: Sequence[str | BaseChatModel] = (),
    mcp: _mcp.MCPServers | str | PathLike[str] | Mapping[str, Any] | None = None,
    tool_search: _tool_search.ToolSearch = "auto",
    file_history: _undo.FileHistory | None = None,
) -> CompiledStateGraph[Any, ContextT, Any, Any]:
    """Create an agent that plans, works on files and delegates, as an ordinary compiled LangGraph graph.

    It has `write_todos` and `read_todos`; `ls`, `read_file`, `write_file`, `edit_file`, `delete`, `glob`
    and `grep` on its backend; `execute` where the backend can run commands; and `task` to hand work to
    subagents. A tool that fails gives the model an error result and never ends the run. Pages below `docs/`
    come with the source of the library.

    Args:
        model: a chat model, `"provider:name"`, or `None` for the default (see `docs/concepts/models.md`).
        tools: further tools: LangChain tools, functions with a docstring, or provider dicts.
        system_prompt: comes before the built-in prompt.
        middleware: replaces the built-in middleware of the same name; any other lands before the
            model-side ones.
        subagents: `SubAgent` dicts and `CompiledSubAgent`s, which `task` offers with `general-purpose`;
            and `AsyncSubAgent`s, which work in the background on a server (see
            `docs/concepts/async-subagents.md`).
        skills: directories of the backend, each with one directory for each skill; a later one wins. A pair
            gives a directory and its label. The general-purpose agent has them too (see
            `docs/concepts/skills.md`).
        memory: paths of files that the system prompt shows in every run (see `docs/concepts/memory.md`).
        permissions: rules about paths, for the file tools of this agent and of its subagents that have none
            of their own (see `docs/concepts/permissions.md`).
        backend: where files live; default `StateBackend()`, which keeps them in the graph's state.
        interrupt_on: tool name to `True`, `False` or an `ApprovalConfig`: calls that wait for a person (see
            `docs/concepts/human-approval.md`).
            Subagents made from specs inherit it unless they have their own. Needs a checkpointer to resume.
        response_format: structured output of the main agent.
        state_schema: base state of the main agent and its declared subagents; default `DeepAgentState`.
        context_schema: type of the run's context.
        checkpointer: keeps threads, so that they can be resumed.
        store: LangGraph store offered to tools and backends.
        debug: LangGraph's debug output.
        name: the agent's name in traces and streams.
        cache: LangGraph node cache.
        limits: what the agent and all its descendants may use together (see `docs/concepts/limits.md`).
        model_retries: how often a call of a model is made again when its failure may pass; subagents too
            (see `docs/concepts/models.md`). Default: `DEEPAGENTS_MODEL_RETRIES`, else 0.
        fallback_models: which models are asked, in order, when a call has failed for good; subagents too.
        mcp: servers of the Model Context Protocol, whose tools the agent has: the path of a `.mcp.json`, a
            mapping as it stands in one, or an `MCPServers` (see `docs/concepts/mcp.md`). Subagents have them
            too, unless they have `tools` or `mcp` of their own.
        tool_search: when tools are held back until the model searches for them: `"auto"`, once they cost more
            than a tenth of its window; a number of tokens; `True` always, `False` never; `"provider"` by the
            search of the model's provider. Subagents too (see `docs/concepts/tool-search.md`).
        file_history: keeps what tools and commands change on disk, so that it can be taken back; subagents
            too (see `docs/concepts/undo.md`).

    Raises:
        ConfigError: for what cannot be built; the message names the value.
    """
    chosen = _resolve_or_default(model)
    plan = AgentPlan(
        role="main",
        model=chosen,
        profile=profile_for(chosen, model if isinstance(model, str) else None),
        tools=tools or (),
        system_prompt=system_prompt,
        middleware=middleware,
        subagents=subagents or (),
        skills=skills or (),
        memory=memory or (),
        permissions=permissions or (),
        backend=StateBackend() if backend is None else backend,
        interrupt_on=interrupt_on,
        response_format=response_format,
        state_schema=state_schema or DeepAgentState,
        name=name,
        limits=limits,
        model_retries=check_retries(model_retries),
        fallback_models=[resolve_model(each) for each in check_fallbacks(fallback_models)],
        mcp=open_mcp(mcp),
        tool_search=tool_search,
        file_history=check_file_history(file_history),
    )
    build = Build(plan, _compile, SLOT_NAMES)
    validate(build)
    return _compile(
        build,
        context_schema=context_schema,
        checkpointer=checkpointer,
        store=check_store(store),
        debug=debug,
        cache=cache,
    )


def get_default_model() -> BaseChatModel:
    """Make the model that `create_deep_agent` takes when none is given. Deprecated: make one yourself."""
    warn_legacy("Relying on the default model is deprecated: make a chat model of your own, by its name.")
    return default_model()


def _compile(build: Build, **passed_on: Any) -> AgentGraph:
    plan = build.plan
    graph: Any = create_agent(
        plan.model,
        tools=build.tools or None,
        system_prompt=assemble_prompt(plan) or None,
        middleware=assemble(build),
        response_format=plan.response_format,
        state_schema=cast(Any, plan.state_schema),
        name=plan.name,
        **passed_on,
    )
    metadata: dict[str, Any] = {
        "ls_integration": "deepagents",
        "lc_versions": {"deepagents": trace_version()},
    }
    if plan.name is not None:
        metadata["lc_agent_name"] = plan.name
    graph = graph.with_config({"recursion_limit": _RECURSION_LIMIT, "metadata": metadata})
    history = plan.file_history if plan.role == "main" else None
    agent = AgentGraph.of(graph, history)
    if history is not None:
        history.attach(agent, build.files)
    return agent


def _resolve_or_default(model: str | BaseChatModel | None) -> BaseChatModel:
    if model is None:
        warn_legacy("create_deep_agent(model=None) is deprecated: pass a model, as BaseChatModel | str.")
        return default_model()
    return resolve_model(model)


__getattr__ = legacy(__name__)
