from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import httpx
import openai
import pytest
from openai.types.chat import ChatCompletionMessageParam


@pytest.fixture
def models(url: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client:
        yield client


def test_each_graph_is_a_model(models: openai.OpenAI) -> None:
    assert {"deep", "echo", "outer"} <= {each.id for each in models.models.list()}
    assert models.models.retrieve("deep").owned_by == "deepagents"


def test_an_agent_answers(models: openai.OpenAI) -> None:
    said = models.chat.completions.create(model="deep", messages=[{"role": "user", "content": "How deep?"}])

    assert said.choices[0].message.content == "Thirteen metres."
    assert said.choices[0].finish_reason == "stop"
    assert said.usage is not None


def test_an_answer_that_broke_off_says_so(models: openai.OpenAI) -> None:
    asked: list[ChatCompletionMessageParam] = [{"role": "user", "content": "How long is the tale?"}]

    whole = models.chat.completions.create(model="deep", messages=asked).choices[0]
    chunks = [*models.chat.completions.create(model="deep", messages=asked, stream=True)]
    filtered = models.chat.completions.create(
        model="deep", messages=[{"role": "user", "content": "What of the wreck?"}]
    ).choices[0]

    assert (whole.message.content, whole.finish_reason) == ("Once upon a", "length")
    assert "".join(each.choices[0].delta.content or "" for each in chunks) == "Once upon a"
    assert chunks[-1].choices[0].finish_reason == "length"
    assert (filtered.message.content, filtered.finish_reason) == ("It", "content_filter")


def test_an_agent_speaks_as_it_works(models: openai.OpenAI) -> None:
    stream = models.chat.completions.create(
        model="lifter",
        messages=[{"role": "user", "content": "Lift."}],
        stream=True,
        stream_options={"include_usage": True},
    )

    chunks = list(stream)

    pieces = [each.choices[0].delta.content or "" for each in chunks if each.choices]
    assert "".join(pieces) == "Both are up."
    assert len(pieces) > 3
    assert chunks[-1].usage is not None


def test_a_conversation_goes_on_in_a_thread(models: openai.OpenAI, url: str) -> None:
    thread = str(uuid4())
    inside = {"x-thread-id": thread}
    for text in ("one", "two"):
        models.chat.completions.create(
            model="echo",
            messages=[
                {"role": "user", "content": "zero"},
                {"role": "assistant", "content": "Echo: zero"},
                {"role": "user", "content": text},
            ],
            extra_headers=inside,
        )

    held = httpx.get(f"{url}/threads/{thread}").json()["values"]["messages"]
    assert [each["content"] for each in held] == ["one", "Echo: one", "two", "Echo: two"]


def test_what_goes_wrong_is_an_error_of_the_client(models: openai.OpenAI) -> None:
    def ask(model: str, text: str) -> None:
        models.chat.completions.create(model=model, messages=[{"role": "user", "content": text}])

    with pytest.raises(openai.NotFoundError, match="none"):
        ask("none", "hello")
    with pytest.raises(openai.InternalServerError, match="badly"):
        ask("echo", "fail badly")
    with pytest.raises(openai.ConflictError, match="asks a person"):
        ask("echo", "ask Why?")
    with pytest.raises(openai.NotFoundError):
        models.models.retrieve("none")
    with pytest.raises(openai.UnprocessableEntityError, match="messages"):
        models.chat.completions.create(model="echo", messages=[])
    failing = models.chat.completions.create(
        model="echo", messages=[{"role": "user", "content": "fail badly"}], stream=True
    )
    with pytest.raises(openai.APIError, match="badly"):
        list(failing)
