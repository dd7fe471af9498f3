"""Planning: LangChain's to-do list with short words of our own, and a tool to read it back."""

from __future__ import annotations

from functools import cache
from typing import Any

from langchain.agents.middleware import TodoListMiddleware as LangChainTodoList
from langchain.tools import ToolRuntime
from langchain_core.tools import BaseTool, StructuredTool

TODO_PROMPT = (
    "For work of three or more steps keep a plan with write_todos: mark a step in_progress before you "
    "start it and completed "
    "as soon as it is done. Skip it for simple requests. Give the answer itself in a message after the "
    "last update."
)
_WRITE = "Replace the to-do list. At most one call a turn."
_READ = "Show the to-do list."
_MARKS = {"completed": "[x]", "in_progress": "[>]", "pending": "[ ]"}


class TodoListMiddleware(LangChainTodoList[Any, Any]):
    """Give an agent `write_todos` and `read_todos`; the list is kept in its state under `todos`."""

    def __init__(self, *, system_prompt: str = TODO_PROMPT, tool_description: str = _WRITE) -> None:
        super().__init__(system_prompt=system_prompt, tool_description=tool_description)
        self.tools = [*self.tools, _read_todos_tool()]


def _read_todos(runtime: ToolRuntime[Any, Any]) -> str:
    """Show the to-do list."""
    todos: list[dict[str, str]] = runtime.state.get("todos") or []
    return (
        "\n".join(f"{_MARKS[todo['status']]} {todo['content']}" for todo in todos)
        or "The to-do list is empty."
    )


async def _aread_todos(runtime: ToolRuntime[Any, Any]) -> str:
    """Show the to-do list."""
    return _read_todos(runtime)


@cache
def _read_todos_tool() -> BaseTool:
    """Made once: working out its arguments is slow, and LangChain does it with process-wide warning filters."""
    return StructuredTool.from_function(
        func=_read_todos,
        coroutine=_aread_todos,
        name="read_todos",
        description=_READ,
    )
