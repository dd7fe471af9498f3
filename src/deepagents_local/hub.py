"""Fetch weights from the model hub, over HTTP with ranges."""

from __future__ import annotations

import http.client
import os
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from deepagents_local.catalog import LocalModel
from deepagents_local.errors import WeightsError

CHUNK = 1 << 20
SECONDS_WITHOUT_A_BYTE = 8
DROPS_IN_A_ROW = 3


def hub_url(model: LocalModel) -> str:
    """Where the hub serves the file; `HF_ENDPOINT` names a mirror, as it does for the hub's own client."""
    root = os.environ.get("HF_ENDPOINT") or "https://huggingface.co"
    return f"{root.rstrip('/')}/{model.repository}/resolve/main/{model.file}"


def fill_from_hub(model: LocalModel, partial: Path, progress: Callable[[int], None]) -> None:
    """Append what `partial` still lacks, going on after a dropped connection as long as bytes arrive."""
    first = _size(partial)
    drops = 0
    while (have := _size(partial)) < model.size:
        try:
            _fetch(model, partial, have, progress)
        except urllib.error.HTTPError as error:
            if error.code != 416 or not have:
                raise WeightsError(f"the hub answered {error.code} for {hub_url(model)!r}") from error
            partial.unlink()
        except (OSError, http.client.HTTPException) as error:
            drops = 0 if _size(partial) > have else drops + 1
            if _size(partial) <= first or drops >= DROPS_IN_A_ROW:
                raise WeightsError(f"the hub could not be reached ({_reason(error)})") from error


def _fetch(model: LocalModel, partial: Path, have: int, progress: Callable[[int], None]) -> None:
    request = urllib.request.Request(hub_url(model))
    if have:
        request.add_header("Range", f"bytes={have}-")
    with urllib.request.urlopen(request, timeout=SECONDS_WITHOUT_A_BYTE) as answer:
        goes_on = have and answer.status == 206
        with partial.open("ab" if goes_on else "wb") as out:
            _copy(answer, out, model.size, progress)
    if _size(partial) < model.size:
        raise http.client.IncompleteRead(b"", model.size - _size(partial))


def _copy(
    source: http.client.HTTPResponse, out: BinaryIO, limit: int, progress: Callable[[int], None]
) -> None:
    while data := source.read1(CHUNK):
        out.write(data)
        progress(out.tell())
        if out.tell() > limit:
            raise WeightsError(f"the hub sent more than the expected {limit:,} bytes")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _reason(error: Exception) -> str:
    return str(getattr(error, "reason", error)) or type(error).__name__
