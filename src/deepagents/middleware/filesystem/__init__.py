"""File tools for an agent, on any backend."""

from deepagents.backends.results import FileData
from deepagents.middleware.filesystem.eviction import TOOLS_EXCLUDED_FROM_EVICTION
from deepagents.middleware.filesystem.middleware import FilesystemMiddleware, FsToolName
from deepagents.middleware.filesystem.state import FilesystemState
from deepagents.tools.delete import DeleteSchema
from deepagents.tools.edit_file import EditFileSchema
from deepagents.tools.execute import ExecuteSchema
from deepagents.tools.glob import GLOB_TRUNCATION_NOTE, GLOB_UNREADABLE_NOTE, GlobSchema
from deepagents.tools.grep import GREP_TRUNCATION_NOTE, GrepSchema
from deepagents.tools.ls import LsSchema
from deepagents.tools.read_file import DEFAULT_READ_LIMIT, DEFAULT_READ_OFFSET, ReadFileSchema
from deepagents.tools.write_file import WriteFileSchema

__all__ = [
    "DEFAULT_READ_LIMIT",
    "DEFAULT_READ_OFFSET",
    "GLOB_TRUNCATION_NOTE",
    "GLOB_UNREADABLE_NOTE",
    "GREP_TRUNCATION_NOTE",
    "TOOLS_EXCLUDED_FROM_EVICTION",
    "DeleteSchema",
    "EditFileSchema",
    "ExecuteSchema",
    "FileData",
    "FilesystemMiddleware",
    "FilesystemState",
    "FsToolName",
    "GlobSchema",
    "GrepSchema",
    "LsSchema",
    "ReadFileSchema",
    "WriteFileSchema",
]
