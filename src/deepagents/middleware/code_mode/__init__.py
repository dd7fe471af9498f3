"""Let a model write programs that call its tools."""

from deepagents.middleware.code_mode.middleware import RUN_CODE as RUN_CODE
from deepagents.middleware.code_mode.middleware import CodeModeMiddleware

__all__ = ["CodeModeMiddleware"]
