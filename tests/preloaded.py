"""What programs of the tests import, imported for good: processes are forked from the one that has it."""

from __future__ import annotations

import gc
from importlib import import_module
from pathlib import Path
from typing import Any

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
gc.freeze()
gc.enable()
