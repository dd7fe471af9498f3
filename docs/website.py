"""Adds the root pages and llms.txt to the website of `make site`, and mends what only GitHub shows well."""

from __future__ import annotations

import html
import os
import re
from pathlib import Path
from typing import Any, Final

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

ROOT: Final = Path(__file__).parents[1]
NAMES: Final = ("ARCHITECTURE", "CHANGELOG", "CONTRIBUTING")
ROOT_PAGES: Final = {ROOT / f"{name}.md": f"{name.lower()}.md" for name in NAMES}
CODE: Final = re.compile(r"(`+)(.+?)\1")
LINK: Final = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)#\s:]+)(#[^)]*)?\)")


def on_files(files: Any, config: Any) -> Any:
    """Add the pages of the root to those of docs/."""
    for page, address in ROOT_PAGES.items():
        files.append(File.generated(config, address, abs_src_path=str(page)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Point links at the pages of the site; keep only the text of a link to a file that has no page there."""
    source, address = Path(page.file.abs_src_path), page.file.src_uri
    # GitHub takes `\|` in the code of a table for a bar, and Python-Markdown shows both characters.
    lines = [CODE.sub(_write_code, line) if line.startswith("|") else line for line in markdown.split("\n")]
    return LINK.sub(lambda link: _point_at_site(link, source, address), "\n".join(lines))


def on_page_content(content: str, page: Any, config: Any, files: Any) -> str:
    """Refuse a page on which a reader would see the mark that GitHub hides.

    Raises:
        PluginError: naming the page.
    """
    if any("\\|" in html.unescape(line) for line in content.split("\n") if line.startswith("<td>")):
        raise PluginError(f"{page.file.src_uri} shows \\| in a table")
    return content


def on_nav(nav: Any, config: Any, files: Any) -> Any:
    """Keep the pages in the order of the navigation, for llms.txt."""
    config.extra["llms"] = nav
    return nav


def on_post_build(config: Any) -> None:
    """Write llms.txt: every page with a line of what it says, for models that read the site."""
    lines = [f"# {config.site_name}", "", f"> {config.site_description}"]
    for section in config.extra["llms"].items:
        lines += ["", f"## {section.title}", ""]
        lines += [f"- [{page.title}]({page.url}): {_summarize(page.markdown)}" for page in section.children]
    Path(config.site_dir, "llms.txt").write_text("\n".join(lines) + "\n", "utf-8")


def _summarize(markdown: str) -> str:
    """Return the first sentence of a page, without marks."""
    blocks = (block for block in markdown.split("\n\n") if re.match(r"[\w\[*]|`(?!``)", block))
    plain = LINK.sub(r"\1", " ".join(next(blocks, "").split()))
    return re.split(r"(?<=[.:]) ", plain, maxsplit=1)[0].rstrip(":")


def _write_code(code: re.Match[str]) -> str:
    text = html.escape(code[2].strip().replace("\\|", "|"))
    return f"<code>{text.replace('|', '&#124;')}</code>"


def _point_at_site(link: re.Match[str], source: Path, address: str) -> str:
    target = Path(os.path.normpath(source.parent / link[2]))
    if target in ROOT_PAGES:
        goal = ROOT_PAGES[target]
    elif target.is_file() and target.is_relative_to(ROOT / "docs") and target.suffix != ".py":
        goal = target.relative_to(ROOT / "docs").as_posix()
    else:
        return link[1]
    return f"[{link[1]}]({os.path.relpath(goal, Path(address).parent)}{link[3] or ''})"
