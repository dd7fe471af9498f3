"""Hold a subagent for the task tool: its name, its description, and its runnable, made on first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Final, Literal, TypeAlias, cast

from langchain_core.runnables import Runnable

from deepagents._text import describe_exception
from deepagents.errors import ToolFailure

Mode: TypeAlias = Literal["isolated", "fork"]
Made: TypeAlias = Runnable[Any, Any]

_MAX_FORMATS: Final = 8
_KNOWS: Final = " (a fork: it has this whole conversation; give it the task alone)"


@dataclass(slots=True)
class Worker:
    """A subagent: its name, its description, and how to make its runnable for a response format.

    `make` is called with the format that a call asks for, `None` for the subagent's own. `compiled` marks a
    runnable that the caller made, which answers in no other format. A fork reads `addendum` before its task.
    """

    name: str
    description: str
    make: Callable[[Any], Made]
    mode: Mode = "isolated"
    compiled: bool = False
    addendum: str | None = None
    _made: list[tuple[Any, Made]] = field(default_factory=list[tuple[Any, Made]])
    _lock: Any = field(default_factory=Lock)

    def runnable(self, response_format: Any = None) -> Made:
        """Return the runnable for a response format, the same one at each call; the oldest may be forgotten.

        Raises:
            ToolFailure: for a format, where the caller compiled the subagent.
        """
        if self.compiled and response_format is not None:
            raise ToolFailure(
                "not_supported",
                f'response_schema cannot be used with compiled subagent "{self.name}"; call it without one, '
                "or choose another subagent",
            )
        # Parallel calls would each compile the graph.
        with self._lock:
            if made := self.find_made(response_format):
                return made
            # A copy, because the caller may change the format in place and means another one then.
            kept = (
                deepcopy(cast(Any, response_format)) if isinstance(response_format, dict) else response_format
            )
            made = self._build(kept)
            others = [each for each in self._made if each[0] is not None][1 - _MAX_FORMATS :]
            own = [each for each in self._made if each[0] is None]
            self._made = [*own, *others, (kept, made)]
            return made

    def find_made(self, response_format: Any = None) -> Made | None:
        """Return the runnable for a response format if it was made already."""
        made = self._made
        return next((each for wanted, each in made if _equal(wanted, response_format)), None)

    def _build(self, response_format: Any) -> Made:
        try:
            return self.make(response_format)
        except ToolFailure:
            raise
        except Exception as error:
            raise ToolFailure(
                "not_supported",
                f"the subagent {self.name!r} cannot be built: {describe_exception(error)}; each call of it "
                "will fail, so do the work another way",
            ) from error

    @property
    def listed(self) -> str:
        """The line of the task tool's description about it."""
        return f"- {self.name}: {self.description}{_KNOWS if self.mode == 'fork' else ''}"


def name_runs(runnable: Made, name: str) -> Made:
    """Return the runnable so that its runs and its stream carry the subagent's name."""
    return runnable.with_config({"metadata": {"lc_agent_name": name}, "run_name": name})


def ready_worker(spec: Mapping[str, Any]) -> Worker:
    """Make the worker of a compiled spec."""
    name: str = spec["name"]
    runnable: Made = spec["runnable"]
    mode: Mode = spec.get("mode") or "isolated"
    return Worker(name, spec["description"], lambda _: name_runs(runnable, name), mode, compiled=True)


def _equal(one: Any, other: Any) -> bool:
    return one is other or (type(one) is type(other) and bool(one == other))
