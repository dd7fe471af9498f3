"""Keep older names, with where what they stand for is today. They go away in 1.0.

A name that used to be public warns. Silent are names on a documented path that is not theirs any more, and
private ones, which a released package imports: its users cannot change its code.
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
_TOOLS: Final = "deepagents.tools"
_UTILS: Final = "deepagents._compat.utils"
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
        _FILES: {
            "EXECUTION_SYSTEM_PROMPT": "deepagents.tools.execute:EXECUTE.description",
            "LINE_NUMBER_WIDTH": f"{_HELPERS}:LINE_NUMBER_WIDTH",
            "MAX_VIDEO_INPUT_BYTES": f"{_VIDEO}:MAX_VIDEO_INPUT_BYTES",
            "TOO_LARGE_HUMAN_MSG": "deepagents.middleware._offload:MESSAGE_NOTICE",
            "TOO_LARGE_TOOL_MSG": "deepagents.middleware._offload:NOTICE",
            "extract_video_frames": f"{_VIDEO}:extract_video_frames",
            "video_dependencies_available": f"{_VIDEO}:video_dependencies_available",
        },
        "deepagents.middleware.subagents": {
            "create_agent": "langchain.agents:create_agent",
        },
        "deepagents.middleware.summarization": {
            "SUMMARIZATION_SYSTEM_PROMPT": "deepagents.middleware.summarization.tool:_DESCRIPTION",
        },
        _ASYNC: {
            "ASYNC_TASK_SYSTEM_PROMPT": f"{_ASYNC}.tools:ASYNC_TASK_SYSTEM_PROMPT",
        },
    }
)
"""Names that were public: module, older name, and `module:name` of today. They warn."""

OLDER_PATHS: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "deepagents.backends.utils": {
            _UTILS: """
                TOOL_RESULT_TOKEN_LIMIT TRUNCATION_GUIDANCE TRUNCATION_MARKER_TEMPLATE build_grep_results_dict
                check_empty_content format_content_with_line_numbers grep_matches_from_files
                normalize_read_bounds perform_string_replacement sanitize_tool_call_id slice_read_response
                to_posix_path truncate_if_too_long validate_path
            """,
            "deepagents._globs": """
                InvalidGlobPatternError compile_grep_include_glob=compile_glob
                compile_recursive_glob=compile_glob
            """,
            "deepagents._text": "EMPTY_OLD_STRING_ERROR MAX_LINE_LENGTH",
            "deepagents.backends.filedata": """
                FileType=FileKind MAX_VIDEO_INPUT_BYTES create_file_data file_data_to_string update_file_data
                _get_backend_read_file_type=file_kind
                _get_file_type=file_kind
            """,
            "deepagents.backends.results": """
                EMPTY_CONTENT_WARNING=EMPTY_FILE FileInfo format_grep_matches regex_literal_hint
            """,
        },
        "deepagents.backends.filesystem": {
            _HELPERS: "_raise_if_symlink_loop=raise_if_symlink_loop",
            "deepagents.backends.filedata": "_get_backend_read_file_type=file_kind",
        },
        "deepagents.middleware.subagents": {
            "deepagents.middleware.subagents.middleware": "_build_task_tool=build_task_tool",
        },
        _RUBRIC: {
            f"{_RUBRIC}.grader": """
                _MAX_TRANSCRIPT_CHARS_PER_MESSAGE=MAX_MESSAGE_LENGTH _MAX_TRANSCRIPT_MESSAGES=MAX_MESSAGES
                _coerce_text=_text _role_label=_speaker _sanitize_for_payload=_escape_closing_tags
            """,
        },
        _SKILLS: {
            "deepagents._compat.skills": """
                _alist_skills_with_errors=alist_skills_with_errors _list_skills=list_skills
                _list_skills_with_errors=list_skills_with_errors _parse_skill_metadata=parse_skill_metadata
                _pinned_skill_body=pinned_skill_body
                _skill_metadata_from_response=skill_metadata_from_response
            """,
            f"{_SKILLS}.load": """
                _derive_source_label=derive_source_label _format_skills_source_error=format_source_error
                _source_path=source_path
            """,
            f"{_SKILLS}.prompt": "_pinned_skill_message=make_pinned_message",
        },
        _FILES: {
            _HELPERS: """
                GREP_GLOB_DESCRIPTION TOOLS_EXCLUDED_FROM_EVICTION _check_fs_permission=check_fs_permission
            """,
            _UTILS: "sanitize_tool_call_id validate_path",
            "deepagents.backends.guard": "GLOB_PATHLESS_DENIED_HINT=PATHLESS_DENIED_HINT",
            "deepagents.backends.results": "EMPTY_CONTENT_WARNING=EMPTY_FILE",
            f"{_FILES}.prompt": "FILESYSTEM_SYSTEM_PROMPT=FILESYSTEM_PROMPT",
            f"{_TOOLS}._tool": "NUM_CHARS_PER_TOKEN=CHARACTERS_PER_TOKEN",
            f"{_TOOLS}.change": """
                DELETE_TOOL_DESCRIPTION=DELETE.description EDIT_FILE_TOOL_DESCRIPTION=EDIT_FILE.description
                WRITE_FILE_TOOL_DESCRIPTION=WRITE_FILE.description
            """,
            f"{_TOOLS}.execute": "EXECUTE_TOOL_DESCRIPTION=EXECUTE.description",
            f"{_TOOLS}.read_file": """
                DEFAULT_READ_LIMIT DEFAULT_READ_OFFSET NO_LINES_REQUESTED_WARNING=NO_LINES
                READ_FILE_TOOL_DESCRIPTION=READ_FILE.description READ_FILE_TRUNCATION_MSG=CUT
                READ_FILE_VIDEO_TOOL_DESCRIPTION=READ_VIDEO_FILE.description
            """,
            f"{_TOOLS}.search": """
                GLOB_TIMEOUT GLOB_TOOL_DESCRIPTION=GLOB.description GLOB_TRUNCATION_NOTE GLOB_UNREADABLE_NOTE
                GREP_OUTPUT_MODE_DESCRIPTION=GREP.description GREP_TOOL_DESCRIPTION=GREP.description
                GREP_TRUNCATION_NOTE LIST_FILES_TOOL_DESCRIPTION=LS.description
            """,
        },
    }
)
"""Names by the module where others import them, and the one where they are today: `older=today`. Silent."""


def names_on(module: str) -> Mapping[str, tuple[str, str]]:
    """Return the silent older names of a module, each with the module and the name of today."""
    rows = [
        (home, *each.partition("="))
        for home, names in OLDER_PATHS.get(module, {}).items()
        for each in names.split()
    ]
    return {name: (home, today or name) for home, name, _, today in rows}
