"""Every link between the documents leads to a page, and to a heading where it names one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import yaml

from tests.architecture.source import ROOT
from tests.docs.pages import load_program

LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]*)(?:#([^)]*))?\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
ANCHOR = re.compile(r'<a id="([^"]+)">')
CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def find_broken_links(page: Path) -> Iterator[str]:
    """Find the relative links of a page that lead nowhere."""
    for link in LINK.finditer(CODE.sub("", page.read_text("utf-8"))):
        if "://" in link[1]:
            continue
        target = page.parent / link[1] if link[1] else page
        is_broken = not target.exists() or (link[2] and link[2] not in find_anchors(target))
        if is_broken:
            yield f"{page.name}: {link[0]}"


def find_anchors(page: Path) -> set[str]:
    """Return the anchors of a page: of its headings, and those that it sets itself."""
    text = CODE.sub("", page.read_text("utf-8"))
    headings = (re.sub(r"[^\w\s-]", "", heading.lower()).strip() for heading in HEADING.findall(text))
    return {re.sub(r"\s+", "-", heading) for heading in headings} | set(ANCHOR.findall(text))


def test_every_link_leads_somewhere() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]

    assert len(pages) > 10
    assert [broken for page in pages for broken in find_broken_links(page)] == []


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# The Top\n[a](page.md#the-top) [b](https://x.example/y) [c](gone.md) [d](#bottom)\n")

    assert list(find_broken_links(page)) == ["page.md: [c](gone.md)", "page.md: [d](#bottom)"]


def test_the_website_shows_every_page() -> None:
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    shown = {page for section in settings["nav"] for page in _find_names(section)}
    pages = {page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").rglob("*.md")}
    linked = {page for page in pages if re.match(r"adr/0|reference/api/deepagents", page)}

    assert pages - linked == shown - {"architecture.md", "changelog.md", "contributing.md"}


def _find_names(entry: object) -> Iterator[str]:
    match entry:
        case str():
            yield entry
        case list():
            for each in entry:
                yield from _find_names(each)
        case dict():
            yield from _find_names(list(entry.values()))
        case _:
            raise TypeError(entry)


def test_the_readme_of_the_package_has_no_link_that_leads_nowhere() -> None:
    readme = load_program("package_readme").without_local_links((ROOT / "README.md").read_text())

    assert re.findall(r"\]\((?!https://)[^)]*\)", readme) == []
    assert "quickstart (`docs/quickstart.md`)" in readme.lower()
    assert "docs/run.svg" not in readme


def test_each_name_of_the_reference_has_an_anchor_of_its_own() -> None:
    listed = (ROOT / "docs/reference/api/README.md").read_text("utf-8")

    anchors = re.findall(r"\]\((\S+#\S+?)\)", listed)

    assert [each for each, count in Counter(anchors).items() if count > 1] == []
