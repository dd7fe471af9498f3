"""Ask a model once whether it is done, where its last words do not look like an end."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from itertools import takewhile
from typing import Any, Final, Literal, Self, cast, get_args
from uuid import uuid4

from langchain.agents.middleware.types import ModelResponse
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.errors import GraphBubbleUp

from deepagents._paths import normalise
from deepagents.backends.guard import CallRights
from deepagents.backends.handle import BACKEND_SECONDS, BackendHandle, FileCalls, open_backend
from deepagents.backends.protocol import BACKEND_TYPES
from deepagents.backends.results import transfer_code
from deepagents.errors import BackendError, ConfigError, ToolFailure
from deepagents.middleware._base import BaseMiddleware, inner
from deepagents.middleware._history import FINISH_CHECK, asks_whether_done, is_from_person
from deepagents.middleware._requests import Request, Response, keeping
from deepagents.permissions import Rules

Doubt = Literal["missing_file", "failed_call", "open_todo", "announcement", "no_words"]
"""What an end may look like that is none."""
DOUBTS: Final[frozenset[Doubt]] = frozenset(get_args(Doubt))
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
    r"(?<![\w@:/\\.~$*?{}<>-])(?:\.?/)?(?:[\w.-]+/)*[\w-][\w.-]*\.(?:bash|bat|c|cc|cfg|conf|cpp|cs|css|csv|diff|docx"
    r"|go|h|hpp|htm|html|ini|ipynb|java|jpeg|jpg|js|json|jsonl|jsx|kt|lock|log|lua|md|mjs|patch|pdf|php|png|py|pyi"
    r"|rb|rs|rst|scss|sh|sql|svg|swift|tex|toml|ts|tsv|tsx|txt|xlsx|xml|yaml|yml|zip)(?![\w*?/-])(?!\.\w)"
)
"""A name with an ending that files have; `example.com` and `asyncio.run` have none of these."""
_MOST_NAMED: Final = 20
"""A message that names more files than these was pasted, and orders none of them."""
_MOST_TURNS: Final = 256
_SECONDS_TO_FIND: Final = 2.0
_QUESTION: Final = (
    "You stopped, but {why}. If the task is done, give your answer again. If not, go on: call the next tool."
)


class FinishCheckMiddleware(BaseMiddleware):
    """Ask once, before the agent stops, whether it is done: where its last words do not look like an end.

    They do not where a file that the request names was not there before and is not there now, though tools
    were called; right behind a failed call that the model could mend; with open to-dos; where they announce
    the next step; and where there are none. For one request it asks once. A question to a person is an end,
    and so is the answer where asking failed.

    In a plain `create_agent` no other middleware may have a hook after the model, which would end the run.

    Args:
        doubts: which of these ends are asked about; by default all. An agent of `create_deep_agent` without
            this middleware has one for `missing_file` alone.
        backend: where the files are; in `create_deep_agent` by default the agent's own. Without one, no file
            is missed.

    Raises:
        ConfigError: for a doubt of another name.
    """

    def __init__(self, doubts: Collection[Doubt] = DOUBTS, *, backend: BACKEND_TYPES | None = None) -> None:
        super().__init__()
        if unknown := sorted(set(doubts) - DOUBTS):
            raise ConfigError(f"there is no doubt {unknown[0]!r}; choose from {sorted(DOUBTS)}")
        self.doubts = frozenset(doubts)
        self._handle: BackendHandle | None = (
            None if backend is None else open_backend(backend, BACKEND_SECONDS)
        )
        self._rules = Rules()
        self._missed_at_first: OrderedDict[str, Sequence[str]] = OrderedDict()

    def in_agent(self, backend: BACKEND_TYPES, rules: Rules) -> Self:
        """Return a copy for an agent with a backend and rules."""
        clone = copy(self)
        clone.connect(backend, rules)
        return clone

    def connect(self, backend: BACKEND_TYPES, rules: Rules) -> None:
        """Work for an agent with a backend and rules."""
        self._handle = self._handle or open_backend(backend, BACKEND_SECONDS)
        self._rules = rules

    async def _around_model(self, request: Request, handler: Callable[[Request], Response]) -> Response:
        messages = request.messages
        if not self.doubts or not messages:
            return await inner(handler, request)
        if asks_whether_done(messages[-1]):
            return await _answer_again(request, handler)
        await self._look_at_first(messages, request.runtime)
        response = await inner(handler, request)
        why = await self._find_doubt(request, response)
        if why is None:
            return response
        cast(Any, request.runtime).stream_writer({"type": FINISH_CHECK, "why": why})
        marks = {"lc_source": FINISH_CHECK}
        question = HumanMessage(
            _QUESTION.format(why=why), name=FINISH_CHECK, id=str(uuid4()), additional_kwargs=marks
        )
        return keeping(replace(response, result=[*response.result, question]), (), {"jump_to": "model"})

    async def _find_doubt(self, request: Request, response: Response) -> str | None:
        """Return why the work may not be done; `None` where the last words look like an end."""
        last = response.result[-1] if response.result else None
        if not isinstance(last, AIMessage) or last.tool_calls or last.invalid_tool_calls:
            return None
        text, turn = last.text.strip(), _since_person_spoke(request.messages)
        is_answer = response.structured_response is not None or text.endswith(("?", "\uff1f"))
        if is_answer or any(map(asks_whether_done, turn)):
            return None
        todos: Sequence[Any] = cast("Mapping[str, Any]", request.state).get("todos") or ()
        found = (why for doubt, why in _read_doubts(turn, todos, text) if why and doubt in self.doubts)
        return next(found, None) or await self._missing_file(request, turn)

    async def _look_at_first(self, messages: Sequence[AnyMessage], runtime: Any) -> None:
        """Note which files that a request names are not there, before the model begins with it."""
        asked = messages[-1]
        if "missing_file" not in self.doubts or not is_from_person(asked) or not asked.id:
            return
        names = list(dict.fromkeys(_FILE_NAME.findall(asked.text)))
        if names and len(names) <= _MOST_NAMED and asked.id not in self._missed_at_first:
            self._missed_at_first[asked.id] = await self._find_missing(names, runtime)
            while len(self._missed_at_first) > _MOST_TURNS:
                self._missed_at_first.popitem(last=False)

    async def _missing_file(self, request: Request, turn: Sequence[AnyMessage]) -> str | None:
        """Name the files that were to come, unless nothing was tried or something keeps it from coming."""
        results = [each for each in turn if isinstance(each, ToolMessage)]
        if "missing_file" not in self.doubts or not results or not all(map(_can_be_mended, results)):
            return None
        asked = request.messages[len(request.messages) - len(turn) - 1]
        noted = self._missed_at_first.get(asked.id or "", ())
        missing = await self._find_missing(noted, request.runtime)
        missing = [each for each in missing if not await self._is_elsewhere(each, request.runtime)]
        if not missing:
            return None
        verb = "do" if len(missing) > 1 else "does"
        return f"{', '.join(missing)}, which the request names, {verb} not exist"

    async def _find_missing(self, names: Sequence[str], runtime: Any) -> list[str]:
        """Return which of the files are not there, as far as that is known."""
        files = self._files(runtime)
        if files is None or not names:
            return []
        paths = {name: path for name in names if (path := _own_path(files, name))}
        try:
            answers = await files.download_each([*paths.values()], 1)
        except ToolFailure:
            return []
        return [
            name
            for name, answer in zip(paths, answers, strict=True)
            if answer.error and transfer_code(answer.error) == "file_not_found"
        ]

    async def _is_elsewhere(self, name: str, runtime: Any) -> bool:
        """Return whether a file of that name is in some directory, which the request may have named apart."""
        files = self._files(runtime)
        assert files is not None
        try:
            found = await files.glob(f"**/{name.rpartition('/')[2]}", None, _SECONDS_TO_FIND)
        except ToolFailure:
            return True
        return bool(found.matches or found.error)

    def _files(self, runtime: Any) -> FileCalls | None:
        rights = CallRights(self._rules) if self._rules.given else None
        return self._handle.files(runtime, rights) if self._handle else None


async def _answer_again(request: Request, handler: Callable[[Request], Response]) -> Response:
    """Let the model answer our question; where that fails, its answer before stands."""
    try:
        return await inner(handler, request)
    except GraphBubbleUp:
        raise
    except Exception:
        answer = next((each for each in reversed(request.messages) if isinstance(each, AIMessage)), None)
        if answer is None:
            raise
        # Its usage was counted when it came.
        again = answer.model_copy(update={"id": str(uuid4()), "usage_metadata": None})
        return ModelResponse(result=[again])


def _since_person_spoke(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    return [*takewhile(lambda each: not is_from_person(each), reversed(messages))][::-1]


def _own_path(files: FileCalls, name: str) -> str | None:
    try:
        return normalise(files.capabilities().command_paths.own(name))
    except BackendError:
        return None


def _read_doubts(
    turn: Sequence[AnyMessage], todos: Iterable[Any], text: str
) -> Iterator[tuple[Doubt, str | None]]:
    """Yield each doubt that messages and state show, and why it is one; `None` where it is none."""
    yield "failed_call", _failed_call(turn)
    yield "open_todo", _open_todo(todos)
    yield "no_words", None if text else "you said nothing"
    yield "announcement", "you announced a next step" if _ANNOUNCES.search(text) else None


def _failed_call(turn: Sequence[AnyMessage]) -> str | None:
    """Describe the last result before the answer, if it failed in a way that can be mended."""
    last = turn[-1] if turn else None
    if not isinstance(last, ToolMessage) or last.additional_kwargs.get("error_code") not in _MENDABLE:
        return None
    return f"your last call, of {last.name or 'a tool'}, failed"


def _can_be_mended(result: ToolMessage) -> bool:
    return result.status != "error" or result.additional_kwargs.get("error_code") in _MENDABLE


def _open_todo(todos: Iterable[Any]) -> str | None:
    number = sum(map(_is_open, todos))
    return None if not number else "a to-do is open" if number == 1 else f"{number} to-dos are open"


def _is_open(todo: Any) -> bool:
    return isinstance(todo, Mapping) and cast("Mapping[str, Any]", todo).get("status") != "completed"
