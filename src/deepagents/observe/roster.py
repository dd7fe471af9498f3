"""Map namespaces of a stream to agents, with labels that stay the same in a thread."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, TypeAlias, TypedDict, cast

Namespace: TypeAlias = tuple[str, ...]

_FOR_MIDDLEWARE: Final = re.compile(r"\.(before|after)_(agent|model):")
_TOOLS: Final = "tools"


class Author(TypedDict):
    """Which agent an event is of: the fields of the event that say so."""

    agent: str | None
    agent_name: str | None
    agent_call_id: str | None


MAIN: Final[Author] = {"agent": None, "agent_name": None, "agent_call_id": None}


class Roster:
    """Knows the agents of one thread.

    A subagent gets its label when it is called: its name, and from the second one of that name on a number,
    in the order of the calls. So a history that is read anew gives the labels that a stream gave. What an
    agent called itself stands before what it calls: `"lead/helper 2"`.
    """

    def __init__(self) -> None:
        self._called: dict[tuple[str | None, str], Author] = {}
        self._calls: dict[str, tuple[str, str]] = {}
        self._seen: dict[Namespace, Author] = {}
        self._taken: set[str] = set()
        self._main: str | None = None

    def note_delegation(self, name: str, call_id: str, by: Author, *, anew: bool = False) -> Author:
        """Note that an agent calls a subagent; `anew` where a call of this id has ended."""
        known = self._called.get((by["agent"], call_id))
        if known is None or anew:
            known = self._called[by["agent"], call_id] = self._new(name, call_id, by)
        return known

    def note_task(self, task: Mapping[str, Any]) -> str | None:
        """Note which tool call a task of a graph carries out, by what mode `tasks` tells of its beginning.

        Returns the id of the call, if the task is one.
        """
        call = _tool_call(task.get("input"))
        if call is None:
            return None
        name, call_id = call.get("name") or "", call.get("id") or ""
        self._calls[f"{task['name']}:{task['id']}"] = (name, call_id)
        return call_id

    def who(self, namespace: Namespace, name: str | None = None) -> Author:
        """Return the agent that works under a namespace; `name` is the one that its metadata tell."""
        if not namespace:
            self._main = name or self._main
            return MAIN
        known = self._seen.get(namespace)
        if known is not None:
            return known
        whole = tuple(part for part in namespace if ":" in part)
        if not whole:
            return MAIN
        tool, call_id = self._calls.get(whole[-1], ("", ""))
        above = self.who(whole[:-1])
        called = self._called.get((above["agent"], call_id))
        if called is not None:
            return called
        node = whole[-1].partition(":")[0]
        own = None if name == (self._main if above == MAIN else above["agent_name"]) else name
        if node != _TOOLS and own is None:
            return above
        return self._meet(namespace, own, tool or node, call_id, above)

    def _meet(
        self, namespace: Namespace, name: str | None, otherwise: str, call_id: str, above: Author
    ) -> Author:
        """Label an agent that no `task` called; the label stays as soon as the agent's name is known."""
        if name is None:
            return _author(_free(_below(otherwise, above), self._taken), otherwise, call_id)
        made = self._seen[namespace] = self._new(name, call_id, above)
        return made

    def _new(self, name: str, call_id: str, above: Author) -> Author:
        label = _free(_below(name, above), self._taken)
        self._taken.add(label)
        return _author(label, name, call_id)


def is_for_middleware(namespace: Namespace) -> bool:
    """Return whether middleware asks here for itself, as a grader does, and not for the user."""
    return any(_FOR_MIDDLEWARE.search(part) for part in namespace)


def _tool_call(given: object) -> Mapping[str, Any] | None:
    """Find the call in what a task is given: a list of one, or next to the state."""
    many = cast("list[object]", given) if isinstance(given, list) else [given]
    for each in many:
        found = cast("dict[str, Any]", each) if isinstance(each, dict) else {}
        call: object = found.get("tool_call", found)
        if isinstance(call, dict) and cast("dict[str, Any]", call).get("type") == "tool_call":
            return cast("dict[str, Any]", call)
    return None


def _author(label: str, name: str, call_id: str) -> Author:
    return {"agent": label, "agent_name": name, "agent_call_id": call_id or None}


def _below(name: str, above: Author) -> str:
    return name if above["agent"] is None else f"{above['agent']}/{name}"


def _free(name: str, taken: set[str]) -> str:
    if name not in taken:
        return name
    number = 2
    while f"{name} {number}" in taken:
        number += 1
    return f"{name} {number}"
