"""Keep the calls of an answer that broke off from being run, and let the model read why."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, AIMessageChunk, AnyMessage, ToolCall, ToolMessage
from langchain_core.outputs import ChatGenerationChunk, GenerationChunk

from deepagents._state.runtime import called_back
from deepagents.errors import BrokenAnswer
from deepagents.middleware._base import BaseMiddleware, inner
from deepagents.middleware._requests import Request, Response
from deepagents.middleware.patch_tool_calls.repair import separate_ids
from deepagents.models.endings import BROKEN, Break, break_of, describe_break, find_break
from deepagents.tools._tool import failure_message

_MOST: Final = 3
"""How many answers with calls may break off one behind the other."""
_HOW_TO: Final = {
    "length": "Make the call again with less in it: for example write a long file part by part.",
    "filtered": "Reach the goal another way.",
}


class BrokenAnswerMiddleware(BaseMiddleware):
    """Mark an answer that broke off, and run none of its calls: each gets a result that says so.

    The mark is `response_metadata["broken"]`.

    Raises:
        BrokenAnswer: when the third answer with calls in a row breaks off.
    """

    async def _around_model(self, request: Request, handler: Callable[[Request], Response]) -> Response:
        watch = StreamWatch()
        with called_back(watch):
            response = await inner(handler, request)
        answer = next((each for each in response.result if isinstance(each, AIMessage)), None)
        if answer is None or (kind := _find_break(answer, watch)) is None:
            return response
        answer = _with_mark(answer, kind)
        if answer.tool_calls and kind != "malformed" and _count_broken(request.messages) >= _MOST - 1:
            raise BrokenAnswer(
                kind, f"{_MOST} answers of the model in a row broke off; the last {describe_break(kind)}"
            )
        results = [_result(call, kind) for call in answer.tool_calls]
        return replace(response, result=[answer, *results], structured_response=None)


class StreamWatch(BaseCallbackHandler):
    """Keeps the arguments of calls as they were streamed: LangChain completes those that are cut off."""

    run_inline = True

    def __init__(self) -> None:
        self.streamed = False
        self._pieces: defaultdict[UUID, list[AIMessageChunk]] = defaultdict(list)

    @property
    def ignore_chat_model(self) -> bool:
        """Leave out the start of a call, for which LangChain would write the whole history as text."""
        return True

    def on_llm_new_token(
        self,
        token: Any,
        *,
        chunk: GenerationChunk | ChatGenerationChunk | None = None,
        run_id: UUID,
        **more: Any,
    ) -> None:
        """Keep a piece that holds a part of a call."""
        message: object = getattr(chunk, "message", None)
        if isinstance(message, AIMessageChunk):
            self.streamed = True
            if message.tool_call_chunks:
                self._pieces[run_id].append(message)

    def on_stream_event(self, event: Any, **more: Any) -> None:
        """Note a stream of LangChain's newer events, which leave arguments as they came."""
        self.streamed = True

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **more: Any) -> None:
        """Forget a stream that failed: a model may ask another one behind it."""
        self._pieces.pop(run_id, None)

    def has_half_call(self) -> bool:
        """Return whether the arguments of a call are not whole JSON."""
        joined = (pieces[0] + pieces[1:] for pieces in self._pieces.values())
        return any(not _is_whole(call["args"]) for each in joined for call in each.tool_call_chunks)


def _find_break(answer: AIMessage, watch: StreamWatch) -> Break | None:
    if answer.response_metadata.get(BROKEN):
        return break_of(answer)
    is_half = bool(answer.invalid_tool_calls) or watch.has_half_call()
    return find_break(answer, streamed=watch.streamed) or ("malformed" if is_half else None)


def _is_whole(args: str | None) -> bool:
    # As LangChain reads it, which lets line ends stand in texts.
    try:
        json.loads(args or "{}", strict=False)
    except ValueError:
        return False
    return True


def _with_mark(answer: AIMessage, kind: Break) -> AIMessage:
    """Return the answer with its mark, and with calls that can be sent back to any provider.

    Calls that could not be parsed otherwise stay what they are, so that the model reads which ones.
    """
    answer, _ = separate_ids(answer)
    update: dict[str, Any] = {"response_metadata": {**answer.response_metadata, BROKEN: kind}}
    if answer.invalid_tool_calls and kind != "malformed":
        # Not all packages send calls back that could not be parsed, but all send their results.
        empty = [
            ToolCall(name=call["name"] or "unknown", args={}, id=call["id"], type="tool_call")
            for call in answer.invalid_tool_calls
        ]
        update |= {"tool_calls": [*answer.tool_calls, *empty], "invalid_tool_calls": []}
    return answer.model_copy(update=update)


def _count_broken(messages: Sequence[AnyMessage]) -> int:
    """Count the answers at the end of a history that broke off one behind the other."""
    count = 0
    for message in reversed(messages):
        if break_of(message):
            count += 1
        elif not isinstance(message, ToolMessage):
            break
    return count


def _result(call: ToolCall, kind: Break) -> ToolMessage:
    how = _HOW_TO.get(kind, "Make the call again.")
    text = f"the answer with this call {describe_break(kind)}, so nothing of it was run. {how}"
    return failure_message(call["name"], call["id"] or "", "incomplete_answer", text)
