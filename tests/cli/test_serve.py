from __future__ import annotations

from pathlib import Path

import pytest

from deepagents_cli.__main__ import main


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (["--host", "0.0.0.0", "agent.py:agent"], "--allow-anyone"),
        ([], "There is no 'langgraph.json'"),
        (["gone.py:agent"], "there is no file gone.py"),
        (["--database", "mysql://x", "agent.py:agent"], "is no database"),
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

    code = main(["serve", *typed])

    assert code == 2
    assert said in capsys.readouterr().err
