"""The names that programs import, by the module that they import them from."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "deepagents": """
            AsyncSubAgent AsyncSubAgentMiddleware CompiledSubAgent DeepAgentState FilesystemMiddleware
            FilesystemPermission FsToolName GeneralPurposeSubagentProfile HarnessProfile
            HarnessProfileConfig MemoryMiddleware ProviderProfile RubricMiddleware SubAgent
            SubAgentMiddleware __version__ create_deep_agent register_harness_profile
            register_provider_profile
        """,
        "deepagents.middleware": """
            AsyncSubAgent AsyncSubAgentMiddleware CompiledSubAgent CriterionEval CriterionFail CriterionPass
            DEEPAGENTS_DEFAULT_SUMMARY_PROMPT FilesystemMiddleware FilesystemPermission GRADER_SYSTEM_PROMPT
            GraderResponse GraderVerdict MemoryMiddleware RUBRIC_GRADER_MESSAGE_SOURCE RubricEvaluation
            RubricMiddleware RubricResult RubricState SkillMetadata SkillToolResolver SkillsMiddleware
            SkillsState SubAgent SubAgentMiddleware SummarizationMiddleware SummarizationToolMiddleware
            TaskEvent UnsupportedContentMiddleware create_summarization_tool_middleware
        """,
        "deepagents.graph": """
            BASE_AGENT_PROMPT Checkpointer DeepAgentState create_agent create_deep_agent get_default_model
            resolve_model
        """,
        "deepagents.middleware.subagents": """
            CompiledSubAgent DEFAULT_GENERAL_PURPOSE_DESCRIPTION DEFAULT_SUBAGENT_PROMPT
            GENERAL_PURPOSE_SUBAGENT SUBAGENT_RESPONSE_FORMAT_CONFIG_KEY SubAgent SubAgentMiddleware
            TASK_SYSTEM_PROMPT TASK_TOOL_DESCRIPTION TaskToolSchema _build_task_tool create_agent
            create_sub_agent
        """,
        "deepagents.middleware.async_subagents": """
            ASYNC_TASK_SYSTEM_PROMPT ASYNC_TASK_TOOL_DESCRIPTION AsyncSubAgent AsyncSubAgentMiddleware
            AsyncSubAgentState AsyncTask CancelAsyncTaskSchema CheckAsyncTaskSchema ListAsyncTasksSchema
            StartAsyncTaskSchema TaskEvent UpdateAsyncTaskSchema
        """,
        "deepagents.profiles": """
            GeneralPurposeSubagentProfile HarnessProfile HarnessProfileConfig ProviderProfile
            register_harness_profile register_provider_profile
        """,
        "deepagents.profiles.provider": """
            ProviderProfile apply_provider_profile get_provider_profile register_provider_profile
        """,
        "deepagents.profiles.provider.provider_profiles": "apply_provider_profile",
        "deepagents._models": """
            get_model_identifier get_model_provider init_chat_model model_matches_spec
            resolve_model
        """,
        "deepagents._version": "__version__",
        "deepagents.middleware._utils": "append_to_system_message",
        "deepagents.backends": """
            BackendProtocol CompositeBackend ContextHubBackend DEFAULT_EXECUTE_TIMEOUT FilesystemBackend
            LangSmithSandbox LocalShellBackend NamespaceFactory StateBackend StoreBackend
        """,
        "deepagents.backends.langsmith": "LangSmithSandbox",
        "deepagents.backends.context_hub": "ContextHubBackend",
        "deepagents.backends.composite": "CompositeBackend",
        "deepagents.backends.state": "StateBackend",
        "deepagents.backends.local_shell": "DEFAULT_EXECUTE_TIMEOUT LocalShellBackend",
        "deepagents.backends.protocol": """
            ASYNC_GLOB_TIMEOUT ASYNC_GREP_TIMEOUT BACKEND_TYPES BackendFactory BackendProtocol ContextLine
            DEFAULT_GREP_TIMEOUT DeleteResult EditResult ExecuteArtifact ExecuteOffloadResult
            ExecuteResponse FILE_NOT_FOUND FileData FileDownloadResponse FileFormat FileInfo
            FileOperationError FileUploadResponse GlobResult GlobTruncationReason GrepMatch GrepResult
            INVALID_PATH IS_DIRECTORY LsResult PERMISSION_DENIED ReadResult SandboxBackendProtocol
            WriteResult execute_accepts_timeout
        """,
        "deepagents.backends.utils": """
            EMPTY_CONTENT_WARNING EMPTY_OLD_STRING_ERROR FileInfo FileType InvalidGlobPatternError
            MAX_LINE_LENGTH MAX_VIDEO_INPUT_BYTES TOOL_RESULT_TOKEN_LIMIT TRUNCATION_GUIDANCE
            TRUNCATION_MARKER_TEMPLATE build_grep_results_dict check_empty_content compile_grep_include_glob
            compile_recursive_glob create_file_data file_data_to_string format_content_with_line_numbers
            format_grep_matches grep_matches_from_files normalize_read_bounds perform_string_replacement
            regex_literal_hint sanitize_tool_call_id slice_read_response to_posix_path truncate_if_too_long
            update_file_data validate_path
        """,
        "deepagents.backends.sandbox": """
            BaseSandbox MAX_BINARY_BYTES MAX_OUTPUT_BYTES SandboxBackendProtocol TRUNCATION_MSG
        """,
        "deepagents.backends.store": "BackendContext NamespaceFactory StoreBackend",
        "deepagents.backends.filesystem": """
            FilesystemBackend _get_backend_read_file_type _raise_if_symlink_loop
        """,
        "deepagents.middleware.filesystem": """
            DEFAULT_READ_LIMIT DEFAULT_READ_OFFSET DELETE_TOOL_DESCRIPTION DeleteSchema
            EDIT_FILE_TOOL_DESCRIPTION EMPTY_CONTENT_WARNING EXECUTE_TOOL_DESCRIPTION
            EXECUTION_SYSTEM_PROMPT EditFileSchema ExecuteSchema FILESYSTEM_SYSTEM_PROMPT FileData
            FilesystemMiddleware FilesystemOperation FilesystemPermission FilesystemState FsToolName
            GLOB_PATHLESS_DENIED_HINT GLOB_TIMEOUT GLOB_TOOL_DESCRIPTION GLOB_TRUNCATION_NOTE
            GLOB_UNREADABLE_NOTE GREP_GLOB_DESCRIPTION GREP_OUTPUT_MODE_DESCRIPTION GREP_TOOL_DESCRIPTION
            GREP_TRUNCATION_NOTE GlobSchema GrepSchema LIST_FILES_TOOL_DESCRIPTION LsSchema
            MAX_VIDEO_INPUT_BYTES NO_LINES_REQUESTED_WARNING NUM_CHARS_PER_TOKEN READ_FILE_TOOL_DESCRIPTION
            READ_FILE_TRUNCATION_MSG READ_FILE_VIDEO_TOOL_DESCRIPTION ReadFileSchema ReadVideoFileSchema
            TOOLS_EXCLUDED_FROM_EVICTION TOO_LARGE_HUMAN_MSG TOO_LARGE_TOOL_MSG WRITE_FILE_TOOL_DESCRIPTION
            WriteFileSchema _check_fs_permission extract_video_frames sanitize_tool_call_id
            supports_execution validate_path video_dependencies_available
        """,
        "deepagents.middleware.permissions": "FilesystemPermission",
        "deepagents.middleware.memory": "MEMORY_SYSTEM_PROMPT MemoryMiddleware MemoryState MemoryStateUpdate",
        "deepagents.middleware.skills": """
            MAX_SKILLS_LOAD_WARNINGS MAX_SKILL_COMPATIBILITY_LENGTH MAX_SKILL_DESCRIPTION_LENGTH
            MAX_SKILL_LOAD_WARNING_LENGTH MAX_SKILL_NAME_LENGTH SKILLS_SYSTEM_PROMPT SkillMetadata
            SkillSource SkillToolResolver SkillsMiddleware SkillsState SkillsStateUpdate
            _alist_skills_with_errors _derive_source_label _format_skills_source_error _list_skills
            _list_skills_with_errors _pinned_skill_body _pinned_skill_message _skill_metadata_from_response
            _source_path disclosed_skill_tool_names
        """,
        "deepagents.middleware.summarization": """
            CompactConversationSchema DEEPAGENTS_DEFAULT_SUMMARY_PROMPT SUMMARIZATION_EVENT_KEY
            SUMMARIZATION_SESSION_ID_KEY SUMMARIZATION_SYSTEM_PROMPT SummarizationDefaults
            SummarizationEvent SummarizationMiddleware SummarizationState SummarizationToolMiddleware
            TriggerClause TruncateArgsSettings compute_summarization_defaults
            create_summarization_middleware create_summarization_tool_middleware
        """,
        "deepagents.middleware.rubric": """
            CriterionEval CriterionFail CriterionPass GRADER_SYSTEM_PROMPT GraderResponse GraderVerdict
            RUBRIC_GRADER_MESSAGE_SOURCE RubricEvaluation RubricMiddleware RubricResult RubricState
        """,
        "deepagents.middleware.patch_tool_calls": "PatchToolCallsMiddleware",
        "deepagents.middleware.unsupported_content": "UnsupportedContentMiddleware",
    }
)
"""Public names, and private ones that other packages import all the same."""

MEMBERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "deepagents.backends.sandbox:BaseSandbox": """
            _awrite_preflight _write_preflight aedit adelete aexecute aglob agrep als aread
            awrite delete download_files edit execute execute_with_offload aexecute_with_offload glob grep
            grep_exclude_dirs enable_capture_offload id ls read upload_files write
        """,
        "deepagents.backends.protocol:SandboxBackendProtocol": "__init__ aexecute execute id",
        "deepagents.backends.composite:CompositeBackend": """
            __init__ _get_backend_and_key aglob agrep als awrite artifacts_root default glob grep ls routes
            sorted_routes write
        """,
        "deepagents.backends.filesystem:FilesystemBackend": """
            __init__ _resolve_path _to_virtual_path cwd ls max_file_size_bytes read virtual_mode
        """,
        "deepagents.backends.local_shell:LocalShellBackend": """
            __init__ _default_timeout _max_output_bytes _resolve_path cwd execute virtual_mode
        """,
        "deepagents.backends.langsmith:LangSmithSandbox": "__init__ _default_timeout _sandbox",
        "deepagents.middleware.summarization:SummarizationToolMiddleware": """
            __init__ _summarization awrap_model_call wrap_model_call
        """,
        "deepagents.middleware.rubric:RubricMiddleware": """
            __init__ _ainvoke_grader _ensure_grader _grader_context_schema _grader_middleware
            _grader_state_schema _grader_trace_metadata _handle_grader_exception _invoke_grader _model
            _system_prompt _tools
        """,
        "deepagents.middleware.skills:SkillsMiddleware": """
            __init__ _backend _format_skills_list abefore_agent abefore_model awrap_model_call before_agent
            before_model source_labels sources
        """,
        "deepagents.middleware.filesystem:FilesystemMiddleware": """
            __init__ _create_glob_tool _create_grep_tool _create_ls_tool _permissions backend tools
        """,
    }
)
"""What subclasses in other packages call by `super()`, read, or override with effect."""
