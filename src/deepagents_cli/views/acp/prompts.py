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

from deepagents._values import field, recordclass
from deepagents_cli.diffs import name_in
from deepagents_cli.session.conversation.attachments import looks_like_secret, write_file

Block: TypeAlias = (
    schema.TextContentBlock
    | schema.ImageContentBlock
    | schema.AudioContentBlock
    | schema.ResourceContentBlock
    | schema.EmbeddedResourceContentBlock
)
_LARGEST_TEXT: Final = 100_000
"""Characters of a file that comes with a prompt."""


@recordclass
class Prompt:
    """What a person has `typed`, the `line` with what is named in it, what is behind it, and attachments."""

    typed: str = ""
    line: str = ""
    behind: str = ""
    attached: list[str] = field(default_factory=list[str])

    @property
    def text(self) -> str:
        """All that the agent reads, but for what is attached."""
        return self.line + self.behind


class PromptReader:
    """Reads prompts for a session in a directory; pictures lie in `scratch` until they are sent."""

    def __init__(self, directory: Path, scratch: Path) -> None:
        self._directory = directory
        self._scratch = scratch
        self._pictures = 0

    def read(self, blocks: Sequence[Block]) -> Prompt:
        """Read the blocks of a prompt.

        Raises:
            RequestError: for a picture that is not base64.
        """
        prompt = Prompt()
        for block in blocks:
            match block:
                case schema.TextContentBlock(text=text):
                    prompt.typed += text
                    prompt.line += text
                case schema.ResourceContentBlock(uri=uri):
                    self._link(uri, prompt)
                case schema.EmbeddedResourceContentBlock(resource=schema.TextResourceContents() as held):
                    self._embed(held, prompt)
                case schema.EmbeddedResourceContentBlock(resource=schema.BlobResourceContents() as held):
                    if (held.mime_type or "").startswith("image/"):
                        self._keep_picture(held.blob, held.mime_type or "", prompt)
                    else:
                        prompt.behind += _left_out(f"{held.uri} is neither text nor a picture")
                case schema.ImageContentBlock(data=data, mime_type=kind):
                    self._keep_picture(data, kind, prompt)
                case _:
                    prompt.behind += _left_out("a recording; it was not asked for")
        prompt.attached = [*dict.fromkeys(prompt.attached)]
        return prompt

    def _link(self, uri: str, prompt: Prompt) -> None:
        path = _path_of(uri)
        prompt.line += uri if path is None else f"@{self._name(path)}"
        # A name may be too long to ask about.
        with suppress(OSError):
            if path is not None and path.is_file():
                prompt.attached.append(self._name(path))

    def _embed(self, held: schema.TextResourceContents, prompt: Prompt) -> None:
        path = _path_of(held.uri)
        name = held.uri if path is None else self._name(path)
        prompt.line += f"@{name}"
        if path is not None and looks_like_secret(name, path):
            # A person is asked about it, as about any that is attached.
            prompt.attached.append(name)
        elif len(held.text) > _LARGEST_TEXT:
            prompt.behind += _left_out(f"{name} has over {_LARGEST_TEXT:,} characters; read what you need")
        else:
            prompt.behind += write_file(name, held.text)

    def _name(self, path: Path) -> str:
        return name_in(str(path), str(self._directory))

    def _keep_picture(self, data: str, kind: str, prompt: Prompt) -> None:
        try:
            content = base64.b64decode(data, validate=True)
        except ValueError as error:
            raise RequestError(-32602, f"A picture is not base64: {error}") from error
        self._pictures += 1
        path = self._scratch / f"picture-{self._pictures}{mimetypes.guess_extension(kind) or ''}"
        path.write_bytes(content)
        prompt.attached.append(str(path))


def _left_out(why: str) -> str:
    return f"\n\n[Not attached: {why}]"


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
