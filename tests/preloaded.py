"""What programs of the tests import, imported for good: processes are forked from the one that has it."""

from __future__ import annotations

import gc
from importlib import import_module

from tests.programs import PRELOADED

# To look for garbage in it takes a third of this time, and in each process memory of its own.
gc.disable()
for name in PRELOADED:
    import_module(name)
gc.freeze()
gc.enable()
