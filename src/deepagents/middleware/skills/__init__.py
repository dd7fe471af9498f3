"""Skills: workflows in SKILL.md files, listed to the model and read when it needs them."""

from deepagents._deprecation import legacy
from deepagents.middleware.skills.middleware import SkillsMiddleware
from deepagents.middleware.skills.parse import MAX_SKILL_FILE_SIZE
from deepagents.middleware.skills.prompt import SKILLS_SYSTEM_PROMPT
from deepagents.middleware.skills.resolving import SkillToolResolver
from deepagents.middleware.skills.state import (
    SkillMetadata,
    SkillsState,
    SkillsStateUpdate,
    disclosed_skill_tool_names,
)

__all__ = [
    "MAX_SKILL_FILE_SIZE",
    "SKILLS_SYSTEM_PROMPT",
    "SkillMetadata",
    "SkillToolResolver",
    "SkillsMiddleware",
    "SkillsState",
    "SkillsStateUpdate",
    "disclosed_skill_tool_names",
]

__getattr__ = legacy(__name__)
