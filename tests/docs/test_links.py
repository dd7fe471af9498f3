"""Every link between the documents leads somewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.source import ROOT

LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(#[^)]*)?\)")


def broken_links(page: Path) -> Iterator[str]:
    """Name the relative links of a page that lead nowhere."""
    for number, line in enumerate(page.read_text("utf-8").splitlines(), 1):
        for found in LINK.finditer(line):
            if "://" not in found[1] and not (page.parent / found[1]).exists():
                yield f"{page.name}:{number}: {found[1]}"


def test_every_link_leads_somewhere() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]

    assert len(pages) > 10
    assert [found for page in pages for found in broken_links(page)] == []


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("[here](page.md#top) [away](https://model.example/x)\n[lost](gone.md)\n")

    assert list(broken_links(page)) == ["page.md:2: gone.md"]
