"""Save a text that is too large for the context, and say where it is."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Final

from deepagents._paths import LARGE_RESULTS
from deepagents._text import preview
from deepagents.backends.handle import FileCalls
from deepagents.errors import ToolFailure
from deepagents.tools._tool import READ_ON, artifact_name, read_on

NOTICE: Final = f"""Tool result too large, so all of it was saved to the file {{file_path}}
{READ_ON}
Its beginning and end:

{{content_sample}}"""
MESSAGE_NOTICE: Final = NOTICE.replace("Tool result", "Message")


def offload_notice(
    path: str, text: str, *, what: str = "Tool result", whole: bool = True, sample: str | None = None
) -> str:
    """Say where a text was saved and how to read it, and show a sample: by default how it begins and ends.

    `whole=False` is for a text from which the tool itself had already dropped a part.
    """
    notice = NOTICE if whole else NOTICE.replace("all of it", "what its tool kept of it")
    notice = notice.replace("Tool result", what).replace(READ_ON, read_on(text))
    return notice.format(file_path=path, content_sample=preview(text) if sample is None else sample)


def large_result_path(files: FileCalls, call_id: str, text: str) -> str:
    """Return the file for a large result: the same at each attempt, and another for another text."""
    root = files.capabilities().artifacts_root.rstrip("/")
    # Tools return lone surrogates too, which UTF-8 alone refuses to encode.
    digest = hashlib.sha256(f"{call_id}\0{text}".encode(errors="surrogatepass")).hexdigest()
    return f"{root}/{LARGE_RESULTS}/{artifact_name(call_id, digest[:12])}"


async def save_text(files: FileCalls, path: str, text: str) -> None:
    """Write a text to a new file, as bytes where it is not a valid text.

    Raises:
        ToolFailure: when it cannot be written.
    """
    try:
        await files.write(path, text, None)
    except ToolFailure as failure:
        if failure.code != "invalid_encoding":
            raise
        await files.upload(path, text.encode("utf-8", "surrogatepass"))


def split_content(content: str | Sequence[str | dict[Any, Any]]) -> tuple[str, list[Any]]:
    """Return all the text of a message's content, and the blocks that are not text."""
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


def join_content(text: str, others: Sequence[Any]) -> str | list[Any]:
    """Return content that holds a text and blocks that are not text."""
    return [{"type": "text", "text": text}, *others] if others else text
