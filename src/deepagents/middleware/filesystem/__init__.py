"""Give an agent file tools, on any backend."""

from typing import Final

from deepagents._deprecation import legacy
from deepagents.backends.guard import PATHLESS_DENIED_HINT as GLOB_PATHLESS_DENIED_HINT
from deepagents.backends.handle import supports_execution
from deepagents.backends.results import FileData
from deepagents.backends.utils import EMPTY_CONTENT_WARNING, sanitize_tool_call_id, validate_path
from deepagents.middleware.filesystem.middleware import FILESYSTEM_PROMPT as FILESYSTEM_SYSTEM_PROMPT
from deepagents.middleware.filesystem.middleware import FilesystemMiddleware
from deepagents.middleware.filesystem.state import FilesystemState
from deepagents.permissions import FilesystemOperation, FilesystemPermission
from deepagents.tools import FILE_TOOLS, FsToolName
from deepagents.tools._tool import CHARACTERS_PER_TOKEN as NUM_CHARS_PER_TOKEN
from deepagents.tools.change import (
    DELETE,
    EDIT_FILE,
    WRITE_FILE,
    DeleteSchema,
    EditFileSchema,
    WriteFileSchema,
)
from deepagents.tools.execute import EXECUTE, ExecuteSchema
from deepagents.tools.read_file import CUT as READ_FILE_TRUNCATION_MSG
from deepagents.tools.read_file import (
    DEFAULT_READ_LIMIT,
    DEFAULT_READ_OFFSET,
    READ_FILE,
    READ_VIDEO_FILE,
    ReadFileSchema,
    ReadVideoFileSchema,
)
from deepagents.tools.read_file import NO_LINES as NO_LINES_REQUESTED_WARNING
from deepagents.tools.search import (
    GLOB,
    GLOB_TIMEOUT,
    GLOB_TRUNCATION_NOTE,
    GLOB_UNREADABLE_NOTE,
    GREP,
    GREP_TRUNCATION_NOTE,
    LS,
    GlobSchema,
    GrepSchema,
    LsSchema,
)

TOOLS_EXCLUDED_FROM_EVICTION: Final = tuple(spec.name for spec in FILE_TOOLS if not spec.offload_result)
GREP_GLOB_DESCRIPTION: Final = GrepSchema.model_fields["glob"].description
GREP_OUTPUT_MODE_DESCRIPTION: Final = GREP.description
LIST_FILES_TOOL_DESCRIPTION: Final = LS.description
READ_FILE_TOOL_DESCRIPTION: Final = READ_FILE.description
READ_FILE_VIDEO_TOOL_DESCRIPTION: Final = READ_VIDEO_FILE.description
WRITE_FILE_TOOL_DESCRIPTION: Final = WRITE_FILE.description
EDIT_FILE_TOOL_DESCRIPTION: Final = EDIT_FILE.description
DELETE_TOOL_DESCRIPTION: Final = DELETE.description
GLOB_TOOL_DESCRIPTION: Final = GLOB.description
GREP_TOOL_DESCRIPTION: Final = GREP.description
EXECUTE_TOOL_DESCRIPTION: Final = EXECUTE.description

__all__ = [
    "DEFAULT_READ_LIMIT",
    "DEFAULT_READ_OFFSET",
    "DELETE_TOOL_DESCRIPTION",
    "EDIT_FILE_TOOL_DESCRIPTION",
    "EMPTY_CONTENT_WARNING",
    "EXECUTE_TOOL_DESCRIPTION",
    "FILESYSTEM_SYSTEM_PROMPT",
    "GLOB_PATHLESS_DENIED_HINT",
    "GLOB_TIMEOUT",
    "GLOB_TOOL_DESCRIPTION",
    "GLOB_TRUNCATION_NOTE",
    "GLOB_UNREADABLE_NOTE",
    "GREP_GLOB_DESCRIPTION",
    "GREP_OUTPUT_MODE_DESCRIPTION",
    "GREP_TOOL_DESCRIPTION",
    "GREP_TRUNCATION_NOTE",
    "LIST_FILES_TOOL_DESCRIPTION",
    "NO_LINES_REQUESTED_WARNING",
    "NUM_CHARS_PER_TOKEN",
    "READ_FILE_TOOL_DESCRIPTION",
    "READ_FILE_TRUNCATION_MSG",
    "READ_FILE_VIDEO_TOOL_DESCRIPTION",
    "TOOLS_EXCLUDED_FROM_EVICTION",
    "WRITE_FILE_TOOL_DESCRIPTION",
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
    "sanitize_tool_call_id",
    "supports_execution",
    "validate_path",
]

__getattr__ = legacy(__name__)
