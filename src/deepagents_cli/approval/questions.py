"""Show a person a call that waits, and read what becomes of an edit; pure but for reading files."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast

from deepagents.events import ApprovalRequest
from deepagents.tools import ToolSpec
from deepagents.tools.preview import Preview
from deepagents.tools.web import host_of
from deepagents_cli.approval.guarded import Kind, names_url, paths_outside
from deepagents_cli.approval.policy import Policy
from deepagents_cli.diffs import name_in, text_diff
from deepagents_cli.protocol import Ask, Editable, FileChange
from deepagents_cli.text import clean, one_line

_MOST_NAMED: Final = 20
_GUARDED: Final = {
    "git": "changes what git keeps in .git",
    "programs": "other programs obey it",
    "secrets": "looks like it holds secrets",
}
_NEEDED: Final = {
    "git": "may change .git",
    "programs": "may change hooks or settings that other programs obey",
    "secrets": "may read files that look like secrets",
}

Decision: TypeAlias = Mapping[str, Any]


def make_question(request: ApprovalRequest, policy: Policy) -> Ask:
    """Describe a call: what it would do, and the true change where it changes a file."""
    spec, facts = policy.specs.get(request.name), policy.facts_of(request)
    preview = policy.preview(request) if spec and spec.effect == "write" else None
    changes = [] if preview is None else _changes(request, policy, *preview)
    details, language = _details(request, spec, policy, preview and preview[1], changes)
    choices = [each for each in ("approve", "edit", "reject", "respond") if each in request.allowed]
    return Ask(
        id="",
        title=_title(request, spec, policy, sorted(facts.guarded) if facts else []),
        details=details,
        choices=choices,
        call_id=request.tool_call_id,
        language=language,
        edit=edit_of(request, spec) if "edit" in choices else None,
        rules=policy.offers(facts) if "approve" in choices else {},
        changes=changes,
    )


def _changes(
    request: ApprovalRequest, policy: Policy, before: Mapping[str, bytes | None], preview: Preview
) -> list[FileChange]:
    places = dict(zip(policy.paths_of(request), policy.places_of(request), strict=True))
    return [
        FileChange(places.get(path, path), _text(before.get(path)), _text(after))
        for path, after in preview.after.items()
    ]


def _title(request: ApprovalRequest, spec: ToolSpec | None, policy: Policy, guarded: Sequence[Kind]) -> str:
    if spec and spec.effect == "run" and not spec.about_background:
        where = " in the sandbox" if policy.confined else " without the sandbox"
        where += ", in the background" * bool(request.args.get("background"))
        if seconds := request.args.get("timeout"):
            where += f", for up to {one_line(str(seconds))} seconds"
        return ", that ".join([f"wants to run a command{where}", *(_NEEDED[each] for each in guarded)])
    if host := spec and spec.find_question and host_of(request.args):
        return f"wants to fetch a page of {one_line(host)}"
    marks = f" ({', '.join(_GUARDED[each] for each in guarded)})" if guarded else ""
    if spec and spec.operation and (names := _names(request, spec, policy)):
        verb = "change" if spec.split else request.name.partition("_")[0]
        return f"wants to {one_line(verb)} {', '.join(map(one_line, names.values()))}{marks}"
    return f"wants to call {one_line(request.name)}{marks}"


def _details(
    request: ApprovalRequest,
    spec: ToolSpec | None,
    policy: Policy,
    preview: Preview | None,
    changes: Sequence[FileChange],
) -> tuple[list[str], Literal["diff", "sh", "json", "text"]]:
    if spec and spec.effect == "run":
        shown = [str(request.args.get(key, "")) for key in spec.summary_arguments]
        lines = [f"$ {line}" for text in shown for line in clean(text).removesuffix("\n").split("\n")]
        started = policy.find_started(request.args) if spec.about_background else None
        notes = [f"into: {started}"] if started else []
        notes += [] if spec.about_background else _find_missing("\n".join(shown), policy)
        return [*lines, *(f"# {one_line(each)}" for each in notes)], "sh"
    if spec and spec.find_question:
        return [clean(str(request.args.get(each, ""))) for each in spec.summary_arguments], "text"
    if spec and spec.effect == "delete":
        return _describe_deletion(request, policy), "text"
    if preview:
        if preview.failure:
            return [f"This cannot be done now: {one_line(preview.failure)}"], "text"
        directory = str(policy.directory)
        diff = [
            line
            for each in changes
            for line in text_diff(each.before, each.after, name_in(each.path, directory))
        ]
        return [clean(each) for each in diff] or ["(no line changes, at most how lines end)"], "diff"
    return clean(json.dumps(request.args, indent=2, ensure_ascii=False)).split("\n"), "json"


def _names(request: ApprovalRequest, spec: ToolSpec, policy: Policy) -> dict[str | None, str]:
    """Return what a person reads of the paths that a call names, by what the backend calls them."""
    return {
        policy.path_of(part, given): name_in(str(given.get(part.path_argument, "")), str(policy.directory))
        for part, given in spec.parts(request.args)
        if part.path_argument
    }


def _find_missing(command: str, policy: Policy) -> list[str]:
    """Return, a line each, what a command names and does not reach in the sandbox."""
    if not policy.confined or policy.mode == "full":
        return []
    lines: list[str] = []
    if missing := paths_outside(command, [*map(str, policy.places)]):
        lines.append(f"not there for it: {', '.join(missing)} (--read DIR would give it)")
    if policy.offline and names_url(command):
        lines.append("there is no network for it (--network HOST would give it)")
    return lines


def _text(content: bytes | None) -> str | None:
    # What is not text stays apart from what replaces it, and is shown as an escape.
    return None if content is None else content.decode("utf-8", "surrogateescape")


def _describe_deletion(request: ApprovalRequest, policy: Policy) -> list[str]:
    """Name what would be gone."""
    path = next(iter(policy.places_of(request)), None)
    if path is None or Path(path).is_symlink() or not Path(path).is_dir():
        return []
    names: list[str] = []
    for place, _, files in os.walk(path):
        names += [os.path.relpath(f"{place}/{each}", path) for each in files]
        if len(names) > _MOST_NAMED:
            break
    shown = [f"  {one_line(each)}" for each in sorted(names)[:_MOST_NAMED]]
    more = ["  ..."] if len(names) > _MOST_NAMED else []
    return ["a directory, with everything in it:", *shown, *more]


def edit_of(request: ApprovalRequest, spec: ToolSpec | None) -> Editable:
    """Return what a person edits of a call: a command, the text that a file shall get, or all arguments."""
    field = _text_argument(spec, request.args)
    if field is None or spec is None:
        return Editable(json.dumps(request.args, indent=2, ensure_ascii=False), ".json")
    suffix = ".sh" if spec.effect == "run" else Path(spec.path_in(request.args) or "").suffix or ".txt"
    return Editable(str(request.args.get(field, "")), suffix)


def apply_edit(request: ApprovalRequest, text: str, policy: Policy) -> ApprovalRequest:
    """Return the call with what a person made of its text.

    Raises:
        ValueError: for what can be no arguments.
    """
    field = _text_argument(policy.specs.get(request.name), request.args)
    if field is not None:
        return replace(request, args={**request.args, field: text})
    try:
        value: Any = json.loads(text)
    except json.JSONDecodeError as error:
        problem = f"{error.msg} in line {error.lineno}, column {error.colno}"
        raise ValueError(f"the arguments are not JSON: {problem}") from error
    if not isinstance(value, dict):
        raise ValueError("the arguments are a JSON object, in braces")
    return replace(request, args=cast("dict[str, Any]", value))


def _text_argument(spec: ToolSpec | None, args: Mapping[str, Any]) -> str | None:
    """Return the argument that a person edits as text; the last long one is what a file shall get."""
    if spec is None or spec.about_background:
        return None
    texts = spec.summary_arguments if spec.effect == "run" else spec.clipped_arguments
    return texts[-1] if texts and isinstance(args.get(texts[-1]), str) else None


def decision_by(policy: Policy, request: ApprovalRequest) -> Decision | None:
    """Return what the policy decides about a call by itself; `None` where a person is to be asked."""
    verdict = policy.judge(request)
    # `verbatim`: no person said this, so the model must not read that one did.
    if verdict.kind == "refuse":
        return {"type": "reject", "message": verdict.reason, "verbatim": True}
    return {"type": "approve", "verbatim": True} if verdict.kind == "allow" else None
