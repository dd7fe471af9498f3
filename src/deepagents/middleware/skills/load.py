"""Skills come from their sources: one listing and one batch of files for each, all sources at once."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from deepagents._async import as_io_call, gather_threads
from deepagents.backends.calls import Files
from deepagents.backends.results import FileDownloadResponse, FileInfo
from deepagents.errors import ToolFailure
from deepagents.middleware.skills.parse import Parsed, parse_skill
from deepagents.middleware.skills.sources import Source
from deepagents.middleware.skills.state import Loaded, SkillMetadata

_log = logging.getLogger(__name__)
_FILE = "SKILL.md"


@dataclass(frozen=True, slots=True)
class SkillSet:
    """The skills of all sources, in order, a sentence for each problem, and what they were made from."""

    skills: list[SkillMetadata]
    problems: list[str]
    loaded: Loaded


@dataclass(frozen=True, slots=True)
class _Listing:
    """What one source holds. `vouches`: as long as it stays the same, so do the files."""

    source: Source
    paths: Sequence[str] = ()
    problem: str | None = None
    mark: str = ""
    vouches: bool = False


@dataclass(frozen=True, slots=True)
class _Contents:
    answers: Sequence[FileDownloadResponse] = ()
    problem: str | None = None


async def load(files: Files, sources: Sequence[Source], known: Loaded | None = None) -> SkillSet | None:
    """Load the skills of all sources; `None` when they are what is known.

    Files are fetched unless the listing itself shows that they are the same: on a disk of this machine a file
    can change in place, and some backends give no times.
    """
    listings = await gather_threads([as_io_call(partial(_list, files, source)) for source in sources])
    marks = {each.source.path: each.mark for each in listings}
    standing = known is not None and known["listings"] == marks
    if standing and all(each.vouches for each in listings):
        return None
    fetched = await gather_threads([as_io_call(partial(_fetch, files, each)) for each in listings])
    contents = _digest(part for each in fetched for part in _parts(each))
    if standing and known is not None and known["contents"] == contents:
        return None
    return _joined(listings, fetched, Loaded(listings=marks, contents=contents, skills=""))


def digest_of(skills: Sequence[SkillMetadata]) -> str:
    """Tell a list of skills from others."""
    return _digest([json.dumps(list(skills), default=str).encode()])


def source_error(path: str, error: str) -> str:
    """Say what is wrong with a whole source."""
    return f"Skills source {path!r}: {error}"


async def _list(files: Files, source: Source) -> _Listing:
    try:
        found = await files.ls(source.path)
    except ToolFailure as failure:
        return _Listing(source, problem=source_error(source.path, failure.text), mark=failure.text)
    directories = [each for each in found.entries or () if _is_directory(each)]
    timed = all(each.get("modified_at") for each in directories)
    return _Listing(
        source,
        paths=[f"{each['path'].rstrip('/')}/{_FILE}" for each in directories],
        problem=source_error(source.path, found.error) if found.error else None,
        mark=_digest([json.dumps([found.error, *directories], sort_keys=True, default=str).encode()]),
        vouches=timed and not files.capabilities(source.path).host,
    )


def _is_directory(entry: FileInfo) -> bool:
    return entry.get("is_dir", False) or entry["path"].endswith("/")


async def _fetch(files: Files, listing: _Listing) -> _Contents:
    if not listing.paths:
        return _Contents()
    try:
        return _Contents(await files.download_each(listing.paths))
    except ToolFailure as failure:
        return _Contents(problem=source_error(listing.source.path, failure.text))


def _parts(contents: _Contents) -> Iterable[bytes]:
    yield (contents.problem or "").encode()
    for answer in contents.answers:
        yield f"{answer.path} {answer.error}".encode("utf-8", "surrogatepass")
        yield answer.content or b""


def _digest(parts: Iterable[bytes]) -> str:
    made = hashlib.sha256()
    for part in parts:
        made.update(hashlib.sha256(part).digest())
    return made.hexdigest()


def _joined(listings: Sequence[_Listing], fetched: Sequence[_Contents], loaded: Loaded) -> SkillSet:
    skills: dict[str, SkillMetadata] = {}
    problems: list[str] = []
    for listing, contents in zip(listings, fetched, strict=True):
        problems += [each for each in (listing.problem, contents.problem) if each]
        for path, answer in zip(listing.paths, contents.answers, strict=False):
            parsed = parsed_answer(answer, path)
            problems += parsed.problems
            if parsed.skill is not None:
                problems += _shadowed(skills, parsed.skill)
                skills[parsed.skill["name"]] = parsed.skill
    for problem in problems:
        _log.warning("%s", problem)
    found = list(skills.values())
    return SkillSet(found, problems, {**loaded, "skills": digest_of(found)})


def parsed_answer(answer: FileDownloadResponse, path: str) -> Parsed:
    """Parse what a backend answered for one SKILL.md; a directory without one is no skill."""
    if answer.error == "file_not_found":
        return Parsed(None)
    if answer.error:
        return Parsed(None, [f"{path}: skill skipped: it cannot be read: {answer.error}."])
    return parse_skill(answer.content, path)


def _shadowed(skills: Mapping[str, SkillMetadata], skill: SkillMetadata) -> list[str]:
    before = skills.get(skill["name"])
    if before is None:
        return []
    return [f"{skill['path']}: takes the place of the skill {skill['name']!r} in {before['path']}."]
