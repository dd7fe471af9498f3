"""Let subagents work in copies of the directory, and merge what each has changed back when it ends.

A copy lies next to the directory, at the same depth, and is named after the agent. What was copied is kept a
second time, where no agent reaches it: a merge needs to know where both sides began.
"""

from __future__ import annotations

import os
import shutil
from asyncio import CancelledError, create_task, to_thread, wait
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any, Final

from langchain.agents.middleware import ToolCallRequest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langgraph.errors import GraphBubbleUp
from langgraph.types import interrupt

from deepagents import create_deep_agent
from deepagents._values import replace, valueclass
from deepagents.backends.filesystem import FilesystemBackend
from deepagents.backends.trees import (
    Entry,
    FileEntry,
    LinkEntry,
    OtherEntry,
    merge_entries,
    put_entry,
    read_entry,
    write_new,
)
from deepagents.errors import ToolFailure
from deepagents.middleware.subagents import GENERAL_PURPOSE_SUBAGENT, CompiledSubAgent, SubAgent
from deepagents_cli.approval.backends import ARTIFACTS, GuardedSandbox
from deepagents_cli.approval.guarded import is_kept_from_tools, kind_of
from deepagents_cli.approval.policy import FREER, Policy
from deepagents_cli.diffs import text_diff
from deepagents_cli.project.agents import FileAgent, RefuseCalls, make_subagents
from deepagents_cli.project.project import Project
from deepagents_cli.project.state import state_dir
from deepagents_cli.project.worktrees import list_files, list_ignored
from deepagents_cli.values import Mode

MERGE: Final = "merge_changes"
"""The name by which a person is asked whether what a subagent has changed is merged."""
_MOST_FILES: Final = 50_000
_MOST_BYTES: Final = 1 << 30
_LONGEST_DIFF: Final = 20_000
"""Characters of the changes that a question shows."""
_MOST_NAMED: Final = 40
_ASIDE: Final = f"{ARTIFACTS}/conflicts"
_NOT_AGREED: Final = "[The person did not agree to these changes, so none was merged. They are in {}.]"
_REFUSED: Final = (
    "in a tree of its own an agent cannot ask a person, and this would have to be asked; leave it to the "
    "agent that called you"
)


@valueclass
class Change:
    """What a subagent made of a path, and what the merge makes of it; `problem` says why it stays apart."""

    path: str
    theirs: Entry
    ours: Entry
    merged: Entry
    problem: str = ""


class Tree:
    """One copy of a directory; one that is there already is gone on with."""

    def __init__(self, directory: Path, name: str) -> None:
        self.directory = directory
        self.name = name
        self.path = directory.parent / f"{directory.name}.{name}"
        self._base = state_dir() / "trees" / sha256(str(self.path).encode()).hexdigest()[:16]
        self._unfinished = self._base.with_suffix(".new")

    def make(self) -> None:
        """Copy the directory as it is now, without what git ignores.

        Raises:
            ToolFailure: where it is too large, or cannot be copied.
        """
        if self.path.is_dir() and self._base.is_dir():
            return
        # One that was cut off in the middle, in which nobody has worked.
        self.remove()
        if os.path.lexists(self.path):
            raise ToolFailure("already_exists", f"{str(self.path)!r} is there already; move it away")
        try:
            files = list_files(self.directory) or [*_walk(self.directory)]
            sizes = (os.lstat(self.directory / each).st_size for each in files)
            if len(files) > _MOST_FILES or sum(sizes) > _MOST_BYTES:
                raise ToolFailure(
                    "not_supported",
                    f"{str(self.directory)!r} is too large to be copied for an agent, over {_MOST_FILES:,} "
                    f"files or {_MOST_BYTES >> 30} GiB; choose another agent",
                )
            for place in (self._unfinished, self.path):
                place.mkdir(parents=True)
            for each in files:
                # Through no link: what it leads to is not of this directory.
                entry = read_entry(self.directory, each)
                write_new(self._unfinished / each, entry)
                write_new(self.path / each, entry)
            # Last: a copy that was cut off is not gone on with.
            self._unfinished.rename(self._base)
        except OSError as error:
            self.remove()
            raise ToolFailure(
                "io_error", f"there is no copy of {str(self.directory)!r} for an agent: {error}"
            ) from error

    def find_changes(self, may: Callable[[str], str]) -> list[Change]:
        """Return what was changed in the copy and becomes of it; `may` says why a path may not change."""
        before, after = set(_walk(self._base)), set(_walk(self.path))
        changed = [each for each in sorted(before | after) if self._is_changed(each, before, after)]
        new = [each for each in changed if each not in before]
        ignored = list_ignored(self.directory, new)
        return [self._change(each, after, may) for each in changed if each not in ignored]

    def _is_changed(self, path: str, before: set[str], after: set[str]) -> bool:
        if path not in before or path not in after:
            return True
        one, other = (os.lstat(place / path) for place in (self._base, self.path))
        if (one.st_size, one.st_mode) != (other.st_size, other.st_mode):
            return True
        return read_entry(self._base, path) != read_entry(self.path, path)

    def _change(self, path: str, after: set[str], may: Callable[[str], str]) -> Change:
        base, ours = read_entry(self._base, path), read_entry(self.directory, path)
        theirs = read_entry(self.path, path) if path in after else None
        merged, fits = merge_entries(base, ours, theirs)
        problem = may(path) if merged != ours or not fits else ""
        if not fits and not problem:
            problem = "it was changed here too" if ours is not None else "it was removed here"
        return Change(path, theirs, ours, merged, problem)

    def apply(self, changes: Iterable[Change]) -> tuple[list[Change], list[Change]]:
        """Write what was merged; return what was, and what stays apart: it is kept aside."""
        done: list[Change] = []
        apart: list[Change] = []
        # Removals first, since a file may have become a directory.
        for each in sorted(changes, key=lambda change: change.merged is not None):
            try:
                # A directory was emptied by the removals before, and is gone by now.
                found = None if isinstance(each.ours, OtherEntry) else each.ours
                fits = not each.problem and (
                    each.merged == each.ours or put_entry(self.directory, each.path, each.merged, found=found)
                )
            except OSError:
                fits = False
            (done if fits else apart).append(each)
        for each in apart:
            if each.theirs is not None:
                aside = f"{_ASIDE}/{self.name}/{each.path}"
                put_entry(self.directory, aside, each.theirs, found=read_entry(self.directory, aside))
        return done, apart

    def remove_unchanged(self) -> bool:
        """Remove the copy if nothing was changed in it; return whether that was so."""
        if self._base.is_dir() and self.find_changes(lambda _: ""):
            return False
        self.remove()
        return True

    def remove(self) -> None:
        """Remove the copy, if it is one."""
        if self._base.is_dir() or self._unfinished.is_dir():
            for each in (self.path, self._base, self._unfinished):
                shutil.rmtree(each, ignore_errors=True)


def _walk(top: Path) -> Iterator[str]:
    """Yield the files and links below a directory, without repositories and what agents keep there."""
    for place, folders, files in os.walk(top):
        here = Path(place)
        kept = [each for each in folders if each != ".git" and here / each != top / ARTIFACTS]
        folders[:] = kept
        for each in (here / name for name in (*files, *kept) if name != ".git"):
            # A link to a directory is a link, and none is walked through.
            if each.is_symlink() or each.is_file():
                yield each.relative_to(top).as_posix()


class TreeAgents:
    """Makes the subagents that work in trees, for one conversation.

    Args:
        open_backend: makes the files and commands of an agent in a directory.
        notify: hears of a tree that stays.
    """

    def __init__(
        self,
        policy: Policy,
        open_backend: Callable[[Path], FilesystemBackend],
        notify: Callable[[str], None],
    ) -> None:
        self._policy = policy
        self._open = open_backend
        self._notify = notify
        # Two that end together would merge with what is no longer there.
        self._merging = Lock()

    def make(
        self, agents: Iterable[FileAgent], project: Project, model: BaseChatModel
    ) -> list[CompiledSubAgent]:
        """Return a subagent for each file that asks for a tree."""
        made: list[CompiledSubAgent] = []
        for agent in agents:
            if not agent.worktree:
                continue
            (spec,), notices = make_subagents([agent], model)
            for notice in notices:
                self._notify(notice)
            made.append(
                CompiledSubAgent(
                    name=agent.name,
                    description=agent.description,
                    runnable=RunnableLambda(self._runner(agent, spec, project, model)),
                )
            )
        return made

    def _runner(
        self, agent: FileAgent, spec: SubAgent, project: Project, model: BaseChatModel
    ) -> Callable[[Mapping[str, Any], RunnableConfig], Awaitable[dict[str, Any]]]:
        async def run(state: Mapping[str, Any], config: RunnableConfig) -> dict[str, Any]:
            # The same one when the call goes on after a question, or in another process.
            place: str = config.get("configurable", {}).get("checkpoint_ns", "")
            thread: str = config.get("configurable", {}).get("thread_id", "")
            key = sha256(f"{thread}\0{place}\0{state['messages'][-1].text}".encode()).hexdigest()[:8]
            tree = Tree(project.directory, f"{agent.name}-{key}")
            try:
                await _finish(tree.make)
                messages = await self._work(tree, agent, spec, project, model, state)
                mode = self._mode_of(agent)
                may = partial(self._find_refusal, mode)
                changes = await to_thread(tree.find_changes, may)
                agreed = self._ask(agent.name, mode, changes)
                merge = partial(self._merge, tree, may)
                report = await _finish(merge) if agreed else _NOT_AGREED.format(tree.path)
            except GraphBubbleUp:
                # The tree waits for the answer to this question.
                raise
            except (Exception, CancelledError):
                if not tree.remove_unchanged():
                    self._notify(f"what {agent.name} has changed is in {tree.path}, and nothing was merged")
                raise
            answer = next((each.text for each in reversed(messages) if isinstance(each, AIMessage)), "")
            return {"messages": [*messages, AIMessage(f"{answer}\n\n{report}")]}

        return run

    async def _work(
        self,
        tree: Tree,
        agent: FileAgent,
        spec: SubAgent,
        project: Project,
        model: BaseChatModel,
        state: Mapping[str, Any],
    ) -> Sequence[BaseMessage]:
        backend = self._open(tree.path)
        policy = self._policy_in(tree.path, backend, agent)
        with backend if isinstance(backend, AbstractContextManager) else nullcontext():
            if isinstance(backend, GuardedSandbox):
                backend.access_of = policy.access_of

            def find_refusal(request: ToolCallRequest) -> str | None:
                is_asked = request.tool_call["name"] in policy.interrupt_on() and policy.asks(request)
                return _REFUSED if is_asked else None

            refuse = RefuseCalls(find_refusal)
            top = str(tree.path) if policy.confined else ""
            found = (each for each in project.memory() if each.is_relative_to(project.directory))
            here = [each.relative_to(project.directory) for each in found]
            own: SubAgent = {**GENERAL_PURPOSE_SUBAGENT, "middleware": [refuse]}
            made: Any = create_deep_agent(
                spec.get("model") or model,
                middleware=[refuse, *spec.get("middleware", ())],
                subagents=[own],
                backend=backend,
                system_prompt="\n\n".join(filter(None, [spec.get("system_prompt"), policy.describe()]))
                or None,
                memory=[f"{top}/{each}" for each in here] or None,
                # Nobody can be asked in a tree.
                permissions=[
                    replace(each, mode="deny") if each.mode == "interrupt" else each
                    for each in policy.permissions()
                ],
                name=agent.name,
            )
            result = await made.ainvoke({"messages": state["messages"]})
            return result["messages"]

    def _policy_in(self, path: Path, backend: FilesystemBackend, agent: FileAgent) -> Policy:
        outer = self._policy
        mode = self._mode_of(agent)
        # What it changes is its own; the person is asked when that is merged.
        within: Mode = "auto" if mode == "ask" else mode
        return Policy(backend, path, within, network=outer.network, offline=outer.offline, own=outer.own)

    def _mode_of(self, agent: FileAgent) -> Mode:
        """Return the narrower of the modes of the conversation and of the agent."""
        return min((self._policy.mode, agent.mode), key=FREER.index)

    def _find_refusal(self, mode: Mode, path: str) -> str:
        """Return why a change of a path is not merged: the rules hold as for a call of the agent itself."""
        policy = self._policy
        real = str(policy.directory / path)
        if is_kept_from_tools(real, policy.own_rules):
            return "it is of this program's own conversations"
        if mode == "plan":
            return "nothing is changed in mode plan"
        if mode != "full" and kind_of(real, writes=True, own=policy.own_rules):
            return "it is guarded, and a person is asked about it"
        return ""

    def _ask(self, name: str, mode: Mode, changes: Sequence[Change]) -> bool:
        """Ask whether the changes are merged, where this mode asks about changes."""
        found = [each for each in changes if not each.problem]
        if not found or self._policy.yes or mode != "ask":
            return True
        args = {"agent": name, "files": _list(found), "changes": _diff(found)}
        review = {"action_name": MERGE, "allowed_decisions": ["approve", "reject"]}
        answer: Any = interrupt(
            {"action_requests": [{"name": MERGE, "args": args}], "review_configs": [review]}
        )
        return answer["decisions"][0]["type"] == "approve"

    def _merge(self, tree: Tree, may: Callable[[str], str]) -> str:
        with self._merging:
            # Another one may have been merged since the person was asked.
            present = tree.find_changes(may)
            done, apart = tree.apply(present)
        tree.remove()
        parts = [f"Merged: {_list(done)}"] if done else []
        if apart:
            parts.append(f"not merged, and kept below {_ASIDE}/{tree.name}/: {_list(apart)}")
        text = "; ".join(parts) or "it changed no files"
        return f"[{text[0].upper()}{text[1:]}]"


async def _finish(work: Callable[[], Any]) -> Any:
    """Run work in a thread, which no stop leaves half-done: each arrives behind the end."""
    running = create_task(to_thread(work))
    stopped: CancelledError | None = None
    while not running.done():
        try:
            await wait([running])
        except CancelledError as stop:
            # A person who is impatient stops again, while what is removed behind this is still being made.
            stopped = stop
    if stopped:
        # Retrieved, or asyncio logs an exception that nothing waits for.
        _ = running.exception()
        raise stopped
    return running.result()


def _list(changes: Sequence[Change]) -> str:
    named: list[str] = []
    for each in changes[:_MOST_NAMED]:
        about = ["removed"] * (each.theirs is None) + [each.problem] * bool(each.problem)
        named.append(f"{each.path} ({', '.join(about)})" if about else each.path)
    more = len(changes) - len(named)
    return ", ".join(named) + (f" and {more} more" if more else "")


def _diff(changes: Sequence[Change]) -> str:
    lines = [
        line for each in changes for line in text_diff(_as_text(each.ours), _as_text(each.merged), each.path)
    ]
    text = "\n".join(lines)
    return text if len(text) <= _LONGEST_DIFF else f"{text[:_LONGEST_DIFF]}\n[and more]"


def _as_text(entry: Entry) -> str | None:
    if isinstance(entry, FileEntry):
        return entry.content.decode("utf-8", "replace")
    return f"link to {entry.target}\n" if isinstance(entry, LinkEntry) else None
