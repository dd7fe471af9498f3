"""Skills: workflows in SKILL.md files, listed to the model and read when it needs them."""

from deepagents.middleware.skills.middleware import SkillsMiddleware

__all__ = ["SkillsMiddleware"]
