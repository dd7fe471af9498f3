"""Make servers for tests: entries of processes that misbehave as told, and agents that call their tools."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from deepagents import create_deep_agent
from deepagents.testing import ScriptedModel, call

CROOKED = Path(__file__).with_name("crooked.py")


def tool(name: str, description: str = "A tool.", /, **properties: Any) -> dict[str, Any]:
    """Return a tool as a server lists it."""
    schema = {"type": "object", "properties": properties}
    return {"name": name, "description": description, "inputSchema": schema}


def crooked(*tools: Any, env: dict[str, str] | None = None, **plan: Any) -> dict[str, Any]:
    """Return the entry of a server that offers these tools and misbehaves as planned."""
    listed = [tool(each) if isinstance(each, str) else each for each in tools]
    arguments = ["-I", "-S", str(CROOKED), json.dumps({"tools": listed, **plan})]
    return {"command": sys.executable, "args": arguments, **({"env": env} if env else {})}


def agent_that_calls(name: str, mcp: Any, *more: Any, **arguments: Any) -> Any:
    """Make an agent whose model calls one tool and is done."""
    return create_deep_agent(ScriptedModel(call(name, **arguments), *more, "Done."), mcp=mcp)


def results(state: Any) -> list[Any]:
    """Return the results of tools in a state."""
    return [each for each in state["messages"] if each.type == "tool"]
