"""Make a LangChain chat model of a model that runs in this process."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, closing
from pathlib import Path
from typing import Any, ClassVar
from uuid import uuid4

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput, ModelProfile
from langchain_core.language_models.base import LangSmithParams
from langchain_core.language_models.chat_models import agenerate_from_stream, generate_from_stream
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import InputTokenDetails, UsageMetadata
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import ConfigDict, Field

from deepagents_local.catalog import DEFAULT_MODEL, PROVIDER
from deepagents_local.engine import Delta, Engine, Event, Finish, Request
from deepagents_local.habits import Habits, find_forms, offer_tools
from deepagents_local.llama import EngineSettings, get_shared_engine, physical_cores
from deepagents_local.prompt import turns
from deepagents_local.reader import ObjectReader, PlainReader
from deepagents_local.seen import complete_edit, find_shown_lines, find_small_files
from deepagents_local.signatures import Call, call_form, grammar, name_of
from deepagents_local.streams import astream, stream
from deepagents_local.weights import need_weights


class ChatLocal(BaseChatModel):
    """A small open model on the CPU, in this process, with no key and no account.

    `model` names one of the known models, whose weights `deepagents models pull` fetches; `path` names any
    other GGUF file. Tools are shown as one-line signatures; a reply is one tool call or a final answer.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)
    runs_in_process: ClassVar[bool] = True

    model: str = DEFAULT_MODEL
    path: Path | None = None
    temperature: float = 0.0
    max_tokens: int = 1024
    n_ctx: int = 8192
    seed: int | None = None
    n_threads: int = Field(default_factory=physical_cores)
    habits: Habits = Field(default_factory=Habits)
    engine: Engine | None = Field(default=None, exclude=True)

    @property
    def model_name(self) -> str:
        """The name of the model, or of its file."""
        return self.path.stem if self.path else self.model

    @property
    def _llm_type(self) -> str:
        return PROVIDER

    @property
    def _identifying_params(self) -> Mapping[str, Any]:
        return {
            "model": self.model_name,
            "temperature": self.temperature,
            "n_ctx": self.n_ctx,
            "seed": self.seed,
        }

    def _resolve_model_profile(self) -> ModelProfile:
        return ModelProfile(
            max_input_tokens=self.n_ctx - self.max_tokens,
            max_output_tokens=self.max_tokens,
            tool_calling=True,
            image_inputs=False,
            audio_inputs=False,
            video_inputs=False,
        )

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        known = super()._get_ls_params(stop, **kwargs)
        return {**known, "ls_provider": PROVIDER, "ls_model_name": self.model_name}

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | dict[str, Any] | bool | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Offer tools; `tool_choice` may be a tool's name, "any" or "required", "none", or "auto"."""
        forms = [convert_to_openai_tool(tool) for tool in tools]
        return self.bind(tools=forms, tool_choice=tool_choice, **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return generate_from_stream(self._stream(messages, stop, run_manager, **kwargs))

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return await agenerate_from_stream(self._astream(messages, stop, run_manager, **kwargs))

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        request = self._request(messages, stop, **kwargs)
        answer = _Answer(self.model_name, messages, structured=request.grammar is not None)
        with closing(stream(self._engine(), request)) as events:
            for event in events:
                if chunk := answer.chunk(event):
                    yield chunk

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        request = self._request(messages, stop, **kwargs)
        answer = _Answer(self.model_name, messages, structured=request.grammar is not None)
        async with aclosing(astream(self._engine(), request)) as events:
            async for event in events:
                if chunk := answer.chunk(event):
                    yield chunk

    def _engine(self) -> Engine:
        if self.engine is not None:
            return self.engine
        path = self.path or need_weights(self.model)
        return get_shared_engine(EngineSettings(path.expanduser().absolute(), self.n_ctx, self.n_threads))

    def _request(
        self,
        messages: Sequence[BaseMessage],
        stop: Sequence[str] | None,
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        tool_choice: str | dict[str, Any] | bool | None = None,
        **settings: Any,
    ) -> Request:
        shown = () if tool_choice == "none" else offer_tools(tools, self.habits)
        return Request(
            turns=turns(messages, shown, remind=self.habits.remind),
            grammar=self._grammar(messages, shown, tool_choice) if shown else None,
            max_tokens=int(settings.get("max_tokens") or self.max_tokens),
            temperature=float(settings.get("temperature", self.temperature)),
            seed=settings.get("seed", self.seed),
            stop=tuple(stop or ()),
        )

    def _grammar(
        self,
        messages: Sequence[BaseMessage],
        tools: Sequence[Mapping[str, Any]],
        choice: str | dict[str, Any] | bool | None,
    ) -> str:
        chosen = _choose(tools, choice)
        if chosen is not None:
            return grammar([call_form(tool) for tool in chosen])
        return grammar(find_forms(messages, tools, self.habits))


def _choose(
    tools: Sequence[Mapping[str, Any]], choice: str | dict[str, Any] | bool | None
) -> Sequence[Mapping[str, Any]] | None:
    """The tools of which one must be called, or None where the model is free to answer."""
    if choice in (None, False, "auto"):
        return None
    if choice in (True, "any", "required"):
        return tools
    name = choice.get("function", choice).get("name") if isinstance(choice, dict) else choice
    found = [tool for tool in tools if name_of(tool) == name]
    if not found:
        raise ValueError(f"tool_choice names {name!r}, which is not among the tools bound to the model")
    return found


class _Answer:
    """Events of the engine become chunks of one message."""

    def __init__(self, model: str, messages: Sequence[BaseMessage], *, structured: bool) -> None:
        self._id = f"run-{uuid4()}"
        self._model = model
        self._messages = messages
        self._reader = ObjectReader() if structured else PlainReader()

    def chunk(self, event: Event) -> ChatGenerationChunk | None:
        if isinstance(event, Delta):
            text = self._reader.feed(event.text)
            return self._chunk(content=text) if text else None
        return self._last(event)

    def _last(self, finish: Finish) -> ChatGenerationChunk:
        ending = self._reader.end(cut=finish.reason == "length")
        call = ending.call and complete_edit(
            ending.call, find_shown_lines(self._messages), find_small_files(self._messages)
        )
        return self._chunk(
            content=ending.text,
            tool_call_chunks=[_call_chunk(call)] if call else [],
            usage_metadata=_usage(finish),
            response_metadata={
                "finish_reason": "tool_calls" if call else finish.reason,
                "model_name": self._model,
                "model_provider": PROVIDER,
            },
            chunk_position="last",
        )

    def _chunk(self, **fields: Any) -> ChatGenerationChunk:
        return ChatGenerationChunk(message=AIMessageChunk(id=self._id, **fields))


def _call_chunk(call: Call) -> Any:
    args = json.dumps(call.args, ensure_ascii=False)
    return tool_call_chunk(name=call.name, args=args, id=f"call_{uuid4().hex}", index=0)


def _usage(finish: Finish) -> UsageMetadata:
    return UsageMetadata(
        input_tokens=finish.prompt_tokens,
        output_tokens=finish.completion_tokens,
        total_tokens=finish.prompt_tokens + finish.completion_tokens,
        input_token_details=InputTokenDetails(cache_read=finish.cached_tokens),
    )
