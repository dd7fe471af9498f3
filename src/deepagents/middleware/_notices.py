"""What stands in a context for a tool's result that was too large for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from deepagents._text import preview
from deepagents.tools._tool import READ_ON, read_on

NOTICE: Final = f"""Tool result too large, so all of it was saved to the file {{file_path}}
{READ_ON}
Its beginning and end:

{{content_sample}}"""


def moved_notice(path: str, text: str) -> str:
    """Say where the text of a result was saved and how to read it, and show how it begins and ends."""
    return NOTICE.replace(READ_ON, read_on(text)).format(file_path=path, content_sample=preview(text))


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
