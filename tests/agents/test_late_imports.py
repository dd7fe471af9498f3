"""What an agent does not use is not imported for it, and a process may end right behind what it uses."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import asyncio, sys
from deepagents import create_deep_agent
from deepagents.middleware import CodeModeMiddleware
from deepagents.testing import ScriptedModel, call
from deepagents.tools import web_fetch

model = ScriptedModel("Not yet.", call("run_code", code="40 + 2"), "Done.")
agent = create_deep_agent(model, [web_fetch("all")], middleware=[CodeModeMiddleware()])
agent.invoke({"messages": "Wait"})
late = ("deepagents.undo.", "html_to_markdown", "pypdf", "pydantic_monty")
print([name for name in sys.modules if name.startswith(late)])
print(asyncio.run(agent.ainvoke({"messages": "Go"}))["messages"][-2].text)
"""


def test_histories_pages_and_the_interpreter_of_code_are_imported_when_they_are_used() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)

    # It ends right behind a program that ran in the interpreter of code mode.
    assert (done.returncode, done.stdout.split("\n"), done.stderr) == (0, ["[]", "42", ""], "")
