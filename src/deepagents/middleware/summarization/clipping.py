"""Show less of what lies in a file: long arguments of old file writes, and results that were moved out.

Arguments are clipped in batches, and stay clipped: each batch changes the prompt prefix that providers cache.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import islice, takewhile
from typing import Any, Final, cast

from langchain_core.messages import AIMessage, AnyMessage, ToolCall, ToolMessage

from deepagents._values import valueclass
from deepagents.errors import ConfigError
from deepagents.middleware._offload import join_content, offload_notice, split_content
from deepagents.middleware.summarization.policy import (
    CLIP_KEEP_MESSAGES,
    LEAST_GAIN,
    Load,
    Size,
    Trigger,
    TruncateArgsSettings,
    is_due,
    least_gain,
    parse_size,
    parse_trigger,
)
from deepagents.tools._tool import CHARACTERS_PER_TOKEN, ToolSpec

_SHOWN_OF_ARGUMENT: Final = 20
_SHOWN_OF_RESULT: Final = 600
_MAX_LENGTH: Final = 2000
_BATCH: Final = 2
"""How much more a batch must free than a compaction must: what comes after it is sent anew."""
_MOST_LEAST_GAIN: Final = 8000
_POINTER: Final = "...(argument truncated; see the file {path})"
_NO_POINTER: Final = "...(argument truncated)"
_IN_FILE: Final = """{sample}

[The rest of this result was cut to save context. Read on in {path} with read_file, with offset and limit.]"""

Sizes = Callable[[], Sequence[int]]
Specs = Mapping[str, ToolSpec]
"""The facts about the tools of an agent, by name."""


def shorten(text: str, most: int) -> str:
    """Return the beginning and the end of a text, and how much is left out between them."""
    if len(text) <= most:
        return text
    note = f" ... [{len(text) - most} characters left out] ... "
    kept = max(most - len(note), 0)
    head = int(kept * 0.6)
    return f"{text[:head]}{note}{text[len(text) - (kept - head) :]}"


def shorten_within(value: Any, most: int) -> Any:
    """Return a value with each text in it shortened."""
    match value:
        case str():
            return shorten(value, most)
        case list():
            return [shorten_within(each, most) for each in cast("list[Any]", value)]
        case dict():
            return {key: shorten_within(each, most) for key, each in cast("dict[Any, Any]", value).items()}
        case _:
            return value


def point_to_file(message: AnyMessage, path: str, specs: Specs) -> AnyMessage:
    """Return a message that shows how its text begins and ends, and names the file with all of it."""
    text, others = split_content(message.content)
    sample = shorten(text, _SHOWN_OF_RESULT)
    spec = specs.get(message.name or "") if isinstance(message, ToolMessage) else None
    if spec is not None and spec.effect == "read":
        notice = _IN_FILE.format(sample=sample, path=path)
    else:
        what = "Tool result" if isinstance(message, ToolMessage) else "Message"
        notice = offload_notice(path, text, what=what, sample=sample)
    return message.model_copy(update={"content": join_content(notice, others)})


@valueclass
class Clipping:
    """When arguments are clipped, which messages are too new for it, and from which length on."""

    trigger: Trigger = ()
    keep: Size = parse_size(CLIP_KEEP_MESSAGES)
    max_length: int = _MAX_LENGTH
    text: str | None = None

    @classmethod
    def of(cls, settings: TruncateArgsSettings | None) -> Clipping:
        """Validate what a caller gave; without settings, or without a trigger, nothing is ever clipped.

        Raises:
            ConfigError: for unknown keys and impossible values; also a ValueError.
            TypeError: for settings, a trigger or a keep of another form.
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
                f"The trigger {trigger!r} of truncate_args_settings is not a pair such as ('fraction', 0.5)."
            )
        keep = parse_size(settings.get("keep", CLIP_KEEP_MESSAGES))
        return cls(parse_trigger(trigger), keep, length, text)

    def next_batch(
        self,
        messages: Sequence[AnyMessage],
        sizes: Sizes,
        load: Load,
        specs: Specs,
        already: Collection[str] = (),
    ) -> frozenset[str]:
        """Return the ids of further messages to clip; none where a batch would free too little.

        `messages` are those that a request shows; `sizes` is asked only where a batch is likely.
        """
        if not is_due(self.trigger, load):
            return frozenset()
        written = [
            (at, message.id, sum(saved for _, saved in self._clip_calls(messages, at, specs).values()))
            for at, message in enumerate(messages)
            if isinstance(message, AIMessage) and message.id and message.id not in already
        ]
        new = [each for each in written if each[2] > 0]
        again = any(each.id in already for each in messages if isinstance(each, AIMessage))
        least = max(CHARACTERS_PER_TOKEN * self._least_gain(load, again=again), 1)
        # Sizes are worked out message by message, so first see whether all together would be enough.
        if sum(saved for _, _, saved in new) < least:
            return frozenset()
        old = self._count_old(messages, sizes, load.window)
        batch = {message_id: saved for at, message_id, saved in new if at < old}
        return frozenset(batch) if sum(batch.values()) >= least else frozenset()

    def show(
        self, messages: list[AnyMessage], record: Mapping[str, str | None], specs: Specs
    ) -> list[AnyMessage]:
        """Return the messages with copies instead of those in the record.

        Of a model's message, long arguments of file writes that succeeded are clipped; of any other, the file
        that the record names holds the text.
        """
        if not record:
            return messages
        return [
            self._clip_at(messages, at, record[message.id], specs)
            if message.id and message.id in record
            else message
            for at, message in enumerate(messages)
        ]

    def _clip_at(self, messages: Sequence[AnyMessage], at: int, path: str | None, specs: Specs) -> AnyMessage:
        message = messages[at]
        if isinstance(message, AIMessage):
            args = {call: args for call, (args, _) in self._clip_calls(messages, at, specs).items()}
            return _with_calls(message, args) if args else message
        return message if path is None else point_to_file(message, path, specs)

    def _least_gain(self, load: Load, *, again: bool) -> int:
        """Return the tokens a batch must free; the first one that a number of messages triggers, any."""
        gain = _BATCH * least_gain(self.trigger, load)
        if not gain and again:
            gain = int(_BATCH * LEAST_GAIN * load.window) if load.window else _MOST_LEAST_GAIN
        return gain if load.window else min(gain, _MOST_LEAST_GAIN)

    def _count_old(self, messages: Sequence[AnyMessage], sizes: Sizes, window: int | None) -> int:
        """Count the messages that are old enough."""
        most = self.keep.threshold(window)
        if most is None or self.keep.metric == "messages":
            return max(len(messages) - (most or int(CLIP_KEEP_MESSAGES[1])), 0)
        at = len(messages)
        for size in reversed(sizes()):
            most -= size
            if most < 0:
                return at
            at -= 1
        return at

    def _clip_calls(
        self, messages: Sequence[AnyMessage], at: int, specs: Specs
    ) -> dict[str | None, tuple[dict[str, Any], int]]:
        """Return the clipped arguments of a message's calls, and how many characters that saves."""
        clipped: dict[str | None, tuple[dict[str, Any], int]] = {}
        for call, spec in _find_written(messages, at, specs):
            note = self._note(call, spec)
            long = {
                name: _shorten(value, note)
                for name, value in call["args"].items()
                if name in spec.clipped_arguments and _size(value) > self.max_length
            }
            saved = sum(_size(call["args"][name]) - _size(value) for name, value in long.items())
            if saved > 0:
                clipped[call["id"]] = {**call["args"], **long}, saved
        return clipped

    def _note(self, call: ToolCall, spec: ToolSpec) -> str:
        if self.text is not None:
            return self.text
        path = ", ".join(map(spec.paths.show, spec.paths_in(call["args"])))
        return _POINTER.format(path=path) if path and len(path) <= self.max_length else _NO_POINTER


def _size(value: object) -> int:
    return len(value) if isinstance(value, str) else len(json.dumps(value))


def _shorten(value: Any, note: str) -> Any:
    """Return the beginning of a text, and the note; of a list of texts by name the first, so shortened."""
    if isinstance(value, str):
        return value[:_SHOWN_OF_ARGUMENT] + note if len(value) > _SHOWN_OF_ARGUMENT else value
    match value:
        case [{**first}, *_]:
            return [{name: _shorten(text, note) for name, text in first.items()}]
        case _:
            return value


def _find_written(
    messages: Sequence[AnyMessage], at: int, specs: Specs
) -> Sequence[tuple[ToolCall, ToolSpec]]:
    """Return the calls of a message that wrote a file: what failed to be written is nowhere else."""
    asked = cast(AIMessage, messages[at])
    calls = [(call, specs.get(call["name"])) for call in asked.tool_calls]
    writing = [(call, spec) for call, spec in calls if spec and spec.clipped_arguments]
    if not writing:
        return ()
    results = takewhile(lambda each: not isinstance(each, AIMessage), islice(messages, at + 1, None))
    done = {each.tool_call_id: each.status != "error" for each in results if isinstance(each, ToolMessage)}
    return [(call, spec) for call, spec in writing if done.get(call["id"] or "")]


def _with_calls(message: AIMessage, args: Mapping[str | None, Mapping[str, Any]]) -> AIMessage:
    """Return a message with other arguments in its calls."""
    calls = [{**call, "args": args.get(call["id"], call["args"])} for call in message.tool_calls]
    changed: dict[str, Any] = {"tool_calls": calls}
    # Packages of providers send a call back from any of the three forms, so all are clipped.
    if isinstance(message.content, list):
        changed["content"] = [_with_args(block, args) for block in message.content]
    raw = message.additional_kwargs.get("tool_calls")
    if isinstance(raw, list):
        calls = [_with_args(call, args) for call in cast("list[Any]", raw)]
        changed["additional_kwargs"] = {**message.additional_kwargs, "tool_calls": calls}
    return message.model_copy(update=changed)


def _with_args(block: Any, args: Mapping[str | None, Mapping[str, Any]]) -> Any:
    """Return a call in a provider's form with its arguments clipped as in `args`; anything else as it is."""
    if not isinstance(block, dict):
        return block
    given = cast("dict[str, Any]", block)
    # Blocks of OpenAI's have an `id` of their own next to that of the call.
    clipped = args.get(given.get("call_id") or given.get("id"))
    if clipped is None:
        return given
    as_json = json.dumps(clipped, ensure_ascii=False, default=str)
    if isinstance(given.get("function"), dict):
        return {**given, "function": {**given["function"], "arguments": as_json}}
    changed: dict[str, Any] = {}
    for key in ("input", "args"):
        if isinstance(given.get(key), dict):
            changed[key] = dict(clipped)
    for key in ("arguments", "partial_json"):
        if isinstance(given.get(key), str):
            changed[key] = as_json
    return {**given, **changed}
