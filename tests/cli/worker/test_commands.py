"""Slash commands, carried out by the real worker."""

from __future__ import annotations

from tests.cli.openai_server import OpenAIServer
from tests.cli.worker.conftest import Worker


def test_sessions_and_modes_are_changed_by_commands(worker: Worker, server: OpenAIServer) -> None:
    first = worker.open()
    assert {"mode", "new"} <= {each["name"] for each in first["commands"]}

    assert worker.command("mode", "auto")["text"].startswith("Mode auto: ")
    assert worker.last("status")["mode"] == "auto"
    assert [each["value"] for each in worker.command("mode")["choices"]] == ["ask", "auto", "plan", "full"]
    worker.command("new")
    assert worker.last("ready")["thread"] != first["thread"]
    assert worker.command("nonsense")["text"] == "There is no command /nonsense; /help lists them"
