"""Files on disk, below one root directory."""

from deepagents._deprecation import legacy
from deepagents.backends.filesystem.backend import DEFAULT_GLOB_TIMEOUT, FilesystemBackend
from deepagents.backends.filesystem.reading import MAX_VIDEO_INPUT_BYTES

__all__ = ["DEFAULT_GLOB_TIMEOUT", "MAX_VIDEO_INPUT_BYTES", "FilesystemBackend"]

__getattr__ = legacy(__name__)
