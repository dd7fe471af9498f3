"""Offer skills: workflows in SKILL.md files, listed to the model and read when it needs them."""

from deepagents._deprecation import legacy
from deepagents.middleware.skills.load import SkillSource
from deepagents.middleware.skills.middleware import SkillsMiddleware
from deepagents.middleware.skills.parse import (
    MAX_SKILL_COMPATIBILITY_LENGTH,
    MAX_SKILL_DESCRIPTION_LENGTH,
    MAX_SKILL_FILE_SIZE,
    MAX_SKILL_NAME_LENGTH,
)
from deepagents.middleware.skills.prompt import (
    MAX_SKILL_LOAD_WARNING_LENGTH,
    MAX_SKILLS_LOAD_WARNINGS,
    SKILLS_SYSTEM_PROMPT,
)
from deepagents.middleware.skills.state import (
    SkillMetadata,
    SkillsState,
    SkillsStateUpdate,
    disclosed_skill_tool_names,
)
from deepagents.middleware.skills.tools import SkillToolResolver

__all__ = [
    "MAX_SKILLS_LOAD_WARNINGS",
    "MAX_SKILL_COMPATIBILITY_LENGTH",
    "MAX_SKILL_DESCRIPTION_LENGTH",
    "MAX_SKILL_FILE_SIZE",
    "MAX_SKILL_LOAD_WARNING_LENGTH",
    "MAX_SKILL_NAME_LENGTH",
    "SKILLS_SYSTEM_PROMPT",
    "SkillMetadata",
    "SkillSource",
    "SkillToolResolver",
    "SkillsMiddleware",
    "SkillsState",
    "SkillsStateUpdate",
    "disclosed_skill_tool_names",
]

__getattr__ = legacy(__name__)
