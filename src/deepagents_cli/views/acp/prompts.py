"""Read what an editor sends as a prompt: text, files that it names or holds, and pictures."""

from __future__ import annotations

import base64
import mimetypes
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeAlias
from urllib.parse import unquote, urlsplit

from acp import schema
from acp.exceptions import RequestError

from deepagents_cli.diffs import name_in
from deepagents_cli.session.attachments import looks_like_secret

Block: TypeAlias = (
    schema.TextContentBlock
    | schema.ImageContentBlock
    | schema.AudioContentBlock
    | schema.ResourceContentBlock
    | schema.EmbeddedResourceContentBlock
)
_LARGEST_TEXT: Final = 100_000
"""Characters of a file that comes with a prompt."""


class PromptReader:
    """Reads prompts for a session in a directory; pictures lie in `scratch` until they are sent."""

    def __init__(self, directory: Path, scratch: Path) -> None:
        self._directory = directory
        self._scratch = scratch
        self._pictures = 0

    def read(self, blocks: Sequence[Block]) -> tuple[str, list[str]]:
        """Return the text, and what is attached to it.

        Raises:
            RequestError: for a picture that is not base64.
        """
        text = ""
        behind: list[str] = []
        attached: list[str] = []
        for block in blocks:
            match block:
                case schema.TextContentBlock():
                    text += block.text
                case schema.ResourceContentBlock():
                    text += self._link(block.uri, attached)
                case schema.EmbeddedResourceContentBlock(resource=schema.TextResourceContents() as held):
                    text += self._embed(held, behind, attached)
                case schema.EmbeddedResourceContentBlock(resource=schema.BlobResourceContents() as held):
                    if (held.mime_type or "").startswith("image/"):
                        attached.append(self._keep_picture(held.blob, held.mime_type or ""))
                    else:
                        behind.append(f"[Not attached: {held.uri} is neither text nor a picture]")
                case schema.ImageContentBlock():
                    attached.append(self._keep_picture(block.data, block.mime_type))
                case _:
                    behind.append("[Not attached: a recording; it was not asked for]")
        return "\n\n".join(filter(None, [text, *behind])), [*dict.fromkeys(attached)]

    def _link(self, uri: str, attached: list[str]) -> str:
        path = _path_of(uri)
        if path is None:
            return uri
        # A name may be too long to ask about.
        with suppress(OSError):
            if path.is_file():
                attached.append(self._name(path))
        return f"@{self._name(path)}"

    def _embed(self, held: schema.TextResourceContents, behind: list[str], attached: list[str]) -> str:
        path = _path_of(held.uri)
        name = held.uri if path is None else self._name(path)
        if path is not None and looks_like_secret(name, path):
            # A person is asked about it, as about any that is attached.
            attached.append(name)
        elif len(held.text) > _LARGEST_TEXT:
            behind.append(f"[Not attached: {name} has over {_LARGEST_TEXT:,} characters; read what you need]")
        else:
            behind.append(f'<file path="{name}">\n{held.text}\n</file>')
        return f"@{name}"

    def _name(self, path: Path) -> str:
        return name_in(str(path), str(self._directory))

    def _keep_picture(self, data: str, kind: str) -> str:
        try:
            content = base64.b64decode(data, validate=True)
        except ValueError as error:
            raise RequestError(-32602, f"A picture is not base64: {error}") from error
        self._pictures += 1
        path = self._scratch / f"picture-{self._pictures}{mimetypes.guess_extension(kind) or ''}"
        path.write_bytes(content)
        return str(path)


def _path_of(uri: str) -> Path | None:
    """Return the path of a file of this machine, without the lines that an editor may name in it."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        # What cannot be read as an address, such as "http://[", stays a text.
        return None
    if parts.scheme != "file" or parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
        return None
    return Path(unquote(parts.path))
