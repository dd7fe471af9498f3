"""Bound what a server says of its tools: texts, schemas, and what the protocol and providers can take."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from deepagents._values import field, valueclass

MOST_TOOLS: Final = 1_000
MOST_PAGES: Final = 100
_LONGEST_NAME: Final = 256
_LONGEST_DESCRIPTION: Final = 2_048
_MOST_NODES: Final = 5_000
_MOST_BYTES: Final = 64 * 1024
_DEEPEST: Final = 60
"""Levels: pydantic writes schemas of some 250, and each level of ours is several of those that wrap it."""
_HINTS: Final = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
# Those that are neither text nor blank space: controls, formats such as those that turn the direction of
# text or cannot be seen, surrogates, and what is private or not assigned.
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
_FILLERS: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2028\u2029\u3164\ufe00-\ufe0f\uffa0]"
)
_REF: Final = "$ref"
_OUTPUT: Final = "deepagents/outputSchema"
"""Where in `_meta` a mended tool has the schema of its output: the SDK would check by it without a bound."""
_CHOICES: Final = ("anyOf", "oneOf", "allOf")
_NOT_AT_TOP: Final = frozenset({*_CHOICES, "enum", "not", "$schema"})


@valueclass
class Offered:
    """One tool as a server offers it, bounded; `definition` is what the model reads of it, as one text."""

    name: str
    description: str
    schema: Mapping[str, Any]
    annotations: Mapping[str, Any] | None = None
    meta: Mapping[str, Any] | None = None
    output: Mapping[str, Any] | None = None
    definition: str = field(default="", repr=False)


class Unfit(Exception):
    """A tool that cannot be offered; the text says why."""


def mend(given: Any) -> dict[str, Any]:
    """Return one row of `tools/list` in a form that the SDK takes, without what is wrong and can be spared.

    Raises:
        Unfit: for a tool that cannot be offered.
    """
    tool = _as_object(given)
    name = tool.get("name") if tool else None
    if tool is None or not isinstance(name, str) or len(name) > _LONGEST_NAME:
        raise Unfit("it has no name that can be used")
    schema = _as_object(tool.get("inputSchema"))
    if schema is None or schema.get("type") != "object":
        raise Unfit("its inputSchema is not a schema of an object")
    measure(schema)
    _check_properties(schema)
    mended: dict[str, Any] = {"name": name, "inputSchema": schema}
    for key in ("title", "description"):
        if isinstance(tool.get(key), str):
            mended[key] = tool[key]
    if hints := _as_object(tool.get("annotations")):
        mended["annotations"] = {key: hints[key] for key in _HINTS if isinstance(hints.get(key), bool)}
    meta = {**(_as_object(tool.get("_meta")) or {})}
    output = _as_object(meta.pop(_OUTPUT, None) or tool.get("outputSchema"))
    meta = meta if _is_measured(meta) else {}
    # In itself it could be checked for ever: two ways at each of a hundred levels.
    if output is not None and output.get("type") == "object" and _is_measured(output, with_loops=False):
        meta[_OUTPUT] = output
    if meta:
        mended["_meta"] = meta
    return mended


def _check_properties(schema: Mapping[str, Any]) -> None:
    properties = _as_object(schema.get("properties", {}))
    if properties is None or not all(isinstance(each, dict | bool) for each in properties.values()):
        raise Unfit("its inputSchema has a property that is not a schema")
    if not _is_list_of_texts(schema.get("required", [])):
        raise Unfit("'required' in its inputSchema is not a list of names")


def read(mended: Mapping[str, Any]) -> Offered:
    """Return what is shown of a mended tool: no more than so much text, and none that cannot be seen."""
    description = clean(mended.get("description") or mended.get("title") or "")[:_LONGEST_DESCRIPTION]
    schema = _without_choices(clean_all(mended["inputSchema"]))
    definition = json.dumps([description, schema], sort_keys=True)
    annotations, meta = mended.get("annotations"), {**mended.get("_meta", {})}
    output = meta.pop(_OUTPUT, None)
    return Offered(mended["name"], description, schema, annotations, meta or None, output, definition)


def _without_choices(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema whose properties stand at its top: providers refuse a request with choices there.

    The server still checks what it is sent.
    """
    properties: dict[str, Any] = dict(schema.get("properties", {}))
    for key in _CHOICES:
        choices: Any = schema.get(key)
        for choice in cast("list[Any]", choices) if isinstance(choices, list) else ():
            for name, each in (_as_object((_as_object(choice) or {}).get("properties")) or {}).items():
                properties.setdefault(name, each)
    kept = {key: each for key, each in schema.items() if key not in _NOT_AT_TOP}
    return {**kept, "properties": properties}


def clean(text: str) -> str:
    """Return a text without characters that a person does not see, or that change how others are seen."""
    if text.isascii() and text.isprintable():
        return text
    kept = (each for each in text if each in "\n\t" or unicodedata.category(each) not in _UNSEEN)
    return _FILLERS.sub("", "".join(kept))


def measure(schema: Mapping[str, Any], *, with_loops: bool = True) -> int:
    """Return how many values a schema has once each reference in it is written out, loops once.

    Raises:
        Unfit: when that is too large, too deep, or refers to what is not there.
    """
    measuring = _Measure(schema, with_loops=with_loops)
    measuring.add(schema, (), 0)
    return measuring.nodes


class _Measure:
    def __init__(self, root: Mapping[str, Any], *, with_loops: bool = True) -> None:
        self._root, self._with_loops = root, with_loops
        self.nodes = self._bytes = 0

    def add(self, value: Any, within: tuple[str, ...], level: int) -> None:
        self.nodes += 1
        if level > _DEEPEST:
            raise Unfit(f"its schema has more than {_DEEPEST} levels")
        if isinstance(value, dict):
            for key, each in cast("dict[str, Any]", value).items():
                self._count(key)
                if clean(key) != key:
                    raise Unfit("its schema has a name with characters that cannot be seen")
                if key == _REF:
                    self._follow(each, within, level)
                # Definitions are written out where they are named; those of no use still stand in the text.
                else:
                    self.add(each, within, level + 1)
        elif isinstance(value, list):
            for each in cast("list[Any]", value):
                self.add(each, within, level + 1)
        else:
            self._count(value if isinstance(value, str) else "1234")

    def _count(self, text: str) -> None:
        self._bytes += len(text.encode("utf-8", "replace")) + 4
        if self.nodes > _MOST_NODES or self._bytes > _MOST_BYTES:
            raise Unfit(f"its schema is larger than {_MOST_NODES} values or {_MOST_BYTES // 1024} KiB")

    def _follow(self, path: Any, within: tuple[str, ...], level: int) -> None:
        # LangChain puts what is named in the place of its name, and fails where it cannot.
        if not isinstance(path, str):
            raise Unfit("its schema has a property named '$ref', which cannot be sent")
        if path in within:
            if not self._with_loops:
                raise Unfit("its schema contains itself")
            return
        named = _as_object(self._root) if path == "#" or path.startswith("#/") else None
        for part in path.split("/")[1:]:
            named = _as_object((named or {}).get(part.replace("~1", "/").replace("~0", "~")))
        if named is None:
            raise Unfit(f"its schema refers to {path[:100]!r}, which is not in it")
        self.add(named, (*within, path), level + 1)


def _is_measured(schema: Mapping[str, Any], *, with_loops: bool = True) -> bool:
    try:
        measure(schema, with_loops=with_loops)
    except Unfit:
        return False
    return True


def storable(value: Any) -> Any:
    """Return a value of JSON with whole numbers of more than 64 bits as texts: no checkpoint takes them."""
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**64 else str(value)
    if isinstance(value, list):
        return [storable(each) for each in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {key: storable(each) for key, each in cast("dict[str, Any]", value).items()}
    return value


def clean_all(value: Any, redact: Callable[[str], str] = str) -> Any:
    """Return a value of JSON with each text in it redacted and cleaned."""
    if isinstance(value, str):
        return clean(redact(value))
    if isinstance(value, list):
        return [clean_all(each, redact) for each in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {key: clean_all(each, redact) for key, each in cast("dict[str, Any]", value).items()}
    return value


def _as_object(given: Any) -> dict[str, Any] | None:
    return cast("dict[str, Any]", given) if isinstance(given, dict) else None


def _is_list_of_texts(given: Any) -> bool:
    return isinstance(given, list) and all(isinstance(each, str) for each in cast("list[Any]", given))
