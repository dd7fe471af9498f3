"""Warn the model that a limit is near, and answer for it when one is reached."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from deepagents._text import truncate
from deepagents.limits import COUNTED, Kind
from deepagents.middleware._history import LIMIT_REACHED, is_from_person
from deepagents.middleware.limits.budget import Reached
from deepagents.tools import ToolSpec

_SOURCE: Final = "limits"
_MOST_CHARACTERS: Final = 2_000
_MOST_FILES: Final = 30
# Less than this counts as none: floats that were added up are seldom exactly zero.
_LEAST: Final[Mapping[Kind, float]] = {"money": 1e-9, "seconds": 0.1}
_UNITS: Final[Mapping[Kind, str]] = {
    "tokens": "tokens",
    "money": "in cost",
    "seconds": "seconds",
    "model_calls": "model calls",
    "tool_calls": "tool calls",
    "repeats": "identical calls in a row",
}


def format_amount(kind: Kind, value: float) -> str:
    """Format how much of a kind there is."""
    forms = {"money": f"{value:.4g}", "seconds": f"{value:,.1f}".removesuffix(".0")}
    number, unit = forms.get(kind, f"{value:,.0f}"), _UNITS[kind]
    return f"{number} {unit.removesuffix('s') if number == '1' and kind.endswith('_calls') else unit}"


def describe_unpriced(name: str | None) -> str:
    """Describe that a model has no price, and how to give it one."""
    return (
        f"money is limited, and nothing says what model {name!r} costs; give "
        f"Limits(prices={{{name!r}: Price(input=..., output=...)}}), for a million tokens"
    )


def make_warning(near: Sequence[Reached], repeats: int) -> HumanMessage | None:
    """Make the message that tells the model what is left; `None` when no limit is near."""
    parts = [_describe_rest(each) for each in near]
    if repeats:
        parts.append(f"you made the same call {repeats} times in a row, and another one would end your work")
    if not parts:
        return None
    text = (
        f"[Limits] {'; '.join(parts)}. Finish what matters most, then answer with what you have. "
        "This note is not from the user."
    )
    return HumanMessage(text, additional_kwargs={"lc_source": _SOURCE})


def _describe_rest(near: Reached) -> str:
    left = max(near.limit - near.spent, 0)
    own = ", this answer included" if near.kind == "model_calls" else ""
    return f"left: {format_amount(near.kind, left)} of {near.limit:,g}{own}"


def describe_refusal(reached: Reached) -> str:
    """Describe why a tool call was not run."""
    if reached.kind == "repeats":
        return f"not run: it is the same call as the {reached.limit:g} before it. The work ends here"
    return (
        f"not run: the limit of {format_amount(reached.kind, reached.limit)} is used up. The work ends here"
    )


def make_final_answer(
    reached: Reached, spent: Mapping[str, float], state: Mapping[str, Any], specs: Mapping[str, ToolSpec]
) -> AIMessage:
    """Answer for the model: what was reached, what was spent, and what there is."""
    turn = list(_this_turn(state["messages"]))
    parts = [_headline(reached, spent), *_so_far(turn, state.get("todos") or (), specs)]
    mark = {
        "kind": reached.kind,
        "limit": reached.limit,
        "spent": spent.get(reached.kind, reached.spent),
        "all_spent": dict(spent),
    }
    return AIMessage("\n\n".join(parts), additional_kwargs={"lc_source": _SOURCE, LIMIT_REACHED: mark})


def _headline(reached: Reached, spent: Mapping[str, float]) -> str:
    if reached.kind == "repeats":
        what = f"the same call was made more than {reached.limit:g} times in a row"
    else:
        what = f"the limit of {format_amount(reached.kind, reached.limit)} was reached"
    kinds: list[Kind] = [kind for kind in COUNTED if spent.get(kind, 0) >= _LEAST.get(kind, 1)]
    used = ", ".join(format_amount(kind, spent[kind]) for kind in kinds)
    return f"[Stopped at a limit: {what}. The work is not finished. Used: {used or 'nothing'}.]"


def _so_far(
    turn: Sequence[AnyMessage], todos: Sequence[Mapping[str, Any]], specs: Mapping[str, ToolSpec]
) -> Iterator[str]:
    """Describe what there is, the latest first in `turn`."""
    text = next((each.text for each in turn if isinstance(each, AIMessage) and each.text.strip()), "")
    if text:
        yield f"Last written: {truncate(text, _MOST_CHARACTERS)}"
    if todos:
        lines = [f"- [{each.get('status')}] {each.get('content')}" for each in todos]
        yield "\n".join(["Plan:", *lines])
    if files := list(dict.fromkeys(reversed(list(_find_changed(turn, specs))))):
        more = f" and {len(files) - _MOST_FILES} more" if len(files) > _MOST_FILES else ""
        yield f"Files changed: {', '.join(files[:_MOST_FILES])}{more}"
    results = (each.text for each in turn if isinstance(each, ToolMessage) and each.status == "success")
    if last := next(filter(str.strip, results), ""):
        yield f"Last result: {truncate(last, _MOST_CHARACTERS)}"
    if not text and not last:
        yield "There is no result yet."


def _find_changed(turn: Sequence[AnyMessage], specs: Mapping[str, ToolSpec]) -> Iterator[str]:
    done = {each.tool_call_id for each in turn if isinstance(each, ToolMessage) and each.status == "success"}
    for message in turn:
        for call in message.tool_calls if isinstance(message, AIMessage) else ():
            spec = specs.get(call["name"])
            if call["id"] in done and spec and spec.changes_files and (path := spec.path_in(call["args"])):
                yield path


def _this_turn(messages: Sequence[AnyMessage]) -> Iterator[AnyMessage]:
    for message in reversed(messages):
        if is_from_person(message):
            return
        yield message
