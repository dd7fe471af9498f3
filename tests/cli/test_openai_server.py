"""The scripted server is answered by OpenAI's own client as the real one would be."""

from __future__ import annotations

from threading import Event

import pytest

from deepagents.models import resolve_model
from tests.cli.openai_server import MODEL, Reply, serving


def test_a_script_is_streamed_with_calls_and_usage(monkeypatch: pytest.MonkeyPatch) -> None:
    hold = Event()
    answers = Reply("Two words", calls=[("ls", {"path": "."})], hold=hold, usage=(70, 7)), "Done."
    with serving(*answers) as server:
        monkeypatch.setenv("DEEPAGENTS_LOCAL_SERVER", server.address)
        model = resolve_model(f"local-server:{MODEL}")

        stream = model.stream("What is here?")
        first = next(each for each in stream if each.text)
        hold.set()
        whole = first
        for each in stream:
            whole = whole + each

        assert (first.text, whole.text) == ("Two", "Two words")
        assert [each["name"] for each in whole.tool_calls] == ["ls"]
        assert whole.usage_metadata
        assert whole.usage_metadata["input_tokens"] == 70
        assert model.invoke("And now?").text == "Done."
        assert [each.last for each in server.requests] == ["What is here?", "And now?"]
        with pytest.raises(Exception, match="no answer to: More"):
            model.invoke("More?")
