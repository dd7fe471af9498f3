"""At the end of a run stands what it took: tokens and money."""

from __future__ import annotations

import pytest

from deepagents.events import Usage
from deepagents.testing import ScriptedModel
from deepagents_cli.session.threads.usage import describe_calls, used_by


@pytest.mark.parametrize(
    ("calls", "said"),
    [
        ([Usage(1_000_000, 0, model="gpt-4.1-2025-04-14")], "1,000,000 tokens in, 0 out, $2.00"),
        ([Usage(10, 5, model="gpt-4.1")], "10 tokens in, 5 out, < $0.01"),
        ([Usage(10, 5, model="nobody's")], "10 tokens in, 5 out"),
        (
            [Usage(1_000_000, 0, model="gpt-4.1"), Usage(10, 5, model="nobody's")],
            "1,000,010 tokens in, 5 out, $2.00 and what has no known price",
        ),
    ],
)
def test_what_is_known_of_the_cost_is_said(calls: list[Usage], said: str) -> None:
    model = ScriptedModel()

    assert describe_calls((model, used_by(each, model)) for each in calls) == said
