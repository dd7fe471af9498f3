"""Results in a file of JSON lines: added to, read, never rewritten."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path

from benchmarks.outcome.attempts import Result


def read(path: Path) -> list[Result]:
    """Read what is kept. A last line that was cut off in the middle is taken away."""
    if not path.exists():
        return []
    text = path.read_text("utf-8")
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        path.write_text(whole, "utf-8")
    lines = [json.loads(line) for line in whole.splitlines()]
    return [Result(**{**line, "destroyed": tuple(line["destroyed"])}) for line in lines]


def add(path: Path, result: Result) -> None:
    """Write one more line, at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(result), ensure_ascii=False) + "\n")
        file.flush()
        os.fsync(file.fileno())
