"""Run the command line as `python -m deepagents`."""

from __future__ import annotations

import sys

if __name__ == "__main__":
    # With -m, Python looks for modules in the directory first, and a project may have some of any name.
    if not sys.flags.safe_path:
        del sys.path[0]

    from deepagents_cli.__main__ import run_program

    sys.exit(run_program())
