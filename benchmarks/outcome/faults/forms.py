"""The forms in which a model says what to change in a file, and the faults that each form can have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

from benchmarks.outcome.faults.drifts import BOTH, WAYS, drift

Form = Literal["replace", "anchors", "patch"]
TOOLS: Final[Mapping[Form, str]] = MappingProxyType(
    {"replace": "edit_file", "anchors": "edit_lines", "patch": "apply_patch"}
)


@dataclass(frozen=True)
class Change:
    """An edit in whole lines: where it begins, counted from 0, what stands there and what shall."""

    path: str
    start: int
    old: tuple[str, ...]
    new: tuple[str, ...]
    lines: tuple[str, ...]


def find_change(content: str, path: str, old: str, new: str, *, everywhere: bool) -> Change:
    """Return the edit that replaces a text, in whole lines; what stands nowhere is put at the beginning."""
    text = content.replace("\r\n", "\n")
    if everywhere:
        at, end = text.index(old), text.rindex(old) + len(old)
        old, new = text[at:end], text[at:end].replace(old, new)
    at = text.find(old)
    if at < 0:
        return Change(path, 0, tuple(_lines(old)), tuple(_lines(new)), tuple(_lines(text)))
    begin = text.rfind("\n", 0, at) + 1
    last = at + len(old)
    end = last if old.endswith("\n") else text.find("\n", last) + 1 or len(text)
    changed = text[begin:at] + new + text[last:end]
    start = text.count("\n", 0, begin)
    return Change(path, start, tuple(_lines(text[begin:end])), tuple(_lines(changed)), tuple(_lines(text)))


def _lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def write_patch(change: Change, way: str) -> dict[str, object]:
    """Return the arguments of `apply_patch`, with the lines drifted in a way."""
    old, new = "\n".join(change.old), "\n".join(change.new)
    if way:
        old, new = drift(way, old, new)
    removed = [f"-{line}" for line in old.split("\n")]
    added = [f"+{line}" for line in (new.split("\n") if new or change.new else [])]
    body = [f"*** Update File: {change.path}", "@@", *removed, *added]
    return {"patch": "\n".join(["*** Begin Patch", *body, "*** End Patch"])}


def anchors_of(change: Change) -> tuple[str, str]:
    """Return the anchors of the first and the last line of an edit, as `read_file` shows them."""
    # Only our own package has it.
    from deepagents._text.anchors import anchor_of  # noqa: PLC0415

    last = change.start + max(len(change.old), 1) - 1
    return anchor_of(change.lines, change.start), anchor_of(change.lines, last)


def _misspelt(anchor: str) -> str:
    return anchor[:-1] + ("a" if anchor[-1] != "a" else "b")


def _moved(anchor: str) -> str:
    number, _, code = anchor.partition(":")
    return f"{int(number) + 1}:{code}"


ANCHOR_WAYS: Final[Mapping[str, Callable[[str, str], tuple[str, str]]]] = MappingProxyType(
    {
        "a letter of the hash": lambda first, last: (_misspelt(first), last),
        "a number off by one": lambda first, last: (_moved(first), last),
        "a number alone": lambda first, last: (first.partition(":")[0], last),
        "a hash alone": lambda first, last: (first.partition(":")[2], last),
        "the last line left out": lambda first, last: (first, first),
    }
)
WAYS_OF: Final[Mapping[Form, tuple[str, ...]]] = MappingProxyType(
    {"replace": WAYS, "patch": WAYS, "anchors": (*WAYS, *ANCHOR_WAYS)}
)
"""How an edit drifts. With anchors a quote cannot, as there is none: of habits only the new text has them."""


def write_anchors(change: Change, way: str) -> dict[str, object]:
    """Return the arguments of `edit_lines`, with the anchors or the new text drifted in a way."""
    first, last = anchors_of(change)
    new = "\n".join(change.new)
    if way in ANCHOR_WAYS:
        first, last = ANCHOR_WAYS[way](first, last)
    elif way in BOTH:
        new = BOTH[way](new)
    # With its end, or a blank last line would be none.
    edit: dict[str, object] = {"op": "replace", "anchor": first, "text": f"{new}\n"}
    if not change.new:
        edit = {"op": "delete", "anchor": first}
    if last != first:
        edit["to"] = last
    return {"file_path": change.path, "edits": [edit]}
