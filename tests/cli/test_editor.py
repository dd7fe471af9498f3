"""A text is edited in the editor that the person has named."""

from __future__ import annotations

import pytest

from deepagents_cli.editor import edit_text, find_editor


def test_the_environment_names_the_editor_before_the_settings() -> None:
    assert find_editor("mine", {"VISUAL": "", "EDITOR": "vi"}) == "vi"
    assert find_editor("mine", {"VISUAL": "ed", "EDITOR": "vi"}) == "ed"
    assert find_editor("mine", {}) == "mine"
    assert find_editor(None, {}) is None


@pytest.mark.parametrize("text", ["echo one", "echo one\n"])
def test_the_last_line_ends_as_it_did(text: str) -> None:
    assert edit_text("sed -i -e s/one/two/ -e '$a\\'", text, ".sh") == text.replace("one", "two")


@pytest.mark.parametrize("editor", ["'vi", "/no/such/program", " "])
def test_an_editor_that_cannot_be_run_says_so(editor: str) -> None:
    with pytest.raises((OSError, ValueError)):
        edit_text(editor, "text", ".txt")
