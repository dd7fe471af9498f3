"""Compact a context before it is too large, and when a provider refused it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any, ClassVar, Self, cast

from langchain.agents.middleware.internal_call_transformer import InternalCallTransformer
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.messages.utils import count_tokens_approximately

from deepagents import _models
from deepagents._async import arun
from deepagents._deprecation import warn_legacy
from deepagents._state.runtime import configured, writes_undone_on_failure
from deepagents.backends.foreign.forms import warn_form
from deepagents.backends.handle import BACKEND_SECONDS, FileCalls, open_backend
from deepagents.backends.protocol import BACKEND_TYPES
from deepagents.errors import ConfigError
from deepagents.middleware._base import BaseMiddleware, inner
from deepagents.middleware._requests import (
    Request,
    Response,
    keeping,
    with_changes,
    with_messages,
)
from deepagents.middleware.summarization.clipping import Clipping
from deepagents.middleware.summarization.compaction import ContextCompactor
from deepagents.middleware.summarization.context import (
    SUMMARIZED_IDS_KEY,
    CompactionState,
    Context,
    ContextReader,
    SummarizationState,
)
from deepagents.middleware.summarization.counting import ContextCounter, TokenCounter
from deepagents.middleware.summarization.policy import (
    DEFAULT_KEEP,
    ContextSize,
    Size,
    SummarizationDefaults,
    Trigger,
    TriggerLike,
    TruncateArgsSettings,
    defaults_for,
    is_half_due,
    parse_size,
    parse_trigger,
)
from deepagents.middleware.summarization.search import (
    SEARCH_DESCRIPTION,
    SEARCH_NAME,
    SearchHistorySchema,
    search_archive,
)
from deepagents.middleware.summarization.summarizer import (
    DEEPAGENTS_DEFAULT_SUMMARY_PROMPT,
    INTERNAL,
    AskInPlace,
    Summarizer,
    SummarizerLike,
)
from deepagents.models.compaction import compacts_itself, find_summary, without_compactions
from deepagents.models.failures import as_overflow, is_overflow
from deepagents.models.traits import input_window, is_chat_model
from deepagents.permissions import FilesystemPermission, Rules
from deepagents.tools._tool import Runtime, SpecTool, ToolOutput, ToolSpec, make_tool, names_of_tools


class SummarizationMiddleware(BaseMiddleware):
    """Replace old messages by a summary when the context grows large; the state keeps all of them.

    What is evicted goes to an archive on the backend first, whole, and the summary names it. Where the
    provider refuses a request as too long, the context is made smaller and the request is made once more.

    Args:
        model: whose window counts, and who writes the summaries; a chat model or its name.
        backend: where the archive goes.
        trigger: when to compact: a size such as `("fraction", 0.85)`, `("tokens", 100000)` or
            `("messages", 50)`; a dict of sizes that must all be reached; a list of either, of which one
            suffices; `None` for refusals only.
        keep: how much of the newest part stays as it is, except after a refusal.
        token_counter: counts messages. Your own is asked about new messages only, or about whole requests
            if it does not take parts of them.
        summary_prompt: with `{messages}` where the messages go.
        trim_tokens_to_summarize: most tokens that the summarizer is given; `None` is three quarters of its
            window.
        truncate_args_settings: when and how long arguments of old file writes are clipped; `None` is never.
        summarizer: another model, or a runnable or function of the messages that returns the summary.
        permissions: rules of the agent; a summary names no archive that may not be read.
        backend_timeout: seconds that the backend may take for one operation; `None` waits for ever.

    Raises:
        ConfigError: for impossible sizes and settings (also a ValueError).
        TypeError: for unknown arguments, and sizes of no known form.
    """

    state_schema: type[Any] = SummarizationState
    transformers = (InternalCallTransformer,)
    serialized_name: ClassVar[str] = "SummarizationMiddleware"

    def __init__(
        self,
        model: str | BaseChatModel,
        *,
        backend: BACKEND_TYPES,
        trigger: TriggerLike | None = None,
        keep: ContextSize = DEFAULT_KEEP,
        token_counter: TokenCounter = count_tokens_approximately,
        summary_prompt: str = DEEPAGENTS_DEFAULT_SUMMARY_PROMPT,
        trim_tokens_to_summarize: int | None = None,
        truncate_args_settings: TruncateArgsSettings | None = None,
        summarizer: SummarizerLike | None = None,
        permissions: Sequence[FilesystemPermission] = (),
        backend_timeout: float | None = BACKEND_SECONDS,
        **deprecated_kwargs: object,
    ) -> None:
        super().__init__()
        self.trigger, self.keep = _apply_older_arguments(trigger, keep, deprecated_kwargs)
        self.model = _models.resolve_model(model)
        self.backend: BACKEND_TYPES = backend
        self._handle = open_backend(backend, backend_timeout)
        self.token_counter = token_counter
        warn_form(backend)
        written_by = Summarizer(
            self.model if summarizer is None else summarizer,
            summary_prompt,
            trim_tokens_to_summarize,
            token_counter,
        )
        self._compactor = ContextCompactor(
            self.model,
            parse_trigger(self.trigger),
            parse_size(self.keep),
            written_by,
            ContextReader(ContextCounter(token_counter), Clipping.of(truncate_args_settings)),
            Rules(permissions),
        )
        _require_known_window(self.model, self._compactor.trigger, self._compactor.keep)
        self.tools = [_make_search(self)]

    def with_permissions(self, permissions: Sequence[FilesystemPermission]) -> Self:
        """Return a copy whose summaries name no archive that these rules forbid to read."""
        clone = copy(self)
        # Rules of its own stay.
        vars(clone)["_compactor"] = replace(
            self._compactor, rules=self._compactor.rules or Rules(permissions)
        )
        vars(clone)["tools"] = [_make_search(clone)]
        return clone

    async def _around_model(self, request: Request, handler: Callable[[Request], Response]) -> Response:
        compactor = self._compactor
        await compactor.summarizer.check_driver()
        request = with_messages(request)
        state = cast("Mapping[str, Any]", request.state)
        tools = request.tools
        request = self._offer_search(request, state, tools)
        with writes_undone_on_failure():
            context = compactor.read(
                request.messages, state, request.model, request.system_message, request.tools
            )
            open_files = partial(self._handle.files, request.runtime)
            # As the model saw it: what is clipped now would be a beginning that no cache has.
            in_place = partial(self._find_in_place, request, handler, context)
            if not compacts_itself(request.model, request.model_settings):
                context = await compactor.compact_if_due(compactor.clip(context), open_files, in_place)
            request = self._offer_search(request, context.state, tools)
            response, context = await self._answer(request, handler, context)
            response, context = await self._adopt(response, context, open_files)
        return keeping(response, [], context.update)

    def _find_in_place(
        self, request: Request, handler: Callable[[Request], Response], context: Context
    ) -> AskInPlace | None:
        """Return how to ask for a summary in the conversation itself; `None` where that cannot be."""
        is_free = request.response_format is None and request.tool_choice in (None, "auto")
        if not is_free or not self._compactor.can_ask_in_place(context, request.model):
            return None

        async def ask(order: HumanMessage) -> AIMessage:
            with configured(INTERNAL):
                asked = with_changes(request, messages=[*context.shown, order])
                response = await inner(handler, asked)
            return next(each for each in response.result if isinstance(each, AIMessage))

        return ask

    async def _answer(
        self, request: Request, handler: Callable[[Request], Response], context: Context
    ) -> tuple[Response, Context]:
        """Call the model; make a request that is refused as too long once more, smaller."""
        response = await _send(request, handler, context)
        if isinstance(response, Exception):
            smaller = await self._compactor.shrink(context, self._handle.files(request.runtime))
            if smaller is not None:
                context = smaller
                response = await _send(request, handler, context)
        if isinstance(response, Exception):
            raise as_overflow(response)
        return response, context

    async def _adopt(
        self, response: Response, context: Context, open_files: Callable[[], FileCalls]
    ) -> tuple[Response, Context]:
        """Take over a compaction that the provider made before it answered, and archive as for our own."""
        answers = [find_summary(each) for each in response.result]
        written = next((each for each in answers if each is not None), None)
        if written is None:
            return response, context
        compacted = await self._compactor.compact(
            context, open_files(), at=len(context.shown), written=written
        )
        # A summary that can be read stands in our own message, with the words of the user, for every model.
        if written and compacted:
            response = replace(response, result=[*map(without_compactions, response.result)])
        return response, compacted or context

    def _offer_search(self, request: Request, state: Mapping[str, Any], tools: Sequence[Any]) -> Request:
        """Return the request with the search as its last tool, if there is something to search."""
        own = self.tools[0]
        others = [each for each in tools if each is not own]
        # A tool of the caller's of that name stands; one that a profile excludes is not among them.
        can_search = len(others) < len(tools) and self.find_searched(state)
        is_offered = can_search and SEARCH_NAME not in names_of_tools(others)
        return with_changes(request, tools=[*others, own] if is_offered else others)

    def find_searched(self, state: Mapping[str, Any]) -> str | None:
        """Return the newest part of the archive, if there is one and the rules let the agent read it."""
        path = CompactionState.of(state).file_path
        return path if path is not None and self._compactor.rules.decide("read", path) == "allow" else None

    async def search(self, runtime: Runtime, query: str) -> ToolOutput:
        """Search what is no longer in the context."""
        path = self.find_searched(runtime.state)
        if path is None:
            return ToolOutput("There is nothing to search: nothing of this conversation was summarized.")
        return ToolOutput(await search_archive(self._handle.files(runtime), path, query))

    def show_messages(self, state: Mapping[str, Any]) -> Sequence[AnyMessage]:
        """Return the messages of a state as the model is shown them."""
        messages = list(state.get("messages", ()))
        return self._compactor.reader.show(messages, CompactionState.of(state)).messages

    async def acompact(self, state: Mapping[str, Any]) -> tuple[int, Mapping[str, Any]] | None:
        """Compact a thread by its state, from outside of a run; return what `compact_now` returns."""
        return await arun(self.compact_now(cast("Any", SimpleNamespace(state=state))))

    async def compact_now(self, runtime: Runtime) -> tuple[int, Mapping[str, Any]] | None:
        """Compact because the model asks for it; return how many messages went, and the update for the state.

        `None` where there is nothing to compact yet.

        Raises:
            SummaryFailed: when there is no summary; nothing has changed then.
        """
        context = self._compactor.read(runtime.state["messages"], runtime.state, self.model)
        if not is_half_due(self._compactor.trigger, context.load):
            return None
        done = await self._compactor.compact(context, self._handle.files(runtime))
        return None if done is None else (len(done.update[SUMMARIZED_IDS_KEY]), done.update)


def create_summarization_middleware(
    model: BaseChatModel,
    backend: BACKEND_TYPES,
    *,
    summary_prompt: str = DEEPAGENTS_DEFAULT_SUMMARY_PROMPT,
    trim_tokens_to_summarize: int | None = None,
    token_counter: TokenCounter = count_tokens_approximately,
    summarizer: SummarizerLike | None = None,
    permissions: Sequence[FilesystemPermission] = (),
    backend_timeout: float | None = BACKEND_SECONDS,
) -> SummarizationMiddleware:
    """Make the middleware with the settings that fit a model (see `compute_summarization_defaults`).

    Raises:
        TypeError: for a model that is not a `BaseChatModel`.
    """
    if not is_chat_model(model):
        raise TypeError(f"model must be a BaseChatModel, such as init_chat_model(...) makes, got {model!r}")
    return SummarizationMiddleware(
        model,
        backend=backend,
        token_counter=token_counter,
        summary_prompt=summary_prompt,
        trim_tokens_to_summarize=trim_tokens_to_summarize,
        summarizer=summarizer,
        permissions=permissions,
        backend_timeout=backend_timeout,
        **compute_summarization_defaults(model),
    )


def compute_summarization_defaults(model: BaseChatModel) -> SummarizationDefaults:
    """Return the settings that fit a model: shares of its input window if its profile states one."""
    return defaults_for(input_window(model))


def _make_search(summarization: SummarizationMiddleware) -> SpecTool:
    spec = ToolSpec(
        SEARCH_NAME,
        SEARCH_DESCRIPTION,
        SearchHistorySchema,
        summarization.search,
        offload_result=False,
        summary_arguments=("query",),
    )
    return make_tool(spec, lambda runtime: runtime)


async def _send(
    request: Request, handler: Callable[[Request], Response], context: Context
) -> Response | Exception:
    """Call the model with what the context shows; return the error if that is refused as too long."""
    if context.shown is not request.messages:
        request = with_changes(request, messages=context.shown)
    if context.update:
        request = with_changes(request, state=context.state)
    try:
        return await inner(handler, request)
    except Exception as error:
        if not is_overflow(error):
            raise
        return error


def _apply_older_arguments(
    trigger: TriggerLike | None, keep: ContextSize, older: Mapping[str, Any]
) -> tuple[TriggerLike | None, ContextSize]:
    """Return the sizes with the arguments of older versions applied; each of those warns."""
    tokens, messages = "max_tokens_before_summary", "messages_to_keep"
    if "history_path_prefix" in older:
        raise TypeError(
            "history_path_prefix is not an argument of SummarizationMiddleware: set artifacts_root of a "
            "CompositeBackend, and the archive lies in its conversation_history directory"
        )
    unknown = sorted(older.keys() - {tokens, messages})
    if unknown:
        raise TypeError(f"SummarizationMiddleware takes no argument {', '.join(map(repr, unknown))}")
    if tokens in older:
        warn_legacy(f"{tokens} is deprecated: pass trigger=('tokens', {older[tokens]!r}).")
        trigger = ("tokens", older[tokens]) if trigger is None else trigger
    if messages in older:
        warn_legacy(f"{messages} is deprecated: pass keep=('messages', {older[messages]!r}).")
        keep = ("messages", older[messages]) if keep == DEFAULT_KEEP else keep
    return trigger, keep


def _require_known_window(model: BaseChatModel, trigger: Trigger, keep: Size) -> None:
    sizes = [keep, *(size for clause in trigger for size in clause)]
    if input_window(model) is None and any(size.metric == "fraction" for size in sizes):
        raise ConfigError(
            f"a fraction in trigger or keep needs a model that tells max_input_tokens in its profile, and "
            f"{type(model).__name__} does not: pass ('tokens', ...) or ('messages', ...), or give the model "
            "a profile={'max_input_tokens': ...}"
        )
