"""Replace exact text. A newline in the old text fits any line end, which is then kept."""

import re

from deepagents.backends.sandbox.scripts.change import Change, line_ending, take_texts
from deepagents.backends.sandbox.scripts.common import (
    LARGEST,
    Refused,
    Root,
    content_of,
    is_binary,
    pack,
    to_lf,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ANY_END = "(?:\r\n|\n|\r(?!\n))"
END = re.compile("\r\n|\n|\r")
MOST_EXPLAINED = 60000


def edit(params: "dict[str, Any]") -> "tuple[list[Any], dict[str, Any]]":
    """Replace one occurrence, or all; where that fails, return the text so that it can be explained."""
    root = Root(params["root"])
    texts = take_texts(root, params)
    target = root.find(params["path"], params.get("expected"))
    with Change(target, params.get("expected_version")) as change:
        if change.before is None:
            raise Refused("file_not_found")
        if change.before.st_size > LARGEST:
            raise Refused("too_large", size=change.before.st_size, most=LARGEST)
        data = content_of(target)
        if params.get("media") or is_binary(data):
            raise Refused("invalid_encoding")
        content, count = replace_text(data.decode("utf-8", "surrogateescape"), texts["old"], texts["new"])
        if count != 1 and not (count and params["replace_all"]):
            raise unclear(data, count)
        version = change.replace(content.encode("utf-8", "surrogateescape"))
    return [], {"count": count, "version": version}


def unclear(data: bytes, count: int) -> Refused:
    """Report no occurrence, or more than one, with the text if it is not too long."""
    shown = pack(data)
    more = {"data": shown} if len(shown) <= MOST_EXPLAINED else {}
    return Refused("ambiguous_match" if count else "no_match", count=count, **more)


def replace_text(content: str, old: str, new: str) -> "tuple[str, int]":
    """Replace all occurrences; return the text and how many there were."""
    if "\r" in old and old in content:
        return content.replace(old, new), content.count(old)
    ending = line_ending(content)
    if ending is None and "\r" in content:
        return replace_mixed_ends(content, old, new)
    if ending is not None:
        old, new = plain(old).replace("\n", ending), plain(new).replace("\n", ending)
    return content.replace(old, new), content.count(old)


def replace_mixed_ends(content: str, old: str, new: str) -> "tuple[str, int]":
    """Replace where lines end in different ways: new lines end as the replaced ones did."""

    def put(found: "re.Match[str]") -> str:
        end = END.search(found.group())
        return plain(new).replace("\n", end.group()) if end else new

    return re.subn(ANY_END.join(re.escape(line) for line in plain(old).split("\n")), put, content)


def plain(text: str) -> str:
    """End every line with a plain newline."""
    return to_lf(text.encode("utf-8")).decode("utf-8")
