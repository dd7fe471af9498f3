"""Plays the worker: says what a test asks for by the first word of the message that it sends."""

from __future__ import annotations

import json
import os
import select
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

_RATE = 200


class Worker:
    """Reads messages from standard input and writes others, as the real worker does."""

    def __init__(self) -> None:
        self._rest = b""
        self._number = 0
        self.opened: Mapping[str, Any] = {}

    def run(self) -> None:
        """Answer until told to close."""
        for message in self.messages():
            if message["do"] == "close":
                return
            act = getattr(self, f"do_{message['do']}", None)
            if act:
                act(message)

    def messages(self) -> Iterator[dict[str, Any]]:
        """Read what comes."""
        while line := self.read(None):
            yield line

    def read(self, timeout: float | None) -> dict[str, Any]:
        """Read one message; nothing when none came in time, or at the end."""
        while b"\n" not in self._rest:
            ready, _, _ = select.select([0], [], [], timeout)
            piece = os.read(0, 1 << 16) if ready else b""
            if not piece:
                return {}
            self._rest += piece
        line, _, self._rest = self._rest.partition(b"\n")
        return json.loads(line)

    def write(self, kind: str, **message: Any) -> None:
        """Write a message."""
        sys.stdout.write(json.dumps({"is": kind, **message}) + "\n")
        sys.stdout.flush()

    def event(self, kind: str, line: str | None = None, **event: Any) -> None:
        """Write an event."""
        self.write("event", event={"type": kind, "agent": None, **event}, line=line)

    def do_open(self, message: Mapping[str, Any]) -> None:
        """Be ready, or ask for trust first where the directory has a file `trust-me`."""
        self.opened = message
        if Path(message["directory"], "trust-me").exists():
            self.write(
                "trust",
                directory=message["directory"],
                items=[{"kind": "hook", "name": "evil\x1b[2J", "what": "rm -rf ~"}],
            )
            answer = self.read(None)
            self.event("token", text=f"trusted: {answer['answer']}\n\n")
        resumed = bool(message["thread"] or message["resume"])
        self.write(
            "ready", thread=message["thread"] or "thread-1", name="a session", model="test:model",
            mode=message["mode"], directory=message["directory"], branch="main\x1b[31m", resumed=resumed,
            memory=["AGENTS.md"], skills=["tidy"], agents=[], notices=[],
            commands=[
                {"name": "model", "description": "choose a model", "arguments": "NAME"},
                {"name": "remember", "description": "write to memory", "arguments": "TEXT"},
                {"name": "review", "description": "review", "arguments": ""},
            ],
            history=[{"who": "person", "text": "earlier question"}, {"who": "agent", "text": "*answer*"}]
            if resumed
            else [],
            waiting=False,
        )  # fmt: skip

    def do_send(self, message: Mapping[str, Any]) -> None:
        """Take a turn."""
        self.write("working", queued=[])
        word, _, rest = message["text"].partition(" ")
        end = getattr(self, f"turn_{word}", self.turn_say)(rest, message) or "done"
        self.write(
            "status", model="test:model", mode="ask", branch="main\x1b[31m", context=0.25, window=1000,
            input_tokens=1200, output_tokens=34, cost=0.05, name="a session",
        )  # fmt: skip
        self.write("idle", end=end, error=None, seconds=1.0)

    def do_command(self, message: Mapping[str, Any]) -> None:
        """Carry out a command."""
        result: dict[str, Any] = {"text": None, "choices": None, "ansi": None, "edit": None, "send": None}
        if message["name"] == "model" and not message["arguments"]:
            result["choices"] = [
                {"value": "a:one", "label": "a:one", "detail": "fast", "usable": True},
                {"value": "b:two", "label": "b:two", "detail": "ONE_API_KEY is not set", "usable": False},
                {"value": "c:three", "label": "c:three", "detail": "slow", "usable": True},
            ]
        elif message["name"] == "remember":
            result["edit"] = {"text": f"- {message['arguments']}\n", "path": "AGENTS.md"}
        elif message["name"] == "review":
            result["send"] = "say reviewing"
        else:
            result["text"] = f"did **{message['name']}** {message['arguments']}"
        self.write("result", id=message["id"], **result)

    def do_save(self, message: Mapping[str, Any]) -> None:
        """Write the file of a proposal."""
        self.write("result", id=message["id"], text=f"saved {message['text']!r}")

    def turn_say(self, rest: str, message: Mapping[str, Any]) -> None:
        """Answer with the text, and with the attachments."""
        files = "".join(f"\n\nattached: {Path(path).name}" for path in message["attachments"])
        self.event("token", text=(rest or message["text"]).replace("\\n", "\n") + files)
        self.event("final_answer", text="")

    def turn_hostile(self, rest: str, message: Mapping[str, Any]) -> None:
        """Answer with what would steer a terminal, some of it spelled as Markdown spells characters."""
        link = "[a\x1b[2J](http://x\x1b]0;t\x07)"
        self.event("token", text=f"{link} &#27;[2J &#x202e;evil `\x9b2J`\n\nthe end\n\n")

    def turn_tools(self, rest: str, message: Mapping[str, Any]) -> None:
        """Plan, read, fail, delegate."""
        todos = [{"content": "look", "status": "completed"}, {"content": "mend", "status": "in_progress"}]
        self.event("plan_changed", todos=todos)
        self.event("tool_called", "read_file a.py", name="read_file", args={}, call_id="1")
        self.event("tool_finished", "12 lines", name="read_file", call_id="1", status="success", text="")
        self.event("tool_called", "execute make", name="execute", args={}, call_id="2")
        self.event("command_output", call_id="2", text="building\n\n  linking\ta.o\n", stream="stdout")
        self.event("tool_finished", "exit code 2: no rule", name="execute", call_id="2", status="success",
                   text="", exit_code=2)  # fmt: skip
        self.event("subagent_started", name="reviewer", task="look twice", call_id="3", label="reviewer")
        self.event("subagent_finished", name="reviewer", task="", call_id="3", label="reviewer",
                   status="success", text="all is well")  # fmt: skip
        self.event("token", text="Finished.")

    def turn_slow(self, rest: str, message: Mapping[str, Any]) -> str:
        """Work until stopped, and queue what comes."""
        self.event("tool_called", "execute sleep", name="execute", args={}, call_id="s")
        self.event("subagent_started", name="helper", task="dig", call_id="t", label="helper")
        self.event("tool_called", "grep needle", name="grep", args={}, call_id="u", agent="helper")
        texts: list[str] = []
        while message := self.read(None):
            match message["do"]:
                case "stop":
                    return "stopped"
                case "send":
                    texts.append(message["text"])
                    self.write("queued", texts=texts)
                case "take_back":
                    self.write("taken_back", texts=texts)
                    self.write("queued", texts=[])
                    texts = []
                case "close":
                    sys.exit(0)
                case _:
                    continue
            if texts == ["go on"]:
                self.write("queued", texts=[])
                return "done"
        sys.exit(0)

    def turn_ask(self, rest: str, message: Mapping[str, Any]) -> None:
        """Ask about an edit, and say what was decided."""
        lines = int(rest) if rest.isdigit() else 0
        self._ask([*[f" line {number}" for number in range(lines)], "@@ -1 +1 @@", "-old\x1b[2J", "+new"])
        texts: list[str] = []
        while True:
            message = self.read(None)
            if message["do"] == "send":
                texts.append(message["text"])
                self.write("queued", texts=texts)
                continue
            if message["do"] == "preview":
                self._ask(["@@ -1 +1 @@", "-old", *[f"+{line}" for line in message["text"].splitlines()]],
                          edited=True)  # fmt: skip
                continue
            break
        if texts:
            self.write("queued", texts=[])
        said = json.dumps({key: message.get(key) for key in ("do", "decision", "remember")}, sort_keys=True)
        self.event("token", text=f"```json\n{said}\n```\n")

    def _ask(self, details: list[str], *, edited: bool = False) -> None:
        self.write(
            "ask", id="ask-1", agent=None, name="edit_file", title="wants to edit src/a.py", details=details,
            language="diff", choices=["approve", "edit", "reject", "respond"],
            edit={"text": "new", "suffix": ".py"}, edited=edited,
            rules=[{"rule": "edit_file src/a.py", "label": "edits of src/a.py"},
                   {"rule": "edit_file src/", "label": "edits below src"}],
        )  # fmt: skip

    def turn_question(self, rest: str, message: Mapping[str, Any]) -> None:
        """Ask for a text."""
        self.write("question", id="q-1", agent=None, text="Which one?")
        self.event("token", text=f"You said {self.read(None)['text']}.")

    def turn_die(self, rest: str, message: Mapping[str, Any]) -> None:
        """End without a word, but in the log."""
        sys.stderr.write("Traceback: out of luck\n")
        sys.stderr.flush()
        os._exit(3)

    def turn_stream(self, rest: str, message: Mapping[str, Any]) -> None:
        """Stream tokens at a rate while a command prints ten megabytes."""
        seconds, _, kind = rest.partition(" ")
        line = "x" * 98 + "\n"
        self.event("tool_called", "execute flood", name="execute", args={}, call_id="f")
        begin = time.monotonic()
        words = ["Some", " words", " with", " `code`", " and", " **bold**", ".", "\n\n"]
        if kind == "code":
            words = ["    total", " =", " total", " +", " compute", "(value,", " 17)", "\n"]
            self.event("token", text="```python\ndef f():\n")
        for number in range(int(float(seconds) * _RATE)):
            time.sleep(max(begin + number / _RATE - time.monotonic(), 0))
            self.event("token", text=words[number % len(words)])
            self.event("command_output", call_id="f", text=line * (100_000 // (int(float(seconds)) * _RATE)),
                       stream="stdout")  # fmt: skip
        self.event("tool_finished", "100,000 lines", name="execute", call_id="f", status="success", text="")


if __name__ == "__main__":
    Worker().run()
