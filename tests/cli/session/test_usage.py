"""At the end of a run stands what it took: tokens, money, and the time in which nobody thought."""

from __future__ import annotations

import pytest

from deepagents.events import ApprovalRequest, Usage
from deepagents_cli.session.usage import Spending


def test_the_time_of_a_person_does_not_count() -> None:
    times = iter([0.0, 2.0, 62.0, 65.0])
    spending = Spending(clock=lambda: next(times))

    answered = spending.without_waiting(lambda request, agent: {"type": "approve"})

    assert answered(ApprovalRequest("1", "ls", {}), None) == {"type": "approve"}
    assert spending.describe() == "5.0 s"


@pytest.mark.parametrize(
    ("calls", "said"),
    [
        ([Usage(1_000_000, 0, model="gpt-4.1-2025-04-14")], "1,000,000 tokens in, 0 out, $2.00, 0.0 s"),
        ([Usage(10, 5, model="gpt-4.1")], "10 tokens in, 5 out, < $0.01, 0.0 s"),
        ([Usage(10, 5, model="nobody's")], "10 tokens in, 5 out, 0.0 s"),
        (
            [Usage(1_000_000, 0, model="gpt-4.1"), Usage(10, 5, model="nobody's")],
            "1,000,010 tokens in, 5 out, $2.00 and what has no known price, 0.0 s",
        ),
    ],
)
def test_what_is_known_of_the_cost_is_said(calls: list[Usage], said: str) -> None:
    spending = Spending(clock=lambda: 0.0)

    for each in calls:
        spending.count(each)

    assert spending.describe() == said
