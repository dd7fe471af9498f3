"""Render Markdown so that nothing of what was written stays unseen."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Sequence
from typing import Final
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.markdown import CodeBlock, Heading, ListItem, Markdown
from rich.padding import Padding
from rich.syntax import Syntax

from deepagents_cli.terminal import style_text
from deepagents_cli.text import clean

_INDENT: Final = 2


class _Parser(MarkdownIt):
    def normalizeLink(self, url: str) -> str:
        return url


class _PlainHeading(Heading):
    """A heading at the left, as text in a scrollback reads best."""

    def __rich_console__(self, console: Console, options: object) -> Iterable[RenderableType]:
        """Yield the text alone."""
        self.text.justify = "left"
        yield self.text


class _PlainCode(CodeBlock):
    """Code as it is shown outside of Markdown too."""

    @classmethod
    def create(cls, markdown: Markdown, token: Token) -> CodeBlock:
        """Keep all that stands behind the mark of a fence."""
        return cls(token.info.strip(), markdown.code_theme)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterable[RenderableType]:
        """Yield the code without the lines above and below that rich adds."""
        yield from render_code(str(self.text).rstrip(), self.lexer_name, self.theme, options.max_width)


class _NumberedItem(ListItem):
    """An item with the number that it was given; 1 for each is Markdown for counting on."""

    number = ""

    @classmethod
    def create(cls, markdown: Markdown, token: Token) -> ListItem:
        """Keep the number."""
        item = cls()
        item.number = token.info
        return item

    def render_number(
        self, console: Console, options: ConsoleOptions, number: int, last_number: int
    ) -> RenderResult:
        """Render the item below its number."""
        own = number if self.number in ("", "0", "1") else int(self.number)
        return super().render_number(console, options, own, max(own, last_number))


class _Markdown(Markdown):
    elements = {
        **Markdown.elements,
        "heading_open": _PlainHeading,
        "fence": _PlainCode,
        "code_block": _PlainCode,
        "list_item_open": _NumberedItem,
    }


def render_markdown(text: str, theme: str) -> RenderableType:
    """Return Markdown to be painted, or the text as it was written where Markdown leaves some of it out."""
    parser = _Parser("commonmark", {"html": False}).enable(["strikethrough", "table"])
    # A definition is never shown, and of a picture only what is said to be on it.
    parser.disable(["reference", "image"])
    markdown = _Markdown("", code_theme=theme, hyperlinks=False)
    markdown.parsed = parser.parse(text)
    spelled = "".join(_spell(markdown.parsed))
    shown = iter(_characters(spelled))
    # The name of a character, such as `&#x202e;`, can stand for one that turns or hides what follows.
    if clean(spelled) != spelled or not all(each in shown for each in _characters(text)):
        return style_text(text)
    return markdown


def render_code(
    text: str, info: str, theme: str, width: int, *, goes_on: bool = False
) -> Iterator[RenderableType]:
    """Yield code, below what stands behind the mark of its fence unless that only names a language."""
    language, _, more = info.partition(" ")
    code = Syntax(text, language or "text", theme=theme, word_wrap=True, background_color="default")
    indent = (0, 0, 0, min(_INDENT, max(width - 8, 0)))
    if info and not goes_on and (more or code.lexer is None):
        yield Padding(style_text(info, "dim"), indent)
    yield Padding(code, indent)


def _spell(tokens: Sequence[Token]) -> Iterator[str]:
    """Yield all that is shown of tokens, in the order of the text; titles become part of links."""
    links: list[Token] = []
    for token in tokens:
        if token.type == "link_open":
            links.append(token)
            if title := token.attrs.pop("title", ""):
                token.attrs["href"] = f'{token.attrs["href"]} "{title}"'
        elif token.type == "link_close":
            yield str(links.pop().attrs["href"])
        yield token.info if token.type in ("fence", "list_item_open") else ""
        yield from _spell(token.children) if token.children else (token.content,)


def _characters(text: str) -> str:
    return "".join(filter(str.isalnum, unquote(html.unescape(text))))
