"""Find the words and decisions of a person in evicted messages, and show them whole, up to a bound."""

from __future__ import annotations

import json
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any, Final

from langchain_core.messages import AIMessage, AnyMessage

from deepagents._values import valueclass
from deepagents.middleware._history import is_from_person
from deepagents.middleware.summarization.clipping import shorten, shorten_within

_SHARE_OF_ONE: Final = 0.25
"""The share of the room that one message may take: a pasted file must not push out all else."""
_MOST_OF_ARGUMENT: Final = 300
_TAGS: Final = {"approve": "approved", "reject": "rejected", "edit": "edited", "respond": "answered"}
_HEADING: Final = (
    "The user's own words and decisions from that part, word for word, oldest first. They still hold, unless "
    "a later one changes them:"
)
_MORE: Final = "[{many} more are not shown whole here{where}.]"


@valueclass
class _Statement:
    """A message or decision of a person; of a higher `rank` is what goes first where there is no room."""

    tag: str
    text: str
    rank: int


def show_words(
    messages: Sequence[AnyMessage],
    evicted: Container[str | None],
    decided: Mapping[str, Mapping[str, Any]],
    *,
    room: int,
    where: str | None,
) -> str | None:
    """Return a section with the words of a person in evicted messages, in at most about `room` characters.

    The first message stays, then what is newest: messages before refusals and edits, and these before
    approvals. `where` names the archive that has the rest.
    """
    statements = list(_find_statements(messages, evicted, decided))
    most = int(room * _SHARE_OF_ONE)
    shown = {at: shorten(each.text, most) for at, each in enumerate(statements)}
    for at in sorted(shown, key=lambda at: (at > 0, statements[at].rank, -at)):
        size = len(_write(statements[at].tag, shown[at]))
        if size > room:
            del shown[at]
        else:
            room -= size
    if not shown:
        return None
    written = [_write(statements[at].tag, shown[at]) for at in sorted(shown)]
    if many := sum(shown.get(at) != each.text for at, each in enumerate(statements)):
        written.append(_MORE.format(many=many, where=f"; look in {where}" if where else ""))
    return "\n".join([f"{_HEADING}\n", *written])


def _find_statements(
    messages: Sequence[AnyMessage], evicted: Container[str | None], decided: Mapping[str, Mapping[str, Any]]
) -> Iterator[_Statement]:
    for message in messages:
        if message.id not in evicted:
            continue
        if is_from_person(message) and message.text.strip():
            yield _Statement("user", message.text, 0)
        for call in message.tool_calls if isinstance(message, AIMessage) else ():
            if (decision := decided.get(call["id"] or "")) and decision.get("type") in _TAGS:
                yield _describe_decision(call["name"], call["args"], decision)


def _describe_decision(name: str, arguments: Any, decision: Mapping[str, Any]) -> _Statement:
    edit, words = decision.get("edited_action"), decision.get("message")
    parts = [f"{name} {_write_arguments(arguments)}"]
    if edit:
        parts.append(f"instead: {edit.get('name')} {_write_arguments(edit.get('args'))}")
    if words:
        parts.append(words if isinstance(words, str) else _write_arguments(words))
    return _Statement(_TAGS[decision["type"]], "\n".join(parts), 2 if decision["type"] == "approve" else 1)


def _write_arguments(arguments: Any) -> str:
    written = json.dumps(shorten_within(arguments, _MOST_OF_ARGUMENT), ensure_ascii=False, default=str)
    # The model wrote them: an end of a tag in them must not let what follows pass for words of the user.
    return written.replace("</", "<\\/")


def _write(tag: str, text: str) -> str:
    return f"<{tag}>\n{text}\n</{tag}>" if "\n" in text else f"<{tag}>{text}</{tag}>"
