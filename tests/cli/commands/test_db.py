from __future__ import annotations

from pathlib import Path

import pytest

from deepagents_cli.__main__ import main


@pytest.mark.parametrize(
    ("database", "said"),
    [
        ("gone.db", "There is no database"),
        ("mysql://me@here/x", "is not a database"),
        ("postgresql://me:secret@127.0.0.1:1/x", "cannot be worked on"),
        ("text.db", "file is not a database"),
        ("empty.db", "deepagents db migrate"),
    ],
)
def test_what_cannot_be_looked_after_is_one_sentence(
    database: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text.db").write_text("no database at all" * 100)
    Path("empty.db").touch()

    for action in (["prune"], ["vacuum"], ["backup", "copy"]):
        assert main(["db", *action, "--database", database]) == 2
        complaint = capsys.readouterr().err
        assert said in complaint
        assert "secret" not in complaint
    assert sorted(each.name for each in tmp_path.iterdir()) == ["empty.db", "text.db"]
