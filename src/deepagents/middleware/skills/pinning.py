"""Pinned skills: their texts as messages, without the model having to read them."""

from __future__ import annotations

import html
import logging
import re
from collections.abc import Mapping, Sequence
from typing import Final, cast
from uuid import uuid4

from langchain_core.messages import BaseMessage, HumanMessage

from deepagents.backends.calls import Files
from deepagents.errors import ToolFailure
from deepagents.middleware.skills.parse import body_of
from deepagents.middleware.skills.state import SkillMetadata

PINNED: Final = "pinned_skill"
_CLOSING: Final = re.compile(r"<(?=\s*/\s*skill\b)", re.IGNORECASE)
_log = logging.getLogger(__name__)


async def pinned(files: Files, names: Sequence[str], skills: Sequence[SkillMetadata]) -> list[HumanMessage]:
    """Fetch the skills of these names, all at once; those that are unknown or cannot be read are left out."""
    known: Mapping[str, SkillMetadata] = {each["name"]: each for each in skills}
    wanted = [known[name] for name in dict.fromkeys(names) if name in known]
    if not wanted:
        _log.debug("no skill is called any of %r", names)
        return []
    try:
        contents = await files.download_all([each["path"] for each in wanted])
    except ToolFailure as failure:
        _log.warning("pinned skills cannot be read: %s", failure.text)
        return []
    bodies = [(skill, body_of(content)) for skill, content in zip(wanted, contents, strict=True)]
    return [pinned_message(skill, body) for skill, body in bodies if body is not None]


def pinned_message(skill: SkillMetadata, body: str) -> HumanMessage:
    """Make the message that shows a skill; its text cannot end the element that holds it."""
    name, path = (html.escape(each, quote=True) for each in (skill["name"], skill["path"]))
    shown = _CLOSING.sub("&lt;", body)
    named = {key: skill[key] for key in ("name", "path", "description")}
    return HumanMessage(
        f'<skill name="{name}" path="{path}">\n{shown}\n</skill>',
        id=str(uuid4()),
        additional_kwargs={"lc_source": PINNED, "skill": named},
    )


def pinned_path(message: BaseMessage) -> str | None:
    """Return the path of the skill that a message shows, if it shows one."""
    marks = message.additional_kwargs
    if not isinstance(message, HumanMessage) or marks.get("lc_source") != PINNED:
        return None
    skill = marks.get("skill")
    path = cast("dict[str, object]", skill).get("path") if isinstance(skill, dict) else None
    return path if isinstance(path, str) else None
