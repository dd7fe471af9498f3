"""Decide what confines commands on this system: bubblewrap on Linux, Seatbelt on macOS, nothing elsewhere."""

from __future__ import annotations

import sys

from deepagents.backends.local_sandbox import seatbelt
from deepagents.backends.local_sandbox.bubblewrap import Bubblewrap, find_bubblewrap
from deepagents.backends.local_sandbox.seatbelt import Seatbelt


def find_confinement(system: str = sys.platform) -> Bubblewrap | Seatbelt | str:
    """Return what confines commands on a system, or one sentence: why nothing can, and what to do."""
    if system.startswith("linux"):
        return find_bubblewrap()
    if system == "darwin":
        return seatbelt.find()
    return f"there is no sandbox for {system}: LocalSandbox runs on Linux and macOS; use WSL 2 on Windows"
