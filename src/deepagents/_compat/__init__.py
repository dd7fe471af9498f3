"""Names that are no longer public but that other packages import: they work, and say so."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

_OLDER: Final = "deepagents._compat.backends"
_FILE_DATA: Final = "deepagents.backends.filedata"
_SANDBOX: Final = "deepagents.backends.sandbox"
_FILE_TOOLS: Final = "deepagents.middleware.filesystem"
_CACHING: Final = "deepagents.middleware.prompt_caching.middleware"
_VIDEO: Final = "deepagents.tools._video"
_ASYNC: Final = "deepagents.middleware.async_subagents"
_SKILLS: Final = "deepagents.middleware.skills"
_HARNESS: Final = "deepagents.profiles.harness"
_PROVIDER: Final = "deepagents.profiles.provider"
_SUBAGENTS: Final = "deepagents.middleware.subagents"
_OF_GRAPH: Final = "deepagents._compat.graph"
_OF_MIDDLEWARE: Final = "deepagents._compat.middleware"
_OF_FILES: Final = "deepagents._compat.filesystem"
_OF_SANDBOX: Final = "deepagents._compat.sandbox"

LEGACY_NAMES: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "deepagents._messages_reducer": {
            "_messages_delta_reducer": "deepagents._state.delta_channels:fold_messages",
        },
        "deepagents._tools": {
            "_apply_tool_description_overrides": f"{_OF_GRAPH}:apply_tool_description_overrides",
            "_tool_name": "deepagents.middleware._base:tool_name",
        },
        "deepagents._version": {
            "_lc_version": "deepagents._agent.trace_version:lc_version",
            "_with_editable_local_version": "deepagents._agent.trace_version:editable_version",
        },
        "deepagents.graph": {
            "BASE_AGENT_PROMPT": "deepagents._agent.prompt:BASE_PROMPT",
            "AsyncSubAgentMiddleware": "deepagents.middleware.async_subagents:AsyncSubAgentMiddleware",
            "FilesystemMiddleware": "deepagents.middleware.filesystem:FilesystemMiddleware",
            "MemoryMiddleware": "deepagents.middleware.memory:MemoryMiddleware",
            "PatchToolCallsMiddleware": "deepagents.middleware.patch_tool_calls:PatchToolCallsMiddleware",
            "SkillsMiddleware": "deepagents.middleware.skills:SkillsMiddleware",
            "SubAgentMiddleware": "deepagents.middleware.subagents:SubAgentMiddleware",
            "create_summarization_middleware": (
                "deepagents.middleware.summarization:create_summarization_middleware"
            ),
            "_REQUIRED_MIDDLEWARE_CLASSES": f"{_OF_GRAPH}:REQUIRED_CLASSES",
            "_REQUIRED_MIDDLEWARE_NAMES": f"{_OF_GRAPH}:REQUIRED_NAMES",
            "_apply_custom_middleware": f"{_OF_GRAPH}:apply_custom_middleware",
            "_lc_version": "deepagents._agent.trace_version:lc_version",
        },
        "deepagents.backends.protocol": {
            "FileFormat": f"{_OLDER}:FileFormat",
            "_apply_grep_max_count": "deepagents.backends.protocol:capped",
            "_method_accepts_max_count": f"{_OLDER}:accepts_max_count",
            "_supports_delete": f"{_OLDER}:supports_delete",
        },
        "deepagents.backends.utils": {
            "LINE_NUMBER_WIDTH": f"{_OLDER}:LINE_NUMBER_WIDTH",
            "_grep_search_files": f"{_OLDER}:grep_search_files",
            "_looks_like_regex": f"{_OLDER}:looks_like_regex",
            "_to_legacy_file_data": f"{_OLDER}:to_legacy_file_data",
            "_validate_path": "deepagents.backends.utils:validate_path",
            "format_read_response": f"{_OLDER}:format_read_response",
        },
        "deepagents.backends.filesystem": {
            "_get_backend_read_file_type": "deepagents.backends.kinds:file_kind",
            "_raise_if_symlink_loop": f"{_OLDER}:raise_if_symlink_loop",
            "_DEFAULT_GLOB_TIMEOUT": "deepagents.backends.filesystem:DEFAULT_GLOB_TIMEOUT",
            "_map_exception_to_standard_error": f"{_OLDER}:standard_error",
            "_resolve_ripgrep_path": "deepagents.backends._search.ripgrep:find_ripgrep",
        },
        _SANDBOX: {
            "_EDIT_COMMAND_TEMPLATE": f"{_OF_SANDBOX}:EDIT_COMMAND_TEMPLATE",
            "_EDIT_TMPFILE_TEMPLATE": f"{_OF_SANDBOX}:EDIT_TMPFILE_TEMPLATE",
            "_GLOB_COMMAND_TEMPLATE": f"{_OF_SANDBOX}:GLOB_COMMAND_TEMPLATE",
            "_READ_COMMAND_TEMPLATE": f"{_OF_SANDBOX}:READ_COMMAND_TEMPLATE",
            "_WRITE_CHECK_TEMPLATE": f"{_OF_SANDBOX}:WRITE_CHECK_TEMPLATE",
            "_EDIT_INLINE_MAX_BYTES": f"{_SANDBOX}.operations:EDIT_INLINE_MAX_BYTES",
            "_EXECUTE_CAPTURE_MAX_BYTES": f"{_SANDBOX}.offload:EXECUTE_CAPTURE_MAX_BYTES",
        },
        "deepagents.middleware._prompt_caching": {
            "_create_bedrock_prompt_caching_middleware": f"{_CACHING}:BedrockPromptCachingMiddleware",
            "_create_fireworks_prompt_caching_middleware": f"{_CACHING}:FireworksPromptCachingMiddleware",
        },
        "deepagents.middleware._utils": {
            "append_to_system_message": "deepagents.middleware._base:with_section",
            "is_anthropic_chat_model": f"{_OF_MIDDLEWARE}:is_anthropic_chat_model",
        },
        _FILE_TOOLS: {
            "EXECUTION_SYSTEM_PROMPT": f"{_FILE_TOOLS}:EXECUTE_TOOL_DESCRIPTION",
            "LINE_NUMBER_WIDTH": f"{_OLDER}:LINE_NUMBER_WIDTH",
            "MAX_VIDEO_INPUT_BYTES": f"{_VIDEO}:MAX_VIDEO_INPUT_BYTES",
            "TOO_LARGE_HUMAN_MSG": f"{_FILE_TOOLS}.requests:NOTICE",
            "TOO_LARGE_TOOL_MSG": "deepagents.middleware._offload:NOTICE",
            "_all_paths_scoped_to_routes": f"{_OF_FILES}:all_paths_scoped_to_routes",
            "_apply_permissions_to_glob_results": f"{_OF_FILES}:apply_permissions_to_glob_results",
            "_check_fs_permission": f"{_OF_FILES}:check_fs_permission",
            "_filter_paths_by_permission": f"{_OF_FILES}:filter_paths_by_permission",
            "_find_delete_deny_patterns": f"{_OF_FILES}:find_delete_deny_patterns",
            "_file_data_reducer": f"{_FILE_DATA}:reduce_pair",
            "_file_data_delta_reducer": f"{_FILE_DATA}:reduce_files",
            "_get_filesystem_tools": f"{_FILE_TOOLS}.middleware:file_tools_on",
            "_validate_path": "deepagents.backends.utils:validate_path",
            "extract_video_frames": f"{_VIDEO}:extract_video_frames",
            "video_dependencies_available": f"{_VIDEO}:video_dependencies_available",
        },
        _SUBAGENTS: {
            "_build_task_tool": f"{_SUBAGENTS}.middleware:build_task_tool",
            "create_agent": "langchain.agents:create_agent",
        },
        "deepagents.middleware._message_eviction": {
            "_build_evicted_content": f"{_OF_MIDDLEWARE}:evicted_content",
            "_create_content_preview": "deepagents._text:preview",
            "_extract_text_from_message": f"{_OF_MIDDLEWARE}:text_of_message",
        },
        "deepagents.middleware._state": {
            "private_state_field_names": f"{_OF_MIDDLEWARE}:private_state_field_names",
        },
        "deepagents.middleware._tool_exclusion": {
            "_ToolExclusionMiddleware": "deepagents.middleware.tool_exclusion:ToolExclusionMiddleware",
        },
        "deepagents.middleware.rubric": {
            "ensure_config": "langchain_core.runnables:ensure_config",
        },
        "deepagents.middleware.summarization": {
            "SUMMARIZATION_SYSTEM_PROMPT": "deepagents.middleware.summarization.tool:_DESCRIPTION",
        },
        _ASYNC: {
            "ASYNC_TASK_SYSTEM_PROMPT": f"{_ASYNC}.tools:ASYNC_TASK_SYSTEM_PROMPT",
            "_build_async_subagent_tools": "deepagents._compat.async_subagents:build_async_subagent_tools",
            "_resolve_headers": "deepagents._compat.async_subagents:resolve_headers",
            "_tasks_reducer": f"{_ASYNC}.state:merge_tasks",
            "get_client": "langgraph_sdk:get_client",
            "get_sync_client": "langgraph_sdk:get_sync_client",
        },
        _SKILLS: {
            "_alist_skills_with_errors": "deepagents._compat.skills:alist_skills_with_errors",
            "_derive_source_label": f"{_SKILLS}.sources:derive_source_label",
            "_format_skills_source_error": f"{_SKILLS}.load:source_error",
            "_list_skills": "deepagents._compat.skills:list_skills",
            "_list_skills_with_errors": "deepagents._compat.skills:list_skills_with_errors",
            "_pinned_skill_body": f"{_SKILLS}.parse:body_of",
            "_pinned_skill_message": f"{_SKILLS}.pinning:pinned_message",
            "_skill_metadata_from_response": "deepagents._compat.skills:skill_metadata_from_response",
            "_source_path": f"{_SKILLS}.sources:source_path",
        },
        f"{_HARNESS}.harness_profiles": {
            "_HARNESS_PROFILES": "deepagents._compat.harness_profiles:HARNESS_PROFILES",
            "_ensure_harness_profiles_loaded": "deepagents.models.plugins:load_plugins",
            "_get_harness_profile": f"{_HARNESS}.registry:get_harness_profile",
            "_harness_profile_for_model": f"{_HARNESS}.registry:profile_for",
        },
        f"{_PROVIDER}.provider_profiles": {
            "_PROVIDER_PROFILES": "deepagents._compat.provider_profiles:PROVIDER_PROFILES",
        },
    }
)
"""Old module, old name, and where what it stands for lives today. They go away in 1.0."""
