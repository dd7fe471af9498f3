"""Hold tools back until the model searches for them: their descriptions cost tokens in each request."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Annotated, Any, Final, Literal, NamedTuple, NotRequired, TypeAlias, cast

from langchain.agents import AgentState
from langchain.agents.middleware import ProviderToolSearchMiddleware
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.language_models import BaseChatModel
from langchain_core.tools import BaseTool
from langgraph.channels import UntrackedValue
from pydantic import BaseModel, Field

from deepagents._state.channels import GrowingChannel
from deepagents._state.runtime import has_channel, in_graph, read_channel
from deepagents._state.schema import FORKS_ONLY, NOT_SHARED, merge_unique
from deepagents._text import escape_controls
from deepagents.errors import ConfigError, ToolFailure
from deepagents.middleware._base import BaseMiddleware, inner
from deepagents.middleware._requests import Request, Response, keeping, with_changes
from deepagents.middleware.skills.state import disclosed_skill_tool_names
from deepagents.middleware.tool_search.catalog import Catalog, Held
from deepagents.models.traits import input_window
from deepagents.tools._tool import Runtime, ToolOutput, ToolSpec, make_tool

ToolSearch: TypeAlias = bool | int | Literal["auto", "provider"]
LOADED: Final = "_loaded_tools"
_SEEN: Final = "_seen_tools"
SEARCH_TOOLS: Final = "search_tools"
_SELECT: Final = "select:"
_DEFAULT_WINDOW: Final = 100_000
_PART_OF_WINDOW: Final = 10
_DEFAULT_LIMIT: Final = 5
_MOST: Final = 20
_MOST_OF_A_LINE: Final = 200
_NOTHING_HELD: Final = Held({})


class SeenTools(NamedTuple):
    """The tools of a request, and what their descriptions might cost; `None` where nothing is held back."""

    catalog: Catalog
    budget: int | None

    @property
    def held(self) -> Held:
        """What was held back."""
        return _NOTHING_HELD if self.budget is None else self.catalog.hold_back(self.budget)

    def __deepcopy__(self, memo: object) -> SeenTools:
        # LangChain's first version of events copies all state; tools hold locks, and these never change.
        return self


class ToolSearchState(AgentState[Any]):
    """State of an agent whose tools may be held back: the names of those that were loaded, in their order.

    The tools that the last request had are kept for each run: another one may have others.
    """

    _loaded_tools: NotRequired[
        Annotated[list[str], GrowingChannel(merge_unique), PrivateStateAttr, FORKS_ONLY]
    ]
    _seen_tools: NotRequired[
        Annotated[Any, UntrackedValue(object, guard=False), PrivateStateAttr, NOT_SHARED]
    ]


class SearchToolsSchema(BaseModel):
    """The arguments of `search_tools`."""

    query: str = Field(description="words for what you want to do, or select:NAME,NAME to load by name")
    limit: int = Field(default=_DEFAULT_LIMIT, description=f"most tools to load, up to {_MOST}")


class ToolSearchMiddleware(BaseMiddleware):
    """Hold back tools whose descriptions cost too much, and offer `search_tools`, which loads some of them.

    Tools of the library itself are always shown, and so are those that a provider runs. A tool whose
    `extras` hold `"defer_loading"` is held back if that is `True`, and never if it is `False`. A tool that is
    called by name works, loaded or not (see `docs/concepts/tool-search.md`).

    Args:
        tool_search: `"auto"` holds tools back when all together cost more than a tenth of the model's window;
            a number is what they may cost in tokens, and `True` means 0. `"provider"` uses the search of the
            model's provider where it has one. `False` shows all.

    Raises:
        ConfigError: for anything else.
    """

    state_schema: type[Any] = ToolSearchState

    def __init__(self, tool_search: ToolSearch = "auto") -> None:
        super().__init__()
        self.tool_search: ToolSearch = check_tool_search(tool_search)
        spec = ToolSpec(
            SEARCH_TOOLS,
            "Find and load tools.",
            SearchToolsSchema,
            self._search,
            offload_result=False,
            summary_arguments=("query",),
        )
        self.tools = [make_tool(spec, lambda runtime: runtime)]
        self._catalog = Catalog(())
        self._offered: tuple[Held, BaseTool] = (_NOTHING_HELD, self.tools[0])
        self._prepared: tuple[Held, BaseChatModel, Sequence[Any] | None] | None = None

    async def _around_model(self, request: Request, handler: Callable[[Request], Response]) -> Response:
        own = self.tools[0]
        given = [each for each in request.tools if each is not own]
        catalog = self._catalog
        if not catalog.is_of(given):
            # Read once: another thread may have put its own here before the next line.
            catalog = self._catalog = Catalog(given)
        # A profile may exclude ours, the caller may have a tool of this name, and a provider may search.
        is_offered = len(given) < len(request.tools) and SEARCH_TOOLS not in catalog.names
        searches = is_offered and self.tool_search is not False and not catalog.has_provider_search
        seen = SeenTools(catalog, self._budget(request.model) if searches else None)
        shown = self._choose_shown(request, catalog, seen.held) if searches else given
        response = await inner(handler, with_changes(request, tools=shown))
        known: SeenTools | None = cast("Mapping[str, Any]", request.state).get(_SEEN)
        is_known = known is not None and known.catalog is catalog and known.budget == seen.budget
        return response if is_known else keeping(response, [], {_SEEN: seen})

    def _budget(self, model: BaseChatModel) -> int:
        """Return how many tokens the descriptions of tools may cost."""
        given = self.tool_search
        if isinstance(given, str):
            return (input_window(model) or _DEFAULT_WINDOW) // _PART_OF_WINDOW
        return 0 if given is True else given

    def _choose_shown(self, request: Request, catalog: Catalog, held: Held) -> Sequence[Any]:
        """Return the tools of a request: what is not held back, the search, and what was loaded."""
        if not held.tools:
            return list(catalog.tools)
        if self.tool_search == "provider" and (prepared := self._for_provider(request, catalog, held)):
            return list(prepared)
        state = cast("Mapping[str, Any]", request.state)
        kept_out = held.tools.keys() - disclosed_skill_tool_names(state) - {_forced(request.tool_choice)}
        shown = [
            tool for tool, name in zip(catalog.tools, catalog.names, strict=True) if name not in kept_out
        ]
        loaded = [held.tools[name] for name in state.get(LOADED) or () if name in kept_out]
        return [*shown, self._offer(held), *loaded]

    def _offer(self, held: Held) -> BaseTool:
        """Return the search with words about what is held back, the same object while that is the same."""
        of, described = self._offered
        if of is not held:
            described = self.tools[0].model_copy(update={"description": held.description})
            self._offered = held, described
        return described

    def _for_provider(self, request: Request, catalog: Catalog, held: Held) -> Sequence[Any] | None:
        """Return the tools with the provider's own search; `None` where it has none."""
        known = self._prepared
        if known is None or known[0] is not held or known[1] is not request.model:
            marking = ProviderToolSearchMiddleware(searchable_tools=list(held.tools))
            made: list[Any] = []
            keep: Any = made.append
            try:
                marking.wrap_model_call(with_changes(request, tools=list(catalog.tools)), keep)
            except ValueError:
                # This is how it says that the provider has no search.
                made = []
            known = self._prepared = held, request.model, made[0].tools if made else None
        return known[2]

    async def _search(self, runtime: Runtime, query: str, limit: int = _DEFAULT_LIMIT) -> ToolOutput:
        """Load tools that fit a query, or whose names it gives."""
        seen = _find_seen()
        # A run that goes on, perhaps in another process, has made no request yet; others may add tools to it.
        held = seen.held if seen else Catalog(runtime.tools).hold_back(0)
        if seen and not held.tools:
            return ToolOutput("No tools are held back: all that there are can be called.")
        missing: list[str] = []
        if query.strip().startswith(_SELECT):
            listed = (each.strip() for each in query.strip()[len(_SELECT) :].split(","))
            names = [name for name in dict.fromkeys(listed) if name]
            found = [name for name in names if name in held.tools]
            missing = [_explain_missing(name, held) for name in names if name not in held.tools]
        else:
            found = held.find(query, min(max(limit, 1), _MOST))
        if not seen and (missing or not found):
            raise ToolFailure("not_run", "some tools are not known yet; search once more")
        if not found:
            raise ToolFailure("invalid_argument", " ".join(missing) or _explain_nothing(query, held))
        lines = [f"- {name}: {_shorten(held.tools[name].description)}" for name in found]
        text = "\n".join([*missing, "Loaded. From now on you can call:", *lines])
        return ToolOutput(text, update={LOADED: found})


def _find_seen() -> SeenTools | None:
    """Return the tools of the request that a call answers; `None` in a run that has made none."""
    return read_channel(_SEEN) if in_graph() else None


def has_seen_request() -> bool:
    """Return whether this run knows the tools of a request; one that goes on, perhaps elsewhere, does not."""
    return not (in_graph() and has_channel(_SEEN)) or read_channel(_SEEN) is not None


def find_tools(runtime: Runtime) -> Mapping[str, BaseTool]:
    """Return the tools of an agent by name: those that it was made with, and those that a request has had."""
    seen = _find_seen()
    return {
        each.name: each
        for each in (*runtime.tools, *(seen.catalog.tools if seen else ()))
        if isinstance(each, BaseTool)
    }


def check_tool_search(given: Any) -> ToolSearch:
    """Return how tools are held back.

    Raises:
        ConfigError: for anything but `"auto"`, `"provider"`, a bool, or a number of tokens.
    """
    if given in ("auto", "provider") or (isinstance(given, int) and given >= 0):
        return given
    raise ConfigError(
        f"tool_search must be 'auto', 'provider', True, False or a number of tokens, got {given!r}"
    )


def _forced(choice: Any) -> str | None:
    """Return the name of the tool that a request makes the model call; a provider must be sent it."""
    if not isinstance(choice, dict):
        return choice
    fields = cast("dict[str, Any]", choice)
    return fields.get("name") or cast("dict[str, Any]", fields.get("function") or {}).get("name")


def _explain_missing(name: str, held: Held) -> str:
    near = ", ".join(get_close_matches(name, held.tools, n=3))
    return f"No tool {name!r} is held back.{f' Nearest in name: {near}.' if near else ''}"


def _explain_nothing(query: str, held: Held) -> str:
    return (
        f"None of the {len(held.tools)} tools that are held back has a word of {query!r}; use other words, "
        "such as one for the thing and one for what is to be done with it"
    )


def _shorten(description: str) -> str:
    line = " ".join(description.split())
    return escape_controls(line if len(line) <= _MOST_OF_A_LINE else f"{line[: _MOST_OF_A_LINE - 3]}...")
