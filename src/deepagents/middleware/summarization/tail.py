"""The last step: large results that the model has not seen yet move to files, and show how they begin."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from typing import Final, TypeAlias

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

from deepagents.backends.calls import Files
from deepagents.errors import ToolFailure
from deepagents.middleware._offload import large_result_path, offload_notice, save_text, split_content

_LARGE: Final = 4_500
"""In characters; what stands in the place of a result of `read_file` has about 4,200."""

LargeResult: TypeAlias = tuple[ToolMessage, str | None]
"""A result, and the file that it was read from, if it was."""


def large_results(
    shown: Sequence[AnyMessage], originals: Sequence[AnyMessage], already: Container[str]
) -> list[LargeResult]:
    """Return the large results of the open turn, as the state holds them, and the files they came from."""
    own = {each.id: each for each in originals}
    found: list[LargeResult] = []
    asked = next((each for each in reversed(shown) if isinstance(each, AIMessage)), None)
    for message in _open_results(shown):
        whole = own.get(message.id, message)
        if message.id is None or message.id in already or not isinstance(whole, ToolMessage):
            continue
        if len(split_content(whole.content)[0]) > _LARGE:
            found.append((whole, _read_from(whole, asked)))
    return found


async def moved(files: Files, results: Sequence[LargeResult]) -> dict[str, str | None]:
    """Save results that lie in no file yet; return by message where each can be read."""
    places: dict[str, str | None] = {}
    for message, source in results:
        text, _ = split_content(message.content)
        path = source or large_result_path(files, message.tool_call_id, text)
        if source is None:
            if len(offload_notice(path, text)) >= len(text):
                continue
            try:
                await save_text(files, path, text)
            except ToolFailure:
                continue
        places[message.id or ""] = path
    return places


def _open_results(shown: Sequence[AnyMessage]) -> Iterator[ToolMessage]:
    for message in reversed(shown):
        if isinstance(message, AIMessage):
            return
        if isinstance(message, ToolMessage):
            yield message


def _read_from(result: ToolMessage, asked: AIMessage | None) -> str | None:
    """Return the file that a successful `read_file` showed."""
    if result.name != "read_file" or result.status == "error" or asked is None:
        return None
    call = next((each for each in asked.tool_calls if each["id"] == result.tool_call_id), None)
    path = call["args"].get("file_path") if call else None
    return path if isinstance(path, str) else None
