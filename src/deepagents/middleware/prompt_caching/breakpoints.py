"""Where a request to Claude is marked, in the order in which the provider reads it, and which marks go out.

At most four are allowed. The caller's come first and stay as they are. A mark that lasts an hour may not
stand behind one that lasts five minutes; before an hour's mark, an hour costs no more than five minutes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, Final, Literal, TypeAlias, cast

from langchain_core.messages import BaseMessage, ToolMessage, is_data_content_block
from langchain_core.tools import BaseTool

from deepagents.middleware._base import Request
from deepagents.middleware.prompt_caching.markers import MARK, OwnMark, blocks_of, unmarked, with_blocks

MOST_MARKS: Final = 4
_HOUR: Final = "1h"
_ASIDE: Final = ("extras", "metadata")
"""Where a block of media, and no other, may carry its mark."""
Part: TypeAlias = Literal["tools", "system", "messages", "end"]


@dataclass(frozen=True, slots=True)
class Mark:
    """One mark: the part of the request and the place in it, what it says, and whose it is."""

    part: Part
    at: int
    says: Mapping[str, Any]
    own: bool = False

    @property
    def lasts_an_hour(self) -> bool:
        """Whether the provider is asked to keep the prefix for an hour, not five minutes."""
        return self.says.get("ttl") == _HOUR


def with_dict_blocks(request: Request) -> Request:
    """Return the request with a system message whose blocks can all be marked."""
    content: Any = request.system_message.content if request.system_message else ""
    plain = isinstance(content, list) and any(isinstance(each, str) for each in cast("list[Any]", content))
    return with_blocks(request, blocks_of(request.system_message)) if plain else request


def bounded(before: Request, marked: Request) -> Request:
    """Return the marked request with the caller's marks as they were before, and at most four in all."""
    marks = [*_in_tools(before, marked), *_in_system(before, marked)]
    marks += [*_in_messages(marked.messages), *_at_end(before, marked)]
    kept = {(mark.part, mark.at): mark for mark in _in_order(_most_useful(marks))}
    settings = unmarked(marked.model_settings)
    end = kept.get(("end", 0))
    if end is not None and (end.own or MARK in before.model_settings):
        settings[MARK] = dict(end.says)
    tools = [_tool(tool, kept.get(("tools", at))) for at, tool in enumerate(marked.tools)]
    request = marked.override(tools=tools, model_settings=settings)
    standing = blocks_of(marked.system_message)
    blocks = [_block(block, kept.get(("system", at))) for at, block in enumerate(standing)]
    return with_blocks(request, blocks) if blocks else request


def _in_tools(before: Request, marked: Request) -> Iterator[Mark]:
    yield from _compared("tools", [*map(_mark_of, before.tools)], [*map(_mark_of, marked.tools)])


def _in_system(before: Request, marked: Request) -> Iterator[Mark]:
    standing, now = blocks_of(before.system_message), blocks_of(marked.system_message)
    yield from _compared("system", [*map(_says, standing)], [*map(_says, now)])


def _compared(part: Part, standing: Sequence[Any], now: Sequence[Any]) -> Iterator[Mark]:
    """Yield a mark of a part's each place: the caller's as it stood, or the one put there since."""
    for at, (old, new) in enumerate(zip_longest(standing, now)):
        own = not old or isinstance(old, OwnMark)
        if says := (new if own else old):
            yield Mark(part, at, says, own)


def _in_messages(messages: Sequence[BaseMessage]) -> Iterator[Mark]:
    for at, message in enumerate(messages):
        yield from (Mark("messages", at, says) for says in _inside(message.content))


def _inside(content: Any) -> Iterator[Mapping[str, Any]]:
    """Yield what the marks of blocks say, and those of blocks that lie in a block as its content."""
    for each in cast("list[Any]", content) if isinstance(content, list) else ():
        if isinstance(each, dict):
            block = cast("dict[str, Any]", each)
            says = _sent(block)
            yield from [says] if says else []
            yield from _inside(block.get("content"))


def _sent(block: dict[str, Any]) -> Mapping[str, Any] | None:
    """Return the mark of a block as it is sent: of those of a block of media, the first."""
    aside = _ASIDE if is_data_content_block(block) else ()
    return next(filter(None, (_says(block), *(_says(block.get(each)) for each in aside))), None)


def _says(block: Any) -> Mapping[str, Any] | None:
    says: Any = cast("dict[str, Any]", block).get(MARK) if isinstance(block, dict) else None
    return cast("dict[str, Any]", says) if isinstance(says, dict) else None


def _at_end(before: Request, marked: Request) -> Iterator[Mark]:
    """Yield the mark that stands for the last block of all; a caller's on that block is enough."""
    of_model: Mapping[str, Any] = getattr(before.model, "model_kwargs", None) or {}
    if says := before.model_settings.get(MARK) or of_model.get(MARK):
        yield Mark("end", 0, says)
    elif (says := marked.model_settings.get(MARK)) and not _ends_with_mark(marked.messages):
        yield Mark("end", 0, says, own=True)


def _ends_with_mark(messages: Sequence[BaseMessage]) -> bool:
    """Tell whether the last block of all has a mark; the result of a tool is one block."""
    content: Any = messages[-1].content if messages else None
    blocks = cast("list[Any]", content) if isinstance(content, list) else []
    return any(_inside(blocks if isinstance(messages[-1], ToolMessage) else blocks[-1:])) if blocks else False


def _most_useful(marks: Sequence[Mark]) -> list[Mark]:
    """Leave out marks of ours until four are left: first those that others make up for most."""
    last = max((mark.at for mark in marks if mark.part == "system"), default=0)

    def worth(mark: Mark) -> int:
        if mark.part == "system":
            return 2 if mark.at == last else 0
        return 3 if mark.part == "end" else 1

    room = max(0, MOST_MARKS - sum(not mark.own for mark in marks))
    ranked = sorted((mark for mark in marks if mark.own), key=worth, reverse=True)
    return [mark for mark in marks if not mark.own or mark in ranked[:room]]


def _in_order(marks: Sequence[Mark]) -> list[Mark]:
    """Let marks of ours last as long as those of the caller around them allow."""
    hours = [at for at, mark in enumerate(marks) if mark.lasts_an_hour and not mark.own]
    minutes = [at for at, mark in enumerate(marks) if not mark.lasts_an_hour and not mark.own]
    own_hours = [at for at, mark in enumerate(marks) if mark.lasts_an_hour and mark.own]
    last = max([*hours, *(at for at in own_hours if not minutes or at < minutes[0])], default=-1)
    return [_lasting(mark, at <= last) if mark.own else mark for at, mark in enumerate(marks)]


def _lasting(mark: Mark, an_hour: bool) -> Mark:
    if mark.lasts_an_hour == an_hour:
        return mark
    return replace(mark, says={**mark.says, "ttl": _HOUR if an_hour else "5m"})


def _mark_of(tool: Any) -> Mapping[str, Any] | None:
    return _says(tool.extras if isinstance(tool, BaseTool) else tool)


def _tool(tool: Any, mark: Mark | None) -> Any:
    standing = _mark_of(tool)
    if standing == (mark and dict(mark.says)):
        return tool
    says = {} if mark is None else {MARK: dict(mark.says)}
    if isinstance(tool, BaseTool):
        return tool.model_copy(update={"extras": {**unmarked(tool.extras or {}), **says}})
    return {**unmarked(cast("dict[str, Any]", tool)), **says}


def _block(block: Mapping[str, Any], mark: Mark | None) -> dict[str, Any]:
    return unmarked(block) if mark is None else {**block, MARK: dict(mark.says)}
