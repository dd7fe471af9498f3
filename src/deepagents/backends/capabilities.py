"""What a backend can do, asked once and never guessed from its class."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The abilities of a backend at a path.

    `versions`: `write` and `edit` take `expected_version` and refuse a stale one. `state_files`: files live
    in the graph's
    `files` channel. `artifacts_root`: where the harness may put files of its own.
    """

    execute: bool = False
    delete: bool = False
    versions: bool = False
    state_files: bool = False
    artifacts_root: str = "/"
