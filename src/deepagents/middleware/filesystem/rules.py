"""Small parts of giving rules to the file tools."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.tools import BaseTool

from deepagents._deprecation import warn_legacy
from deepagents.errors import ConfigError
from deepagents.middleware._base import Response, tool_name
from deepagents.permissions import FilesystemPermission
from deepagents.tools import file_tools
from deepagents.tools._tool import make_tool


def one_of(
    permissions: Sequence[FilesystemPermission] | None, older: Sequence[FilesystemPermission] | None
) -> Sequence[FilesystemPermission]:
    """Return the rules by today's or by the older name.

    Raises:
        ConfigError: when both are given.
    """
    if older is None:
        return permissions or ()
    if permissions is not None:
        raise ConfigError("FilesystemMiddleware got permissions and _permissions; give permissions alone")
    warn_legacy("FilesystemMiddleware(_permissions=...) is deprecated: write permissions=...")
    return older


def bound_to(desk: Callable[[Any], Any], tool: Any) -> Any:
    """Return a file tool that works at another desk, and any other tool as it is."""
    spec = next((each for each in file_tools() if each.name == tool_name(tool)), None)
    return make_tool(spec, desk, tool.description) if spec and isinstance(tool, BaseTool) else tool


def calls_in(response: Response) -> list[Any]:
    """Return the tool calls that a model made."""
    said = [message for message in response.result if isinstance(message, AIMessage)]
    return [call for message in said for call in message.tool_calls]
