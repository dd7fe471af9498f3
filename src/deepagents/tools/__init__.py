"""List the file tools in the order in which a model sees them, with the facts about tools by name."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias

from deepagents.tools._tool import SpecTool, ToolSpec
from deepagents.tools._video import video_dependencies_available
from deepagents.tools.background import READ_COMMAND, STOP_COMMAND, WRITE_COMMAND
from deepagents.tools.change import DELETE, EDIT_FILE, WRITE_FILE
from deepagents.tools.execute import EXECUTE, EXECUTE_IN_BACKGROUND
from deepagents.tools.read_file import READ_FILE, READ_VIDEO_FILE
from deepagents.tools.search import GLOB, GREP, LS

FsToolName: TypeAlias = Literal[
    "ls", "read_file", "write_file", "edit_file", "delete", "glob", "grep", "execute",
    "read_command", "write_command", "stop_command",
]  # fmt: skip
FILE_TOOLS: Final[tuple[ToolSpec, ...]] = (
    LS,
    READ_FILE,
    WRITE_FILE,
    EDIT_FILE,
    DELETE,
    GLOB,
    GREP,
    EXECUTE,
    READ_COMMAND,
    WRITE_COMMAND,
    STOP_COMMAND,
)
_BY_NAME: Final[Mapping[str, ToolSpec]] = MappingProxyType({spec.name: spec for spec in FILE_TOOLS})

__all__ = ["FILE_TOOLS", "FsToolName", "ToolSpec", "file_tools", "specs_by_name"]


def file_tools(*, background: bool = False) -> tuple[ToolSpec, ...]:
    """Return the file tools as the installed extras make them, with commands in the background or without."""
    variants = {READ_FILE.name: READ_VIDEO_FILE} if video_dependencies_available() else {}
    if background:
        variants[EXECUTE.name] = EXECUTE_IN_BACKGROUND
    return tuple(
        variants.get(spec.name, spec) for spec in FILE_TOOLS if background or not spec.about_background
    )


def specs_by_name(tools: Iterable[Any] = ()) -> Mapping[str, ToolSpec]:
    """Return the specs of the file tools and of these tools, such as those of an agent.

    The file tools are always among them: a history holds calls of tools that an agent no longer has.
    """
    own = {tool.spec.name: tool.spec for tool in tools if isinstance(tool, SpecTool)}
    return {**_BY_NAME, **own} if own else _BY_NAME
