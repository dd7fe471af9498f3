"""Read commands from files: a text with arguments, files and the output of shell lines put in."""

from __future__ import annotations

import re
import shlex
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, TypeAlias

from deepagents._values import valueclass
from deepagents_cli.approval.guarded import kind_of
from deepagents_cli.approval.rules import Rule, make_rule, read_rule
from deepagents_cli.errors import CommandError
from deepagents_cli.project.markdown import MarkdownFile, find_files
from deepagents_cli.project.project import Project, read_resolved
from deepagents_cli.project.tools import EDITS, approvals_in
from deepagents_cli.text import one_line

Run: TypeAlias = Callable[[str], Awaitable[str]]
"""Runs a shell line, in the sandbox where there is one, and returns what it wrote."""

_PART: Final = re.compile(
    r"(?<!\S)!`(?P<shell>[^`\n]+)`|(?<![\w`])@(?P<file>[^\s`'\"]+)|\$ARGUMENTS\b|\$(?P<number>[1-9])(?!\d)"
)
_LONGEST_FILE: Final = 100_000
"""Bytes."""


@valueclass
class FileCommand:
    """A command; `approved` are the rules by which its file approves calls of its turn in advance."""

    name: str
    description: str
    hint: str
    body: str
    model: str | None
    trusted: bool
    path: Path
    approved: tuple[str, ...] = ()

    def rules(self, directory: Path) -> list[Rule]:
        """Return what is approved in a directory."""
        own = make_rule("edits", str(directory))
        return [own if each == EDITS else read_rule(each) for each in self.approved]

    @property
    def shell(self) -> list[str]:
        """The shell lines that it runs."""
        return [found["shell"] for found in _PART.finditer(self.body) if found["shell"]]


def find_commands(project: Project) -> tuple[dict[str, FileCommand], list[str]]:
    """Return the commands of person and project by name, and a sentence for each file that is none."""
    return find_files(project, "commands", _parse)


async def expand(command: FileCommand, arguments: str, directory: Path, run: Run) -> str:
    """Return the text that is sent for a command.

    Everything is put in at once: neither arguments nor what a file or a shell line holds is expanded again.

    Raises:
        CommandError: for a file that cannot be put in.
    """
    values = _split(arguments)
    parts: list[str] = []
    end = 0
    for found in _PART.finditer(command.body):
        parts.append(command.body[end : found.start()])
        end = found.end()
        if found["shell"]:
            parts.append(await run(_with_variables(found["shell"], values, arguments)))
        elif found["file"]:
            parts.append(_with_file(command, found["file"], directory))
        elif found["number"]:
            parts.append(_value(values, int(found["number"])))
        else:
            parts.append(arguments)
    text = "".join([*parts, command.body[end:]])
    if arguments and not re.search(r"\$(ARGUMENTS\b|[1-9](?!\d))", command.body):
        return f"{text}\n\nARGUMENTS: {arguments}"
    return text


def _parse(file: MarkdownFile) -> tuple[FileCommand, list[str]]:
    if not file.body:
        raise ValueError("it has no text to send")
    first = file.body.lstrip("# ").split("\n", 1)[0]
    problems: list[str] = []
    return FileCommand(
        name=file.name,
        description=file.text("description") or one_line(first)[:100],
        hint=file.text("argument-hint"),
        body=file.body,
        model=file.text("model") or None,
        trusted=file.trusted,
        path=file.path,
        approved=approvals_in(file.fields.get("allowed-tools"), problems),
    ), problems


def _split(arguments: str) -> list[str]:
    try:
        return shlex.split(arguments)
    # An apostrophe is not an open quote to whoever writes a sentence.
    except ValueError:
        return arguments.split()


def _value(values: list[str], number: int) -> str:
    return values[number - 1] if number <= len(values) else ""


def _with_variables(line: str, values: list[str], arguments: str) -> str:
    # The arguments are variables of the shell, so that none of them becomes a part of the program.
    return f"set -- {shlex.join(values)}\nARGUMENTS={shlex.quote(arguments)}\n{line}"


def _with_file(command: FileCommand, given: str, directory: Path) -> str:
    name = given.rstrip(".,;:!?)")
    # Once, so that what is read is what was looked at.
    path = (directory / name).resolve()
    if not path.is_file():
        return f"@{given}"
    # The person has typed the name of a command, and not that of the file.
    if not command.trusted and kind_of(path.as_posix(), writes=False):
        raise CommandError(f"/{command.name} names @{name}, which looks like a secret; type it yourself")
    try:
        text = read_resolved(path, directory.resolve(), _LONGEST_FILE).decode()
    except (OSError, ValueError) as error:
        raise CommandError(f"/{command.name} names @{name}, which is not read: {error}") from error
    return f'<file path="{name}">\n{text.rstrip()}\n</file>{given.removeprefix(name)}'
