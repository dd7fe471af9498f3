"""Ask a model once whether it is done, where its last words do not look like an end.

It is opt-in: a run that ends so costs one more call of the model, which a scripted model of somebody's test
would not expect, and streams an answer that is not the last. Where a person reads the answer and can say
"go on", it is not needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from itertools import takewhile
from typing import Annotated, Any, Final, NotRequired, Self, cast

from langchain.agents import AgentState
from langchain.agents.middleware import hook_config
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolCall, ToolMessage

from deepagents._paths import normalise
from deepagents._state.schema import NOT_SHARED
from deepagents.backends.guard import CallRights
from deepagents.backends.handle import BACKEND_SECONDS, FileCalls, open_backend
from deepagents.backends.protocol import BACKEND_TYPES
from deepagents.errors import BackendError, ConfigError, ToolFailure
from deepagents.middleware._base import BaseMiddleware
from deepagents.middleware._history import ends_at_limit, is_from_person
from deepagents.permissions import Rules
from deepagents.tools import specs_by_name

_SOURCE: Final = "finish_check"
_MENDABLE: Final = frozenset(
    {
        "ambiguous_match", "file_not_found", "incomplete_answer", "invalid_argument", "invalid_path",
        "is_directory", "no_match", "not_a_directory", "not_supported", "stale_version",
    }
)  # fmt: skip
"""Codes of failures that another call can mend; a refusal or a broken tool is a good reason to stop."""
# In English alone; a colon at the end announces something in any language.
_ANNOUNCES: Final = re.compile(
    r"([:\uff1a]|(\A|[.!?\n])[ \t]*(next,? i|now,? i|i will|i'll|i’ll|let me|let's)\b(?! (know|be)\b)"
    r"([^.!?\n]|\.(?=\S))*+[.…]*)\Z",
    re.IGNORECASE,
)
_FILE_NAME: Final = re.compile(
    r"(?<![\w@:/\\.~$%*?{}<>-])(?:\.?/)?(?:[\w.-]+/)*[\w-][\w.-]*\."
    r"(?:bash|c|cpp|css|csv|docx|go|h|html|ini|ipynb|java|jpeg|jpg|js|json|jsonl|log|md|pdf|php|png|py|rb|rs|rst|sh|sql"
    r"|svg|tex|toml|ts|tsv|tsx|txt|xlsx|xml|yaml|yml|zip)(?![\w*?/(-])(?!\.\w)"
)
"""A name with an ending that files have; `example.com` and `console.log(` are none."""
_ASKS: Final = ("?", "\uff1f")
_REMOVES: Final = re.compile(r"(?:\A|[;&|\n(])[ \t]*(?:rm|mv|unlink)\s")
_MOST_FILES: Final = 8
"""A message that names more files was pasted, and orders none of them."""
_SECONDS_TO_FIND: Final = 2.0
_MOST_SEARCHED: Final = 2_000
"""Characters at the end of an answer: the search for an announcement takes their square."""
_MISSING: Final = "finish_check_missing"
_QUESTION: Final = (
    "You stopped, but {why}. If the task is done, give your whole answer again. If not, go on: call the next "
    "tool."
)


class FinishCheckState(AgentState[Any]):
    """Which files that the request names were not there when it came."""

    finish_check_missing: NotRequired[Annotated[Sequence[str], PrivateStateAttr, NOT_SHARED]]


class FinishCheckMiddleware(BaseMiddleware):
    """Ask once, before the agent stops, whether it is done: where its last words do not look like an end.

    They do not right behind a failed call that the model could mend, with open to-dos, where they announce
    the next step, and where there are none. Nor where a file that the request names is missing: it was not
    there when the request came, tools were called, and it is nowhere now. For one request it asks once. A
    question to a person is an end.

    Args:
        backend: where the files are; in `create_deep_agent` by default the agent's own. Without one, no file
            is missed.
    """

    state_schema: type[Any] = FinishCheckState

    def __init__(self, *, backend: BACKEND_TYPES | None = None) -> None:
        super().__init__()
        self._handle = None if backend is None else open_backend(backend, BACKEND_SECONDS)
        self._rules = Rules()

    def in_agent(self, backend: BACKEND_TYPES, rules: Rules) -> Self:
        """Return a copy for an agent with a backend and rules."""
        clone = copy(self)
        vars(clone).update(_handle=self._handle or open_backend(backend, BACKEND_SECONDS), _rules=rules)
        return clone

    async def _before_agent(self, state: Mapping[str, Any], runtime: Any) -> dict[str, Any] | None:
        """Note which files that a new request names are not there."""
        messages: Sequence[AnyMessage] = state["messages"]
        if not messages or not is_from_person(messages[-1]):
            return None
        names = list(dict.fromkeys(_FILE_NAME.findall(messages[-1].text)))
        missing = await self._find_missing(names if len(names) <= _MOST_FILES else (), runtime)
        return {_MISSING: missing} if missing != (state.get(_MISSING) or []) else None

    @hook_config(can_jump_to=["model"])
    async def _after_agent(self, state: Mapping[str, Any], runtime: Any) -> dict[str, Any] | None:
        """Send the model back with a question, if there is a doubt."""
        messages: Sequence[AnyMessage] = state["messages"]
        turn = [*takewhile(lambda each: not is_from_person(each), reversed(messages))]
        was_asked = any(each.additional_kwargs.get("lc_source") == _SOURCE for each in turn)
        if not _is_answer(messages) or ends_at_limit(messages) or was_asked:
            return None
        why = _doubt(messages, state.get("todos") or ()) or await self._name_missing(state, turn, runtime)
        if why is None:
            return None
        runtime.stream_writer({"type": _SOURCE, "why": why})
        text, marks = _QUESTION.format(why=why), {"lc_source": _SOURCE}
        return {"messages": [HumanMessage(text, name=_SOURCE, additional_kwargs=marks)], "jump_to": "model"}

    async def _name_missing(self, state: Any, turn: list[AnyMessage], runtime: Any) -> str | None:
        """Name the files that were to come, unless nothing was tried or something keeps them from coming."""
        results = [each for each in turn if isinstance(each, ToolMessage)]
        if not results or any(each.status == "error" and not _can_be_mended(each) for each in results):
            return None
        # One that the request names may lie in a directory that it names elsewhere.
        done = {each.tool_call_id for each in results if each.status == "success"}
        calls = [each for answer in turn if isinstance(answer, AIMessage) for each in answer.tool_calls]
        had = {file for each in calls if each["id"] in done for file in _files_made_or_removed(each)}
        names = [each for each in state.get(_MISSING) or () if _base(each) not in had]
        missing = await self._find_missing(names, runtime, anywhere=True)
        verb = "do" if len(missing) > 1 else "does"
        return f"{', '.join(missing)}, which the request names, {verb} not exist" if missing else None

    async def _find_missing(
        self, names: Sequence[str], runtime: Any, *, anywhere: bool = False
    ) -> Sequence[str]:
        """Return the files that are known not to be at their paths, nor `anywhere` else."""
        if self._handle is None or not names:
            return []
        try:
            files = self._handle.files(runtime, CallRights(self._rules) if self._rules.given else None)
            return [
                name
                for name in names
                if not await _is_there(files, name) and not (anywhere and await _is_below(files, name))
            ]
        # What is wrong with the backend is an error of the tools, not of a request that names a file.
        except (ToolFailure, ConfigError):
            return []


async def _is_there(files: FileCalls, name: str) -> bool:
    try:
        directory, _, base = normalise(files.capabilities().command_paths.own(name)).rpartition("/")
    except BackendError:
        return True
    try:
        # Not by a pattern: that goes through the whole tree, before the model is first asked.
        listed = await files.ls(directory or "/")
    except ToolFailure as failure:
        return failure.code not in ("file_not_found", "not_a_directory")
    names = {each["path"].rstrip("/").rpartition("/")[2] for each in listed.entries or ()}
    # Of a list that was not read to its end, it is not known what is missing.
    return base in names or listed.error is not None


async def _is_below(files: FileCalls, name: str) -> bool:
    try:
        found = await files.glob(f"**/{_base(name)}", None, _SECONDS_TO_FIND)
    except ToolFailure:
        return True
    return bool(found.matches or found.error)


def _is_answer(messages: Sequence[AnyMessage]) -> bool:
    """Return whether a history ends with an answer that asks a person nothing."""
    last = messages[-1] if messages else None
    return isinstance(last, AIMessage) and not (last.tool_calls or last.text.strip().endswith(_ASKS))


def _files_made_or_removed(call: ToolCall) -> Iterable[str]:
    """Return the names of files that a call has written or removed: those were there."""
    spec, command = specs_by_name().get(call["name"]), str(call["args"].get("command"))
    if spec and spec.changes_files:
        return map(_base, spec.paths_in(call["args"]))
    return map(_base, _FILE_NAME.findall(command)) if _REMOVES.search(command) else ()


def _base(path: str) -> str:
    return path.rpartition("/")[2]


def _doubt(messages: Sequence[AnyMessage], todos: Iterable[Any]) -> str | None:
    """Return why the work may not be done; `None` where the last words look like an end."""
    text = messages[-1].text.strip()[-_MOST_SEARCHED:]
    if isinstance(before := messages[-2:][0], ToolMessage) and _can_be_mended(before):
        return f"your last call, of {before.name or 'a tool'}, failed"
    if open_todos := sum(_is_open(each) for each in todos):
        return "a to-do is open" if open_todos == 1 else f"{open_todos} to-dos are open"
    if not text:
        return "you said nothing"
    return "you announced a next step" if _ANNOUNCES.search(text) else None


def _can_be_mended(result: ToolMessage) -> bool:
    return result.additional_kwargs.get("error_code") in _MENDABLE


def _is_open(todo: Any) -> bool:
    return isinstance(todo, Mapping) and cast("Mapping[str, Any]", todo).get("status") != "completed"
