"""Choose the file tools of an agent, with one form of edit, and say what they are for."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final, get_args

from deepagents.errors import ConfigError
from deepagents.middleware.filesystem.prompt import PROMPT
from deepagents.tools import EDIT_TOOLS, EditForm, FsToolName, ToolSpec, with_edit_tool
from deepagents.tools.change import EDIT_FILE
from deepagents.tools.edit_lines import EDIT_LINES
from deepagents.tools.execute import EXECUTE, EXECUTE_IN_BACKGROUND

_FINDING: Final = ("ls", "glob", "grep")
_CHANGING: Final = ("write_file", "edit_file", "edit_lines", "apply_patch")


def choose_tools(
    given: Iterable[ToolSpec], tools: Sequence[str] | None, form: EditForm, read_format: str
) -> tuple[dict[str, ToolSpec], Collection[str]]:
    """Return all tools by name, and the names of those to offer.

    A part of a file is changed by `edit_file` where a tool is left out for which the form stands.

    Raises:
        ConfigError: for an unknown tool or form, tools without `read_file`, and a format without anchors.
    """
    specs = {spec.name: spec for spec in given}
    chosen = _check_names(list(dict.fromkeys((*specs, *get_args(FsToolName)))), tools)
    # An id that nothing takes would be of no use.
    if "read_command" not in chosen and specs.get(EXECUTE.name) is EXECUTE_IN_BACKGROUND:
        specs[EXECUTE.name] = EXECUTE
    if form not in EDIT_TOOLS:
        raise ConfigError(f"edit_form must be one of {', '.join(map(repr, EDIT_TOOLS))}, got {form!r}")
    edit = EDIT_TOOLS[form] if chosen.issuperset(EDIT_TOOLS[form].instead_of) else EDIT_FILE
    if edit is EDIT_LINES and read_format != "numbered":
        raise ConfigError(f"read_format={read_format!r} shows no anchors; leave it out")
    offered = {edit.name if name == EDIT_FILE.name else name for name in chosen}
    return {spec.name: spec for spec in with_edit_tool(specs.values(), edit)}, offered


def _check_names(known: Sequence[str], tools: Sequence[str] | None) -> frozenset[str]:
    if tools is None or tools == "all":
        return frozenset(known)
    unknown = sorted(set(tools) - set(known))
    if unknown:
        raise ConfigError(f"tools names {unknown!r}; known are {known!r}")
    if "read_file" not in tools:
        raise ConfigError("read_file must be included in tools: it is how offloaded results are read back")
    return frozenset(tools)


def describe_files(names: Collection[str]) -> str:
    """Say what the file tools of these names are for; `""` where there are none."""
    finding, changing = ([each for each in known if each in names] for known in (_FINDING, _CHANGING))
    looking = [
        _say(finding, "find", "things"),
        _say(["read_file"] if "read_file" in names else [], "show", "them"),
    ]
    parts = [", ".join(filter(None, looking)), _say(changing, "change", "them")]
    return PROMPT.format(tools="; ".join(filter(None, parts))) if any(parts) else ""


def _say(names: Sequence[str], verb: str, what: str) -> str:
    if len(names) < 2:
        return f"{names[0]} {verb}s {what}" if names else ""
    return f"{', '.join(names[:-1])} and {names[-1]} {verb} {what}"
