"""Turn HTML or a PDF into Markdown: a program of its own, because what it reads may be hostile.

It takes a line of JSON and the bytes on standard input, and writes JSON. It imports nothing of the library.
"""

from __future__ import annotations

import codecs
import io
import json
import re
import sys
from typing import Any

try:
    import resource
except ImportError:
    # Windows has no such limits; the time is bounded from outside too.
    resource = None

_CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([\w-]{1,40})""", re.IGNORECASE)
_HEAD = 4096
_MARKS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
_OF_PYTHON = frozenset(("idna", "punycode", "raw-unicode-escape", "unicode-escape", "utf-7"))
"""Encodings that no browser reads: some take minutes, some make characters that cannot be encoded again."""
_FRONT = re.compile(r"---\n(?:[^\s:][^\n]*: [^\n]*\n)+---\n+")


def bound(seconds: int, memory: int) -> None:
    """Let this process use so much and no more: then it ends, and no other does."""
    if resource is None:
        return
    kinds = {resource.RLIMIT_CPU: seconds, resource.RLIMIT_AS: memory, resource.RLIMIT_CORE: 0}
    for kind, most in kinds.items():
        try:
            resource.setrlimit(kind, (most, most))
        except (OSError, ValueError):
            # Some systems know a limit and cannot set it.
            continue


def decode(body: bytes, charset: str | None, *, is_html: bool) -> str:
    """Return text in the encoding that its first bytes, its server or the page itself names."""
    named = _CHARSET.search(body[:_HEAD]) if is_html else None
    marked = (name for mark, name in _MARKS if body.startswith(mark))
    for each in (*marked, charset, named and named[1].decode()):
        try:
            if each and codecs.lookup(each).name not in _OF_PYTHON:
                return body.decode(each, "replace")
        except (LookupError, ValueError):
            continue
    return body.decode("utf-8", "replace")


def read_html(text: str, url: str) -> dict[str, Any]:
    """Return a page as Markdown, without what it hides from people."""
    from html_to_markdown import ConversionOptions, convert

    options = ConversionOptions(base_url=url, hidden_content="drop", inline_data_media="alt_text_only")
    made = convert(text, options)
    content: str = made.content or ""
    title = made.metadata.document.title if made.metadata else None
    return {
        "title": " ".join((title or "").split()),
        # The title is returned by itself, and the rest is for search engines.
        "text": _FRONT.sub("", content, count=1) if _FRONT.match(content) else content,
        "left_out": bool(made.warnings),
    }


def read_pdf(body: bytes, pages: int, most: int) -> dict[str, Any]:
    """Return the text of the first pages of a PDF, until there is so much."""
    from pypdf import PdfReader

    reader = PdfReader(io.BytesIO(body))
    count, texts, length = len(reader.pages), list[str](), 0
    for number in range(min(count, pages)):
        if length > most:
            break
        text = reader.pages[number].extract_text().strip()
        texts.append(f"## Page {number + 1} of {count}\n\n{text}")
        length += len(text)
    title = reader.metadata and reader.metadata.title
    found = {"pages": count, "read": len(texts), "is_empty": not length}
    return {"title": " ".join(str(title or "").split()), "text": "\n\n".join(texts), **found}


def main() -> None:
    """Read what is to be read, and write its text."""
    given = json.loads(sys.stdin.buffer.readline())
    bound(given["seconds"], given["memory"])
    body, kind, most = sys.stdin.buffer.read(), given["kind"], given["characters"]
    if kind == "pdf":
        found = read_pdf(body, given["pages"], most)
    else:
        text = decode(body, given["charset"], is_html=kind == "html")
        found = read_html(text, given["url"]) if kind == "html" else {"text": text}
    if len(found["text"]) > most:
        found |= {"text": found["text"][:most], "is_cut": True}
    sys.stdout.buffer.write(json.dumps(found).encode())


if __name__ == "__main__":
    main()
