"""A text that is too large for a context: the file that keeps it, and what stands in its place."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Final

from deepagents._text import preview
from deepagents.backends.calls import Files
from deepagents.errors import ToolFailure
from deepagents.tools._tool import READ_ON, artifact_name, read_on

NOTICE: Final = f"""Tool result too large, so all of it was saved to the file {{file_path}}
{READ_ON}
Its beginning and end:

{{content_sample}}"""


def moved_notice(path: str, text: str) -> str:
    """Say where the text of a result was saved and how to read it, and show how it begins and ends."""
    return NOTICE.replace(READ_ON, read_on(text)).format(file_path=path, content_sample=preview(text))


def large_result_path(files: Files, call_id: str, text: str) -> str:
    """Name the file of a large result, the same for each attempt, and not to be had for another text."""
    root = files.capabilities().artifacts_root.rstrip("/")
    digest = hashlib.sha256(f"{call_id}\0{text}".encode(errors="surrogatepass")).hexdigest()
    return f"{root}/large_tool_results/{artifact_name(call_id, digest[:12])}"


async def saved(files: Files, path: str, text: str) -> None:
    """Write a text to a new file, as bytes where it is no valid text.

    Raises:
        ToolFailure: when it cannot be written.
    """
    try:
        await files.write(path, text, None)
    except ToolFailure as failure:
        if failure.code != "invalid_encoding":
            raise
        await files.upload(path, text.encode("utf-8", "surrogatepass"))


def parts(content: str | Sequence[str | dict[Any, Any]]) -> tuple[str, list[Any]]:
    """Return all the text of a message's content, and what is not text."""
    if isinstance(content, str):
        return content, []
    texts: list[str] = []
    others: list[Any] = []
    for block in content:
        if isinstance(block, str):
            texts.append(block)
        elif block.get("type") == "text":
            texts.append(str(block.get("text", "")))
        else:
            others.append(block)
    return "\n".join(texts), others


def with_text(text: str, others: Sequence[Any]) -> str | list[Any]:
    """Return content that holds a text and blocks that are not text."""
    return [{"type": "text", "text": text}, *others] if others else text
