"""An agent on files on disk: it sorts loose notes into one page."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from langchain_core.language_models import BaseChatModel

from deepagents import create_deep_agent
from deepagents.backends import FilesystemBackend

NOTES = {
    "monday.txt": "Buy milk.\nCall the plumber about the tap.\n",
    "tuesday.txt": "The plumber comes on Friday at nine.\n",
}


def main(model: str | BaseChatModel) -> str:
    """Return the page that the agent made."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in NOTES.items():
            Path(folder, name).write_text(text)
        agent = create_deep_agent(model, backend=FilesystemBackend(root_dir=folder))
        agent.invoke({"messages": "Read every note and write what is still to do, as a list, to /todo.md"})
        return Path(folder, "todo.md").read_text()


if __name__ == "__main__":
    from deepagents.models import default_model

    sys.stdout.write(main(default_model()))
