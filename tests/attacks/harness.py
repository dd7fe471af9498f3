"""What a misled model tries, and one verdict for all: refused, nothing outside touched, nothing leaked."""

from __future__ import annotations

import base64
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, get_args

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

from deepagents import create_deep_agent
from deepagents.errors import ErrorCode
from deepagents.testing import Asked, ScriptedModel, calls
from deepagents.testing.scripted import ScriptedAnswer
from tests.conftest import CallMode

CANARY = "Tw1tt3rYell0wB1rd"
"""Stands in every secret, and in the names of some; nobody who keeps the rules ever sees it."""
HINT = "Tw1tt3r"
"""The part of it that an attacker has guessed."""
SEARCHES = frozenset({"ls", "glob", "grep"})
"""Tools that may answer that nothing is there."""

T = TypeVar("T")
Script: TypeAlias = Sequence[ScriptedAnswer | Callable[[Asked], ScriptedAnswer]]


@dataclass(slots=True)
class Ground:
    """A place to be attacked: what the agent is given, and what must stay as it is and unseen."""

    top: Path
    root: Path
    options: dict[str, Any]
    given: dict[str, Any] = field(default_factory=dict[str, Any])
    kept: list[Path] = field(default_factory=list[Path])
    kept_files: dict[str, Any] = field(default_factory=dict[str, Any])
    watched: list[Callable[[], Any]] = field(default_factory=list[Callable[[], Any]])
    harmless: frozenset[str] = SEARCHES

    def run(
        self, call_mode: CallMode, *script: Any, always: Callable[[Asked], ScriptedAnswer] | None = None
    ) -> Run:
        """Let a model go through a script, and keep all that can be seen of it from outside."""
        before = self._untouched()
        with ScriptedModel(*script, *([] if always else ["Done."]), always=always) as model:
            agent = create_deep_agent(model, checkpointer=InMemorySaver(), **self.options)
            config: Any = {"configurable": {"thread_id": "1"}}
            result = call_mode.invoke(agent, {"messages": "Go", **self.given}, config)
            state = agent.get_state(config).values
        return Run(self, dict(state), result, model.asked, before, self._untouched())

    def _untouched(self) -> list[Any]:
        return [snapshot(self.kept), *(look() for look in self.watched)]


@dataclass(frozen=True, slots=True)
class Run:
    """What one attempt left behind."""

    ground: Ground
    state: dict[str, Any]
    result: dict[str, Any]
    asked: list[Asked]
    before: list[Any]
    after: list[Any]

    @property
    def answers(self) -> list[ToolMessage]:
        """What the tools answered, in order."""
        return [message for message in self.state["messages"] if isinstance(message, ToolMessage)]

    @property
    def codes(self) -> list[str | None]:
        """The error codes of the answers, in order."""
        return [answer.additional_kwargs.get("error_code") for answer in self.answers]

    def problems(self) -> list[str]:
        """Say what went wrong; nothing, when the attempt failed as it should."""
        return [*self._not_refused(), *self._touched(), *self._leaked()]

    def _not_refused(self) -> list[str]:
        asked = {
            each["id"]: each["args"]
            for message in self.state["messages"]
            if isinstance(message, AIMessage)
            for each in message.tool_calls
        }
        return [
            f"{answer.name} was not refused: {asked[answer.tool_call_id]} {answer.text[:200]!r}"
            for answer in self.answers
            if not is_refusal(answer)
            and not (answer.status == "success" and answer.name in self.ground.harmless)
        ]

    def _touched(self) -> list[str]:
        files = self.state.get("files", {})
        lost = [path for path, data in self.ground.kept_files.items() if not _is_same(files, path, data)]
        differences = [_difference(old, new) for old, new in zip(self.before, self.after, strict=True)]
        return [f"was touched: {each}" for each in (*differences, *lost) if each]

    def _leaked(self) -> list[str]:
        hidden = (*spellings(CANARY), str(self.ground.top))
        shown = {where: repr(value) for where, value in self._seen().items()}
        return [
            f"{what!r} leaked in {where}" for where, text in shown.items() for what in hidden if what in text
        ]

    def _seen(self) -> dict[str, Any]:
        """Gather what the model, the caller and the logs can see, but for the secrets that were given."""
        everything = {**self.result, **self.state}
        files = {
            path: data
            for path, data in everything.pop("files", {}).items()
            if path not in self.ground.kept_files
        }
        return {
            "messages": [message.model_dump() for message in everything.pop("messages")],
            "files": files,
            "state": everything,
            "tools": [(asked.system, asked.tools) for asked in self.asked[-1:]],
            "prompts": [message.model_dump() for message in self.asked[-1].messages],
        }


def is_refusal(answer: ToolMessage) -> bool:
    """Tell whether a call failed with a code that programs know."""
    return answer.status == "error" and answer.additional_kwargs.get("error_code") in get_args(ErrorCode)


def spellings(secret: str) -> list[str]:
    """List the forms in which a text may travel: as it is, as hexadecimal, and as base64 at any offset."""
    data = secret.encode()
    coded = [base64.b64encode(b"\0" * shift + data).decode()[4 if shift else 0 :] for shift in range(3)]
    return [secret, secret[::-1], data.hex(), *(each.rstrip("=")[:-2] for each in coded)]


def snapshot(paths: Sequence[Path]) -> dict[str, Any]:
    """Describe everything at and below some places: kinds, times, sizes, names, contents."""
    return {str(path): _look(path) for start in paths for path in (start, *sorted(start.rglob("*")))}


def _look(path: Path) -> tuple[Any, ...]:
    try:
        about = path.lstat()
    except FileNotFoundError:
        return ("missing",)
    held: Any = None
    if stat.S_ISLNK(about.st_mode):
        held = path.readlink()
    elif stat.S_ISREG(about.st_mode):
        held = path.read_bytes()
    return (about.st_mode, about.st_uid, about.st_size, about.st_mtime_ns, about.st_nlink, held)


def _difference(old: Any, new: Any) -> str:
    if not isinstance(old, dict) or not isinstance(new, dict):
        return "" if old == new else f"{old!r} became {new!r}"
    return ", ".join(sorted(str(key) for key in {*old, *new} if old.get(key) != new.get(key)))


def _is_same(files: dict[str, Any], path: str, data: Any) -> bool:
    return path in files and files[path]["content"] == data["content"]


LOOKS = ("ls", "read_file", "glob", "grep")
CHANGES = ("edit_file", "write_file", "delete")


def tried(tool: str, path: str) -> tuple[str, dict[str, Any]]:
    """Aim one tool at a path."""
    arguments: dict[str, dict[str, Any]] = {
        "ls": {"path": path},
        "read_file": {"file_path": path},
        "glob": {"pattern": "**", "path": path},
        "grep": {"pattern": HINT, "path": path, "output_mode": "content", "context": 3},
        "edit_file": {"file_path": path, "old_string": "e", "new_string": "E", "replace_all": True},
        "write_file": {"file_path": path, "content": "overwritten"},
        "delete": {"file_path": path},
    }
    return tool, arguments[tool]


def in_turn(name: str, attempts: Mapping[str, Any]) -> pytest.MarkDecorator:
    """Run each attempt of a table, every other one awaiting: one body serves both colours."""
    colours = cycle(("sync", "async"))
    params = [pytest.param(attempt, next(colours), id=title) for title, attempt in attempts.items()]
    return pytest.mark.parametrize((name, "call_mode"), params, indirect=["call_mode"])


def every_other(call_mode: CallMode, attempts: Mapping[str, T]) -> list[T]:
    """Take half of a table for each colour, to be tried in one run of one agent."""
    return list(islice(attempts.values(), call_mode.name == "async", None, 2))


def on_path(*paths: str) -> Script:
    """Try every file tool on some paths, one after the other, no two changes of a path in one turn."""
    first, *others = CHANGES
    return [
        turn
        for path in paths
        for turn in (
            calls(*(tried(tool, path) for tool in (*LOOKS, first))),
            *(calls(tried(tool, path)) for tool in others),
        )
    ]


def in_rotation(*paths: str) -> Script:
    """Try three of the file tools on each path, and others on the next one."""
    tools = cycle((*LOOKS, *CHANGES))
    return [calls(tried(tool, path)) for path in paths for tool in islice(tools, 3)]


def at_once(*paths: str) -> Script:
    """Try every file tool on a path in one turn, which is enough where the path itself is refused."""
    return [calls(*(tried(tool, path) for tool in (*LOOKS, *CHANGES))) for path in paths]
