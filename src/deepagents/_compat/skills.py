"""Keep private functions of the skills module that other packages import."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from deepagents._async import arun, run
from deepagents.backends.handle import open_backend
from deepagents.backends.results import FileDownloadResponse
from deepagents.middleware.skills.load import SkillSource, load_skills, parse_answer, parse_sources
from deepagents.middleware.skills.parse import body_of, parse_skill
from deepagents.middleware.skills.state import SkillMetadata

Found = tuple[list[SkillMetadata], str | None]


def list_skills(backend: Any, source_path: SkillSource) -> list[SkillMetadata]:
    """Return the skills of one source."""
    return list_skills_with_errors(backend, source_path)[0]


def list_skills_with_errors(backend: Any, source_path: SkillSource) -> Found:
    """Return the skills of one source, and its problems as one text."""
    return run(_load_source(backend, source_path))


def alist_skills_with_errors(backend: Any, source_path: SkillSource) -> Awaitable[Found]:
    """Return the skills of one source, and its problems as one text."""
    return arun(_load_source(backend, source_path))


def skill_metadata_from_response(
    response: FileDownloadResponse, path: str | None = None
) -> SkillMetadata | None:
    """Return the skill in a backend's answer, if it holds one."""
    return parse_answer(response, path or response.path).skill


def parse_skill_metadata(content: str, skill_path: str, directory_name: str) -> SkillMetadata | None:
    """Return the skill in the text of a SKILL.md, if it holds one; the path has the name of the directory."""
    return parse_skill(content.encode(), skill_path).skill


def pinned_skill_body(skill: SkillMetadata, response: FileDownloadResponse) -> str | None:
    """Return the text behind the front matter in a backend's answer, `None` where it cannot be shown."""
    return None if response.error else body_of(response.content)


async def _load_source(backend: Any, source: SkillSource) -> Found:
    found = await load_skills(open_backend(backend).files(None), parse_sources([source]))
    return (found["skills_metadata"], "\n".join(found["skills_load_errors"]) or None) if found else ([], None)
