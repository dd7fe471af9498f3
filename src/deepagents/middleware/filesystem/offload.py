"""Move large results of tools to files; the path, how to read on, and a preview stay."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias, cast

from langchain_core.messages import ToolMessage, convert_to_messages
from langgraph.types import Command, Overwrite

from deepagents._paths import CommandPaths
from deepagents._text import preview, truncate
from deepagents._values import replace, valueclass
from deepagents.backends.handle import FileCalls
from deepagents.errors import ToolFailure
from deepagents.middleware._offload import (
    join_content,
    large_result_path,
    offload_notice,
    save_text,
    split_content,
)
from deepagents.tools import specs_by_name

OFFLOADED_TO: Final = "lc_evicted_to"
"""Where `additional_kwargs` of a message hold the path of the file that its text was saved to."""

_OUT_OF_REACH: Final = """\
Tool result too large to show, and rules keep the file that it was saved to from being read.
Ask for less. Its beginning and end:

{sample}"""
_NOT_SAVED: Final = """\
Tool result too large, and it could not be saved to a file: {reason}
The first {shown:,} of its {whole:,} characters follow; the rest is lost. To see it, ask for less at a time.

{start}"""
_REASON_LENGTH: Final = 200

_OWN_TOOLS: Final = frozenset(specs_by_name())

Change: TypeAlias = Callable[[Any], Awaitable[Any]]


@valueclass
class ResultOffload:
    """Moves the text of tool messages to files, if it has more than `threshold` characters."""

    files: FileCalls
    threshold: int
    may_read: Callable[[str], bool]
    paths: CommandPaths

    async def shorten(self, message: Any) -> Any:
        """Return a large tool message with a notice instead of its text, any other message as it is."""
        if not isinstance(message, ToolMessage):
            return message
        text, others = split_content(message.content)
        if len(text) <= self.threshold:
            return message
        path = large_result_path(self.files, message.tool_call_id, text)
        try:
            await save_text(self.files, path, text)
        except ToolFailure as failure:
            return message.model_copy(update={"content": join_content(self._cut(text, failure), others)})
        if self.may_read(path):
            notice = offload_notice(self.paths.show(path), text, whole=not _was_truncated(message))
        else:
            notice = _OUT_OF_REACH.format(sample=preview(text))
        marks = {**message.additional_kwargs, OFFLOADED_TO: path}
        changed = {"content": join_content(notice, others), "additional_kwargs": marks}
        return message.model_copy(update={**changed, **_with_path(message, path)})

    def _cut(self, text: str, failure: ToolFailure) -> str:
        start = text[: self.threshold]
        reason = truncate(failure.text, _REASON_LENGTH)
        return _NOT_SAVED.format(reason=reason, shown=len(start), whole=len(text), start=start)


def _was_truncated(message: ToolMessage) -> bool:
    """Return whether the tool itself dropped a part, as `execute` notes in its artifact."""
    artifact: Any = message.artifact
    return isinstance(artifact, dict) and cast("dict[str, Any]", artifact).get("truncated") is True


def _with_path(message: ToolMessage, path: str) -> dict[str, Any]:
    """Return the artifact with the path in it; that of a tool from elsewhere belongs to this tool alone."""
    artifact: Any = message.artifact
    if artifact is None or (isinstance(artifact, dict) and message.name in _OWN_TOOLS):
        return {"artifact": {**cast("dict[str, Any]", artifact or {}), "output_file": path}}
    return {}


async def map_messages(result: Any, change: Change) -> Any:
    """Return what a tool returned with `change` made to each message in it and to nothing else.

    Tools may return a message, a `Command` whose update is a dict or a list of pairs, or a list of these.
    """
    if isinstance(result, list):
        return [await map_messages(each, change) for each in cast("list[Any]", result)]
    if isinstance(result, ToolMessage):
        return await change(result)
    if not isinstance(result, Command):
        return result
    command = cast("Command[Any]", result)
    update = await _map_update(command.update, change)
    return command if update is command.update else replace(command, update=update)


async def _map_update(update: Any, change: Change) -> Any:
    if isinstance(update, dict):
        values = cast("dict[str, Any]", update)
        if "messages" not in values:
            return values
        return {**values, "messages": await _map_value(values["messages"], change)}
    if not isinstance(update, (list, tuple)):
        return update
    pairs = cast("list[tuple[Any, Any]]", update)
    return [(key, await _map_value(value, change) if key == "messages" else value) for key, value in pairs]


async def _map_value(value: Any, change: Change) -> Any:
    if isinstance(value, Overwrite):
        return Overwrite(await _map_value(value.value, change))
    if isinstance(value, list):
        return [await _map_message(each, change) for each in cast("list[Any]", value)]
    return await _map_message(value, change)


async def _map_message(value: Any, change: Change) -> Any:
    """Return a changed message, or the value as it is; a dict may be a message in short."""
    message: Any = _parse_message(cast("dict[str, Any]", value)) if isinstance(value, dict) else value
    changed = await change(message)
    return cast(Any, value) if changed is message else changed


def _parse_message(short: dict[str, Any]) -> Any:
    try:
        return convert_to_messages([short])[0]
    except (ValueError, TypeError, KeyError, NotImplementedError):
        return short
