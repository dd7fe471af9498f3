"""grep: an expression that would take for ever is stopped."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from tests.conftest import CallMode
from tests.tools.bench import Bench, code_of


@pytest.mark.parametrize(
    ("where", "call_mode"), [("state", "async"), ("disk", "sync")], indirect=["call_mode"]
)
def test_an_expression_that_would_take_for_ever_is_stopped(
    where: Literal["state", "disk"], tmp_path: Path, call_mode: CallMode
) -> None:
    bench = Bench(where, tmp_path, call_mode)
    bench.place("/evil.txt", "a" * 5000 + "!\n")
    stopped = bench.use("grep", pattern="(a|aa)+$", regex=True, path="/evil.txt")

    assert code_of(stopped) == "timeout"
