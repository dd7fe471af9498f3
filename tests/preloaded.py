"""What programs of the tests import, imported for good: processes are forked from the one that has it."""

from __future__ import annotations

import gc
import os
from contextlib import redirect_stdout
from importlib import import_module
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from tests.programs import PRELOADED

# To look for garbage in it takes a third of this time, and in each process memory of its own.
gc.disable()
for name in PRELOADED:
    import_module(name)
# To make its graphs is half of the work of a server that starts.
served: Any = import_module("tests.server.serving")
load: Any = import_module("deepagents_server.graphs")
for place in served.GRAPHS.values():
    load.load_object(place, Path())
# The patterns of what is guarded are compiled at the first path.
guarded: Any = import_module("deepagents_cli.approval.guarded")
for writes in (False, True):
    guarded.kind_of("/notes.md", writes=writes)
# What an agent makes in its first turn and uses again, as types and patterns, takes as long as the next.
model: Any = import_module("tests.cli.openai_server")
command: Any = import_module("deepagents_cli.__main__")
with TemporaryDirectory() as folder, model.serving("Hello.") as server:
    place = {
        "STATE": f"{folder}/state",
        "SETTINGS": f"{folder}/settings.toml",
        "LOCAL_SERVER": server.address,
    }
    environment = {f"DEEPAGENTS_{name}": value for name, value in place.items()}
    with patch.dict(os.environ, environment), patch("sys.stdin", StringIO()), redirect_stdout(StringIO()):
        task = ("run", "hello", "--quiet", "--dir", folder, "--model", f"local-server:{model.MODEL}")
        assert command.main(task) == 0
gc.freeze()
gc.enable()
