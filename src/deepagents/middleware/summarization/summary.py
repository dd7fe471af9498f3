"""The message that stands for what was evicted, and the extracts that stand in when nobody can sum it up."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from typing import Any, Final

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

from deepagents.middleware._history import said_by_a_person
from deepagents.middleware.summarization.fitting import shortened
from deepagents.middleware.summarization.parts import with_earlier

SOURCE: Final = "summarization"
_MOST_QUOTED: Final = 4_000
_SHARE_QUOTED: Final = 0.05
_SHARE_OF_SUMMARY: Final = 0.25
_CHARACTERS_PER_TOKEN: Final = 4
_REQUESTS: Final = 3
_MOST_FILES: Final = 40
_MOST_EXTRACT: Final = 1_500
_WINDOW_WHEN_UNKNOWN: Final = 170_000
_NO_SUMMARY: Final = "No summary could be written; these are extracts."
_PATHS: Final = ("file_path", "path")

_BEGINNING: Final = "You are in the middle of a conversation that has been summarized to save space."
_ARCHIVED: Final = (
    "The full conversation history has been saved to {path}, each message whole. Look there before you guess "
    "or ask again: grep finds a detail in it, and read_file with offset and limit shows it."
)
_ARCHIVED_IN_PART: Final = (
    "A part of the conversation history has been saved to {path}, each message whole; the rest could not be "
    "saved yet. grep finds a detail in it, and read_file with offset and limit shows it."
)
_REQUEST: Final = "The user's latest request, in the user's own words:\n\n<request>\n{request}\n</request>"
_SUMMED_UP = re.compile(r"<summary>\n(.*)\n</summary>", re.DOTALL)
_SUMMARY: Final = "What happened so far:\n\n<summary>\n{summary}\n</summary>"


def summary_message(
    summary: str,
    path: str | None,
    request: str | None,
    *,
    window: int | None,
    message_id: str,
    in_part: bool = False,
) -> HumanMessage:
    """Make the message that stands for what was evicted, naming its archive and quoting the task.

    `in_part` says that the archive does not hold all of it.
    """
    most = int((window or _WINDOW_WHEN_UNKNOWN) * _CHARACTERS_PER_TOKEN * _SHARE_OF_SUMMARY)
    parts = [_BEGINNING]
    if path is not None:
        parts.append((_ARCHIVED_IN_PART if in_part else _ARCHIVED).format(path=with_earlier(path)))
    parts.append(_SUMMARY.replace("{summary}", shortened(summary, most)))
    if request is not None:
        parts.append(_REQUEST.replace("{request}", shortened(request, _most_quoted(window))))
    return HumanMessage("\n\n".join(parts), id=message_id, additional_kwargs={"lc_source": SOURCE})


def evicted_request(messages: Sequence[AnyMessage], evicted: Container[str | None]) -> str | None:
    """Return what the user asked for last, if that message is among the evicted ones."""
    latest = next((each for each in reversed(messages) if said_by_a_person(each)), None)
    return latest.text if latest is not None and latest.id in evicted else None


def is_summary(message: AnyMessage) -> bool:
    """Tell whether this message stands for evicted ones."""
    return isinstance(message, HumanMessage) and message.additional_kwargs.get("lc_source") == SOURCE


def extracts(messages: Sequence[AnyMessage]) -> str:
    """Sum up mechanically: the earlier summary, what was asked, which files were named, the last words."""
    asked = [each.text for each in messages if said_by_a_person(each)][-_REQUESTS:]
    files = list(dict.fromkeys(_files(messages)))[-_MOST_FILES:]
    said = next((each.text for each in reversed(messages) if isinstance(each, AIMessage) and each.text), "")
    earlier = next((each.text for each in reversed(messages) if is_summary(each)), "")
    sections = {
        "EARLIER SUMMARY": _summed_up(earlier),
        "SESSION INTENT": "\n\n".join(shortened(each, _MOST_EXTRACT) for each in asked),
        "SUMMARY": shortened(said, _MOST_EXTRACT),
        "ARTIFACTS": "\n".join(files),
    }
    shown = "\n\n".join(f"## {name}\n{text}" for name, text in sections.items() if text)
    return f"{_NO_SUMMARY}\n\n{shown}".rstrip()


def _summed_up(earlier: str) -> str:
    """Return what an earlier summary says, without what stands around it."""
    found = _SUMMED_UP.search(earlier)
    return (found[1] if found else earlier).removeprefix(_NO_SUMMARY).strip()


def _files(messages: Sequence[AnyMessage]) -> Iterator[str]:
    for message in messages:
        for call in message.tool_calls if isinstance(message, AIMessage) else ():
            arguments: dict[str, Any] = call["args"]
            named = next((arguments[key] for key in _PATHS if isinstance(arguments.get(key), str)), None)
            if named:
                yield f"{call['name']} {shortened(named, 200)}"


def _most_quoted(window: int | None) -> int:
    share = int(window * _CHARACTERS_PER_TOKEN * _SHARE_QUOTED) if window else _MOST_QUOTED
    return min(_MOST_QUOTED, share)
