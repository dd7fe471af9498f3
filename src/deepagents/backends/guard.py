"""Keep calls to the rules of an agent, and say in words for the model what they forbid."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from langgraph.errors import GraphBubbleUp

from deepagents._paths import parent
from deepagents._text import truncate
from deepagents._values import field, replace, valueclass
from deepagents.backends import operations as ops
from deepagents.backends._refusals import Denied
from deepagents.backends.capabilities import Capabilities
from deepagents.backends.operations import Operation, Perform
from deepagents.backends.results import LsResult
from deepagents.errors import BackendError, ToolFailure, UnenforceableRule
from deepagents.permissions import Access, CommandAccess, DeleteAccess, Rules

_EITHER_CASE: Final = re.compile(r"\[([a-z])[A-Z]\]")
_MOST_OF_A_PATTERN: Final = 120
PATHLESS_DENIED_HINT: Final = "Give a path that the rules allow."


@valueclass
class CallRights:
    """The rules that bind one call of a tool, and what a person was asked about it.

    `asks` says that an agent has someone to ask, `asked` that they were asked about this very call; `links`
    is where the paths of this call led when the model made it, for those that led elsewhere.
    """

    rules: Rules = field(default_factory=Rules)
    asks: bool = False
    asked: bool = False
    links: Mapping[str, str] = field(default_factory=dict[str, str])
    held_back: dict[str, None] = field(default_factory=dict[str, None])

    async def guard(self, op: Operation, following: Perform) -> Any:
        """Perform an operation if the rules allow it, without anything that they keep back.

        Raises:
            ToolFailure: `permission_denied`.
        """
        match op:
            case ops.PollCommand() | ops.WriteCommand() | ops.StopCommand() | ops.Resolve():
                return await following(op)
            case ops.Ls() | ops.Glob() | ops.Grep():
                return await self._search(op, following)
            case _:
                access = await self._check_operation(op, following)
        try:
            return await following(replace(op, allowed=access))
        except Denied as error:
            raise self._refusal(access, op.at) from error
        except BackendError as error:
            # These explain themselves by lines of the file, which a caller with the right to write may not
            # read.
            if error.code not in ("no_match", "ambiguous_match") or await self._may_read(op.at, following):
                raise
            raise _without_text(error, op.at) from error

    def describe_left_out(self) -> str | None:
        """Describe in one line what earlier answers left out because it waits for a person."""
        patterns = sorted(self.held_back)
        if not patterns:
            return None
        shown = ", ".join(map(_shorten, patterns[:3])) + (
            f" and {len(patterns) - 3} more" if len(patterns) > 3 else ""
        )
        onward = (
            "name the directory or file itself to ask for it" if self.asks else "nobody is set up to give it"
        )
        return f"(left out, because it needs approval: {shown}; {onward})"

    async def _check_operation(self, op: Operation, following: Perform) -> Access:
        """Return the rights of a call, where none of its paths is forbidden."""
        if isinstance(op, ops.CommandOperation):
            return CommandAccess(self.rules, self.asked)
        if isinstance(op, ops.Delete):
            access = DeleteAccess(self.rules, "write", self._find_approved(op.path))
            await self._check_deletion(access, op.path, following)
            return access
        paths = op.paths
        approved = [each for path in paths for each in self._find_approved(path)]
        waiting = [each for each in approved if self.rules.decide(op.right, each) == "interrupt"]
        access = Access(self.rules, op.right, waiting)
        for path in paths:
            if not access(path):
                raise self._refusal(access, path)
        return access

    async def _search(self, op: ops.Ls | ops.Glob | ops.Grep, following: Perform) -> Any:
        waiting = [each for each in self._find_approved(op.at) if self.rules.waits("read", each)]
        access = Access(self.rules, "read", waiting)
        if op.path is not None and not access(op.path):
            raise self._refusal(access, op.path)
        try:
            found = await following(replace(op, allowed=access))
        except Denied as error:
            raise self._refusal(access, op.at) from error
        self.held_back.update(access.held_back)
        # An empty answer would read as if there were no such files.
        if op.path is None and not found.matches and not access("/"):
            failure = self._refusal(access, "/")
            raise ToolFailure(failure.code, f"{failure.text}. {PATHLESS_DENIED_HINT}")
        return found

    def _find_approved(self, path: str) -> list[str]:
        """Return the paths that a person has approved of, if this call is about one of them."""
        if not self.asked:
            return []
        # A person approved of what the path led to then; if the link was changed since, that does not count.
        return [path, self.links[path]] if path in self.links else [path]

    async def _check_deletion(self, access: DeleteAccess, path: str, following: Perform) -> None:
        try:
            real: str = await following(ops.Resolve(path, entry=True))
        except BackendError as error:
            raise ToolFailure(error.code, error.text) from error
        for each in dict.fromkeys((path, real)):
            if not access(each):
                raise self._refusal(access, path)
            if not access.all_below(each) and not await is_file(following, path):
                raise _deletion_failure(access, each, path)

    async def _may_read(self, path: str, following: Perform) -> bool:
        """Return whether the text of a file may be shown, which no approval of a change covers."""
        access = Access(self.rules, "read")
        return access(path) and access(await following(ops.Resolve(path)))

    def _refusal(self, access: Access, path: str) -> ToolFailure:
        """Make the error for what is not permitted, with the way to permit it."""
        text = f"permission denied for {access.operation} on {path}"
        if self.rules.decide(access.operation, path) == "interrupt" and not self.asks:
            text += (
                ": it waits for a person's approval, and nobody is set up to give it. Add "
                "FilesystemMiddleware.approval() to the agent's middleware"
            )
        return ToolFailure("permission_denied", text)


def _deletion_failure(access: DeleteAccess, real: str, path: str) -> ToolFailure:
    text = f"permission denied for write on {path}"
    patterns = ", ".join(access.rules.deletion_blockers(real))
    if patterns:
        text += f": it matches deny rule(s): {patterns}. Delete what is allowed in it one by one."
    else:
        waiting = access.rules.waiting_below("write", real)
        text += f": {waiting} needs a person's approval, which was not given"
    return ToolFailure("permission_denied", text)


def _shorten(pattern: str) -> str:
    """Return a pattern for a reader: letters of either case as one, and not all of a long list."""
    return truncate(_EITHER_CASE.sub(r"\1", pattern), _MOST_OF_A_PATTERN)


def _without_text(error: BackendError, path: str) -> ToolFailure:
    how_often = "was not found" if error.code == "no_match" else "occurs more than once"
    return ToolFailure(
        error.code, f"old_string {how_often} in {path}, whose text the rules keep from being shown"
    )


async def is_file(perform: Perform, path: str) -> bool:
    """Return whether nothing can lie below a path; in doubt, something can."""
    try:
        if (await perform(ops.Ls(path))).entries:
            return False
        above: LsResult = await perform(ops.Ls(parent(path)))
    except BackendError as error:
        return error.code == "not_a_directory"
    return any(each["path"] == path and not each.get("is_dir") for each in above.entries or ())


def find_exposed_rule(capabilities: Callable[[str], Capabilities], rules: Rules) -> str | None:
    """Return a pattern that denies or waits, and that commands can bypass, or could for all we know."""
    try:
        return _find_exposed(capabilities, rules)
    except Exception as error:
        if isinstance(error, GraphBubbleUp):
            raise
        # A backend that cannot tell may let commands reach everything, so any rule counts as exposed.
        return next((pattern for pattern, _ in rules.restrictions()), None)


def _find_exposed(capabilities: Callable[[str], Capabilities], rules: Rules) -> str | None:
    if not rules or not capabilities("/").execute:
        return None
    # Most patterns begin at the root, and a backend is asked once about each place.
    first: dict[str, str] = {}
    for pattern, path in rules.restrictions():
        first.setdefault(path, pattern)
    return next((pattern for path, pattern in first.items() if capabilities(path).exposed), None)


def check_enforceable(capabilities: Callable[[str], Capabilities], rules: Rules) -> None:
    """Refuse rules that `execute` would bypass; what is not known yet is asked again for each command.

    Raises:
        UnenforceableRule: naming the first such rule.
    """
    try:
        pattern = _find_exposed(capabilities, rules)
    except Exception as error:
        if isinstance(error, GraphBubbleUp):
            raise
        return
    if pattern is not None:
        raise UnenforceableRule(
            f"the rule for {pattern!r} cannot hold: execute runs commands that reach those files past every "
            "rule. Leave execute out with FilesystemMiddleware(tools=[...]), put the files on a route that "
            "commands cannot reach, or run commands in a sandbox that does not hold them"
        )


def check_matching(capabilities: Capabilities, rules: Rules) -> None:
    """Refuse rules about paths that no file has, where all directories with files are known.

    Raises:
        UnenforceableRule: naming the first such rule, and what to write instead.
    """
    if not capabilities.ruled:
        return
    pattern = rules.find_without_match([*capabilities.ruled, *capabilities.apart])
    if pattern is not None:
        root = capabilities.ruled[0].rstrip("/")
        raise UnenforceableRule(
            f"the rule for {pattern!r} protects nothing: paths of this backend are those of this machine, "
            f"and its files are in {', '.join(map(repr, capabilities.ruled))}. Write {root + pattern!r}"
        )
