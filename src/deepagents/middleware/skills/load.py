"""Load skills from their sources: one listing and one batch of files per source, all sources together."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence
from functools import partial
from typing import Any, Final, TypeAlias, cast

from deepagents._async import as_io_call, gather_threads
from deepagents._paths import normalise, overlap, refuse_home
from deepagents._values import valueclass
from deepagents.backends.handle import FileCalls
from deepagents.backends.results import FileDownloadResponse
from deepagents.errors import BackendError, ToolFailure
from deepagents.middleware.skills.parse import MAX_SKILL_FILE_SIZE, Parsed, parse_skill
from deepagents.middleware.skills.state import Loaded, SkillMetadata

SkillSource: TypeAlias = str | tuple[str, str]
_Fetched: TypeAlias = tuple[Sequence[FileDownloadResponse], str | None]
"""The answers for the files of one source, and the problem that it has as a whole."""
_FILE: Final = "SKILL.md"
_log = logging.getLogger(__name__)


@valueclass
class Source:
    """One directory of skills and its label."""

    path: str
    label: str

    def overlaps(self, path: str) -> bool:
        """Return whether a normalised path lies in this directory, or this directory in it."""
        try:
            return overlap(path, normalise(self.path))
        except BackendError:
            return False


def parse_sources(given: Sequence[SkillSource]) -> tuple[Source, ...]:
    """Validate the sources that a caller gives.

    Raises:
        TypeError: for one that is neither a path nor a pair of path and label.
        ConfigError: for one below a home directory, which no backend knows.
    """
    if isinstance(given, str):
        raise TypeError(f"expected a list of skill sources, got {given!r}; write [{given!r}]")
    sources: list[Source] = []
    for each in given:
        path = source_path(each)
        refuse_home(path, "the skill source")
        sources.append(Source(path, each[1] if isinstance(each, tuple) else derive_source_label(path)))
    return tuple(sources)


def source_path(source: SkillSource) -> str:
    """Return the path of a source.

    Raises:
        TypeError: for what is neither a path nor a pair of path and label.
    """
    match cast("object", source):
        case str() as path:
            return path
        case (str() as path, str()) if isinstance(source, tuple):
            return path
        case _:
            raise TypeError(f"expected str or (str, str) tuple for a skill source, got {source!r}")


def derive_source_label(path: str) -> str:
    """Return a label from a directory's name; for one named `skills` from the directory that holds it."""
    parts = [part for part in path.replace("\\", "/").split("/") if part]
    if not parts:
        return "Unnamed"
    leaf = parts[-1]
    if leaf == "built_in_skills":
        return "Built-in"
    holder = parts[-2].lstrip(".").replace("_", " ").replace("-", " ").strip() if len(parts) > 1 else ""
    return holder.title() if leaf == "skills" and holder else leaf.capitalize()


@valueclass
class _Listing:
    """The SKILL.md paths of one source. While `digest` stays the same, a `reliable` listing says that the
    files do too."""

    source: Source
    paths: Sequence[str] = ()
    problem: str | None = None
    digest: str = ""
    reliable: bool = False


async def load_skills(
    files: FileCalls, sources: Sequence[Source], known: Loaded | None = None
) -> dict[str, Any] | None:
    """Load the skills of all sources into an update of state; `None` when nothing changed since `known`.

    Files are fetched unless the listings show that they are the same: on a disk of this machine a file can
    change in place, and some backends give no times.
    """
    listings = await gather_threads([as_io_call(partial(_list, files, source)) for source in sources])
    digests = {each.source.path: each.digest for each in listings}
    is_same = known is not None and known["listings"] == digests
    if is_same and all(each.reliable for each in listings):
        return None
    fetched = await gather_threads([as_io_call(partial(_fetch, files, each)) for each in listings])
    contents = digest(fetched)
    if known is not None and is_same and known["contents"] == contents:
        return None
    skills, problems = _join(listings, fetched)
    for problem in problems:
        _log.warning("%s", problem)
    return {
        "skills_metadata": skills,
        "skills_load_errors": problems,
        "_skills_loaded": {"listings": digests, "contents": contents, "skills": digest(skills)},
    }


def digest(value: object) -> str:
    """Return a digest of plain data, as Python shows it: the order of keys counts."""
    return hashlib.sha256(repr(value).encode("utf-8", "surrogatepass")).hexdigest()


def format_source_error(path: str, error: str) -> str:
    """Describe what is wrong with a whole source."""
    return f"Skills source {path!r}: {error}"


async def _list(files: FileCalls, source: Source) -> _Listing:
    try:
        found = await files.ls(source.path)
    except ToolFailure as failure:
        problem = format_source_error(source.path, failure.text)
        return _Listing(source, problem=problem, digest=failure.text)
    directories = [each for each in found.entries or () if each.get("is_dir") or each["path"].endswith("/")]
    has_times = all(each.get("modified_at") for each in directories)
    return _Listing(
        source,
        paths=[f"{each['path'].rstrip('/')}/{_FILE}" for each in directories],
        problem=format_source_error(source.path, found.error) if found.error else None,
        digest=digest([found.error, *directories]),
        reliable=has_times and not files.capabilities(source.path).host,
    )


async def _fetch(files: FileCalls, listing: _Listing) -> _Fetched:
    if not listing.paths:
        return [], None
    try:
        return await files.download_each(listing.paths, MAX_SKILL_FILE_SIZE + 1), None
    except ToolFailure as failure:
        return [], format_source_error(listing.source.path, failure.text)


def _join(listings: Sequence[_Listing], fetched: Sequence[_Fetched]) -> tuple[list[SkillMetadata], list[str]]:
    skills: dict[str, SkillMetadata] = {}
    problems: list[str] = []
    for listing, (answers, problem) in zip(listings, fetched, strict=True):
        problems += [each for each in (listing.problem, problem) if each]
        of_source: dict[str, SkillMetadata] = {}
        for path, answer in zip(listing.paths, answers, strict=False):
            parsed = parse_answer(answer, path)
            problems += parsed.problems
            if (skill := parsed.skill) is None:
                continue
            # Across sources overriding is documented; two skills of one name in one source are a mistake.
            if earlier := of_source.get(skill["name"]):
                problems.append(f"{path}: replaces the skill {skill['name']!r} of {earlier['path']}.")
            of_source[skill["name"]] = skill
        skills.update(of_source)
    return list(skills.values()), problems


def parse_answer(answer: FileDownloadResponse, path: str) -> Parsed:
    """Parse a backend's answer for one SKILL.md; a directory without one is not a skill."""
    if answer.error == "file_not_found":
        return Parsed(None)
    if answer.error:
        return Parsed(None, [f"{path}: skill skipped: it cannot be read: {answer.error}."])
    return parse_skill(answer.content, path)
