"""Find, fetch and check the weights of the known models."""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from deepagents_local._lock import only_one
from deepagents_local.carriers import fill_from_carriers
from deepagents_local.catalog import DEFAULT_MODEL, LocalModel, known_model
from deepagents_local.errors import WeightsError, WeightsMissing
from deepagents_local.hub import fill_from_hub

Progress = Callable[[int, int], None]
"""Called with the bytes that are there and the bytes in all."""

Source = Callable[[LocalModel, Path, Callable[[int], None]], None]
"""Appends what a partial file lacks, or raises `WeightsError`."""

SOURCES: tuple[Source, ...] = (fill_from_hub, fill_from_carriers)
SPARE = 256 << 20

_log = logging.getLogger(__name__)


def cache_dir() -> Path:
    """Where weights are kept: `DEEPAGENTS_CACHE`, or the user's cache directory."""
    if chosen := os.environ.get("DEEPAGENTS_CACHE"):
        return Path(chosen).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "deepagents"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "deepagents"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "deepagents"


def find_weights(name: str = DEFAULT_MODEL) -> Path | None:
    """The file with the weights if it is here, whole as far as its size tells."""
    model = known_model(name)
    path = _home(model)
    return path if path.is_file() and path.stat().st_size == model.size else None


def need_weights(name: str = DEFAULT_MODEL) -> Path:
    """The file with the weights, or an error that says how to get it."""
    if path := find_weights(name):
        return path
    size = known_model(name).size / 1e9
    raise WeightsMissing(
        f"The weights of {name!r} are not on this machine. Fetch them ({size:.1f} GB) with: "
        f"deepagents models pull {name}"
    )


def verify_weights(path: Path, model: LocalModel) -> None:
    """Raise unless the file has exactly the expected size and SHA-256."""
    size = path.stat().st_size
    if size != model.size:
        raise WeightsError(f"{path} has {size:,} bytes, expected {model.size:,}")
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != model.sha256:
        raise WeightsError(f"{path} has SHA-256 {digest}, expected {model.sha256}")


def pull_weights(
    model: str | LocalModel = DEFAULT_MODEL,
    *,
    progress: Progress | None = None,
    sources: Sequence[Source] = SOURCES,
) -> Path:
    """Fetch the weights unless they are here already, going on where an earlier pull stopped."""
    wanted = known_model(model) if isinstance(model, str) else model
    target = _home(wanted)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with only_one(target.with_name(f"{target.name}.lock")):
            if not _is_there(target, wanted):
                _pull(wanted, target, progress or _quiet, sources)
    except OSError as error:
        raise WeightsError(f"The weights of {wanted.name!r} could not be stored: {error}") from error
    return target


def _pull(model: LocalModel, target: Path, progress: Progress, sources: Sequence[Source]) -> None:
    partial = target.with_name(f"{target.name}.part")
    _check_space(model, partial)
    failures: list[str] = []
    for source in sources:
        try:
            _fill(source, model, partial, lambda done: progress(done, model.size))
        except WeightsError as error:
            _log.info("%s: %s", model.name, error)
            failures.append(str(error))
        else:
            partial.replace(target)
            return
    raise WeightsError(f"The weights of {model.name!r} could not be fetched: {'; '.join(failures)}.")


def _fill(source: Source, model: LocalModel, partial: Path, progress: Callable[[int], None]) -> None:
    resumed = partial.exists()
    source(model, partial, progress)
    try:
        verify_weights(partial, model)
    except WeightsError:
        partial.unlink()
        if not resumed:
            raise
        _fill(source, model, partial, progress)


def _is_there(target: Path, model: LocalModel) -> bool:
    if not target.is_file():
        return False
    try:
        verify_weights(target, model)
    except WeightsError as error:
        _log.warning("%s; fetching it again", error)
        target.unlink()
        return False
    return True


def _check_space(model: LocalModel, partial: Path) -> None:
    have = partial.stat().st_size if partial.exists() else 0
    need = model.size - have + SPARE
    free = shutil.disk_usage(partial.parent).free
    if free < need:
        raise WeightsError(
            f"{partial.parent} has {free / 1e9:.1f} GB free, {need / 1e9:.1f} GB are needed. "
            f"Make room, or set DEEPAGENTS_CACHE to a directory on another disk."
        )


def _home(model: LocalModel) -> Path:
    return cache_dir() / "models" / model.file


def _quiet(_done: int, _total: int) -> None:
    """Say nothing."""
