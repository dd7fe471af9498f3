"""Read a text whole, to change it."""

from __future__ import annotations

from deepagents.backends._refusals import not_text
from deepagents.backends.filedata import looks_binary
from deepagents.backends.handle import FileCalls


async def read_whole(files: FileCalls, path: str) -> tuple[str, str | None]:
    """Return the text of a file and its version, if the backend has versions.

    Raises:
        ToolFailure: when the file cannot be read.
        BackendError: `invalid_encoding`, for bytes that are no text.
    """
    # The version first: if the file changes in between, it is not overwritten.
    version = (await files.read(path, 0, 1)).version
    content = await files.download(path)
    if looks_binary(content):
        raise not_text()
    return content.decode(), version
