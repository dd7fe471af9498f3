"""A text is edited in the editor that the person has named."""

from __future__ import annotations

import pytest

from deepagents_cli.views.terminal.editor import edit_text, find_editor


def test_the_environment_names_the_editor_before_the_settings() -> None:
    assert find_editor("mine", {"VISUAL": "", "EDITOR": "vi"}) == "vi"
    assert find_editor("mine", {"VISUAL": "ed", "EDITOR": "vi"}) == "ed"
    assert find_editor("mine", {}) == "mine"
    assert find_editor(None, {}) is None


@pytest.mark.parametrize("text", ["echo one", "echo one\n", "one\r\ntwo\r\n"])
def test_lines_end_as_they_did(text: str) -> None:
    assert edit_text("sed -i -e s/one/two/ -e '$a\\'", text, ".sh") == text.replace("one", "two")


@pytest.mark.parametrize(
    ("editor", "why"),
    [
        ("'vi", "No closing quotation"),
        ("/no/such/program", "No such file or directory"),
        (" ", "no program ''"),
        ("false", "it ended with code 1"),
        ("cp /bin/sh", "not text"),
    ],
)
def test_an_editor_that_fails_is_named_with_the_way_out(editor: str, why: str) -> None:
    with pytest.raises(ValueError, match=f"{editor!r}.*{why}") as failed:
        edit_text(editor, "text", ".txt")

    assert "$EDITOR" in str(failed.value)
