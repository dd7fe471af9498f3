"""Adds the root pages to the website of `make site`, and mends links that leave docs/."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Final

from mkdocs.structure.files import File

ROOT: Final = Path(__file__).parents[1]
NAMES: Final = ("ARCHITECTURE", "CHANGELOG", "CONTRIBUTING")
ROOT_PAGES: Final = {ROOT / f"{name}.md": f"{name.lower()}.md" for name in NAMES}
LINK: Final = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)#\s:]+)(#[^)]*)?\)")


def on_files(files: Any, config: Any) -> Any:
    """Add the pages of the root to those of docs/."""
    for page, address in ROOT_PAGES.items():
        files.append(File.generated(config, address, abs_src_path=str(page)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Point links at the pages of the site; keep only the text of a link to a file that has no page there."""
    source, address = Path(page.file.abs_src_path), page.file.src_uri
    return LINK.sub(lambda link: _point_at_site(link, source, address), markdown)


def _point_at_site(link: re.Match[str], source: Path, address: str) -> str:
    target = Path(os.path.normpath(source.parent / link[2]))
    if target in ROOT_PAGES:
        goal = ROOT_PAGES[target]
    elif target.is_file() and target.is_relative_to(ROOT / "docs") and target.suffix != ".py":
        goal = target.relative_to(ROOT / "docs").as_posix()
    else:
        return link[1]
    return f"[{link[1]}]({os.path.relpath(goal, Path(address).parent)}{link[3] or ''})"
