"""Long arguments of old file writes are clipped in batches, and point to the file that was written."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

from langchain_core.messages import AIMessage, AnyMessage, ToolCall, ToolMessage

from deepagents.errors import ConfigError
from deepagents.middleware._offload import join_content, offload_notice, split_content
from deepagents.middleware.summarization.caches import IdentityCache
from deepagents.middleware.summarization.policy import (
    LEAST_GAIN,
    Load,
    is_due,
    least_gain,
)
from deepagents.middleware.summarization.sizes import ContextSize, Keep, Trigger, TruncateArgsSettings

CLIPPED_TOOLS: Final = frozenset({"write_file", "edit_file"})
_HEAD: Final = 20
_MAX_LENGTH: Final = 2000
_KEEP: Final[ContextSize] = ("messages", 20)
_LEAST_WITHOUT_WINDOW: Final = 8000
_BATCH: Final = 2
"""How much more a batch must free than a compaction must: what stands behind it is sent anew."""
_CHARACTERS_PER_TOKEN: Final = 4
_READ_FILE_HEAD: Final = 4000
_POINTER: Final = "...(argument truncated; see the file {path})"
_NO_POINTER: Final = "...(argument truncated)"
_READ_FILE_NOTICE: Final = (
    "{head}\n\n[The rest of this result was cut to save context. Read on in {path} with read_file, "
    "with offset and limit.]"
)

Record = Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class Clipping:
    """When arguments are clipped, which messages are too new for it, and from which length on.

    Once clipped, an argument stays clipped. A batch is taken only where it frees 10 % of the window, or of
    what stands for it, so that providers seldom lose the prefix they have cached.
    """

    trigger: Trigger = field(default_factory=Trigger)
    keep: Keep = field(default_factory=lambda: Keep.of(_KEEP))
    max_length: int = _MAX_LENGTH
    text: str | None = None
    copies: IdentityCache[tuple[str | None, AnyMessage]] = field(
        default_factory=lambda: IdentityCache[tuple[str | None, AnyMessage]](), compare=False, repr=False
    )

    @classmethod
    def of(cls, settings: TruncateArgsSettings | None) -> Clipping:
        """Check what a caller gave; without settings, or without a trigger in them, nothing is ever clipped.

        Raises:
            ConfigError: for unknown keys, and values that cannot be; also a ValueError.
            TypeError: for settings, a trigger or a keep that have none of the forms they may have.
        """
        if settings is None:
            return cls()
        if not isinstance(cast(Any, settings), Mapping):
            raise TypeError(f"truncate_args_settings are a dict, not {settings!r}.")
        unknown = sorted(map(repr, set(settings) - TruncateArgsSettings.__annotations__.keys()))
        if unknown:
            known = ", ".join(TruncateArgsSettings.__annotations__)
            raise ConfigError(f"truncate_args_settings know no {', '.join(unknown)}: they take {known}.")
        length: Any = settings.get("max_length", _MAX_LENGTH)
        if isinstance(length, bool) or not isinstance(length, int) or length <= 0:
            raise ConfigError(
                f"The max_length {length!r} cannot be: give a whole number of characters above 0."
            )
        text: Any = settings.get("truncation_text")
        if text is not None and not isinstance(text, str):
            raise ConfigError(f"The truncation_text {text!r} cannot be: give a text.")
        trigger = settings.get("trigger")
        if trigger is not None and not isinstance(cast(Any, trigger), tuple):
            raise TypeError(
                f"The trigger {trigger!r} of truncate_args_settings is no pair such as ('fraction', 0.5)."
            )
        return cls(Trigger.of(trigger), Keep.of(settings.get("keep", _KEEP)), length, text)

    def next_batch(
        self,
        messages: Sequence[AnyMessage],
        counts: Callable[[Sequence[AnyMessage]], Sequence[int]],
        load: Load,
        already: Collection[str] = (),
    ) -> frozenset[str]:
        """Return the ids of the messages to clip besides those that are; none where it gains too little.

        `messages` are those of the view, clipped or not; `counts` counts each of some messages, and is asked
        only once the trigger is met.
        """
        if not is_due(self.trigger, load):
            return frozenset()
        gains: dict[str, int] = {}
        again = False
        for message, answers in _with_answers(messages, self._old(messages, counts, load.window)):
            if message.id is None or message.id in already:
                again = again or message.id is not None
                continue
            gain = sum(map(self._gain, _done(message, answers)))
            if gain > 0:
                gains[message.id] = gain
        enough = sum(gains.values()) >= _CHARACTERS_PER_TOKEN * self._least_gain(load.window, again=again)
        return frozenset(gains) if enough else frozenset()

    def _least_gain(self, window: int | None, *, again: bool) -> int:
        """Return the tokens a batch must free; the first one that a number of messages triggers, any."""
        if not again and all(size.metric == "messages" for clause in self.trigger.clauses for size in clause):
            return 0
        if window is not None:
            return _BATCH * (least_gain(self.trigger, window) or int(LEAST_GAIN * window))
        return min(_BATCH * least_gain(self.trigger, None) or _LEAST_WITHOUT_WINDOW, _LEAST_WITHOUT_WINDOW)

    def clipped(self, messages: list[AnyMessage], record: Record) -> list[AnyMessage]:
        """Return the messages as a request shows them: copies of those in the record, all others as they are.

        Of a model's message long arguments of file writes that succeeded are clipped; of a tool's, the file
        that the record names holds the text.
        """
        if not record:
            return messages
        return [
            self._copy(messages, at, record[message.id]) if message.id and message.id in record else message
            for at, message in enumerate(messages)
        ]

    def _copy(self, messages: Sequence[AnyMessage], at: int, path: str | None) -> AnyMessage:
        message = messages[at]
        known = self.copies.get(message)
        if known is not None and known[0] == path:
            return known[1]
        match message:
            case AIMessage():
                copy = self._clip(message, _answers(messages, at))
            case ToolMessage() if path is not None:
                copy = _pointing(message, path)
            case _:
                copy = message
        return self.copies.put(message, (path, copy))[1]

    def _old(
        self,
        messages: Sequence[AnyMessage],
        counts: Callable[[Sequence[AnyMessage]], Sequence[int]],
        window: int | None,
    ) -> int:
        """Count the messages that are old enough."""
        size = self.keep.size
        most = size.threshold(window)
        if most is None or size.metric == "messages":
            return max(len(messages) - (most or _KEEP[1]), 0)
        at = len(messages)
        for count in reversed(counts(messages)):
            most -= count
            if most < 0:
                return at
            at -= 1
        return at

    def _clip(self, message: AIMessage, answers: Mapping[str, ToolMessage]) -> AIMessage:
        args = {call["id"]: self._args(call) for call in _done(message, answers) if self._gain(call) > 0}
        if not args:
            return message
        calls = [{**call, "args": args.get(call["id"], call["args"])} for call in message.tool_calls]
        changed: dict[str, Any] = {"tool_calls": calls}
        if isinstance(message.content, list):
            changed["content"] = [_with_args(block, args) for block in message.content]
        raw = message.additional_kwargs.get("tool_calls")
        if isinstance(raw, list):
            calls = [_with_args(call, args) for call in cast("list[Any]", raw)]
            changed["additional_kwargs"] = {**message.additional_kwargs, "tool_calls": calls}
        return message.model_copy(update=changed)

    def _gain(self, call: ToolCall) -> int:
        """Count the characters that clipping a call saves."""
        long = [value for value in call["args"].values() if self._is_long(value)]
        return sum(map(len, long)) - len(long) * (_HEAD + len(self._note(call)))

    def _args(self, call: ToolCall) -> dict[str, Any]:
        note = self._note(call)
        return {
            name: value[:_HEAD] + note if self._is_long(value) else value
            for name, value in call["args"].items()
        }

    def _note(self, call: ToolCall) -> str:
        path = call["args"].get("file_path")
        if self.text is not None:
            return self.text
        named = isinstance(path, str) and not self._is_long(path)
        return _POINTER.format(path=path) if named else _NO_POINTER

    def _is_long(self, value: Any) -> bool:
        return isinstance(value, str) and len(value) > self.max_length


def _pointing(message: ToolMessage, path: str) -> ToolMessage:
    """Return a result that shows a part of its text, and says where all of it is."""
    text, others = split_content(message.content)
    if message.name == "read_file":
        notice = _READ_FILE_NOTICE.format(head=text[:_READ_FILE_HEAD], path=path)
    else:
        notice = offload_notice(path, text)
    return message.model_copy(update={"content": join_content(notice, others)})


def _with_answers(
    messages: Sequence[AnyMessage], old: int
) -> Iterator[tuple[AIMessage, Mapping[str, ToolMessage]]]:
    for at, message in enumerate(messages[:old]):
        if isinstance(message, AIMessage) and any(
            call["name"] in CLIPPED_TOOLS for call in message.tool_calls
        ):
            yield message, _answers(messages, at)


def _answers(messages: Sequence[AnyMessage], at: int) -> Mapping[str, ToolMessage]:
    """Return by call the results behind a message of the model."""
    answers: dict[str, ToolMessage] = {}
    for behind in range(at + 1, len(messages)):
        message = messages[behind]
        if isinstance(message, AIMessage):
            break
        if isinstance(message, ToolMessage):
            answers[message.tool_call_id] = message
    return answers


def _done(message: AIMessage, answers: Mapping[str, ToolMessage]) -> Iterator[ToolCall]:
    """Yield the calls that wrote a file: what failed is nowhere else."""
    for call in message.tool_calls:
        answer = answers.get(call["id"] or "")
        if call["name"] in CLIPPED_TOOLS and answer is not None and answer.status != "error":
            yield call


def _with_args(block: Any, args: Mapping[str | None, Mapping[str, Any]]) -> Any:
    """Return a call in a provider's form with clipped arguments, if they are clipped."""
    if not isinstance(block, dict):
        return block
    given = cast("dict[str, Any]", block)
    clipped = args.get(given.get("call_id") or given.get("id"))
    if clipped is None:
        return given
    if isinstance(given.get("function"), dict):
        return {
            **given,
            "function": {
                **given["function"],
                "arguments": json.dumps(clipped, ensure_ascii=False, default=str),
            },
        }
    changed: dict[str, Any] = {}
    for key in ("input", "args"):
        if isinstance(given.get(key), dict):
            changed[key] = dict(clipped)
    for key in ("arguments", "partial_json"):
        if isinstance(given.get(key), str):
            changed[key] = json.dumps(clipped, ensure_ascii=False, default=str)
    return {**given, **changed}
