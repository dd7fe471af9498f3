"""Make the version that traces show, which distinguishes an editable checkout from a release."""

from __future__ import annotations

import json
from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from deepagents._version import __version__


# The record is read from disk, and does not change under a running process.
@cache
def lc_version() -> str:
    """Return the version for traces, which says whether this is a checkout that somebody works in."""
    return editable_version(__version__) if _is_editable() else __version__


def editable_version(release: str) -> str:
    """Mark a version as one of a checkout, as PEP 440 marks local ones."""
    public, _, local = release.partition("+")
    return f"{public}+{local}.editable" if local else f"{public}+editable"


def _is_editable() -> bool:
    try:
        return _runs_from(distribution("deepagents"))
    except (AttributeError, LookupError, OSError, PackageNotFoundError, TypeError, ValueError):
        # A broken record must not keep an agent from being built: the version is for traces alone.
        return False


def _runs_from(installed: Distribution) -> bool:
    """Return whether the record of an installation names a directory that this module lies in."""
    record: dict[str, Any] = json.loads(installed.read_text("direct_url.json") or "{}")
    if not record.get("dir_info", {}).get("editable"):
        return False
    url: str = record["url"]
    root = Path(unquote(urlsplit(url).path)).resolve()
    return root in Path(__file__).resolve().parents
