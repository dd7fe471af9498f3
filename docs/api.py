"""Makes docs/reference/api from the signatures and docstrings of all that is public."""

from __future__ import annotations

import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, Final, Generic, NotRequired, cast, get_args, get_origin

from typing_extensions import is_typeddict

import deepagents
from deepagents.tools._arguments import Arguments

FRONT: Final = ("deepagents", "deepagents.backends", "deepagents.middleware", "deepagents.profiles")
FOREIGN: Final = ("abc", "builtins", "langchain", "langchain_core", "typing")
SECTIONS: Final = ("Args", "Raises", "Example", "Returns")
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_OPTIONAL = re.compile(r"^NotRequired\[(.*)\]$")
_MOST: Final = 100


@dataclass(frozen=True)
class Entry:
    """A public name: the page that describes it, and the other modules that have it."""

    home: str
    name: str
    value: Any
    also: tuple[str, ...]


def make_pages() -> dict[str, str]:
    """Return each page by its file name."""
    found = list(find_entries())
    homes = list(dict.fromkeys(entry.home for entry in found))
    made = {f"{home}.md": _page(home, [entry for entry in found if entry.home == home]) for home in homes}
    return {"README.md": _index(homes, found), **made}


def find_entries() -> Iterator[Entry]:
    """Find every public name, once, at the shortest path."""
    places: dict[tuple[str, int], list[str]] = {}
    values: dict[tuple[str, int], Any] = {}
    for module in _modules():
        for name in _public(module):
            value = getattr(import_module(module), name)
            key = (name, id(value))
            places.setdefault(key, []).append(module)
            values[key] = value
    for (name, at), modules in places.items():
        yield Entry(modules[0], name, values[name, at], tuple(modules[1:]))


def _modules() -> list[str]:
    known = [found.name for found in pkgutil.walk_packages(deepagents.__path__, "deepagents.")]
    public = [name for name in known if not any(part.startswith("_") for part in name.split("."))]
    offered = [name for name in public if hasattr(import_module(name), "__all__") or name.count(".") == 1]
    return [*FRONT, *sorted(set(offered) - set(FRONT)), "deepagents_local", "deepagents_sandbox"]


def _public(module: str) -> list[str]:
    there = import_module(module)
    names: list[str] | None = getattr(there, "__all__", None)
    if names is None:
        own = [name for name, value in vars(there).items() if getattr(value, "__module__", "") == module]
        names = [name for name in own if not name.startswith("_")]
    return sorted(name for name in names if not name.startswith("_"))


def _index(homes: list[str], found: list[Entry]) -> str:
    lines = [
        "# API reference",
        "",
        "Made from the source by `docs/generate.py`: every public name, at its shortest path.",
        "",
    ]
    for home in homes:
        names = ", ".join(f"[`{e.name}`]({home}.md#{_anchor(e.name)})" for e in found if e.home == home)
        lines += [f"- [`{home}`]({home}.md): {names}"]
    return "\n".join([*lines, ""])


def _anchor(name: str) -> str:
    # Of `FILE_TOOLS` and `file_tools` too, since anchors of headings are in lower case.
    return f"{name.lower()}-value" if name.isupper() else name.lower()


def _page(home: str, found: list[Entry]) -> str:
    about = _fence_drawings(inspect.getdoc(import_module(home)) or "")
    constants = [entry for entry in found if not _has_section(entry.value)]
    parts = [f"# `{home}`", about, *(describe(entry) for entry in found if _has_section(entry.value))]
    if constants:
        rows = [f"| {_set_anchor(entry.name)} | `{_short(entry.value)}` |" for entry in constants]
        parts += ["## Values and types", "\n".join(["| name | value |", "| --- | --- |", *rows])]
    return "\n\n".join(part for part in parts if part) + "\n"


def _fence_drawings(about: str) -> str:
    """Put drawings into code blocks, which keep their lines."""
    parts = about.split("\n\n")
    return "\n\n".join(f"```text\n{part}\n```" if "─ " in part else part for part in parts)


def _set_anchor(name: str) -> str:
    return f'<a id="{_anchor(name)}"></a>`{name}`'


def _has_section(value: Any) -> bool:
    return inspect.isclass(value) or inspect.isroutine(value)


def describe(entry: Entry) -> str:
    value = entry.value
    also = f"Also in {', '.join(f'`{module}`' for module in entry.also)}." if entry.also else ""
    head = [f"## {entry.name}", _fence(_heading(entry.name, value)), _text(inspect.getdoc(value)), also]
    return "\n\n".join(part for part in [*head, *_insides(value)] if part)


def _heading(name: str, value: Any) -> str:
    if not inspect.isclass(value):
        return _signature(name, value)
    bases = "TypedDict" if is_typeddict(value) else ", ".join(_bases(value))
    fields = [] if is_typeddict(value) else _arguments(value)
    return "\n".join([f"class {name}({bases})" if bases else f"class {name}", *fields])


def _bases(kind: type) -> Iterator[str]:
    for base in kind.__bases__:
        if _is_hidden(base):
            yield from _bases(base)
        elif base not in (object, Generic):
            yield base.__name__


def _is_hidden(kind: type) -> bool:
    """Return whether a class of this library has no public path."""
    return kind.__module__.startswith("deepagents") and kind not in _public_classes()


@cache
def _public_classes() -> frozenset[type]:
    return frozenset(entry.value for entry in find_entries() if inspect.isclass(entry.value))


def _arguments(kind: type) -> list[str]:
    owner = next(each for each in kind.__mro__ if "__init__" in vars(each))
    if owner.__module__.partition(".")[0] in FOREIGN and not hasattr(kind, "model_fields"):
        return []
    return [_signature(kind.__name__, kind).replace(" -> None", "")]


def _signature(name: str, value: Callable[..., Any]) -> str:
    try:
        if inspect.isclass(value) and issubclass(value, Arguments):
            signature = _signature_of_fields(value)
        else:
            signature = inspect.signature(value)
    except (TypeError, ValueError):
        return f"{name}(...)"
    given = [_parameter(each) for each in signature.parameters.values() if not _is_left_out(each.name)]
    kinds = [each.kind for each in signature.parameters.values() if not _is_left_out(each.name)]
    if inspect.Parameter.KEYWORD_ONLY in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds:
        given.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    returned = signature.return_annotation
    arrow = "" if returned is inspect.Signature.empty else f" -> {_annotation(returned)}"
    line = f"{name}({', '.join(given)}){arrow}"
    if len(line) <= _MOST:
        return line
    return "\n".join([f"{name}(", *(f"    {each}," for each in given), f"){arrow}"])


def _signature_of_fields(model: type[Arguments]) -> inspect.Signature:
    """Return the signature of a tool's arguments with types, which `inspect` is not shown."""
    return inspect.Signature(
        [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=inspect.Parameter.empty if field.is_required() else field.default,
                annotation=field.rebuild_annotation(),
            )
            for name, field in model.model_fields.items()
        ]
    )


def _is_left_out(name: str) -> bool:
    return name in ("self", "cls") or name.startswith("_")


def _parameter(each: inspect.Parameter) -> str:
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}.get(each.kind, "")
    typed = "" if each.annotation is each.empty else f": {_annotation(each.annotation)}"
    default = "" if each.default is each.empty else f"{' = ' if typed else '='}{_short(each.default)}"
    return f"{stars}{each.name}{typed}{default}"


def _annotation(given: Any) -> str:
    if isinstance(given, str):
        return given
    # What a channel does with a key is an object, which has no text.
    optional = get_origin(given) is NotRequired
    bare = get_args(given)[0] if optional else given
    text = inspect.formatannotation(bare.__origin__ if optional and hasattr(bare, "__metadata__") else bare)
    return (f"NotRequired[{text}]" if optional else text).replace("typing.", "")


def _short(value: object) -> str:
    if inspect.isclass(value) or inspect.isroutine(value):
        return value.__name__
    shown = inspect.formatannotation(value) if "typing" in type(value).__module__ else repr(value)
    if isinstance(value, frozenset) and value:
        # Its own order changes from one process to the next.
        names: list[object] = sorted(cast("frozenset[object]", value), key=str)
        shown = f"frozenset({names})"
    shown = _ADDRESS.sub("", shown)
    shown = " ".join(shown.split()).replace("|", "\\|").replace("`", "'")
    return shown if len(shown) <= _MOST else f"{shown[: _MOST - 4]} ..."


def _insides(value: Any) -> list[str]:
    if not inspect.isclass(value):
        return []
    if is_typeddict(value):
        return [_keys(value)]
    return [_member(name, member) for name, member in _members(value)]


def _keys(value: Any) -> str:
    rows: list[str] = []
    for key, hint in value.__annotations__.items():
        text = _forward(hint)
        # Python does not see NotRequired in annotations that are kept as text.
        needed = key in value.__required_keys__ and "NotRequired[" not in text
        shown = _OPTIONAL.sub(r"\1", text)
        rows.append(f"| `{key}` | `{shown}` | {'yes' if needed else ''} |")
    return "\n".join(["| key | type | required |", "| --- | --- | --- |", *rows]) if rows else ""


def _forward(hint: Any) -> str:
    return str(getattr(hint, "__forward_arg__", None) or _annotation(hint)).replace("|", "\\|")


def _members(kind: type) -> Iterator[tuple[str, Any]]:
    """Yield the members of a class, and those of bases that have no public path."""
    seen: set[str] = set()
    for each in kind.__mro__:
        if each is not kind and not _is_hidden(each):
            continue
        for name, member in vars(each).items():
            if name not in seen and not name.startswith("_") and _is_documented(member):
                seen.add(name)
                yield name, member


def _is_documented(member: Any) -> bool:
    inside = _function_of(member)
    return inspect.isroutine(inside) and bool(inspect.getdoc(inside))


def _function_of(member: Any) -> Any:
    return getattr(member, "__func__", getattr(member, "fget", member))


def _member(name: str, member: Any) -> str:
    inside = _function_of(member)
    head = _signature(name, inside)
    if isinstance(member, property):
        head = f"{name}: {_annotation(inspect.signature(inside).return_annotation)}"
    kind = type(member).__name__
    shown = f"{kind} {head}" if kind in ("classmethod", "staticmethod") else head
    return f"{_fence(shown)}\n\n{_text(inspect.getdoc(inside))}"


def _fence(code: str) -> str:
    return f"```py\n{code}\n```"


def _text(doc: str | None) -> str:
    """Lay out a docstring: its sections as lists, its examples as they are."""
    lines: list[str] = []
    section = ""
    for line in (doc or "").replace("```python", "```py").splitlines():
        if line.rstrip(":") in SECTIONS and line.endswith(":"):
            section = line.rstrip(":")
            lines += ["", f"*{section}*", ""] if section != "Example" else [""]
        elif section == "Example":
            lines.append(line.removeprefix("    "))
        elif section and line.startswith("    "):
            lines.append(_make_item(line.removeprefix("    ")))
        else:
            section = "" if line else section
            lines.append(line)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def _make_item(line: str) -> str:
    named = re.match(r"([*\w]+): (.*)", line)
    return (
        f"- `{named[1]}`: {named[2]}"
        if named
        else f"  {line.strip()}"
        if line.startswith(" ")
        else f"- {line}"
    )
