"""Count over an agent and all that works for it, warn near a limit, and stop with a result at it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import dropwhile, islice, takewhile
from typing import Annotated, Any, Final, NotRequired

from langchain.agents import AgentState
from langchain.agents.middleware.types import ModelResponse, PrivateStateAttr, ToolCallRequest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.errors import GraphInterrupt

from deepagents._state.runtime import emit
from deepagents._state.schema import NOT_SHARED
from deepagents._text import truncate
from deepagents.errors import ConfigError, LimitExceeded
from deepagents.limits import COUNTED, Kind, Limits, Price, price_in, price_of_profile
from deepagents.middleware._base import BaseMiddleware, inner
from deepagents.middleware._history import LIMIT_REACHED, is_from_person
from deepagents.middleware._requests import Request, Response, ToolResult, keeping
from deepagents.middleware.limits.budget import Budget, Reached, describe_unpriced, format_amount
from deepagents.middleware.limits.persistence import (
    CHANNEL,
    WARNED,
    begin_run,
    current_budget,
    make_spent_channel,
    open_budget,
    open_call,
    save_call,
    save_unfinished,
)
from deepagents.middleware.limits.usage_callback import counting
from deepagents.models.prices import price_of_model
from deepagents.models.traits import model_identifier, model_provider
from deepagents.tools import ToolSpec, specs_by_name
from deepagents.tools._tool import failure_message

_SOURCE: Final = "limits"
_MOST_CHARACTERS: Final = 2_000
_MOST_FILES: Final = 30
# Less than this counts as none: floats that were added up are seldom exactly zero.
_LEAST: Final[Mapping[Kind, float]] = {"money": 1e-9, "seconds": 0.1}


class LimitsState(AgentState[Any]):
    """State of an agent with limits: what it and all below it have spent."""

    _limits_spent: NotRequired[Annotated[dict[str, Any], PrivateStateAttr, NOT_SHARED, make_spent_channel()]]


class LimitsMiddleware(BaseMiddleware):
    """Stop an agent, and all that works for it, when one of its limits is used up.

    Every call of a model or a tool below the agent counts, made by whatever subagent, summarizer, grader or
    tool. The agent then answers itself, with what there is so far (see `docs/concepts/limits.md`).

    Args:
        limits: what the agent may use.
        models: further models that may be called, for the prices in their profiles.
    """

    state_schema = LimitsState

    def __init__(self, limits: Limits, *, models: Sequence[BaseChatModel] = ()) -> None:
        super().__init__()
        self.limits = limits
        self._prices = dict(filter(None, map(_profile_price, models)))

    def refuse_unpriced(self, model: BaseChatModel) -> None:
        """Refuse a model without a known price where money is limited.

        Raises:
            ConfigError: naming the model.
        """
        name, provider = model_identifier(model), model_provider(model)
        known = {**self._prices, **self.limits.prices}
        if self.limits.money and not (price_in(known, provider, name) or price_of_model(model)):
            raise ConfigError(describe_unpriced(name))

    async def _before_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        return await begin_run(self._make_budget, goes_on=self.limits.per == "thread")

    async def _around_model(self, request: Request, handler: Callable[[Request], Response]) -> Response:
        agent = await open_budget(self._make_budget)
        if agent is None:
            return await inner(handler, request)
        if agent.is_limited("money"):
            _learn_price(request.model, agent)
        repeats = self._count_repeats(request.messages)
        if reached := self._check_repeats(repeats) or agent.find_reached("model_calls"):
            return _stop(request, agent, reached)
        call, near = agent.for_call(), _not_warned_of(agent, request.state.get(CHANNEL) or {})
        warned = _with_warning(request, near, repeats if repeats == self.limits.repeats else 0)
        try:
            with counting(call):
                response = await inner(handler, warned)
        except Exception as error:
            agent.keep(call)
            if isinstance(error, LimitExceeded) and error.whose in agent.chain():
                return _stop(request, agent, error.reached)
            await save_unfinished(agent, call, again=False)
            raise
        save_call(agent, call, [each.kind for each in near])
        return response

    async def _around_tool(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolResult]
    ) -> ToolResult:
        agent = await open_budget(self._make_budget)
        if agent is None:
            return await inner(handler, request)
        call, made = open_call(agent), request.tool_call
        repeats = self._count_repeats(request.state["messages"], made["id"])
        if reached := self._check_repeats(repeats) or call.reserve():
            save_call(agent, call)
            text = _describe_refusal(reached)
            return failure_message(made["name"], made["id"] or "", "limit_reached", text)
        try:
            with counting(call):
                result = await inner(handler, request)
        except GraphInterrupt:
            # It runs again when the person has answered, and goes on from what it has spent.
            await save_unfinished(agent, call, again=True)
            raise
        except Exception:
            agent.keep(call)
            raise
        save_call(agent, call)
        return result

    def _make_budget(self) -> Budget:
        above = current_budget()
        # The middleware of an agent may also stand in its subagents, which share one set of limits.
        known = above is not None and any(each.limits is self.limits for each in above.chain())
        return Budget(above, None if known else self.limits, self._prices)

    def _count_repeats(self, messages: Sequence[AnyMessage], call_id: str | None = None) -> int:
        """Count the equal calls, or equal pairs, that end with this one, or with the last.

        It counts no further than the limit and one.

        They are read from the messages, so the count outlives a process.
        """
        most = self.limits.repeats
        if not most:
            return 0
        turn = (each for each in _this_turn(messages) if isinstance(each, AIMessage))
        calls = (call for each in turn for call in reversed(each.tool_calls))
        if call_id is not None:
            calls = dropwhile(lambda call: call["id"] != call_id, calls)
        newest = [(call["name"], call["args"]) for call in islice(calls, 2 * (most + 1))]
        return max(_count_cycles(newest, 1), _count_cycles(newest, 2))

    def _check_repeats(self, repeats: int) -> Reached | None:
        most = self.limits.repeats
        return Reached("repeats", most, repeats) if most and repeats > most else None


def _count_cycles(calls: Sequence[Any], length: int) -> int:
    """Return how often the first so many are there one after the other."""
    same = takewhile(lambda pair: pair[0] == pair[1], zip(calls, calls[length:], strict=False))
    return (min(len(calls), length) + sum(1 for _ in same)) // length


def _learn_price(model: BaseChatModel, agent: Budget) -> None:
    """Note what a model costs that the budgets do not know, before it is called.

    Raises:
        ConfigError: when nothing tells.
    """
    name = model_identifier(model)
    if agent.price(model_provider(model), name) is None:
        price = price_of_model(model)
        if name is None or price is None:
            raise ConfigError(describe_unpriced(name))
        agent.learn(name, price)


def _profile_price(model: BaseChatModel) -> tuple[str, Price] | None:
    name, price = model_identifier(model), price_of_profile(getattr(model, "profile", None))
    return (name, price) if name and price else None


def _not_warned_of(agent: Budget, saved: Mapping[str, Any]) -> list[Reached]:
    found: dict[Kind, Reached] = {}
    for each in agent.near():
        found.setdefault(each.kind, each)
    return [each for kind, each in found.items() if kind not in saved.get(WARNED, ())]


def _with_warning(request: Request, near: Sequence[Reached], repeats: int) -> Request:
    """Tell the model what is left, where a limit is near."""
    parts = [_describe_rest(each) for each in near]
    if repeats:
        parts.append(f"you made the same call {repeats} times in a row, and another one would end your work")
    if not parts:
        return request
    for each in near:
        emit("limit_near", **asdict(each))
    text = (
        f"[Limits] {'; '.join(parts)}. Finish what matters most, then answer with what you have. "
        "This note is not from the user."
    )
    # At the end and in this request alone, so that the history and the provider's cache of it stay valid.
    note = HumanMessage(text, additional_kwargs={"lc_source": _SOURCE})
    return request.override(messages=[*request.messages, note])


def _stop(request: Request, agent: Budget, reached: Reached) -> Response:
    """Answer without the model, and leave the loop."""
    save_call(agent, None)
    spent = next((each for each in agent.chain() if each.limits), agent).sum_spent()
    answer = _make_final_answer(reached, spent, request.state, specs_by_name(request.tools))
    emit(LIMIT_REACHED, **asdict(reached))
    return keeping(ModelResponse(result=[answer]), (), {"jump_to": "end"})


def _describe_rest(near: Reached) -> str:
    left = max(near.limit - near.spent, 0)
    own = ", this answer included" if near.kind == "model_calls" else ""
    return f"left: {format_amount(near.kind, left)} of {near.limit:,g}{own}"


def _describe_refusal(reached: Reached) -> str:
    """Describe why a tool call was not run."""
    if reached.kind == "repeats":
        return f"not run: it is the same call as the {reached.limit:g} before it. The work ends here"
    return (
        f"not run: the limit of {format_amount(reached.kind, reached.limit)} is used up. The work ends here"
    )


def _make_final_answer(
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
        amount = format_amount(reached.kind, reached.limit)
        is_left = spent.get(reached.kind, reached.spent) < reached.limit
        what = (
            f"too little of the limit of {amount} is left"
            if is_left
            else f"the limit of {amount} was reached"
        )
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
            if call["id"] in done and spec and spec.changes_files:
                yield from map(spec.paths.show, spec.paths_in(call["args"]))


def _this_turn(messages: Sequence[AnyMessage]) -> Iterator[AnyMessage]:
    """Yield the messages since a person last spoke, the latest first."""
    return takewhile(lambda message: not is_from_person(message), reversed(messages))
