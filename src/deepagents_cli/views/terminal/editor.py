"""Open a text in the editor of the person's choice."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from deepagents._programs import find_program


def find_editor(in_settings: str | None, environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the command of the editor, if the person has named one."""
    return environment.get("VISUAL") or environment.get("EDITOR") or in_settings


def edit_text(editor: str, text: str, suffix: str, changeable: Sequence[Path] = ()) -> str:
    """Open a text in an editor, and return what it was changed to.

    Its program is found where nothing is `changeable` by the agent, unless it is named by its path.

    Raises:
        ValueError: naming the editor, when it cannot be run, fails, or leaves no text.
    """
    try:
        edited = _run(editor, text, suffix, changeable)
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        raise ValueError(
            f"the editor {editor!r} failed ({_describe(error)}); set $VISUAL or $EDITOR to another"
        ) from error
    # Editors end the last line, which a command or a word to replace has not.
    return edited if text.endswith("\n") or not edited.endswith("\n") else edited[:-1]


def _run(editor: str, text: str, suffix: str, changeable: Sequence[Path]) -> str:
    program, *rest = shlex.split(editor) or [""]
    found = program if "/" in program else find_program(program, changeable)
    if found is None:
        raise ValueError(f"no program {program!r} outside of what the agent can change")
    with tempfile.TemporaryDirectory(prefix="deepagents-") as directory:
        path = Path(directory, f"proposed{suffix}")
        # As bytes, so that lines end as they did.
        path.write_bytes(text.encode())
        subprocess.run([found, *rest, str(path)], check=True)
        return path.read_bytes().decode()


def _describe(error: Exception) -> str:
    match error:
        case subprocess.CalledProcessError():
            return f"it ended with code {error.returncode}"
        case UnicodeDecodeError():
            return "what it left is not text"
        case OSError():
            return error.strerror or type(error).__name__
        case _:
            return str(error)
