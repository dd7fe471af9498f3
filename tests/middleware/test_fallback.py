"""A model fails: what is asked again, what is asked elsewhere, and what comes back at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest
from langchain.agents.middleware import ModelFallbackMiddleware, ModelRetryMiddleware
from langchain_core.exceptions import ContextOverflowError, ModelAuthenticationError
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGenerationChunk

from deepagents import Limits, create_deep_agent
from deepagents.errors import ConfigError, UnknownModel
from deepagents.testing import Asked, ScriptedModel, WindowedModel, call
from tests.conftest import CallMode
from tests.middleware.claude import Claude, marks, serving

BUSY = TimeoutError("busy")
ASK: Any = {"messages": "What is up?"}


class Refused(Exception):
    """A provider's own error."""

    def __init__(self, status: int, said: str) -> None:
        super().__init__(said)
        self.status_code = status


class Stumbling(ScriptedModel):
    """A model whose connection is lost after the first word of each reply but the last."""

    def _stream(self, *args: Any, **options: Any) -> Iterator[ChatGenerationChunk]:
        for chunk in super()._stream(*args, **options):
            yield chunk
            if self._replies:
                raise BUSY


TOO_LONG = Refused(400, "prompt is too long")


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("langchain.agents.middleware.model_retry.calculate_delay", lambda *_, **__: 0)


@pytest.fixture(name="claude")
def _claude() -> Iterator[Claude]:
    with serving() as claude:
        yield claude


def answer(*args: Any, **options: Any) -> str:
    return create_deep_agent(*args, **options).invoke(ASK)["messages"][-1].text


def test_a_call_is_made_again_as_often_as_was_asked() -> None:
    with ScriptedModel(BUSY, BUSY, "All is well.") as model:
        assert answer(model, model_retries=2) == "All is well."


def test_when_all_calls_fail_the_last_error_reaches_the_caller() -> None:
    with ScriptedModel(BUSY, Refused(503, "overloaded")) as model, pytest.raises(Refused, match="overloaded"):
        answer(model, model_retries=1)


def test_without_a_word_nothing_is_made_again() -> None:
    with ScriptedModel(BUSY) as model, pytest.raises(TimeoutError, match="busy"):
        answer(model)


@pytest.mark.parametrize(
    "error",
    [
        Refused(400, "no such parameter"),
        Refused(401, "no such key"),
        ModelAuthenticationError("no such key"),
        TypeError("a mistake"),
    ],
    ids=lambda error: f"{type(error).__name__}-{error}",
)
def test_what_would_fail_again_is_not_made_again(error: Exception) -> None:
    with ScriptedModel(error) as model, pytest.raises(type(error), match=str(error)):
        answer(model, model_retries=3)


def test_another_model_is_asked_when_all_calls_of_one_have_failed() -> None:
    first = ScriptedModel(BUSY, BUSY)
    second, third = ScriptedModel(Refused(401, "no key"), provider="b"), ScriptedModel("Fine.", provider="c")

    with first, second, third:
        assert answer(first, model_retries=1, fallback_models=[second, third]) == "Fine."


def test_the_next_call_begins_with_the_first_model_again() -> None:
    with ScriptedModel(BUSY, "Done.") as first, ScriptedModel(call("ls", path="/")) as second:
        assert answer(first, fallback_models=[second]) == "Done."


def test_fallback_models_may_be_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "none")

    assert create_deep_agent(ScriptedModel(), fallback_models=["anthropic:claude-sonnet-4-6"])
    with pytest.raises(UnknownModel, match="nobody:knows"):
        create_deep_agent(ScriptedModel(), fallback_models=["nobody:knows"])


def test_a_request_that_is_too_long_is_compacted_and_asked_of_nobody_else() -> None:
    """The first model's own refusal, as its package words it, and LangChain's."""
    for refusal in (TOO_LONG, ContextOverflowError("too long")):
        steps = [call("ls", path=f"/{n}") for n in range(12)]
        model = WindowedModel(*steps, refusal, "Done.", window=200_000)
        with ScriptedModel(provider="other") as other:
            assert answer(model, model_retries=3, fallback_models=[other]) == "Done."


def test_every_try_counts_and_a_limit_ends_them_all() -> None:
    others = ScriptedModel(), ScriptedModel()
    with ScriptedModel(BUSY, BUSY) as model:
        limits = Limits(model_calls=2)
        agent = create_deep_agent(model, model_retries=5, fallback_models=others, limits=limits)
        assert "limit of 2 model calls" in agent.invoke(ASK)["messages"][-1].text
    assert [each.asked for each in others] == [[], []]


def test_a_refusal_that_nothing_cures_reaches_the_caller_with_its_causes() -> None:
    def refuse(_: Asked) -> AIMessage:
        raise TOO_LONG from BUSY

    model, other = ScriptedModel(always=refuse), ScriptedModel(provider="other")

    with pytest.raises(ContextOverflowError, match="too long") as caught:
        answer(model, model_retries=1, fallback_models=[other])
    assert caught.value.__cause__ is TOO_LONG
    assert TOO_LONG.__cause__ is BUSY
    assert other.asked == []


def test_subagents_recover_in_the_same_way() -> None:
    tasks = [call("task", subagent_type=kind, description="Look.") for kind in ("general-purpose", "scout")]
    scout = ScriptedModel(BUSY, BUSY, provider="scout")
    with (
        scout,
        ScriptedModel(tasks[0], BUSY, BUSY, tasks[1], "Done.") as model,
        ScriptedModel("Seen.", "Seen as well.", provider="other") as other,
    ):
        spec: Any = {"name": "scout", "description": "Looks.", "model": scout}
        agent = create_deep_agent(model, subagents=[spec], model_retries=1, fallback_models=[other])
        messages = agent.invoke(ASK)["messages"]
        assert [each.text for each in messages if each.type == "tool"] == ["Seen.", "Seen as well."]


def test_a_retry_of_the_callers_takes_the_place() -> None:
    own = ModelRetryMiddleware(max_retries=1, on_failure=lambda error: f"Sorry: {error}.")
    with ScriptedModel(BUSY, BUSY) as model:
        assert answer(model, middleware=[own], model_retries=5) == "Sorry: busy."


def test_a_fallback_of_the_callers_lets_pass_what_is_too_long() -> None:
    steps = [call("ls", path=f"/{n}") for n in range(12)]
    model = WindowedModel(*steps, TOO_LONG, "Done.", window=200_000)
    with ScriptedModel(provider="other") as other:
        assert answer(model, middleware=[ModelFallbackMiddleware(other)]) == "Done."


def test_marks_for_a_cache_are_those_of_the_model_that_is_asked(claude: Claude) -> None:
    answer(ScriptedModel(BUSY), fallback_models=[claude.model()])
    assert [part for part, _ in marks(claude.asked[-1])] == ["tools", "system", "end"]

    nowhere = claude.model().model_copy(update={"anthropic_api_url": "http://127.0.0.1:9"})
    with ScriptedModel("Fine.") as other:
        assert answer(nowhere, fallback_models=[other]) == "Fine."
        assert "cache_control" not in str(other.asked)


def test_words_of_a_failed_try_are_streamed_but_not_kept(call_mode: CallMode) -> None:
    """As LangChain's own middleware does: tokens that went out cannot be taken back, messages can."""
    with Stumbling().then("All is lost.", "All is well.") as model:
        agent = create_deep_agent(model, model_retries=1)
        streamed = call_mode.stream(agent, ASK, stream_mode=["messages", "values"])

    tokens = "".join(
        part[0].text for mode, part in streamed if mode == "messages" and part[0].type != "human"
    )
    assert tokens == "All All is well."
    assert [each.type for each in streamed[-1][1]["messages"]] == ["human", "ai"]


@pytest.mark.parametrize("times", [-1, True, 1.5, "2"])
def test_numbers_that_cannot_be_are_refused(times: Any) -> None:
    with pytest.raises(
        ConfigError, match=f"model_retries must be a whole number of 0 or more, got {times!r}"
    ):
        create_deep_agent(ScriptedModel(), model_retries=times)


def test_one_name_is_no_list_of_models() -> None:
    for wrong in ("openai:gpt-5", ScriptedModel(), None, 5, [None]):
        with pytest.raises(ConfigError, match="must be .*model.* got") as refused:
            create_deep_agent(ScriptedModel(), fallback_models=cast(Any, wrong))
        assert repr(wrong[0] if isinstance(wrong, list) else wrong) in str(refused.value)
