"""Let a grader check, before the agent stops, whether the work meets a rubric."""

from __future__ import annotations

import inspect
import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Any, Final, TypeAlias

from langchain.agents.middleware import hook_config
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage, HumanMessage
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langgraph.errors import GraphBubbleUp

from deepagents import _models
from deepagents._async import IOCall
from deepagents._state.runtime import off_the_message_stream
from deepagents.errors import ConfigError, LimitExceeded
from deepagents.middleware._base import BaseMiddleware, Middleware
from deepagents.middleware._history import ends_at_limit
from deepagents.middleware.limits import counting_between_steps, is_used_up
from deepagents.middleware.rubric.attempt import (
    RUBRIC_GRADER_MESSAGE_SOURCE,
    Attempt,
    GraderResponse,
    RubricEvaluation,
    RubricState,
    decide,
    find_gap,
    limit_rounds,
    new_attempt,
    open_attempt,
    start_update,
)
from deepagents.middleware.rubric.grader import (
    GRADER_SYSTEM_PROMPT,
    ask_again,
    ask_grade,
    ask_revision,
    describe_failure,
    grader_config,
    make_grader,
    parse_verdict,
    verdict_strategy,
    write_transcript,
)
from deepagents.models.traits import model_label

BuildGraderState: TypeAlias = Callable[..., Mapping[str, Any]]
"""Called as `build(state, iteration)`, or as `build(state)` where it takes no more."""

_logger: Final = logging.getLogger(__name__)


class RubricMiddleware(BaseMiddleware):
    """Grade the work before the agent stops, and send it back while it falls short of the rubric.

    The rubric comes with the input, `agent.invoke({"messages": ..., "rubric": "..."})`, and stays with the
    thread until it is replaced or set to `None`. Without one nothing is graded.

    Args:
        model: grades; a chat model or `"provider:name"`.
        system_prompt: replaces `GRADER_SYSTEM_PROMPT`.
        tools: with which the grader gathers evidence.
        grader_middleware: middleware of the grader.
        grader_context_schema: type of the run's context, which the grader is given too.
        grader_state_schema: base state of the grader.
        prepare_messages_for_grader: changes the messages before they are written down for the grader.
        build_grader_state: makes further fields of the grader's state, called with the agent's state and the
            number of the round, which begins at 0; a function of the state alone will do.
        max_iterations: rounds of grading for one request.
        on_evaluation: is called with each evaluation; what it raises is logged.

    Raises:
        ConfigError: without a model, for fewer rounds than one, or for fields without a schema; also a
            `ValueError`.
        TypeError: for rounds that are not whole numbers, or for something that cannot be called.
    """

    state_schema = RubricState

    def __init__(
        self,
        *,
        model: str | BaseChatModel,
        system_prompt: str | None = None,
        tools: Sequence[BaseTool | Callable[..., Any] | dict[str, Any]] | None = None,
        grader_middleware: Sequence[Middleware] | None = None,
        grader_context_schema: type[Any] | None = None,
        grader_state_schema: type[Any] | None = None,
        prepare_messages_for_grader: Callable[[list[AnyMessage]], Sequence[AnyMessage]] | None = None,
        build_grader_state: BuildGraderState | None = None,
        max_iterations: int = 3,
        on_evaluation: Callable[[RubricEvaluation], object] | None = None,
    ) -> None:
        super().__init__()
        if not model:
            raise ConfigError("`model` is required: a chat model or 'provider:name' that grades")
        _check_rounds(max_iterations)
        _check_callable(
            prepare_messages_for_grader=prepare_messages_for_grader,
            build_grader_state=build_grader_state,
            on_evaluation=on_evaluation,
        )
        if build_grader_state and not grader_state_schema:
            raise ConfigError("build_grader_state needs grader_state_schema, which declares its fields")
        self._model = model
        self._system_prompt = system_prompt or GRADER_SYSTEM_PROMPT
        self._tools = tuple(tools or ())
        self._grader_middleware = tuple(grader_middleware or ())
        self._grader_context_schema = grader_context_schema
        self._grader_state_schema = grader_state_schema
        self._prepare_messages = prepare_messages_for_grader
        self._build_state = build_grader_state
        self._builds_by_iteration = _takes_iteration(build_grader_state)
        self.max_iterations = max_iterations
        self._on_evaluation = on_evaluation
        self._grader: Runnable[Any, Any] | None = None
        self._lock = Lock()

    def before_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Begin an attempt, unless one for this rubric and this request goes on.

        Raises:
            TypeError: when the rubric is not text.
        """
        return start_update(state)

    @hook_config(can_jump_to=["model"])
    async def _after_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        attempt = open_attempt(state) or new_attempt(state)
        if attempt is None or ends_at_limit(state["messages"]):
            return None
        about = {"grading_run_id": attempt.run_id, "iteration": attempt.iteration}
        runtime.stream_writer({"type": "rubric_evaluation_start", **about})
        try:
            evaluation = await self._grade(attempt, state, runtime)
        except LimitExceeded:
            # The limit of the whole run is reached: the next model call is answered by it, and ends the run.
            return {"jump_to": "model"}
        evaluation = limit_rounds(evaluation, self.max_iterations)
        runtime.stream_writer({"type": "rubric_evaluation_end", **evaluation})
        self._report(evaluation)
        update = attempt.state_after(evaluation)
        if evaluation["result"] != "needs_revision":
            return update
        return {**update, "messages": [_make_revision(evaluation)], "jump_to": "model"}

    async def _grade(self, attempt: Attempt, state: Any, runtime: Any) -> RubricEvaluation:
        response, problem = None, None
        try:
            response = await self._ask_grader(attempt, state, runtime)
            problem = find_gap(response, attempt.criteria)
            if problem and not attempt.had_no_criteria:
                response = await self._ask_grader(attempt, state, runtime, ask_again(problem))
                problem = find_gap(response, attempt.criteria)
        except GraphBubbleUp:
            raise
        except Exception as error:
            if isinstance(error, LimitExceeded) and is_used_up():
                raise
            _logger.warning("the grader failed", exc_info=True)
            # A first answer counts, although the grader failed when it was asked again.
            if response is None:
                return attempt.evaluation("grader_error", self._handle_grader_exception(error))
        return decide(attempt, response, problem)

    async def _ask_grader(
        self, attempt: Attempt, state: Any, runtime: Any, more: str | None = None
    ) -> GraderResponse:
        messages: Sequence[AnyMessage] = list(state["messages"])
        if self._prepare_messages:
            messages = self._prepare_messages(list(messages))
        # Part of each tag, so that no text of the transcript can close one.
        nonce = secrets.token_hex(8)
        text = ask_grade(
            attempt.rubric,
            write_transcript(messages, nonce, attempt.request),
            criteria=attempt.criteria,
            iteration=attempt.iteration,
            nonce=nonce,
            correction=more,
        )
        given = {**self._fields(state, attempt.iteration), "messages": [HumanMessage(text)]}
        context = runtime.context
        with counting_between_steps(), off_the_message_stream():
            result = await IOCall(
                lambda: self._invoke_grader(given, context=context),
                lambda: self._ainvoke_grader(given, context=context),
            )
        return parse_verdict(result)

    def _fields(self, state: Any, iteration: int) -> Mapping[str, Any]:
        if self._build_state is None:
            return {}
        given = (state, iteration) if self._builds_by_iteration else (state,)
        fields = self._build_state(*given)
        if "messages" in fields:
            raise ConfigError("build_grader_state must not return 'messages'; they are the grader's own")
        return fields

    def _ensure_grader(self) -> Runnable[Any, Any]:
        """Return the agent that grades, made on first use."""
        with self._lock:
            # Parallel runs share this middleware and must not make two.
            if self._grader is None:
                self._grader = make_grader(
                    _models.resolve_model(self._model),
                    self._system_prompt,
                    self._tools,
                    self._grader_middleware,
                    self._grader_context_schema,
                    self._grader_state_schema,
                )
            return self._grader

    def _invoke_grader(self, given: dict[str, Any], *, context: Any = None) -> Any:
        """Ask the grader."""
        config = grader_config(self._grader_trace_metadata())
        return self._ensure_grader().invoke(given, config, context=context)

    async def _ainvoke_grader(self, given: dict[str, Any], *, context: Any = None) -> Any:
        """Ask the grader."""
        config = grader_config(self._grader_trace_metadata())
        return await self._ensure_grader().ainvoke(given, config, context=context)

    def _grader_trace_metadata(self) -> dict[str, Any]:
        """Describe the grader in traces and in its failures."""
        model = self._model
        return {
            "rubric_grader_configured_model": model if isinstance(model, str) else model_label(model),
            "rubric_grader_effective_strategy": verdict_strategy(model),
        }

    def _handle_grader_exception(self, error: Exception) -> str:
        """Return why there is no verdict; an override may raise to end the run instead."""
        return describe_failure(error, self._grader_trace_metadata())

    def _report(self, evaluation: RubricEvaluation) -> None:
        if evaluation["result"] == "max_iterations_reached":
            level = logging.WARNING if evaluation["unverified"] else logging.INFO
            _logger.log(level, "run %s exhausted max_iterations", evaluation["grading_run_id"])
        if self._on_evaluation is None:
            return
        try:
            self._on_evaluation(evaluation)
        except GraphBubbleUp:
            raise
        except Exception:
            # What a caller does with a report must not end the run.
            _logger.exception("on_evaluation failed")


def _make_revision(evaluation: RubricEvaluation) -> HumanMessage:
    return HumanMessage(
        ask_revision(evaluation),
        name=RUBRIC_GRADER_MESSAGE_SOURCE,
        additional_kwargs={"lc_source": RUBRIC_GRADER_MESSAGE_SOURCE},
    )


def _check_rounds(rounds: object) -> None:
    if isinstance(rounds, bool) or not isinstance(rounds, int):
        raise TypeError(f"max_iterations must be a whole number, got {rounds!r}")
    if rounds < 1:
        raise ConfigError(f"max_iterations must be at least 1, got {rounds!r}")


def _check_callable(**given: object) -> None:
    for name, each in given.items():
        if each is not None and not callable(each):
            raise TypeError(f"{name} must be callable, got {each!r}")


def _takes_iteration(build: BuildGraderState | None) -> bool:
    try:
        inspect.signature(build or dict).bind({}, 0)
    except (TypeError, ValueError):
        return False
    return True
