"""Hold tools back until the model searches for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepagents._lazy import lazy

if TYPE_CHECKING:
    from deepagents.middleware.tool_search.catalog import schema_of as schema_of
    from deepagents.middleware.tool_search.middleware import SEARCH_TOOLS as SEARCH_TOOLS
    from deepagents.middleware.tool_search.middleware import ToolSearch, ToolSearchMiddleware
    from deepagents.middleware.tool_search.middleware import check_tool_search as check_tool_search
    from deepagents.middleware.tool_search.middleware import find_tools as find_tools
    from deepagents.middleware.tool_search.middleware import has_seen_request as has_seen_request

__all__ = ["ToolSearch", "ToolSearchMiddleware"]

__getattr__ = lazy(
    __name__,
    {
        ".catalog": "schema_of",
        ".middleware": "SEARCH_TOOLS ToolSearch ToolSearchMiddleware check_tool_search find_tools "
        "has_seen_request",
    },
)
