"""The agents that are measured: a deep agent, whichever is installed, and a bare loop with plain tools."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.tools import BaseTool, tool

from benchmarks.outcome.faults.model import FaultyModel
from deepagents import create_deep_agent, middleware
from deepagents.backends import LocalShellBackend


def deep(model: FaultyModel, root: Path, *, checked: bool = False) -> Any:
    """Make a deep agent with files and commands below a directory; `checked` is asked whether it is done."""
    # By its name where it is wanted: only our own package has it.
    more: list[Any] = [middleware.FinishCheckMiddleware()] if checked else []
    backend = LocalShellBackend(root_dir=root, virtual_mode=True)
    if model.form != "replace":
        more.append(middleware.FilesystemMiddleware(backend=backend, edit_form=model.form))
    return create_deep_agent(model=model, backend=backend, middleware=more)


def bare(model: FaultyModel, root: Path) -> Any:
    """Make LangChain's agent with five plain tools."""
    return create_agent(model, tools=_plain_tools(root))


def _plain_tools(root: Path) -> list[BaseTool]:
    return [*_reading(root), *_writing(root)]


def _reading(root: Path) -> list[BaseTool]:
    @tool
    def ls(path: str) -> str:
        """List a directory."""
        there = root / path.lstrip("/")
        if not there.is_dir():
            return f"Error: {path} not found"
        return "\n".join(sorted(each.name for each in there.iterdir()))

    @tool
    def read_file(file_path: str, limit: int = 2000) -> str:
        """Read a file."""
        there = root / file_path.lstrip("/")
        return there.read_text() if there.is_file() else f"Error: {file_path} not found"

    return [ls, read_file]


def _writing(root: Path) -> list[BaseTool]:
    @tool
    def write_file(file_path: str, content: str) -> str:
        """Write a file."""
        there = root / file_path.lstrip("/")
        there.parent.mkdir(parents=True, exist_ok=True)
        there.write_text(content)
        return f"Wrote {file_path}"

    @tool
    def edit_file(file_path: str, old_string: str, new_string: str, replace_all: bool = False) -> str:
        """Replace text in a file."""
        there = root / file_path.lstrip("/")
        if not there.is_file():
            return f"Error: {file_path} not found"
        text = there.read_text()
        count = text.count(old_string)
        if not count or (count > 1 and not replace_all):
            return f"Error: old_string occurs {count} times"
        there.write_text(text.replace(old_string, new_string))
        return f"Edited {file_path}"

    @tool
    def execute(command: str) -> str:
        """Run a command."""
        done = subprocess.run(command, shell=True, cwd=root, capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    return [write_file, edit_file, execute]
