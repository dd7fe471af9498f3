"""What files say of tools is understood in the words of Claude Code and in ours, or said not to be."""

from __future__ import annotations

import pytest

from deepagents_cli.project.tools import approvals_in


@pytest.mark.parametrize(
    ("tools", "approved", "said"),
    [
        ("Bash(git diff:*), Bash(make test)", ("commands: git diff", "command: make test"), ()),
        ("Read, Grep, LS, Task, TodoWrite", (), ()),
        ("Edit, MultiEdit, Write", ("edits",), ()),
        ("Bash", (), ("'Bash' approves nothing in advance: name how the commands begin",)),
        ("Bash(python *)", (), ("'Bash(python *)' approves nothing in advance: 'commands: python'",)),
        ("Write(/etc/**), delete", (), ("'Write(/etc/**)' approves nothing", "'delete' approves nothing")),
        ("WebFetch", (), ()),
        ("NotebookEdit", (), ("there is no tool 'NotebookEdit' here",)),
    ],
)
def test_tools_become_approvals(tools: str, approved: tuple[str, ...], said: tuple[str, ...]) -> None:
    problems: list[str] = []

    assert approvals_in(tools, problems) == approved
    assert [each[: len(text)] for each, text in zip(problems, said, strict=True)] == [*said]
