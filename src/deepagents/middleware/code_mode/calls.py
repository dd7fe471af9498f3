"""Make the calls of a program as calls of the agent: with all that stands around its tools."""

from __future__ import annotations

import json
import logging
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, Final, cast

from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import ToolCall, ToolMessage
from langgraph.channels.last_value import LastValue
from langgraph.errors import GraphBubbleUp
from langgraph.types import Command

from deepagents._async import in_thread
from deepagents._state.programs import called_by_program
from deepagents._state.runtime import (
    has_channel,
    read_channel,
    running_channel,
    value_after_write,
    write_channel,
)
from deepagents._text import describe_exception, truncate
from deepagents._values import field, recordclass, replace
from deepagents.errors import RunConfigError
from deepagents.middleware._base import inner
from deepagents.middleware._requests import ToolResult
from deepagents.middleware.code_mode.values import (
    MOST_WRITTEN,
    is_too_large,
    with_whole_characters,
    write_short,
)
from deepagents.middleware.tool_search import find_tools, has_seen_request, schema_of
from deepagents.tools._offered import OFFERED_CHANNEL

_MOST_CHARACTERS: Final = 4_000
_MOST_OF_ARGUMENTS: Final = 120
_MOST_LISTED: Final = 20
_log = logging.getLogger(__name__)


class CallFailed(Exception):
    """A call of a program failed; the program catches it as a `RuntimeError` with these words."""


@recordclass
class Made:
    """A call that a program has made, and how it ended."""

    name: str
    arguments: Mapping[str, Any]
    ended: str = "cut off"

    def __str__(self) -> str:
        given = ", ".join(f"{key}={write_short(value)}" for key, value in self.arguments.items())
        return f"- {self.name}({truncate(given, _MOST_OF_ARGUMENTS, '...')}): {self.ended}"


@recordclass
class ProgramCalls:
    """The calls of one program, and what they change in the state of the agent.

    Args:
        request: the call that runs the program.
        handler: runs a call with all that stands around the agent's tools.
        allowed: names and patterns of the tools that may be called; `None` for all.
        most: how many calls there may be.
        claimed: which program of this turn has changed a state key that takes one value a turn.
    """

    request: ToolCallRequest
    handler: Callable[[ToolCallRequest], ToolResult]
    allowed: Collection[str] | None
    most: int
    claimed: dict[str, str]
    made: list[Made] = field(default_factory=list[Made])
    update: dict[str, Any] = field(default_factory=dict[str, Any])
    broken: Exception | None = None
    """What a call raised that neither a program nor a model is to read, such as a bug in a middleware."""

    def __post_init__(self) -> None:
        untyped: Any = self.request
        self._own = str(self.request.tool_call["name"])
        self._runtime = untyped.runtime
        self._state: dict[str, Any] = dict(untyped.state)
        self._tools = find_tools(self._runtime)
        written = Counter(map(_as_written, self._tools))
        self._names = {_as_written(name): name for name in self._tools if written[_as_written(name)] == 1}

    def may_exist(self, name: str) -> bool:
        """Return whether a name can be that of a tool; those of servers are known after the first request."""
        return self._resolve(name) in self._tools or name.startswith("mcp__")

    def _resolve(self, name: str) -> str:
        """Return the name of the tool that a program calls so."""
        return name if name in self._tools else self._names.get(name, name)

    def describe(self, given: Sequence[object]) -> str:
        """Describe a tool to a program that has given its name.

        Raises:
            CallFailed: for a name that no tool has, and for anything else.
        """
        match given:
            case [str(name)]:
                name = self._resolve(name)
                tool = self._tools.get(name) if self._is_allowed(name) else None
            case _:
                raise CallFailed("tool_help takes the name of a tool: tool_help('NAME')")
        if tool is None:
            known = "" if has_seen_request() else " that is known yet; describe it in another program"
            raise CallFailed(f"there is no tool {name!r}{known}{self._name_nearest(name)}")
        arguments = {key: value for key, value in schema_of(tool).items() if key != "description"}
        return f"{tool.name}: {tool.description}\nArguments: {json.dumps(arguments, default=str)}"

    async def call(self, name: str, positional: tuple[Any, ...], given: Mapping[str, Any]) -> Any:
        """Make a call and return what the program gets of it.

        Raises:
            CallFailed: with the words of the tool.
        """
        name = self._resolve(name)
        self._check(name, positional)
        arguments = await in_thread(partial(_as_json, name, given))
        if len(self.made) >= self.most:
            raise CallFailed(f"a program may make {self.most} calls, and this one has made them")
        made = Made(name, arguments)
        self.made.append(made)
        call_id = f"{self.request.tool_call['id']}-{len(self.made)}"
        state = dict(self._state)
        request = replace(
            self.request,
            tool_call=ToolCall(name=name, args=arguments, id=call_id, type="tool_call"),
            # As for a call of the model: what a request has brought in is found by who brought it.
            tool=next((each for each in self._runtime.tools if each.name == name), None),
            state=state,
            runtime=replace(self._runtime, tool_call_id=call_id, state=state),
        )
        made.ended = "under way"
        with called_by_program(call_id):
            try:
                result = await inner(self.handler, request)
            except RunConfigError:
                raise
            except GraphBubbleUp as question:
                made.ended = "failed"
                raise CallFailed(
                    f"{name} asks a person, for whom a program cannot wait: call it by itself"
                ) from question
            except Exception as error:
                made.ended = "failed"
                if has_channel(OFFERED_CHANNEL):
                    # What a tool raises was made a result already, so this is to reach the caller.
                    self.broken = error
                    raise
                _log.warning("the tool %r failed in a program", name, exc_info=error)
                raise CallFailed(truncate(describe_exception(error), _MOST_CHARACTERS)) from error
        try:
            value = self._take(name, call_id, result)
        except CallFailed:
            made.ended = "failed"
            raise
        made.ended = "done"
        return value

    def list_made(self) -> str:
        """List the last calls and how they ended."""
        left_out = len(self.made) - _MOST_LISTED
        lines = [str(each) for each in self.made[-_MOST_LISTED:]]
        return "\n".join([f"({left_out} calls before these)", *lines] if left_out > 0 else lines)

    def _is_allowed(self, name: str) -> bool:
        if name == self._own:
            return False
        return self.allowed is None or any(fnmatchcase(name, pattern) for pattern in self.allowed)

    def _name_nearest(self, name: str) -> str:
        near = get_close_matches(name, filter(self._is_allowed, self._tools), n=3)
        return f"; nearest in name: {', '.join(near)}" if near else ""

    def _check(self, name: str, positional: tuple[Any, ...]) -> None:
        """Refuse what a program may not call, and arguments without names."""
        if not self._is_allowed(name):
            raise CallFailed(f"{name} cannot be called by a program{self._name_nearest(name)}")
        if not self.may_exist(name):
            raise CallFailed(f"there is no function or tool {name!r}{self._name_nearest(name)}")
        if positional:
            raise CallFailed(
                f"call {name} by keyword, {name}(argument=...); tool_help({name!r}) names the arguments"
            )

    def _take(self, name: str, call_id: str, result: Any) -> Any:
        """Keep what a result changes in the state, and return what it holds for the program."""
        messages = self._keep_changes(name, result)
        answers = [each for each in messages if isinstance(each, ToolMessage)]
        if others := [each for each in messages if not isinstance(each, ToolMessage)]:
            self.update["messages"] = [*self.update.get("messages", ()), *others]
        answer = next((each for each in answers if each.tool_call_id == call_id), None)
        if answer is None:
            raise CallFailed(f"{name} returned no result")
        if answer.status == "error":
            raise CallFailed(truncate(answer.text, _MOST_CHARACTERS))
        return _value_of(answer)

    def _keep_changes(self, name: str, result: Any) -> Sequence[Any]:
        """Keep what a result changes in the state, and return its messages."""
        messages: list[Any] = []
        for each in cast("list[Any]", result) if isinstance(result, list) else [result]:
            if not isinstance(each, Command):
                messages.append(each)
                continue
            command = cast("Command[Any]", each)
            if command.goto or command.graph is not None:
                raise CallFailed(f"{name} hands the work over, which a program cannot do: call it by itself")
            update: Any = command.update or {}
            pairs: Any = cast("dict[str, Any]", update).items() if isinstance(update, dict) else update
            for key, value in pairs:
                if key == "messages":
                    messages += value if isinstance(value, list) else [value]
                else:
                    self._write(name, key, value)
        return messages

    def _write(self, name: str, key: str, value: Any) -> None:
        """Keep a change of the state, and show it to the calls that follow.

        Raises:
            CallFailed: where another program of this turn has changed what takes one value a turn.
        """
        channel = running_channel(key)
        if channel is None:
            return
        if isinstance(channel, LastValue) or getattr(channel, "guard", False):
            own = str(self.request.tool_call["id"])
            if self.claimed.setdefault(key, own) != own:
                raise CallFailed(
                    f"another program of this turn has changed {key!r}, which takes one value a turn: what "
                    f"{name} changed in it is not kept; call it from one program alone"
                )
            # It takes one value in a step, so the last one is written when the program ends.
            self.update[key] = self._state[key] = value_after_write(channel, self._state.get(key), value)
        else:
            write_channel(key, value)
            self._state[key] = read_channel(key)


def _as_written(name: str) -> str:
    """Return the name of a tool as a program can write it."""
    return re.sub(r"\W", "_", name)


def _as_json(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call as a model would have written them."""
    if is_too_large(given):
        raise CallFailed(f"arguments of {name} take more than {MOST_WRITTEN:,} characters: give less at once")
    try:
        return json.loads(json.dumps(given))
    except (TypeError, ValueError, RecursionError) as error:
        raise CallFailed(f"arguments of {name} must be values of JSON: {error}") from error


def _value_of(answer: ToolMessage) -> Any:
    artifact: Any = answer.artifact
    value: Any = (
        cast("dict[str, Any]", artifact).get("structured_content") if isinstance(artifact, dict) else None
    )
    if value is not None:
        try:
            return with_whole_characters(value)
        except RecursionError as error:
            raise CallFailed(f"what {answer.name} returned is nested too deeply") from error
    content: Any = answer.content
    text = content if isinstance(content, str) else "\n".join(map(_text_of, content))
    return with_whole_characters(text)


def _text_of(block: Any) -> str:
    if isinstance(block, str):
        return block
    kind = block.get("type")
    return str(block.get("text", "")) if kind == "text" else f"[{kind}: a program cannot see it]"
