"""Keep a plan: LangChain's to-do list with short words of our own, and a tool to read it back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final, cast

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware import TodoListMiddleware as LangChainTodoList
from langchain.agents.middleware.todo import Todo
from langchain_core.messages import AIMessage
from langchain_core.tools import InjectedToolArg
from pydantic import BaseModel

from deepagents._async import sync_and_async
from deepagents._state.programs import is_call_of_program
from deepagents.errors import ToolFailure
from deepagents.middleware._base import inner
from deepagents.middleware._history import is_from_person
from deepagents.middleware._repeats import name_tools
from deepagents.middleware._requests import Request, Response, add_section
from deepagents.tools._tool import Runtime, ToolOutput, ToolSpec, make_tool

TODO_PROMPT: Final = (
    "For work of three or more steps keep a plan with write_todos: mark a step in_progress before you start "
    "it and completed as soon as it is done. Skip it for simple requests. Give the answer itself in a "
    "message after the last update."
)
_MARKS: Final = {"completed": "[x]", "in_progress": "[>]", "pending": "[ ]"}


class WriteTodosSchema(BaseModel):
    """The arguments of `write_todos`."""

    todos: list[Todo]


class ReadTodosSchema(BaseModel):
    """The arguments of `read_todos`, of which there are none."""

    # LangChain passes nothing, not even the runtime, to a tool whose schema has no field.
    runtime: Annotated[Any, InjectedToolArg] = None


async def _write_todos(runtime: Runtime, todos: list[Todo]) -> ToolOutput:
    messages: Sequence[Any] = runtime.state.get("messages") or ()
    asked = next((each for each in reversed(messages) if isinstance(each, AIMessage)), AIMessage(""))
    others = sum(call["name"] == WRITE_TODOS.name for call in asked.tool_calls)
    # A program may write many lists, one after the other; but none beside a call of the model.
    if others > (0 if is_call_of_program(runtime.tool_call_id) else 1):
        raise ToolFailure("parallel_mutation", "write_todos replaces the whole list: call it once a turn")
    named, is_only_plan = name_tools(runtime, WRITE_TODOS.name), _is_only_plan(messages)
    completed = [each["status"] == "completed" for each in todos]
    if todos == runtime.state.get("todos"):
        done = bool(todos) and all(completed) and not is_only_plan
        step = "Give the answer: all is completed" if done else f"Do the next step with another tool{named}"
        return ToolOutput(f"The to-do list was the same before: nothing was changed. {step}.")
    early = f"\n\nNo other tool was called yet. If a step needs one, call it now{named}."
    note = early if is_only_plan and any(completed) else ""
    return ToolOutput(f"Updated todo list to {todos}{note}", update={"todos": todos})


def _is_only_plan(messages: Sequence[Any]) -> bool:
    """Return whether a whole conversation has plans and no other call: small models say done instead."""
    answers = [each for each in messages if isinstance(each, AIMessage)]
    names = {call["name"] for each in answers for call in each.tool_calls}
    # What begins with a summary has lost its first calls, and a provider runs some tools itself.
    if names - {WRITE_TODOS.name, READ_TODOS.name} or not any(map(is_from_person, messages[:1])):
        return False
    return not any(block["type"] == "server_tool_call" for each in answers for block in each.content_blocks)


async def _read_todos(runtime: Runtime) -> ToolOutput:
    todos: list[Todo] = runtime.state.get("todos") or []
    shown = "\n".join(f"{_MARKS[todo['status']]} {todo['content']}" for todo in todos)
    return ToolOutput(shown or "The to-do list is empty.")


WRITE_TODOS: Final = ToolSpec(
    "write_todos", "Replace the to-do list. At most one call a turn.", WriteTodosSchema, _write_todos
)
READ_TODOS: Final = ToolSpec("read_todos", "Show the to-do list.", ReadTodosSchema, _read_todos)


async def _around_model(
    self: LangChainTodoList[Any, Any], request: Request, handler: Callable[[Request], Response]
) -> Response:
    return await inner(handler, add_section(request, self.system_prompt))


class TodoListMiddleware(LangChainTodoList[Any, Any]):
    """Give an agent `write_todos` and `read_todos`; the list is kept in its state under `todos`.

    `system_prompt` replaces our short part of the system prompt; `""` leaves it out.
    """

    # LangChain's own hook adds an empty section to the prompt where `system_prompt` is empty.
    wrap_model_call, awrap_model_call = cast("tuple[Any, Any]", sync_and_async(_around_model))

    # LangChain's `after_model` refuses two lists in one turn. As a node of the graph it costs a step after
    # every model call, so the tool refuses the second list itself.
    after_model = cast(Any, AgentMiddleware.after_model)
    aafter_model = cast(Any, AgentMiddleware.aafter_model)

    def __init__(
        self, *, system_prompt: str = TODO_PROMPT, tool_description: str = WRITE_TODOS.description
    ) -> None:
        super().__init__(system_prompt=system_prompt, tool_description=tool_description)
        self.tools = [
            make_tool(WRITE_TODOS, lambda runtime: runtime, tool_description),
            make_tool(READ_TODOS, lambda runtime: runtime),
        ]
