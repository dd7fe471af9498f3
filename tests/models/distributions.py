"""Small distributions, installed into a folder as pip would lay them out."""

from __future__ import annotations

from pathlib import Path

from tests import programs

_ANEW = """
import sys
for name in [name for name in sys.modules if name.startswith("deepagents")]:
    del sys.modules[name]
"""
"""The process that others are forked from has made agents, and so has run its plugins."""


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
    ended = programs.run(_ANEW + program, path=folders)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip(), ended.stderr
