"""Give an agent file tools, on any backend."""

from deepagents._deprecation import legacy
from deepagents.backends.handle import supports_execution
from deepagents.backends.results import FileData
from deepagents.middleware.filesystem.middleware import FilesystemMiddleware
from deepagents.middleware.filesystem.state import FilesystemState
from deepagents.permissions import FilesystemOperation, FilesystemPermission
from deepagents.tools import FsToolName
from deepagents.tools.change import DeleteSchema, EditFileSchema, WriteFileSchema
from deepagents.tools.execute import ExecuteSchema
from deepagents.tools.read_file import ReadFileSchema, ReadVideoFileSchema
from deepagents.tools.search import GlobSchema, GrepSchema, LsSchema

__all__ = [
    "DeleteSchema",
    "EditFileSchema",
    "ExecuteSchema",
    "FileData",
    "FilesystemMiddleware",
    "FilesystemOperation",
    "FilesystemPermission",
    "FilesystemState",
    "FsToolName",
    "GlobSchema",
    "GrepSchema",
    "LsSchema",
    "ReadFileSchema",
    "ReadVideoFileSchema",
    "WriteFileSchema",
    "supports_execution",
]

__getattr__ = legacy(__name__)
