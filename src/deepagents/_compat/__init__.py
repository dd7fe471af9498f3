"""Keep older names, with where what they stand for is today. They go away in 1.0.

A name that used to be public warns. A private one is here because a released package imports it; that is
silent, since the users of that package cannot change its code.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

_ASYNC: Final = "deepagents.middleware.async_subagents"
_HELPERS: Final = "deepagents._compat.helpers"
_FILES: Final = "deepagents.middleware.filesystem"
_RUBRIC: Final = "deepagents.middleware.rubric"
_SKILLS: Final = "deepagents.middleware.skills"
_VIDEO: Final = "deepagents.tools._video"

LEGACY_NAMES: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "deepagents.graph": {
            "BASE_AGENT_PROMPT": "deepagents._agent.prompt:BASE_PROMPT",
        },
        "deepagents.backends.protocol": {
            "FileFormat": f"{_HELPERS}:FileFormat",
        },
        "deepagents.backends.utils": {
            "LINE_NUMBER_WIDTH": f"{_HELPERS}:LINE_NUMBER_WIDTH",
            "format_read_response": f"{_HELPERS}:format_read_response",
        },
        "deepagents.backends.filesystem": {
            "_get_backend_read_file_type": "deepagents.backends.filedata:file_kind",
            "_raise_if_symlink_loop": f"{_HELPERS}:raise_if_symlink_loop",
        },
        _FILES: {
            "EXECUTION_SYSTEM_PROMPT": f"{_FILES}:EXECUTE_TOOL_DESCRIPTION",
            "LINE_NUMBER_WIDTH": f"{_HELPERS}:LINE_NUMBER_WIDTH",
            "MAX_VIDEO_INPUT_BYTES": f"{_VIDEO}:MAX_VIDEO_INPUT_BYTES",
            "TOO_LARGE_HUMAN_MSG": f"{_FILES}.requests:NOTICE",
            "TOO_LARGE_TOOL_MSG": "deepagents.middleware._offload:NOTICE",
            "_check_fs_permission": f"{_HELPERS}:check_fs_permission",
            "extract_video_frames": f"{_VIDEO}:extract_video_frames",
            "video_dependencies_available": f"{_VIDEO}:video_dependencies_available",
        },
        "deepagents.middleware.subagents": {
            "_build_task_tool": "deepagents.middleware.subagents.middleware:build_task_tool",
            "create_agent": "langchain.agents:create_agent",
        },
        "deepagents.middleware.summarization": {
            "SUMMARIZATION_SYSTEM_PROMPT": "deepagents.middleware.summarization.middleware:_DESCRIPTION",
        },
        _ASYNC: {
            "ASYNC_TASK_SYSTEM_PROMPT": f"{_ASYNC}.tools:ASYNC_TASK_SYSTEM_PROMPT",
        },
        _RUBRIC: {
            "_MAX_TRANSCRIPT_CHARS_PER_MESSAGE": f"{_RUBRIC}.grader:MAX_MESSAGE_LENGTH",
            "_MAX_TRANSCRIPT_MESSAGES": f"{_RUBRIC}.grader:MAX_MESSAGES",
            "_coerce_text": f"{_RUBRIC}.grader:_text",
            "_role_label": f"{_RUBRIC}.grader:_speaker",
            "_sanitize_for_payload": f"{_RUBRIC}.grader:_escape_closing_tags",
        },
        _SKILLS: {
            "_alist_skills_with_errors": "deepagents._compat.skills:alist_skills_with_errors",
            "_derive_source_label": f"{_SKILLS}.load:derive_source_label",
            "_format_skills_source_error": f"{_SKILLS}.load:format_source_error",
            "_list_skills": "deepagents._compat.skills:list_skills",
            "_list_skills_with_errors": "deepagents._compat.skills:list_skills_with_errors",
            "_parse_skill_metadata": "deepagents._compat.skills:parse_skill_metadata",
            "_pinned_skill_body": "deepagents._compat.skills:pinned_skill_body",
            "_pinned_skill_message": f"{_SKILLS}.prompt:make_pinned_message",
            "_skill_metadata_from_response": "deepagents._compat.skills:skill_metadata_from_response",
            "_source_path": f"{_SKILLS}.load:source_path",
        },
    }
)
"""Module, older name, and `module:name` of today."""
