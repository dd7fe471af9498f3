"""LimitsMiddleware: counts over an agent and its descendants, warns near the end, and stops with a result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any, NotRequired

from langchain.agents import AgentState
from langchain.agents.middleware.types import ModelResponse, PrivateStateAttr, ToolCallRequest
from langchain_core.language_models import BaseChatModel
from langgraph.errors import GraphInterrupt

from deepagents._state.custom_events import emit
from deepagents._state.schema import NOT_SHARED
from deepagents.errors import ConfigError, LimitExceeded
from deepagents.limits import Kind, Limits, Price, price_in, price_of_profile
from deepagents.middleware._base import (
    BaseMiddleware,
    Middleware,
    Request,
    Response,
    ToolResult,
    inner,
    keeping,
)
from deepagents.middleware._history import LIMIT_REACHED
from deepagents.middleware.limits.budget import Account, Reached
from deepagents.middleware.limits.messages import final_answer, notice, refusal
from deepagents.middleware.limits.persistence import (
    CHANNEL,
    begin,
    current,
    note,
    opened,
    settle,
    spent_channel,
    taken_up_call,
)
from deepagents.middleware.limits.repeats import row_of
from deepagents.middleware.limits.usage_callback import counting, unpriced
from deepagents.models.traits import model_identifier, model_provider
from deepagents.tools import specs_by_name
from deepagents.tools._tool import failure_message


class LimitsState(AgentState[Any]):
    """An agent's state with what it and all below it have spent."""

    _limits_spent: NotRequired[Annotated[dict[str, Any], PrivateStateAttr, NOT_SHARED, spent_channel()]]


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
        self._prices = dict(filter(None, map(_priced, models)))

    def refuse_unpriced(self, model: BaseChatModel) -> None:
        """Refuse a model whose price nobody knows where money is limited.

        Raises:
            ConfigError: naming the model.
        """
        name, provider = model_identifier(model), model_provider(model)
        known = {**self._prices, **dict(filter(None, [_priced(model)])), **self.limits.prices}
        if self.limits.money and price_in(known, provider, name) is None:
            raise ConfigError(unpriced(name))

    async def _before_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        return await begin(self._account, goes_on=self.limits.per == "thread")

    async def _around_model(self, request: Request, handler: Callable[[Request], Response]) -> Response:
        agent = await opened(self._account)
        if agent is None:
            return await inner(handler, request)
        self._learn(request.model, agent)
        row = self._row(request.messages, None)
        call, near = agent.call(), _untold(agent, request.state.get(CHANNEL) or {})
        if reached := self._repeated(row) or call.reserve("model_calls"):
            return _stopped(request, agent, reached)
        warned = _warned(request, near, row if row == self.limits.repeats else 0)
        try:
            with counting(call):
                response = await inner(handler, warned)
        except Exception as error:
            agent.keep(call)
            reached = agent.stopping("model_calls") if isinstance(error, LimitExceeded) else None
            if reached is None:
                await note(agent, call, again=False)
                raise
            return _stopped(request, agent, reached)
        call.take_back("model_calls")
        settle(agent, call, [each.kind for each in near])
        return response

    async def _around_tool(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolResult]
    ) -> ToolResult:
        agent = await opened(self._account)
        if agent is None:
            return await inner(handler, request)
        call, asked = taken_up_call(agent), request.tool_call
        row = self._row(request.state["messages"], asked["id"])
        if reached := self._repeated(row) or call.reserve("tool_calls", own=True):
            settle(agent, call)
            return failure_message(asked["name"], asked["id"] or "", "limit_reached", refusal(reached))
        try:
            with counting(call):
                result = await inner(handler, request)
        except GraphInterrupt:
            await note(agent, call, again=True)
            raise
        except Exception:
            agent.keep(call)
            raise
        settle(agent, call)
        return result

    def _account(self) -> Account:
        above = current()
        known = above is not None and any(each.limits is self.limits for each in above.line())
        return Account(above, None if known else self.limits, self._prices)

    def _learn(self, model: BaseChatModel, agent: Account) -> None:
        """Know the price of a model before it is called.

        Raises:
            ConfigError: when nobody knows it, and money is limited.
        """
        if agent.limited("money") and agent.price(model_provider(model), model_identifier(model)) is None:
            if found := _priced(model):
                agent.learn(*found)
            else:
                raise ConfigError(unpriced(model_identifier(model)))

    def _row(self, messages: Sequence[Any], call_id: str | None) -> int:
        return row_of(messages, self.limits.repeats, call_id) if self.limits.repeats else 0

    def _repeated(self, row: int) -> Reached | None:
        most = self.limits.repeats
        return Reached("repeats", most, row) if most and row > most else None


def limits_in(middleware: Sequence[Middleware]) -> Limits | None:
    """Return the limits that a caller's own middleware sets, if it does."""
    return next((each.limits for each in middleware if isinstance(each, LimitsMiddleware)), None)


def _priced(model: BaseChatModel) -> tuple[str, Price] | None:
    name, price = model_identifier(model), price_of_profile(getattr(model, "profile", None))
    return (name, price) if name and price else None


def _untold(agent: Account, saved: Mapping[str, Any]) -> list[Reached]:
    found: dict[Kind, Reached] = {}
    for each in agent.near():
        found.setdefault(each.kind, each)
    return [each for kind, each in found.items() if kind not in saved.get("told", ())]


def _warned(request: Request, near: Sequence[Reached], row: int) -> Request:
    said = notice(near, row)
    if said is None:
        return request
    for each in near:
        emit("limit_near", **asdict(each))
    return request.override(messages=[*request.messages, said])


def _stopped(request: Request, agent: Account, reached: Reached) -> Response:
    """Answer without the model, and leave the loop."""
    settle(agent, None)
    spent = next((each for each in agent.line() if each.limits), agent).spent()
    said = final_answer(reached, spent, request.state, specs_by_name(request.tools))
    emit(LIMIT_REACHED, **asdict(reached))
    return keeping(ModelResponse(result=[said]), (), {"jump_to": "end"})
