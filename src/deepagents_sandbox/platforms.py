"""Decide what confines commands on this system: bubblewrap on Linux, Seatbelt on macOS, nothing elsewhere.

And say what that does not hold here, which depends on the kernel, on its administrator and on the program.
"""

from __future__ import annotations

import os
import sys
from typing import Final

from deepagents_sandbox import seatbelt
from deepagents_sandbox.bubblewrap import Bubblewrap, find_bubblewrap
from deepagents_sandbox.limits import Controllers
from deepagents_sandbox.seatbelt import Seatbelt

_DISK: Final = "Disk: a command is looked at 20 times a second, and can pass its bound between two looks."
_PROCESSOR: Final = "Processor: nothing but its time-out bounds how much a command computes."
_WATCHED: Final = (
    "{}: no control group can be made here, so a command is looked at 50 times a second, and can pass its "
    "bound between two looks."
)
_BY_NAME: Final = (
    "Directories: the bubblewrap of this machine takes them by name, so a command can put a link in the "
    "place of one while another command starts; a newer bubblewrap takes them open."
)
_WHOLE_NETWORK: Final = 'Network: with "all", a command reaches what this machine reaches, and its servers.'
_ON_MACOS: Final = (
    "All of it: the way of macOS was written from documents, and has not been run on a Mac.",
    "Memory and processes: ps counts them four times a second, without a process that left its parent.",
    "Processes: one that leaves its process group (setsid) goes on after its command and after this program.",
    "Proxy: while a command with named hosts runs, other programs of this machine can use its proxy.",
)


def find_confinement(system: str = sys.platform) -> Bubblewrap | Seatbelt | str:
    """Return what confines commands on a system, or one sentence: why nothing can, and what to do."""
    if system.startswith("linux"):
        return find_bubblewrap()
    if system == "darwin":
        return seatbelt.find()
    return f"there is no sandbox for {system}: LocalSandbox runs on Linux and macOS; use WSL 2 on Windows"


def find_not_held(found: Bubblewrap | Seatbelt, controllers: Controllers, network: object) -> tuple[str, ...]:
    """Return what commands are not kept from here, a sentence each."""
    sentences: list[str] = []
    if network == "all":
        sentences.append(_WHOLE_NETWORK)
    if isinstance(found, Seatbelt):
        return (*sentences, *_ON_MACOS, _DISK, _PROCESSOR)
    if controllers.memory is None:
        sentences.append(f"{_WATCHED.format('Memory')} What its sockets and pipes hold is not counted.")
    # The other bound on processes is one of users, and the kernel does not hold it for root.
    if controllers.pids is None and os.geteuid() == 0:
        sentences.append(_WATCHED.format("Processes"))
    if not found.binds_descriptors:
        sentences.append(_BY_NAME)
    return (*sentences, _DISK, _PROCESSOR)
