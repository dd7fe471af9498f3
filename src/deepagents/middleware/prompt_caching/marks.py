"""Choose which cache marks of a request to Claude go out, and how long each lasts.

At most four are allowed. The caller's come first and stay as they are. A mark that lasts an hour may not
follow one that lasts five minutes; before an hour's mark, an hour costs no more than five minutes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import zip_longest
from typing import Any, Final, Literal, TypeAlias, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, SystemMessage, ToolMessage, is_data_content_block
from langchain_core.tools import BaseTool

from deepagents._values import replace, valueclass
from deepagents.middleware._requests import Request, is_deferred, with_changes

MARK = "cache_control"
_MOST_MARKS: Final = 4
_HOUR: Final = "1h"
_MEDIA_FIELDS: Final = ("extras", "metadata")
"""Where a block of media, and no other, may also carry its mark."""
Part: TypeAlias = Literal["tools", "system", "messages", "end"]


class OwnMark(dict[str, str]):
    """A mark that the library set itself, and may move or take back."""


def is_from(model: BaseChatModel, package: str, kind: str | None = None) -> bool:
    """Return whether a model's class, or one that it derives from, is of a package, by this name there."""
    return _derives_from(model.__class__, package, kind)


@lru_cache(maxsize=256)
def _derives_from(model: type, package: str, kind: str | None) -> bool:
    return any(
        each.__module__.partition(".")[0] == package and kind in (None, each.__name__)
        for each in model.__mro__
    )


def is_chat_anthropic(model: BaseChatModel) -> bool:
    """Return whether a model is a `ChatAnthropic`, without importing it."""
    return is_from(model, "langchain_anthropic", "ChatAnthropic")


def blocks_of(message: SystemMessage | None) -> list[dict[str, Any]]:
    """Return the blocks of a system message, text as a block too."""
    if message is None or not message.content:
        return []
    content: Sequence[Any] = [message.content] if isinstance(message.content, str) else message.content
    return [{"type": "text", "text": each} if isinstance(each, str) else each for each in content]


def with_blocks(request: Request, blocks: Sequence[Mapping[str, Any]]) -> Request:
    """Return the request with these blocks in its system message."""
    message = cast(SystemMessage, request.system_message)
    return with_changes(request, system_message=message.model_copy(update={"content": list(blocks)}))


def with_own_mark(request: Request) -> Request:
    """Mark the last block of the system message, unless it has a mark."""
    *others, last = blocks_of(request.system_message) or [{MARK: None}]
    if MARK in last:
        return request
    return with_blocks(request, [*others, {**last, MARK: OwnMark(type="ephemeral")}])


def without_own_marks(request: Request) -> Request:
    """Return the request without the marks that the library set in its system message."""
    blocks = blocks_of(request.system_message)
    kept = [remove_mark(each) if isinstance(each.get(MARK), OwnMark) else each for each in blocks]
    return request if kept == blocks else with_blocks(request, kept)


def remove_mark(block: Mapping[str, Any]) -> dict[str, Any]:
    """Return a block without its mark."""
    return {key: value for key, value in block.items() if key != MARK}


@valueclass
class Mark:
    """One mark: the part of the request, the index in it, the `cache_control`, and whether it is ours."""

    part: Part
    index: int
    control: Mapping[str, Any]
    own: bool = False

    @property
    def lasts_an_hour(self) -> bool:
        """Whether the provider is asked to keep the prefix for an hour, not five minutes."""
        return self.control.get("ttl") == _HOUR


def with_dict_blocks(request: Request) -> Request:
    """Return the request with a system message whose blocks can all be marked."""
    content: Any = request.system_message.content if request.system_message else ""
    plain = isinstance(content, list) and any(isinstance(each, str) for each in cast("list[Any]", content))
    return with_blocks(request, blocks_of(request.system_message)) if plain else request


def bound_marks(before: Request, marked: Request) -> Request:
    """Return the marked request with the caller's marks as they were before, and at most four in all."""
    old, given = blocks_of(before.system_message), blocks_of(marked.system_message)
    marks = [
        *_compare("tools", map(_tool_control, before.tools), map(_tool_control, marked.tools)),
        *_compare("system", map(_control, old), map(_control, given)),
        *_in_messages(marked.messages),
        *_at_end(before, marked),
    ]
    # Anthropic refuses a mark on a tool that it is to load later; what stands before that is cached anyway.
    sent = [
        each
        for each in marks
        if not (each.own and each.part == "tools" and is_deferred(marked.tools[each.index]))
    ]
    kept = {(mark.part, mark.index): mark for mark in _align_lifetimes(_choose(sent))}
    settings = remove_mark(marked.model_settings)
    end = kept.get(("end", 0))
    if end is not None and (end.own or MARK in before.model_settings):
        settings[MARK] = dict(end.control)
    tools = [_mark_tool(tool, kept.get(("tools", at))) for at, tool in enumerate(marked.tools)]
    request = marked.override(tools=tools, model_settings=settings)
    blocks = [_mark_block(block, kept.get(("system", at))) for at, block in enumerate(given)]
    return with_blocks(request, blocks) if blocks else request


def _compare(part: Part, before: Iterable[Any], after: Iterable[Any]) -> Iterator[Mark]:
    """Yield the marks of a part: the caller's as they were, and those that were set since."""
    for index, (old, new) in enumerate(zip_longest(before, after)):
        own = not old or isinstance(old, OwnMark)
        if control := (new if own else old):
            yield Mark(part, index, control, own)


def _in_messages(messages: Sequence[BaseMessage]) -> Iterator[Mark]:
    for index, message in enumerate(messages):
        yield from (Mark("messages", index, control) for control in _in_content(message.content))


def _in_content(content: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the marks of blocks, and of blocks that a block holds as its content."""
    for each in cast("list[Any]", content) if isinstance(content, list) else ():
        if isinstance(each, dict):
            block = cast("dict[str, Any]", each)
            control = _find_sent_control(block)
            yield from [control] if control else []
            yield from _in_content(block.get("content"))


def _find_sent_control(block: dict[str, Any]) -> Mapping[str, Any] | None:
    """Return the mark of a block as it is sent: of those of a block of media, the first."""
    fields = _MEDIA_FIELDS if is_data_content_block(block) else ()
    return next(filter(None, (_control(block), *(_control(block.get(each)) for each in fields))), None)


def _control(block: Any) -> Mapping[str, Any] | None:
    control: Any = cast("dict[str, Any]", block).get(MARK) if isinstance(block, dict) else None
    return cast("dict[str, Any]", control) if isinstance(control, dict) else None


def _at_end(before: Request, marked: Request) -> Iterator[Mark]:
    """Yield the mark for the last block of all; a caller's own mark on that block is enough."""
    of_model: Mapping[str, Any] = getattr(before.model, "model_kwargs", None) or {}
    if control := before.model_settings.get(MARK) or of_model.get(MARK):
        yield Mark("end", 0, control)
    elif (control := marked.model_settings.get(MARK)) and not _ends_with_mark(marked.messages):
        yield Mark("end", 0, control, own=True)


def _ends_with_mark(messages: Sequence[BaseMessage]) -> bool:
    """Return whether the last block of all has a mark; the result of a tool is one block."""
    content: Any = messages[-1].content if messages else None
    blocks = cast("list[Any]", content) if isinstance(content, list) else []
    return any(_in_content(blocks if blocks and isinstance(messages[-1], ToolMessage) else blocks[-1:]))


def _choose(marks: Sequence[Mark]) -> list[Mark]:
    """Leave out marks of ours until four are left, the least useful first."""
    last = max((mark.index for mark in marks if mark.part == "system"), default=0)

    # The end covers the whole history, and the last block of the system prompt all blocks before it.
    def worth(mark: Mark) -> int:
        if mark.part == "system":
            return 2 if mark.index == last else 0
        return 3 if mark.part == "end" else 1

    room = max(0, _MOST_MARKS - sum(not mark.own for mark in marks))
    ranked = sorted((mark for mark in marks if mark.own), key=worth, reverse=True)
    return [mark for mark in marks if not mark.own or mark in ranked[:room]]


def _align_lifetimes(marks: Sequence[Mark]) -> list[Mark]:
    """Let marks of ours last as long as those of the caller around them allow."""
    hours = [at for at, mark in enumerate(marks) if mark.lasts_an_hour and not mark.own]
    minutes = [at for at, mark in enumerate(marks) if not mark.lasts_an_hour and not mark.own]
    own_hours = [at for at, mark in enumerate(marks) if mark.lasts_an_hour and mark.own]
    last = max([*hours, *(at for at in own_hours if not minutes or at < minutes[0])], default=-1)
    return [_with_lifetime(mark, at <= last) if mark.own else mark for at, mark in enumerate(marks)]


def _with_lifetime(mark: Mark, an_hour: bool) -> Mark:
    if mark.lasts_an_hour == an_hour:
        return mark
    return replace(mark, control={**mark.control, "ttl": _HOUR if an_hour else "5m"})


def _tool_control(tool: Any) -> Mapping[str, Any] | None:
    return _control(tool.extras if isinstance(tool, BaseTool) else tool)


def _mark_tool(tool: Any, mark: Mark | None) -> Any:
    if _tool_control(tool) == (mark and dict(mark.control)):
        return tool
    control = {} if mark is None else {MARK: dict(mark.control)}
    if isinstance(tool, BaseTool):
        return tool.model_copy(update={"extras": {**remove_mark(tool.extras or {}), **control}})
    return {**remove_mark(cast("dict[str, Any]", tool)), **control}


def _mark_block(block: Mapping[str, Any], mark: Mark | None) -> dict[str, Any]:
    return remove_mark(block) if mark is None else {**block, MARK: dict(mark.control)}
