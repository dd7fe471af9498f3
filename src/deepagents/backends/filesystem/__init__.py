"""Keep files on disk, below one root directory."""

from deepagents._deprecation import legacy
from deepagents.backends.filedata import MAX_VIDEO_INPUT_BYTES
from deepagents.backends.filesystem.backend import DEFAULT_GLOB_TIMEOUT, FilesystemBackend
from deepagents.backends.filesystem.buffers import Buffers

__all__ = ["DEFAULT_GLOB_TIMEOUT", "MAX_VIDEO_INPUT_BYTES", "Buffers", "FilesystemBackend"]

__getattr__ = legacy(__name__)
