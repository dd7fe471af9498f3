"""What a conversation asks about follows from the one policy: its mode, kept rules, and what is guarded."""

from __future__ import annotations

from pathlib import Path

from tests.cli.openai_server import OpenAIServer, call
from tests.cli.worker.conftest import Worker


def test_always_covers_what_was_chosen_and_an_edit_that_cannot_be_made_is_corrected_unasked(
    worker: Worker, server: OpenAIServer, directory: Path, tmp_path: Path
) -> None:
    server.then(
        call("write_file", file_path="one.md", content="1\n"),
        call("write_file", file_path="two.md", content="2\n"),
        call("delete", file_path="absent.md"),
        call("write_file", file_path=".env", content="x"),
        "Done.",
    )
    worker.open()
    worker.say("Write.")
    asked = worker.wait("ask")
    below = {"rule": f"edits: {directory}", "label": "changes of all files in the directory"}
    assert asked["rules"][-1] == below

    remember = {"scope": "directory", "rule": below["rule"]}
    worker.send("decide", ask=asked["id"], decision={"type": "approve"}, remember=remember)
    refused = worker.wait("decided", decision="reject")
    second = worker.wait("ask")
    worker.send("decide", ask=second["id"], decision={"type": "reject", "message": "no"}, remember=None)

    assert worker.answer() == "Done."
    assert (directory / "two.md").exists()
    assert (refused["name"], refused["by"]) == ("delete", "mode")
    assert "not found" in refused["message"]
    (listed,) = worker.command("permissions")["choices"]
    assert listed["value"] == below["rule"]
    settings = tmp_path / "settings.toml"
    assert below["rule"] in settings.read_text()
    assert worker.command("permissions", below["rule"])["text"] == "It is asked about again."
    assert below["rule"] not in settings.read_text()
    assert "No call" in worker.command("permissions")["text"]
    assert second["title"] == "wants to write .env (looks like it holds secrets)"
