"""Show what a call would make of a file, without making it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pydantic import ValidationError

from deepagents._async import run
from deepagents._values import field, valueclass
from deepagents.backends.filesystem import FilesystemBackend
from deepagents.backends.handle import open_backend
from deepagents.errors import BackendError, ToolFailure
from deepagents.tools._arguments import describe_misfit
from deepagents.tools._tool import (
    ToolContext,
    ToolLimits,
    ToolSpec,
    failure_text,
)
from deepagents.tools._versions import FileVersions


@valueclass
class Preview:
    """The content by path that a call would leave, or the sentence with which it would fail."""

    after: Mapping[str, bytes | None] = field(default_factory=dict[str, "bytes | None"])
    failure: str | None = None


def preview_change(
    spec: ToolSpec, arguments: Mapping[str, Any], before: Mapping[str, bytes | None]
) -> Preview:
    """Run a tool that changes files on copies of them; `before` is what each holds, `None` without one.

    The tool's own code runs, so a further tool is shown as rightly as those of the library.
    """
    if spec.path_argument and spec.path_in(arguments) is None:
        return Preview(failure=failure_text("invalid_path", f"{spec.name} was given no usable path"))
    with TemporaryDirectory(prefix="deepagents-") as scratch:
        copies = {path: Path(scratch, path.lstrip("/")) for path in spec.paths_in(arguments)}
        for path, copy in copies.items():
            if (content := before.get(path)) is not None:
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes(content)
        files = open_backend(FilesystemBackend(root_dir=scratch, virtual_mode=True)).files(None)
        context = ToolContext(files, FileVersions(), ToolLimits(), paths=spec.paths)
        # As where the tool is called: what it has no argument for is left out.
        known = {name: arguments[name] for name in spec.args.model_fields if name in arguments}
        try:
            spec.args.model_validate(known)
            output = run(spec.run(context, **spec.translate(known)))
        except ValidationError as wrong:
            return Preview(
                failure=failure_text("invalid_argument", describe_misfit(spec.name, wrong.errors()))
            )
        except (ToolFailure, BackendError) as failure:
            return Preview(failure=failure_text(failure.code, failure.text))
        if output.code is not None:
            return Preview(failure=str(output.content))
        return Preview({path: copy.read_bytes() if copy.is_file() else None for path, copy in copies.items()})
