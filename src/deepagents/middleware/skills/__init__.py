"""Offer skills: workflows in SKILL.md files, listed to the model and read when it needs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepagents._deprecation import legacy
from deepagents._lazy import lazy
from deepagents.middleware.skills.state import (
    SkillMetadata,
    SkillsState,
    SkillsStateUpdate,
    disclosed_skill_tool_names,
)

if TYPE_CHECKING:
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

_MODULES = {
    ".load": "SkillSource",
    ".middleware": "SkillsMiddleware",
    ".parse": "MAX_SKILL_COMPATIBILITY_LENGTH MAX_SKILL_DESCRIPTION_LENGTH MAX_SKILL_FILE_SIZE "
    "MAX_SKILL_NAME_LENGTH",
    ".prompt": "MAX_SKILL_LOAD_WARNING_LENGTH MAX_SKILLS_LOAD_WARNINGS SKILLS_SYSTEM_PROMPT",
    ".tools": "SkillToolResolver",
}

# The state is read for every agent that delegates; what else is here is for those that have skills.
__getattr__ = legacy(__name__, lazy(__name__, _MODULES))
