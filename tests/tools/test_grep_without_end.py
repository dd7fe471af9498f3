"""grep: an expression that would take for ever is stopped."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from tests.conftest import Colour
from tests.tools.bench import Bench, code_of


@pytest.mark.parametrize(("where", "colour"), [("state", "async"), ("disk", "sync")], indirect=["colour"])
def test_an_expression_that_would_take_for_ever_is_stopped(
    where: Literal["state", "disk"], tmp_path: Path, colour: Colour
) -> None:
    bench = Bench(where, tmp_path, colour)
    bench.place("/evil.txt", "a" * 5000 + "!\n")
    stopped = bench.use("grep", pattern="(a|aa)+$", regex=True, path="/evil.txt")

    assert code_of(stopped) == "timeout"
