from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from deepagents_cli.__main__ import main


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (["--host", "0.0.0.0", "agent.py:agent"], "--allow-anyone"),
        ([], "There is no 'langgraph.json'"),
        (["gone.py:agent"], "there is no file gone.py"),
        (["--database", "mysql://x", "agent.py:agent"], "is not a database"),
        (["--config", "gone.json"], "There is no 'gone.json'"),
        (["--config", "langgraph.json", "agent.py:agent"], "leave one out"),
        (["--tunnel"], "cloudflared tunnel --url"),
        (["--debug-port", "5678"], "python -m debugpy --listen PORT -m deepagents serve"),
        (["--ssl-keyfile", "key.pem"], "put a proxy that speaks TLS in front"),
        (["--max-body", "big"], "write 500kB, 100MB or 1GB"),
    ],
)
def test_what_cannot_be_served_is_one_sentence(
    typed: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agent.py").write_text("def agent(): ...\n")

    try:
        code = main(["serve", *typed])
    except SystemExit as usage:
        code = usage.code

    assert code == 2
    assert said in capsys.readouterr().err


def test_a_line_for_langgraph_dev_is_understood(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Harmless options are taken, with a word; the server comes as far as its configuration."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other.json").write_text('{"graphs": {}}')

    line = (
        "serve --config other.json --host 127.0.0.1 --port 0 --no-browser --no-reload --allow-blocking "
        "--n-jobs-per-worker 3 --studio-url https://smith.example --server-log-level INFO"
    )
    code = main(line.split())

    said = capsys.readouterr().err
    assert code == 2
    assert "other.json names no graphs" in said
    for option in ("--no-browser", "--no-reload", "--allow-blocking", "--studio-url"):
        assert f"{option} has no effect: " in said


@pytest.mark.slow
@pytest.mark.parametrize("place", [">&-", ">/dev/full"])
def test_a_server_serves_though_its_output_cannot_be_written(tmp_path: Path, place: str) -> None:
    (tmp_path / "agent.py").write_text(
        "from deepagents import create_deep_agent\n"
        "from deepagents.testing import ScriptedModel\n"
        "agent = create_deep_agent(ScriptedModel('Hi.'))\n"
    )
    serve = [sys.executable, "-m", "deepagents", "serve", "agent.py:agent", "--port", "0"]
    command = ["bash", "-c", f'exec "$@" {place}', "bash", *serve]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr
        try:
            said = server.stderr.readline()
            assert "Serving agent on" in said
            assert "standard output cannot be written" in said
            address = re.findall(r"http://[0-9.:]+", said)[0]
            with urllib.request.urlopen(f"{address}/ok") as answer:
                assert answer.status == 200
        finally:
            os.kill(server.pid, signal.SIGTERM)
        assert server.wait(60) in (0, 130)
