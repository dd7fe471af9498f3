"""`deepagents models`: fetch, list and locate the models that run on this machine."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

from deepagents_cli.errors import Exit
from deepagents_cli.progress import download
from deepagents_local import (
    DEFAULT_MODEL,
    KNOWN,
    find_weights,
    known_model,
    need_weights,
    pull_weights,
)


def run(arguments: Namespace, *, model: Any = None) -> int:
    """Do what the verb says; return the exit code."""
    name: str = getattr(arguments, "name", None) or DEFAULT_MODEL
    match arguments.verb:
        case "pull":
            sys.stdout.write(f"{pull(name)}\n")
        case "path":
            sys.stdout.write(f"{need_weights(name)}\n")
        case _:
            _list()
    return Exit.DONE


def pull(name: str = DEFAULT_MODEL) -> Path:
    """Fetch the weights of a model with a progress bar on standard error; return where they are."""
    wanted = known_model(name)
    with download(sys.stderr, wanted.name) as report:
        return pull_weights(wanted, progress=report)


def _list() -> None:
    width = max(len(model.name) for model in KNOWN)
    for model in KNOWN:
        default = ", default" if model.name == DEFAULT_MODEL else ""
        here = "here" if find_weights(model.name) else "not here"
        sys.stdout.write(
            f"{model.name:{width}}  {model.size / 1e9:.1f} GB  {model.licence}  {here}{default}\n"
        )
