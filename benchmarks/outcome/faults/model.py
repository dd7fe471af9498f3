"""A scripted model that knows the steps of a task, errs at a rate, and goes on by what results say."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any, Final

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import PrivateAttr

from benchmarks.outcome.faults.forms import Change, Form, anchors_of, find_change
from benchmarks.outcome.faults.readers import (
    HABITS,
    Advice,
    Quote,
    Reader,
    advise,
    has_failed,
    is_told_to_stop,
    notices,
)
from benchmarks.outcome.faults.slips import Slip, choose, say
from benchmarks.outcome.faults.tasks import Step, Task

REPEATS: Final = 4
"""How often a model calls the same again that is not told."""
PATIENCE: Final = 3
"""How often it tries a step whose results do not help."""


@dataclass(frozen=True)
class Plan:
    """How a model behaves in one attempt.

    `forced` is the fault of the first edit; then no other is made, and `retries` are left.
    """

    rate: float
    seed: int
    reader: Reader
    forced: Slip | None = None
    retries: int = PATIENCE


class FaultyModel(BaseChatModel):
    """Work at one task, step by step: the plan and what it reads decide what it does, and no chance."""

    task: Any
    plan: Any
    host: str = ""
    form: Form = "replace"
    _at: int = PrivateAttr(default=0)
    _tries: int = PrivateAttr(default=0)
    _helpless: int = PrivateAttr(default=0)
    _repeats: int = PrivateAttr(default=0)
    _looking: bool = PrivateAttr(default=False)
    _failed: bool = PrivateAttr(default=False)
    _stuck: bool = PrivateAttr(default=False)
    _slip: Slip | None = PrivateAttr(default=None)
    _quote: str | None = PrivateAttr(default=None)
    _error: str = PrivateAttr(default="")
    _seen: str = PrivateAttr(default="")
    turns: int = 0
    written: int = 0
    landed_after: int | None = None
    last_slip: str = ""

    @property
    def _llm_type(self) -> str:
        return "faulty"

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        """Look at no schema: it knows the names that all harnesses here have."""
        return self

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **options: Any
    ) -> ChatResult:
        self.turns += 1
        for message in _results(messages):
            self._take(message)
        said = self._next()
        self.written += len(said.text) + sum(len(str(each["args"])) for each in said.tool_calls)
        return ChatResult(generations=[ChatGeneration(message=said)])

    @property
    def _step(self) -> Step:
        task: Task = self.task
        step = task.steps[self._at]
        if self._quote is None:
            return step
        changed: dict[str, object] = {"old_string": self._quote}
        if self.form == "patch":
            # Who quotes whole lines writes whole lines for them.
            changed["new_string"] = "\n".join(self._change(step).new)
        return replace(step, arguments={**step.arguments, **changed})

    def _change(self, step: Step) -> Change:
        given = step.arguments
        old, new, everywhere = (given.get(each, "") for each in ("old_string", "new_string", "replace_all"))
        return find_change(self._content(), step.path, str(old), str(new), everywhere=bool(everywhere))

    def _take(self, result: ToolMessage) -> None:
        text = result.text
        if self._looking:
            self._looking = False
            self._look_at(text)
        elif has_failed(text, str(result.status)):
            self._fail(text)
        elif notices(self._step, self._slip, text):
            self._slip = None
        elif self._slip == Slip("repeat") and self._repeats < REPEATS and not is_told_to_stop(text):
            self._repeats += 1
        else:
            self._seen += text
            self._done()

    def _fail(self, text: str) -> None:
        self._failed, self._error = True, text
        self._helpless += 1
        if self._step.tool == "edit_file" and self._slip is None and is_told_to_stop(text):
            return self._done()
        advice = self._advise(text)
        self._stuck = advice == "stuck"
        self._looking = advice == "look"
        if isinstance(advice, Quote):
            self._slip, self._quote = None, advice.text
        elif advice == "right":
            self._slip = self._quote = None
        return None

    def _advise(self, text: str) -> Advice | Quote:
        step: Step = self.task.steps[self._at]
        slip = self._slip
        if self.form == "anchors" and slip and slip.kind == "drift" and slip.detail not in HABITS:
            is_shown = all(each in text for each in anchors_of(self._change(step)))
            return "right" if is_shown else "look"
        return advise(step, slip, text, self.plan.reader)

    def _content(self) -> str:
        task: Task = self.task
        place = Path(self.host) / task.steps[self._at].path.lstrip("/")
        return place.read_bytes().decode() if place.is_file() else ""

    def _look_at(self, text: str) -> None:
        """Go on rightly if the file, or its name, was seen."""
        found = not has_failed(text, "success") and (
            self._slip is None or self._slip.kind == "drift" or self._step.path.rpartition("/")[2] in text
        )
        if found:
            self._slip = self._quote = None
        self._stuck = not found

    def _done(self) -> None:
        if self._step.tool == "edit_file":
            self.landed_after = self._tries - 1
        self._at += 1
        self._tries = self._helpless = self._repeats = 0
        self._failed = self._stuck = False
        self._slip = self._quote = None

    def _next(self) -> AIMessage:
        task: Task = self.task
        if self._at == len(task.steps):
            return AIMessage(self._answer())
        call_id = f"call_{self.turns}"
        if self._looking:
            return say(self._look(), None, call_id)
        if self._helpless >= (self.plan.retries + 1 if self.plan.forced else PATIENCE):
            # It gives up, and would try once more if it were asked.
            self._helpless -= 1
            return AIMessage(self._error)
        if not self._stuck and not self._repeats:
            self._slip = self._choose()
            self.last_slip = self._slip.kind if self._slip else self.last_slip
        self._tries += 1
        said = say(self._step, self._slip, call_id, self._error, self.form, self._content())
        if not said.tool_calls and not said.invalid_tool_calls:
            self._slip = None
        return said

    def _choose(self) -> Slip | None:
        plan: Plan = self.plan
        if plan.forced is not None:
            return plan.forced if self._step.tool == "edit_file" and not self._tries else None
        # Keyed by the place in the task: all harnesses meet the same faults, whatever they answered before.
        random = Random(f"{self.task.name}:{plan.seed}:{self._at}:{self._tries}")
        if self._quote is not None or random.random() >= plan.rate:
            return None
        return choose(self._step, self.task.files, self.host, self._failed, random, self.form)

    def _look(self) -> Step:
        if self._slip is not None and self._slip.kind == "root":
            folder = self._step.path.rpartition("/")[0] or "/"
            return Step("ls", {"path": folder})
        return Step("read_file", {"file_path": self._step.path, "limit": 500})

    def _answer(self) -> str:
        """Answer with what was asked for, if it was read; `one` is a count that a model makes itself."""
        wanted: str = self.task.answer
        return wanted if wanted in ("Done.", "one") or wanted in self._seen else "I do not know."


def _results(messages: list[BaseMessage]) -> list[ToolMessage]:
    found: list[ToolMessage] = []
    for message in reversed(messages):
        if isinstance(message, ToolMessage):
            found.insert(0, message)
        elif isinstance(message, AIMessage):
            break
    return found
