"""Tell a model that a call brought what it had brought before, where nothing was changed in between."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, cast

from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from deepagents._state.programs import is_call_of_program
from deepagents.middleware._requests import ToolResult, specs_of_call
from deepagents.tools._tool import SpecTool, offered_tools

_MOST_TURNS: Final = 12
"""How far back a call is looked for: a small model goes round in circles of a few."""
# Measured with a small model: the names of tools, as the last words, get it out of a circle. Without them, or
# with the answer as the last words, it goes on as before.
_NOTE: Final = (
    "\n\nNothing new. The same call was made before, and its result stands above. {unless}nswer with what is "
    "known, or use other arguments, or another tool{names}."
)
_ANY_NOTE: Final = re.compile(re.escape(_NOTE.partition("{")[0]) + r".*\Z", re.DOTALL)
_EFFECTS: Final = ("run", "write")
"""What the tools do that are named, which get the work on, in order."""
_MOST_TOOLS: Final = 3


def note_repeat(result: ToolResult, request: ToolCallRequest) -> ToolResult:
    """Say that a call which looks, runs a command, writes or failed repeats an earlier one and its result."""
    if is_call_of_program(request.tool_call["id"]) or not isinstance(result, ToolMessage):
        return result
    spec = request.tool.spec if isinstance(request.tool, SpecTool) else None
    artifact: object = result.artifact
    effect = spec and spec.effect
    has_run = effect == "run" and isinstance(artifact, Mapping) and "exit_code" in artifact
    # A file that is written whole holds the same; what an edit does the second time is not known.
    has_written = spec is not None and spec.creates_files and result.status != "error"
    if not (effect in ("read", "search") or has_run or has_written or result.status == "error"):
        return result
    # Blocks may hold more than text, which a note must not replace.
    if not result.content or not isinstance(result.content, str):
        return result
    # If others have written in between, a look shows it.
    if not _has_same_before(result.content, request, 1 if has_written else _MOST_TURNS):
        return result
    unless = "Unless it waits for something, a" if has_run else "A"
    note = _NOTE.format(
        unless=unless, names=name_tools(cast(Any, request).runtime, request.tool_call["name"])
    )
    return result.model_copy(update={"content": f"{result.content}{note}"})


def name_tools(runtime: Any, called: str) -> str:
    """Name the first tools of the model that get work on, behind a colon, without the one that it called."""
    offered = offered_tools(runtime)
    specs = [each.spec for each in offered if isinstance(each, SpecTool) and not each.spec.about_background]
    names = [spec.name for effect in _EFFECTS for spec in specs if spec.effect == effect]
    others = [name for name in names if name != called][:_MOST_TOOLS]
    return f": {', '.join(others)}" if others else ""


def _has_same_before(content: str, request: ToolCallRequest, most: int) -> bool:
    """Return whether the same call had the same result so many turns ago at most, with no change since."""
    turns = _last_turns(request)[-most - 1 :]
    looking = [name for name, spec in specs_of_call(request).items() if spec.effect in ("read", "search")]
    asked = [_calls_of(turn) for turn in turns[-4:]]
    # Two calls in turn, each the same again, change nothing either.
    alternates = len(asked) == 4 and asked[:2] == asked[2:]
    for back, turn in enumerate(turns[-2::-1], 1):
        before = _result_in(turn, request.tool_call)
        if before is not None:
            # Its own note apart: a third call is the same again.
            return _ANY_NOTE.sub("", before) == content
        if not (_only_looks(turn, looking) or (alternates and back == 1)):
            return False
    return False


def _last_turns(request: ToolCallRequest) -> Sequence[Sequence[BaseMessage]]:
    """Return the last turns, the newest last: the answer of the model, and the results behind it."""
    state = cast("Mapping[str, Any]", request.state)
    messages: Sequence[BaseMessage] = state.get("messages", ())
    starts: list[int] = []
    for at in range(len(messages) - 1, -1, -1):
        if isinstance(messages[at], AIMessage):
            starts.insert(0, at)
        if len(starts) > _MOST_TURNS:
            break
    return [messages[at:end] for at, end in pairwise([*starts, len(messages)])]


def _only_looks(turn: Sequence[BaseMessage], looking: Collection[str]) -> bool:
    """Return whether all calls of a turn looked at something, or failed."""
    results = [each for each in turn if isinstance(each, ToolMessage)]
    return len(results) == len(turn) - 1 and all(
        each.status == "error" or each.name in looking for each in results
    )


def _calls_of(turn: Sequence[BaseMessage]) -> Sequence[Any]:
    answer = turn[0]
    return (
        [(each["name"], each["args"]) for each in answer.tool_calls] if isinstance(answer, AIMessage) else ()
    )


def _result_in(turn: Sequence[BaseMessage], call: Mapping[str, Any]) -> str | None:
    """Return the result that the same call had in a turn; `None` where there was none."""
    answer = turn[0]
    made = answer.tool_calls if isinstance(answer, AIMessage) else ()
    same = {each["id"] for each in made if (each["name"], each["args"]) == (call["name"], call["args"])}
    results = (each for each in turn if isinstance(each, ToolMessage) and each.tool_call_id in same)
    return next((each.text for each in results), None)
