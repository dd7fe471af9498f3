"""Plays the worker: says what a test asks for by the first word of the message that it sends."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from deepagents import events
from deepagents_cli import protocol

_RATE = 200


class Worker:
    """Reads messages from standard input and writes others, as the real worker does."""

    def __init__(self) -> None:
        self._rest = b""

    def run(self) -> None:
        """Answer until told to close."""
        while message := self.read():
            match message:
                case protocol.Close():
                    return
                case protocol.Open():
                    self._open(message)
                case protocol.Send():
                    self._send(message)
                case protocol.Invoke():
                    self.write(self._command(message))
                case protocol.Save():
                    self.write(protocol.Result(text=f"saved {message.text!r}"))
                case _:
                    pass

    def read(self) -> protocol.ToWorker | None:
        """Read one message; nothing at the end."""
        while b"\n" not in self._rest:
            piece = os.read(0, 1 << 16)
            if not piece:
                return None
            self._rest += piece
        line, _, self._rest = self._rest.partition(b"\n")
        return protocol.read_for_worker(line)

    def write(self, message: protocol.ToScreen) -> None:
        """Write a message."""
        sys.stdout.buffer.write(protocol.write(message))
        sys.stdout.flush()

    def event(self, event: events.Event, line: str | None = None) -> None:
        """Write an event."""
        self.write(protocol.Happened(event, line))

    def _open(self, message: protocol.Open) -> None:
        """Be ready, or ask for trust first where the directory has a file `trust-me`."""
        if Path(message.directory, "trust-me").exists():
            self.write(protocol.Trust(message.directory, ["hook evil\x1b[2J: rm -rf ~"]))
            answer = self.read()
            assert isinstance(answer, protocol.Trusted)
            self.event(events.Token(f"trusted: {'yes' if answer.agreed else 'no'}\n\n"))
        resumed = bool(message.thread or message.resume)
        past = [protocol.PastMessage("person", "earlier question"), protocol.PastMessage("agent", "*answer*")]
        commands = {
            "model": "choose a model: NAME",
            "remember": "write to memory: TEXT",
            "review": "review",
        }
        self.write(
            protocol.Ready(
                message.thread or "thread-1", "a session", "test:model", message.directory, resumed=resumed,
                memory=["AGENTS.md"], skills=["tidy"], commands=commands, history=past if resumed else [],
            )
        )  # fmt: skip
        self.write(protocol.Status("test:model", message.mode or "ask", branch="main\x1b[31m"))

    def _send(self, message: protocol.Send) -> None:
        """Take a turn."""
        self.write(protocol.Working())
        word, _, rest = message.text.partition(" ")
        end = getattr(self, f"turn_{word}", self.turn_say)(rest, message) or "done"
        self.write(
            protocol.Status(
                "test:model", "ask", branch="main\x1b[31m", context=0.25, input_tokens=1200,
                output_tokens=34, cost=0.05,
            )
        )  # fmt: skip
        self.write(protocol.Idle(end))

    def _command(self, message: protocol.Invoke) -> protocol.Result:
        """Carry out a command."""
        number = message.id
        if message.name == "model" and not message.arguments:
            choices = [
                protocol.Choice("a:one", "a:one", "fast"),
                protocol.Choice("b:two", "b:two", "ONE_API_KEY is not set", usable=False),
                protocol.Choice("c:three", "c:three", "slow"),
            ]
            return protocol.Result(number, choices=choices)
        if message.name == "remember":
            draft = protocol.Draft("draft-1", f"- {message.arguments}\n", "AGENTS.md")
            return protocol.Result(number, draft=draft)
        if message.name == "review":
            return protocol.Result(number, send="say reviewing")
        return protocol.Result(number, text=f"did **{message.name}** {message.arguments}")

    def turn_say(self, rest: str, message: protocol.Send) -> None:
        """Answer with the text, and with the attachments."""
        files = "".join(f"\n\nattached: {Path(path).name}" for path in message.attachments)
        self.event(events.Token((rest or message.text).replace("\\n", "\n") + files))
        self.event(events.FinalAnswer(""))

    def turn_hostile(self, rest: str, message: protocol.Send) -> None:
        """Answer with what would steer a terminal, some of it spelled as Markdown spells characters."""
        link = "[a\x1b[2J](http://x\x1b]0;t\x07)"
        self.event(events.Token(f"{link} &#27;[2J &#x202e;evil `\x9b2J`\n\nthe end\n\n"))

    def turn_tools(self, rest: str, message: protocol.Send) -> None:
        """Plan, read, fail, delegate."""
        self.event(events.PlanChanged((events.Todo("look", "completed"), events.Todo("mend", "in_progress"))))
        self.event(events.ToolCalled("read_file", {}, "1"), "read_file a.py")
        self.event(events.ToolFinished("1", "read_file", "success", ""), "12 lines")
        self.event(events.ToolCalled("execute", {}, "2"), "execute make")
        self.event(events.CommandOutput("2", "building\n\n  linking\ta.o\n"))
        self.event(events.ToolFinished("2", "execute", "success", "", exit_code=2), "exit code 2: no rule")
        self.event(events.SubagentStarted("reviewer", "look twice", "3", "reviewer"))
        self.event(events.SubagentFinished("reviewer", "3", "success", "all is well", "reviewer"))
        self.event(events.Token("Finished."))

    def turn_slow(self, rest: str, message: protocol.Send) -> str:
        """Work until stopped, and queue what comes."""
        self.event(events.ToolCalled("execute", {}, "s"), "execute sleep")
        self.event(events.SubagentStarted("helper", "dig", "t", "helper"))
        self.event(events.ToolCalled("grep", {}, "u", agent="helper"), "grep needle")
        texts: list[str] = []
        while said := self.read():
            match said:
                case protocol.Stop():
                    return "stopped"
                case protocol.Send(text=text):
                    texts.append(text)
                    self.write(protocol.Queued(texts))
                case protocol.TakeBack():
                    self.write(protocol.TakenBack(texts))
                    self.write(protocol.Queued([]))
                    texts = []
                case protocol.Close():
                    sys.exit(0)
                case _:
                    continue
            if texts == ["go on"]:
                self.write(protocol.Queued([]))
                return "done"
        sys.exit(0)

    def turn_ask(self, rest: str, message: protocol.Send) -> None:
        """Ask about an edit, and say what was decided."""
        lines = int(rest) if rest.isdigit() else 0
        self._ask([*[f" line {number}" for number in range(lines)], "@@ -1 +1 @@", "-old\x1b[2J", "+new"])
        texts: list[str] = []
        while True:
            match self.read():
                case protocol.Send(text=text):
                    texts.append(text)
                    self.write(protocol.Queued(texts))
                case protocol.Preview(text=text):
                    self._ask(["@@ -1 +1 @@", "-old", *[f"+{line}" for line in text.splitlines()]])
                case given:
                    break
        if texts:
            self.write(protocol.Queued([]))
        said = json.dumps({key: value for key, value in vars(given).items() if value})
        self.event(events.Token(f"```json\n{type(given).__name__} {said}\n```\n"))

    def _ask(self, details: list[str]) -> None:
        self.write(
            protocol.Ask(
                "ask-1", "wants to edit src/a.py", details,
                ["approve", "edit", "reject", "respond"], language="diff",
                edit=protocol.Editable("new", ".py"),
                rules={"edit_file src/a.py": "edits of src/a.py", "edit_file src/": "edits below src"},
            )
        )  # fmt: skip

    def turn_question(self, rest: str, message: protocol.Send) -> None:
        """Ask for a text."""
        self.write(protocol.Question("q-1", None, "Which one?"))
        answer = self.read()
        assert isinstance(answer, protocol.Answer)
        self.event(events.Token(f"You said {answer.text}."))

    def turn_die(self, rest: str, message: protocol.Send) -> None:
        """End without a word, but in the log."""
        sys.stderr.write("Traceback: out of luck\n")
        sys.stderr.flush()
        os._exit(3)

    def turn_stream(self, rest: str, message: protocol.Send) -> None:
        """Stream tokens at a rate while a command prints ten megabytes."""
        seconds, _, kind = rest.partition(" ")
        line = "x" * 98 + "\n"
        self.event(events.ToolCalled("execute", {}, "f"), "execute flood")
        begin = time.monotonic()
        words = ["Some", " words", " with", " `code`", " and", " **bold**", ".", "\n\n"]
        if kind == "code":
            words = ["    total", " =", " total", " +", " compute", "(value,", " 17)", "\n"]
            self.event(events.Token("```python\ndef f():\n"))
        for number in range(int(float(seconds) * _RATE)):
            time.sleep(max(begin + number / _RATE - time.monotonic(), 0))
            self.event(events.Token(words[number % len(words)]))
            self.event(events.CommandOutput("f", line * (100_000 // (int(float(seconds)) * _RATE))))
        self.event(events.ToolFinished("f", "execute", "success", ""), "100,000 lines")


if __name__ == "__main__":
    Worker().run()
