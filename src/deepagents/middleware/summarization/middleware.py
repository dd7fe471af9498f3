"""SummarizationMiddleware: a context is compacted before it is too large, and when it was refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any, ClassVar, Self, cast

from langchain.agents.middleware.internal_call_transformer import InternalCallTransformer
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage
from langchain_core.messages.utils import count_tokens_approximately

from deepagents import _models
from deepagents._state.runtime import writes_undone_on_failure
from deepagents.backends._legacy import warn_form
from deepagents.backends.calls import Files
from deepagents.backends.protocol import BACKEND_TYPES
from deepagents.middleware._base import (
    BaseMiddleware,
    Middleware,
    Request,
    Response,
    inner,
    keeping,
    with_messages,
)
from deepagents.middleware.summarization.clipping import Clipping
from deepagents.middleware.summarization.compaction import Compactor
from deepagents.middleware.summarization.context import Context, Frame, Record
from deepagents.middleware.summarization.counting import Meter, TokenCounter
from deepagents.middleware.summarization.engine import Engine
from deepagents.middleware.summarization.overflow import as_overflow, is_overflow
from deepagents.middleware.summarization.place import Place
from deepagents.middleware.summarization.settings import (
    DEFAULT_KEEP,
    check_fractions,
    compute_summarization_defaults,
    with_older,
)
from deepagents.middleware.summarization.sizes import (
    ContextSize,
    Keep,
    Trigger,
    TriggerLike,
    TruncateArgsSettings,
)
from deepagents.middleware.summarization.state import SUMMARIZED_IDS_KEY, SummarizationState
from deepagents.middleware.summarization.summarizer import (
    DEEPAGENTS_DEFAULT_SUMMARY_PROMPT,
    Summarizer,
    SummarizerLike,
)
from deepagents.models.traits import is_chat_model
from deepagents.permissions import FilesystemPermission, Rules
from deepagents.tools._tool import Runtime


class SummarizationMiddleware(BaseMiddleware):
    """Put a summary in the place of old messages when the context grows large; the state keeps all of them.

    What is evicted goes to an archive on the backend first, whole, and the summary names it. Where the
    provider refuses a request as too long, the context is compacted and the request made once more.

    Args:
        model: whose window counts, and who writes the summaries; a chat model or its name.
        backend: where the archive goes.
        trigger: when to compact: a size such as `("fraction", 0.85)`, `("tokens", 100000)` or
            `("messages", 50)`; a dict of sizes that must all be reached; a list of either, of which one
            suffices; `None` for refusals only.
        keep: how much of the newest part stays as it is.
        token_counter: counts messages; one of your own is asked on every call.
        summary_prompt: with `{messages}` where the messages go.
        trim_tokens_to_summarize: most tokens that the summarizer is given; `None` is three quarters of its
            window.
        truncate_args_settings: when and how long arguments of old file writes are clipped; `None` is never.
        summarizer: another model, or a runnable or function of the messages that returns the summary.
        permissions: rules of the agent; a summary names no archive that may not be read.

    Raises:
        ConfigError: for sizes and settings that cannot be (also a ValueError).
        TypeError: for arguments that there are not, and sizes of no known form.
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
        **deprecated_kwargs: object,
    ) -> None:
        super().__init__()
        self.trigger, self.keep = with_older(trigger, keep, deprecated_kwargs)
        self.model = _models.resolve_model(model)
        self.backend: BACKEND_TYPES = backend
        self.token_counter = token_counter
        warn_form(backend)
        meter = Meter(token_counter)
        writer = Summarizer.of(
            summarizer,
            self.model,
            prompt=summary_prompt,
            most_tokens=trim_tokens_to_summarize,
            counter=token_counter,
        )
        self._engine = Engine(
            self.model,
            Trigger.of(self.trigger),
            Keep.of(self.keep),
            Clipping.of(truncate_args_settings),
            meter,
            Compactor(writer, meter, Rules(permissions)),
        )
        check_fractions(self.model, self._engine.trigger, self._engine.keep)

    def with_permissions(self, permissions: Sequence[FilesystemPermission]) -> Self:
        """Return a copy under these rules; rules of its own stay."""
        if not permissions or self._engine.compactor.rules:
            return self
        clone = copy(self)
        clone.take_permissions(permissions)
        return clone

    def take_permissions(self, permissions: Sequence[FilesystemPermission]) -> None:
        """Name no archive that these rules forbid to read."""
        self._engine = self._engine.under(Rules(permissions))

    async def _around_model(self, request: Request, handler: Callable[[Request], Response]) -> Response:
        await self._engine.compactor.summarizer.checked()
        request = with_messages(request)
        state = cast("Mapping[str, Any]", request.state)
        place = self._engine.place(request.messages, state)
        frame = Frame(request.model, request.system_message, request.tools)
        self._engine.frames.put(place.agent, frame)
        with writes_undone_on_failure():
            context = self._engine.context(request.messages, state, frame, place)
            context = self._engine.with_new_clips(context)
            if self._engine.is_due(context, place):
                files = self._files(request.runtime)
                context = await self._engine.compacted_or_not(context, files, place)
            response, context = await self._answered(request, handler, context, place)
        return keeping(response, [], context.update)

    async def _answered(
        self, request: Request, handler: Callable[[Request], Response], context: Context, place: Place
    ) -> tuple[Response, Context]:
        """Call the model; where a request is refused as too long, do what is left to do and call again."""
        engine = self._engine
        try:
            return await _sent(request, handler, context)
        except Exception as error:
            if not is_overflow(error):
                raise
            refusal = error
        files = self._files(request.runtime)
        for remedy in (engine.forced, engine.without_tail):
            smaller = await remedy(context, files, place)
            if smaller is None:
                continue
            context = smaller
            try:
                return await _sent(request, handler, context)
            except Exception as error:
                if not is_overflow(error):
                    raise
                refusal = error
        raise as_overflow(refusal)

    def shown_of(self, state: Mapping[str, Any]) -> Sequence[AnyMessage]:
        """Return the messages of a state as the model is shown them."""
        return self._engine.shown(list(state.get("messages", ())), Record.of(state, ""))

    async def compacted_for(self, runtime: Runtime) -> tuple[int, Mapping[str, Any]] | None:
        """Compact at someone's wish: how many messages went, and what the state is to take.

        `None` where there is nothing to compact yet.

        Raises:
            SummaryFailed: when there is no summary; nothing has changed then.
        """
        messages = runtime.state["messages"]
        place = self._engine.place(messages, runtime.state)
        frame = self._engine.frames.get(place.agent) or Frame(self.model)
        context = self._engine.context(messages, runtime.state, frame, place)
        if not self._engine.is_worth_asking(context):
            return None
        done = await self._engine.compacted(context, self._files(runtime), place)
        return None if done is None else (len(done.update[SUMMARIZED_IDS_KEY]), done.update)

    def _files(self, runtime: Any) -> Files:
        return Files.of(self.backend, runtime)


def create_summarization_middleware(
    model: BaseChatModel,
    backend: BACKEND_TYPES,
    *,
    summary_prompt: str = DEEPAGENTS_DEFAULT_SUMMARY_PROMPT,
    trim_tokens_to_summarize: int | None = None,
    token_counter: TokenCounter = count_tokens_approximately,
    summarizer: SummarizerLike | None = None,
    permissions: Sequence[FilesystemPermission] = (),
) -> SummarizationMiddleware:
    """Make the middleware with the settings that fit a model (see `compute_summarization_defaults`).

    Raises:
        TypeError: for a model that is no `BaseChatModel`.
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
        **compute_summarization_defaults(model),
    )


def told_of(rules: Rules, middleware: Middleware) -> Middleware:
    """Return a middleware whose summaries send no model to an archive that it may not read."""
    known = isinstance(middleware, SummarizationMiddleware)
    return middleware.with_permissions(rules.given) if known else middleware


async def _sent(
    request: Request, handler: Callable[[Request], Response], context: Context
) -> tuple[Response, Context]:
    shown = context.shown
    request = request if shown is request.messages else request.override(messages=shown)
    if context.update:
        state: Any = {**request.state, **context.memory.as_state}
        request = request.override(state=state)
    return await inner(handler, request), context
