"""The file tools by name, in the order in which a model sees them."""

from deepagents.tools._tool import ToolSpec
from deepagents.tools.delete import DELETE
from deepagents.tools.edit_file import EDIT_FILE
from deepagents.tools.execute import EXECUTE
from deepagents.tools.glob import GLOB
from deepagents.tools.grep import GREP
from deepagents.tools.ls import LS
from deepagents.tools.read_file import READ_FILE
from deepagents.tools.write_file import WRITE_FILE

FILE_TOOLS: tuple[ToolSpec, ...] = (LS, READ_FILE, WRITE_FILE, EDIT_FILE, DELETE, GLOB, GREP, EXECUTE)

__all__ = ["FILE_TOOLS"]
