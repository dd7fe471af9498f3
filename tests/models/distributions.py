"""Small distributions, installed into a folder as pip would lay them out."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def install(
    folder: Path, name: str, *, version: str = "1.0", source: str = "", points: str | None = None
) -> None:
    """Lay a distribution out: one module of its name, and its entry points."""
    module = name.replace("-", "_")
    (folder / f"{module}.py").write_text(source)
    metadata = folder / f"{module}-{version}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    if points is not None:
        (metadata / "entry_points.txt").write_text(points)


def run(program: str, *folders: Path) -> tuple[str, str]:
    """Run a program that finds the distributions of these folders; return what it printed and warned."""
    # No fork of a process that has made agents: that has run its plugins.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))}
    ended = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip(), ended.stderr
