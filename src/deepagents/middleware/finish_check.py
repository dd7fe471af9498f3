"""Ask a model once whether it is done, where its last words do not look like an end.

It is opt-in: a run that ends so costs one more call of the model, which a scripted model of somebody's test
would not expect. Where a person reads the answer and can say "go on", it is not needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

from langchain.agents.middleware import hook_config
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from deepagents.middleware._base import BaseMiddleware
from deepagents.middleware._history import ends_at_limit, is_from_person

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
_QUESTION: Final = (
    "You stopped, but {why}. If the task is done, give your answer again. If not, go on: call the next tool."
)


class FinishCheckMiddleware(BaseMiddleware):
    """Ask once, before the agent stops, whether it is done: where its last words do not look like an end.

    They do not right behind a failed call that the model could mend, with open to-dos, where they announce
    the next step, and where there are none. For one request it asks once. A question to a person is an end.
    """

    @hook_config(can_jump_to=["model"])
    def after_agent(self, state: Mapping[str, Any], runtime: Any) -> dict[str, Any] | None:
        """Send the model back with a question, if there is a doubt."""
        messages: Sequence[AnyMessage] = state["messages"]
        if not messages or ends_at_limit(messages) or _was_asked(messages):
            return None
        why = _doubt(messages, state.get("todos") or ())
        if why is None:
            return None
        runtime.stream_writer({"type": _SOURCE, "why": why})
        question = HumanMessage(
            _QUESTION.format(why=why), name=_SOURCE, additional_kwargs={"lc_source": _SOURCE}
        )
        return {"messages": [question], "jump_to": "model"}


def _was_asked(messages: Sequence[AnyMessage]) -> bool:
    """Return whether it was asked since a person spoke last."""
    for message in reversed(messages):
        if message.additional_kwargs.get("lc_source") == _SOURCE:
            return True
        if is_from_person(message):
            return False
    return False


def _doubt(messages: Sequence[AnyMessage], todos: Iterable[Any]) -> str | None:
    """Return why the work may not be done; `None` where the last words look like an end."""
    last = messages[-1]
    if not isinstance(last, AIMessage) or last.tool_calls:
        return None
    text = last.text.strip()
    if text.endswith(("?", "\uff1f")):
        return None
    if failed := _failed_before(messages):
        return f"your last call, of {failed}, failed"
    if open_todos := sum(_is_open(each) for each in todos):
        return "a to-do is open" if open_todos == 1 else f"{open_todos} to-dos are open"
    if not text:
        return "you said nothing"
    return "you announced a next step" if _ANNOUNCES.search(text) else None


def _failed_before(messages: Sequence[AnyMessage]) -> str | None:
    """Return the tool of the last result before the answer, if it failed in a way that can be mended."""
    before = messages[-2] if len(messages) > 1 else None
    if not isinstance(before, ToolMessage) or before.additional_kwargs.get("error_code") not in _MENDABLE:
        return None
    return before.name or "a tool"


def _is_open(todo: Any) -> bool:
    return isinstance(todo, Mapping) and cast("Mapping[str, Any]", todo).get("status") != "completed"
