"""Makes the readme of the package: README.md without links and pictures that only work in the repository."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

PICTURE = re.compile(r"^!\[[^\]]*\]\((?!https?:)[^)]*\)\n+\*[^*]+\*\n+", re.MULTILINE)
LINK = re.compile(r"\[([^\]]+)\]\((?!https?:)([^)]*)\)")


class CustomMetadataHook(MetadataHookInterface):
    """Give the build the readme."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the readme of the package."""
        text = (Path(self.root) / "README.md").read_text("utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": without_local_links(text)}


def without_local_links(text: str) -> str:
    """Name the file of each link instead of linking to it, and leave out pictures with their captions."""
    return LINK.sub(r"\1 (`\2`)", PICTURE.sub("", text))
