"""What a step costs with the tools of MCP servers."""

from __future__ import annotations

from benchmarks.contenders import OURS, python_of
from benchmarks.parts import Part, Size, module
from benchmarks.report import Row, Table, Target
from benchmarks.rounds import Job

WITHOUT, WITH = "no servers", "5 servers, 50 tools"
_AGENTS = {WITHOUT: "deep_agent", WITH: "mcp_agent"}
_MOST = 1.1


def plan(size: Size) -> Part:
    """Run the same steps with servers and without."""
    length = size.lengths[0]
    jobs = [
        Job("servers", name, module(python_of(OURS), "steps", agent, "none", length))
        for name, agent in _AGENTS.items()
    ]
    table = Table(
        "A step with MCP servers",
        "CPU milliseconds a step",
        [WITHOUT, WITH],
        [Row(f"{length} steps", "servers step")],
        ratios=[(WITH, WITHOUT)],
        targets=[
            Target(
                "a step with 5 servers and 50 tools", ("servers step", WITH), ("servers step", WITHOUT), _MOST
            )
        ],
    )
    return Part(jobs, [table])
