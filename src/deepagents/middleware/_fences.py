"""Escape tags in text of others, so that it cannot open or close the element that stands around it."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

# What may stand: "<" before a number, "=" or "-", and "<name" in plain ASCII that goes on in ASCII. All else
# is escaped. A list of what is bad would never be complete: too many characters are invisible.
_OPENING: Final = re.compile(
    r"<(?![ \t]*+[0-9=-])(?:[ \t]*+/?[ \t]*+([A-Za-z][A-Za-z0-9_-]*+)(?=[\t\n\r\x20-\x7e]|\Z))?"
)
_TAG: Final = re.compile(r"</?([A-Za-z][A-Za-z0-9_-]*)")


def escape_tags(text: str, names: Collection[str]) -> str:
    """Escape each `<` that begins a tag of one of these names, or something that is not a plain tag."""
    guarded = {name.lower() for name in names}

    def escape(found: re.Match[str]) -> str:
        name = found[1]
        return found[0] if name and name.lower() not in guarded else f"&lt;{found[0][1:]}"

    return _OPENING.sub(escape, text)


def tag_names(template: str) -> frozenset[str]:
    """Return the names of the tags of a template, as far as `escape_tags` compares them."""
    return frozenset(_TAG.findall(template))
