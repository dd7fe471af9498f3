"""Read a text whole, to change it."""

from __future__ import annotations

from deepagents.backends._bytes import BINARY_HEAD
from deepagents.backends._refusals import not_text
from deepagents.backends.handle import FileCalls
from deepagents.errors import BackendError


async def read_whole(files: FileCalls, path: str) -> tuple[str, str | None]:
    """Return the text of a file and its version, if the backend has versions.

    Raises:
        ToolFailure: when the file cannot be read.
        BackendError: `invalid_encoding`, for bytes that are no text.
    """
    # The version first: if the file changes in between, it is not overwritten.
    version = (await files.read(path, 0, 1)).version
    content = await files.download(path)
    if b"\0" in content[:BINARY_HEAD]:
        raise not_text()
    try:
        return content.decode(), version
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        text = (
            f"Line {line} has bytes that are not UTF-8. Write the file whole, or convert it to UTF-8 first."
        )
        raise BackendError("invalid_encoding", text) from error
