"""The file tools by name, in the order in which a model sees them."""

from deepagents.tools._tool import ToolSpec
from deepagents.tools._video import video_dependencies_available
from deepagents.tools.delete import DELETE
from deepagents.tools.edit_file import EDIT_FILE
from deepagents.tools.execute import EXECUTE
from deepagents.tools.glob import GLOB
from deepagents.tools.grep import GREP
from deepagents.tools.ls import LS
from deepagents.tools.read_file import READ_FILE, READ_VIDEO_FILE
from deepagents.tools.write_file import WRITE_FILE

FILE_TOOLS: tuple[ToolSpec, ...] = (LS, READ_FILE, WRITE_FILE, EDIT_FILE, DELETE, GLOB, GREP, EXECUTE)

__all__ = ["FILE_TOOLS", "file_tools"]


def file_tools() -> tuple[ToolSpec, ...]:
    """Return the file tools as the installed extras make them."""
    if not video_dependencies_available():
        return FILE_TOOLS
    return tuple(READ_VIDEO_FILE if spec is READ_FILE else spec for spec in FILE_TOOLS)
