"""The file tools in the order in which a model sees them, and the facts about tools by name."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias

from deepagents.tools._tool import SpecTool, ToolSpec
from deepagents.tools._video import video_dependencies_available
from deepagents.tools.change import DELETE, EDIT_FILE, WRITE_FILE
from deepagents.tools.execute import EXECUTE
from deepagents.tools.read_file import READ_FILE, READ_VIDEO_FILE
from deepagents.tools.search import GLOB, GREP, LS

FsToolName: TypeAlias = Literal[
    "ls", "read_file", "write_file", "edit_file", "delete", "glob", "grep", "execute"
]
FILE_TOOLS: Final[tuple[ToolSpec, ...]] = (
    LS,
    READ_FILE,
    WRITE_FILE,
    EDIT_FILE,
    DELETE,
    GLOB,
    GREP,
    EXECUTE,
)
_BY_NAME: Final[Mapping[str, ToolSpec]] = MappingProxyType({spec.name: spec for spec in FILE_TOOLS})

__all__ = ["FILE_TOOLS", "FsToolName", "ToolSpec", "file_tools", "specs_by_name"]


def file_tools() -> tuple[ToolSpec, ...]:
    """Return the file tools as the installed extras make them."""
    if not video_dependencies_available():
        return FILE_TOOLS
    return tuple(READ_VIDEO_FILE if spec is READ_FILE else spec for spec in FILE_TOOLS)


def specs_by_name(tools: Iterable[Any] = ()) -> Mapping[str, ToolSpec]:
    """Return the specs of the file tools and of these tools, such as those of an agent.

    The file tools are always among them: a history holds calls of tools that an agent no longer has.
    """
    own = {tool.spec.name: tool.spec for tool in tools if isinstance(tool, SpecTool)}
    return {**_BY_NAME, **own} if own else _BY_NAME
