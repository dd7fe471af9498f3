"""What other packages import from here by private names."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from deepagents._async import arun, run
from deepagents.backends.calls import Files
from deepagents.backends.results import FileDownloadResponse
from deepagents.middleware.skills.load import load, parsed_answer
from deepagents.middleware.skills.sources import SkillSource, sources_of
from deepagents.middleware.skills.state import SkillMetadata

Found = tuple[list[SkillMetadata], list[str]]


def list_skills(backend: Any, source: SkillSource) -> list[SkillMetadata]:
    """Return the skills of one source."""
    return list_skills_with_errors(backend, source)[0]


def list_skills_with_errors(backend: Any, source: SkillSource) -> Found:
    """Return the skills of one source, and what is wrong with it."""
    return run(_of_source(backend, source))


def alist_skills_with_errors(backend: Any, source: SkillSource) -> Awaitable[Found]:
    """Return the skills of one source, and what is wrong with it."""
    return arun(_of_source(backend, source))


def skill_metadata_from_response(
    response: FileDownloadResponse, path: str | None = None
) -> SkillMetadata | None:
    """Return the skill that a backend's answer holds, if it holds one."""
    return parsed_answer(response, path or response.path).skill


async def _of_source(backend: Any, source: SkillSource) -> Found:
    found = await load(Files.of(backend, None), sources_of([source]))
    return (found.skills, found.problems) if found else ([], [])
