"""Let one agent try one task: `arm.py ARM SOCKET ATTEMPT SEED`, with the request on the standard input.

Runs in the environment of its harness and in the directory of the task, and prints as JSON how it ended.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.exceptions import ContextOverflowError
from plain_tools import PLAIN_TOOLS
from socket_model import ModelFailed, NoMoreTurns, SocketModel

STEPS = 2_000
"""Far above what an attempt can use: the calls of the model end it, in every harness."""

PLAIN_PROMPT = "You work on the files in the current directory. Use the tools."


def main(arm: str, path: str, attempt: str, seed: str) -> dict[str, str]:
    """Run the agent and say how it ended."""
    kind, _, detail = arm.partition(":")
    provider = detail if kind == "ours-as" else ""
    model = SocketModel.connect(path, attempt, int(seed), provider)
    if kind == "ours-without":
        leave_out(detail.split("+"), model.provider)
    work = Path.cwd()
    agent = bare(model, work) if kind == "bare" else deep(model, work)
    try:
        result = agent.invoke({"messages": [("user", sys.stdin.read())]}, {"recursion_limit": STEPS})
    except NoMoreTurns:
        return {"end": "turns", "answer": ""}
    except ContextOverflowError as error:
        return {"end": "context", "answer": "", "why": str(error)}
    except ModelFailed as error:
        return {"end": "model", "answer": "", "why": str(error)}
    return {"end": "answered", "answer": result["messages"][-1].text}


def bare(model: SocketModel, work: Path) -> Any:
    """Make a plain agent with five plain tools."""
    notes = work / "AGENTS.md"
    prompt = f"{PLAIN_PROMPT}\n\n{notes.read_text()}" if notes.is_file() else PLAIN_PROMPT
    return create_agent(model, list(PLAIN_TOOLS), system_prompt=prompt)


def deep(model: SocketModel, work: Path) -> Any:
    """Make a deep agent, of whichever package has that name here."""
    from deepagents import create_deep_agent
    from deepagents.backends import LocalShellBackend

    return create_deep_agent(
        model,
        backend=LocalShellBackend(root_dir=work, virtual_mode=True, env=dict(os.environ)),
        memory=["/AGENTS.md"] if (work / "AGENTS.md").is_file() else None,
        skills=["/.agents/skills"] if (work / ".agents" / "skills").is_dir() else None,
    )


def leave_out(names: list[str], provider: str) -> None:
    """Let agents go without these tools and middleware; without `task`, without subagents."""
    from deepagents.profiles import GeneralPurposeSubagentProfile, HarnessProfile, register_harness_profile

    profile = HarnessProfile(
        excluded_tools=frozenset(name for name in names if name.islower()),
        excluded_middleware=frozenset(name for name in names if not name.islower()),
        general_purpose_subagent=GeneralPurposeSubagentProfile(enabled="task" not in names),
    )
    register_harness_profile(provider, profile)


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
