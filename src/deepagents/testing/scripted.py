"""Stand for chat models: say what the test tells, and remember what was asked; one has a window."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from threading import Lock
from typing import Any, Final, Self, TypeAlias, cast
from uuid import uuid4

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.exceptions import ContextOverflowError
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.base import LangSmithParams
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolCall
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import ConfigDict, PrivateAttr

from deepagents._values import field, frozenclass
from deepagents.errors import ScriptError
from deepagents.testing.histories import history_faults


@frozenclass
class Asked:
    """One request: the messages, and the tools that were offered with it (in OpenAI's form).

    `tokens` is its size, where the model counts.
    """

    messages: list[BaseMessage]
    tools: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    tokens: int = 0

    @property
    def tool_names(self) -> list[str]:
        """The names of the offered tools, in order, but for those that a provider has itself."""
        return [tool["function"]["name"] for tool in self.tools if "function" in tool]

    @property
    def system(self) -> str:
        """The text of the system message, or an empty string."""
        first = self.messages[0] if self.messages else None
        return first.text if first is not None and first.type == "system" else ""

    @property
    def last(self) -> str:
        """The text of the last message."""
        return self.messages[-1].text if self.messages else ""


_SUMMARY_MARKS: Final = ("<messages>", "Messages to summarize:")
_ORDER: Final = "summary_request"
"""Where the last message of a request has this for its `lc_source`, it asks for a summary of all others."""

_SCHEMAS: Final = frozenset({"function", "parameters", "input_schema", "title"})
"""Keys of tools that describe their arguments."""
_MOST_DESCRIBED: Final = 500

ScriptedAnswer: TypeAlias = str | AIMessage | Exception
Reply: TypeAlias = ScriptedAnswer | Callable[[Asked], ScriptedAnswer]


def call(tool: str, /, **arguments: Any) -> AIMessage:
    """Make a reply that calls one tool with these arguments."""
    return calls((tool, arguments))


def calls(*wanted: tuple[str, Mapping[str, Any]], text: str = "") -> AIMessage:
    """Make a reply that calls several tools at once."""
    made = [
        ToolCall(name=name, args=dict(arguments), id=f"call_{uuid4().hex[:12]}") for name, arguments in wanted
    ]
    return AIMessage(content=text, tool_calls=made)


class ScriptedModel(BaseChatModel):
    """A strict double of a chat model.

    Its script is a queue of replies: a text, an `AIMessage`, an exception to raise, or a function of the
    request that returns one of these. `always` answers every request with one function instead. Each request
    is kept in `asked`; with `remembers=False` none is, for a model that answers for hours. It serves sync,
    async and streaming callers and parallel threads. Used as a context manager, it fails when replies are
    left over.

    Example:
        ```python
        with ScriptedModel(call("write_file", file_path="/a.txt", content="hi"), "Done.") as model:
            create_deep_agent(model).invoke({"messages": "Write hi to /a.txt"})
        ```

    Raises:
        ScriptError: when asked for more than the script holds, or left with some (see `finish`).
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    model_name: str = "scripted"
    provider: str = "scripted"
    always: Callable[[Asked], ScriptedAnswer] | None = None
    remembers: bool = True
    _replies: deque[Reply] = PrivateAttr(default_factory=deque[Reply])
    _asked: list[Asked] = PrivateAttr(default_factory=list[Asked])
    _requests: int = PrivateAttr(default=0)
    # Parallel subagents ask from several threads, and each reply must go out once.
    _lock: Any = PrivateAttr(default_factory=Lock)
    _described: dict[int, tuple[Any, dict[str, Any]]] = PrivateAttr(
        default_factory=dict[int, tuple[Any, dict[str, Any]]]
    )

    def __init__(self, *replies: Reply, **settings: Any) -> None:
        super().__init__(**settings)
        self.then(*replies)

    @property
    def asked(self) -> list[Asked]:
        """Every request so far, in order of arrival."""
        return self._asked

    def then(self, *replies: Reply) -> Self:
        """Add replies to the end of the script.

        Raises:
            TypeError: for a list of replies.
        """
        for reply in replies:
            if isinstance(reply, list | tuple):
                raise TypeError(f"a reply is one turn, got {reply!r}; write ScriptedModel(*replies)")
        self._replies.extend(replies)
        return self

    def finish(self) -> None:
        """Fail when replies are left that were never asked for."""
        if self._replies:
            raise ScriptError(
                f"{len(self._replies)} scripted replies were never asked for; the next is "
                f"{self._replies[0]!r}"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if kind is None:
            self.finish()

    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: Any = None, **options: Any
    ) -> Runnable[Any, AIMessage]:
        """Offer tools with each request; they are recorded, nothing else."""
        described = [self._describe(tool) for tool in tools]
        bound: Any = self.bind(
            offered=described, **({"tool_choice": tool_choice} if tool_choice else {}), **options
        )
        return bound

    def _describe(self, tool: Any) -> dict[str, Any]:
        """Describe a tool, once for as long as it stays what it is."""
        if not isinstance(tool, BaseTool):
            given = cast("dict[str, Any]", tool)
            # A dict that describes no arguments is what a provider does itself, in its own words.
            own = isinstance(tool, dict) and _SCHEMAS.isdisjoint(given)
            return given if own else convert_to_openai_tool(given)
        now = (tool, tool.name, tool.description, tool.args_schema)
        known, described = self._described.get(id(tool), (None, {}))
        if known != now:
            if len(self._described) >= _MOST_DESCRIBED:
                # Those of runs that have ended; a model may answer for hours, with new tools in each run.
                self._described.clear()
            described = convert_to_openai_tool(tool)
            self._described[id(tool)] = (now, described)
        return described

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _get_ls_params(self, stop: list[str] | None = None, **options: Any) -> LangSmithParams:
        return LangSmithParams(ls_provider=self.provider, ls_model_name=self.model_name, ls_model_type="chat")

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **options: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._answer(messages, options))])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **options: Any,
    ) -> Iterator[ChatGenerationChunk]:
        for chunk in _in_pieces(self._answer(messages, options)):
            if run_manager is not None:
                run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk

    def _answer(self, messages: list[BaseMessage], options: dict[str, Any]) -> AIMessage:
        offered = options.pop("offered", [])
        asked = Asked(list(messages), offered, options, self._measure(messages, offered))
        with self._lock:
            self._requests += 1
            if self.remembers:
                self._asked.append(asked)
            reply = self._reply(asked)
        # Outside the lock: the function may itself run an agent with this model.
        answer = reply(asked) if callable(reply) else reply
        if isinstance(answer, Exception):
            raise answer
        # Without its id: LangGraph replaces a message that has the id of an earlier one.
        made = (
            AIMessage(content=answer) if isinstance(answer, str) else answer.model_copy(update={"id": None})
        )
        return self._add_report(asked, made)

    def _measure(self, messages: list[BaseMessage], tools: list[dict[str, Any]]) -> int:
        """Count a request; a model without a window does not."""
        return 0

    def _add_report(self, asked: Asked, answer: AIMessage) -> AIMessage:
        """Add to a reply what a provider reports with it."""
        return answer

    def _reply(self, asked: Asked) -> Reply:
        """Choose what answers a request."""
        if self.always:
            return self.always
        if not self._replies:
            raise ScriptError(
                f"the script has run out; request {self._requests} ended with {asked.last[:200]!r}"
            )
        return self._replies.popleft()


def is_summary_request(asked: Asked) -> bool:
    """Return whether a request asks for a summary, of messages that it quotes or of those before the last."""
    is_marked = bool(asked.messages) and asked.messages[-1].additional_kwargs.get("lc_source") == _ORDER
    return is_marked or (not asked.tools and any(mark in asked.last for mark in _SUMMARY_MARKS))


def say_how_long(asked: Asked) -> str:
    """Answer a request for a summary with the length of what was to be summarized."""
    return f"Summary of {sum(len(each.text) for each in asked.messages)} characters."


class WindowedModel(ScriptedModel):
    """A scripted model that behaves like a provider whose model takes so many tokens.

    Each request, its messages and the tools offered with it, is measured by `counter` (LangChain's
    `count_tokens_approximately` unless another is given) and kept in `asked` with its size in `tokens`.
    One above `window` is refused, one with a history that strict providers refuse is an error of the test
    (`strict=False` lets it pass). Requests for a summary are answered by `summary` and take nothing from the
    script. Replies report their usage as providers do; `honesty` is the share of it that they report, and
    `None` reports nothing.

    Raises:
        ContextOverflowError: for a request above the window.
        ScriptError: for a history that no strict provider would take.
    """

    window: int = 32_000
    counter: Callable[..., int] = count_tokens_approximately
    summary: Callable[[Asked], ScriptedAnswer] = say_how_long
    honesty: float | None = 1.0
    strict: bool = True

    def __init__(self, *replies: Reply, **settings: Any) -> None:
        super().__init__(*replies, **settings)
        self.profile = {"max_input_tokens": self.window, **(self.profile or {})}

    @property
    def turns(self) -> list[Asked]:
        """The requests that were taken and were not for a summary."""
        return [each for each in self.asked if not is_summary_request(each) and not self.refuses(each)]

    @property
    def summaries(self) -> list[Asked]:
        """The requests for a summary."""
        return [each for each in self.asked if is_summary_request(each)]

    @property
    def refused(self) -> list[Asked]:
        """The requests above the window."""
        return [each for each in self.asked if self.refuses(each)]

    def refuses(self, asked: Asked) -> bool:
        """Return whether a request is above the window."""
        return asked.tokens > self.window

    def _measure(self, messages: list[BaseMessage], tools: list[dict[str, Any]]) -> int:
        return self.counter(messages, tools=tools)

    def _reply(self, asked: Asked) -> Reply:
        if self.refuses(asked):
            return ContextOverflowError(
                f"prompt is too long: {asked.tokens} tokens, and the maximum context length is {self.window}"
            )
        faults = history_faults(asked.messages) if self.strict else []
        if faults:
            return ScriptError(f"no strict provider takes this request: {'; '.join(faults)}")
        return self.summary if is_summary_request(asked) else super()._reply(asked)

    def _add_report(self, asked: Asked, answer: AIMessage) -> AIMessage:
        metadata = {
            "model_provider": self.provider,
            "model_name": self.model_name,
            **answer.response_metadata,
        }
        usage = answer.usage_metadata or self._usage(asked, answer)
        return answer.model_copy(update={"response_metadata": metadata, "usage_metadata": usage})

    def _usage(self, asked: Asked, answer: AIMessage) -> UsageMetadata | None:
        if self.honesty is None:
            return None
        given, made = int(asked.tokens * self.honesty), int(self.counter([answer]) * self.honesty)
        return UsageMetadata(input_tokens=given, output_tokens=made, total_tokens=given + made)


def _in_pieces(message: AIMessage) -> Iterator[ChatGenerationChunk]:
    words = message.content.split(" ") if isinstance(message.content, str) else []
    for at, word in enumerate(words):
        piece = word if at == len(words) - 1 else f"{word} "
        if piece:
            yield ChatGenerationChunk(message=AIMessageChunk(content=piece))
    yield ChatGenerationChunk(message=_rest(message, with_content=not words))


def _rest(message: AIMessage, *, with_content: bool) -> AIMessageChunk:
    chunks = [
        tool_call_chunk(name=each["name"], args=json.dumps(each["args"]), id=each["id"], index=at)
        for at, each in enumerate(message.tool_calls)
    ]
    return AIMessageChunk(
        content=message.content if with_content else "",
        tool_call_chunks=chunks,
        usage_metadata=message.usage_metadata,
        additional_kwargs=message.additional_kwargs,
        response_metadata=message.response_metadata,
        chunk_position="last",
    )
