"""One attempt at one task: an agent on a throw-away copy of the files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from langchain_core.messages import AIMessage, BaseMessage
from langgraph.errors import GraphRecursionError

from benchmarks.local_eval.tasks import Task
from deepagents import create_deep_agent
from deepagents.backends import FilesystemBackend
from deepagents_local import ChatLocal, EngineError

TEMPERATURE = 0.2
STEPS = 40


@dataclass(frozen=True)
class Trial:
    """What came of an attempt."""

    fault: str
    turns: int
    seconds: float


def attempt(task: Task, number: int, model: str) -> Trial:
    """Let the agent try, with the attempt's number as seed and choice of wording."""
    with TemporaryDirectory(prefix="local-eval-") as name:
        root = Path(name).resolve()
        task.lay(root)
        started = perf_counter()
        messages = _run(task.ask(number), root, ChatLocal(model=model, temperature=TEMPERATURE, seed=number))
        seconds = perf_counter() - started
        if isinstance(messages, str):
            return Trial(messages, STEPS // 2, seconds)
        turns = sum(isinstance(message, AIMessage) for message in messages)
        return Trial(task.fault(root, messages[-1].text), turns, seconds)


def _run(ask: str, root: Path, model: ChatLocal) -> list[BaseMessage] | str:
    """Return the conversation, or what kept it from its end."""
    agent = create_deep_agent(model, backend=FilesystemBackend(root_dir=root, virtual_mode=True))
    try:
        result = agent.invoke({"messages": [("user", ask)]}, {"recursion_limit": STEPS})
    except GraphRecursionError:
        return "it went in circles"
    except EngineError as error:
        return f"the engine gave up: {error}"
    return result["messages"]
