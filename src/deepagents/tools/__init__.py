"""List the file tools in the order in which a model sees them, with the facts about tools by name."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from deepagents._lazy import lazy
from deepagents.tools._tool import SpecTool, ToolSpec, names_of_tools
from deepagents.tools._video import video_dependencies_available
from deepagents.tools.apply_patch import APPLY_PATCH
from deepagents.tools.background import READ_COMMAND, STOP_COMMAND, WRITE_COMMAND
from deepagents.tools.change import DELETE, EDIT_FILE, WRITE_FILE
from deepagents.tools.edit_lines import EDIT_LINES
from deepagents.tools.execute import EXECUTE, EXECUTE_IN_BACKGROUND
from deepagents.tools.read_file import READ_FILE, READ_VIDEO_FILE, with_anchors
from deepagents.tools.search import GLOB, GREP, LS
from deepagents.tools.web_search import web_search

if TYPE_CHECKING:
    from deepagents.tools.web import web_fetch

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
EditForm: TypeAlias = Literal["replace", "anchors", "patch"]
EDIT_TOOLS: Final[Mapping[EditForm, ToolSpec]] = MappingProxyType(
    {"replace": EDIT_FILE, "anchors": EDIT_LINES, "patch": APPLY_PATCH}
)
"""The tools that change a part of a file, by the form in which a model says what to change."""
_BY_NAME: Final[Mapping[str, ToolSpec]] = MappingProxyType(
    {spec.name: spec for spec in (*FILE_TOOLS, *EDIT_TOOLS.values())}
)
FILE_TOOL_NAMES: Final = frozenset(_BY_NAME)
"""The names of all file tools, whichever form of edit an agent has."""

__all__ = [
    "EDIT_TOOLS",
    "FILE_TOOLS",
    "FILE_TOOL_NAMES",
    "EditForm",
    "FsToolName",
    "ToolSpec",
    "file_tools",
    "find_edit_name",
    "specs_by_name",
    "web_fetch",
    "web_search",
    "with_edit_tool",
]

# Few agents fetch pages, and every agent would wait for the modules that do.
__getattr__ = lazy(__name__, {".web": "web_fetch"})


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
    given = tuple(tools)
    own = {tool.spec.name: tool.spec for tool in given if isinstance(tool, SpecTool)}
    if not own:
        return _BY_NAME
    # A caller may have had a tool of this name before there was ours.
    others = names_of_tools(given) - own.keys() if len(own) < len(given) else ()
    known = {name: spec for name, spec in _BY_NAME.items() if not (spec.instead_of and name in others)}
    return {**known, **own}


def find_edit_name(tools: Iterable[Any]) -> str:
    """Return the name of the tool that changes a part of a file, `edit_file` where there is no other."""
    edits = {spec.name for spec in EDIT_TOOLS.values()}
    own = (tool.spec.name for tool in tools if isinstance(tool, SpecTool))
    return next((name for name in own if name in edits), EDIT_FILE.name)


def with_edit_tool(specs: Iterable[ToolSpec], edit: ToolSpec) -> tuple[ToolSpec, ...]:
    """Return tools of which this is the one that changes a part of a file, and which say so to the model."""
    if edit is EDIT_FILE:
        return tuple(specs)
    # What the model reads of the other tools names the one that it has.
    worded = [
        replace(spec, description=spec.description.replace(EDIT_FILE.name, edit.name)) for spec in specs
    ]
    shown = [with_anchors(spec) if edit is EDIT_LINES else spec for spec in worded]
    return tuple(edit if spec.name == EDIT_FILE.name else spec for spec in shown)
