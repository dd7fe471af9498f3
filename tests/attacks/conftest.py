"""Places to attack: a secret beside a root on disk, with links of every kind between them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from deepagents.backends import FilesystemBackend
from tests.attacks.harness import CANARY, Ground


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """All that lies on disk; `known` is another name for it, which an attacker may have guessed."""
    real = tmp_path / "real"
    (real / "outside" / "deep").mkdir(parents=True)
    (real / "outside" / "secret.txt").write_text(f"one\n{CANARY}\nthree\n")
    (real / "outside" / "deep" / f"{CANARY}.txt").write_text(CANARY)
    (real / "root-elsewhere").mkdir()
    (real / "root-elsewhere" / "secret.txt").write_text(CANARY)
    (real / "root" / "d").mkdir(parents=True)
    (real / "root" / "in.txt").write_text("inside\n")
    (real / "root" / "d" / "in.txt").write_text("inside\n")
    (tmp_path / "known").symlink_to(real)
    return real


@pytest.fixture
def disk(top: Path) -> Ground:
    """Files on disk, below `root`, without links."""
    kept = [top / "outside", top / "root-elsewhere"]
    return Ground(top, top / "root", {"backend": FilesystemBackend(top / "root")}, kept=kept)


@pytest.fixture
def linked(disk: Ground) -> Ground:
    """Files on disk, and links that lead out in every way."""
    links = {
        "to-file": disk.top / "outside" / "secret.txt",
        "to-directory": disk.top / "outside",
        "up": "..",
        "up-and-over": "../outside",
        "d/up-up": "../../outside",
        "through-itself": "d/../../outside",
        "to-link": "to-directory",
        "d/chain": "../to-link",
        "loop": "loop",
        "loop-a": "loop-b",
        "loop-b": "loop-a",
        "to-host-root": "/",
        "to-proc": "/proc/self/cwd",
        "to-fd": "/proc/self/fd",
        "to-environment": "/proc/self/environ",
        "to-zero": "/dev/zero",
        "new-outside": disk.top / "outside" / "new.txt",
        "sneaky-prefix": f"{disk.root}-elsewhere",
        "dotted": f"{disk.root}/../outside",
        "known": disk.top.parent / "known" / "outside",
    }
    for name, target in links.items():
        (disk.root / name).symlink_to(target)
    os.mkfifo(disk.root / "pipe")
    return disk
