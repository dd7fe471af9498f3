"""The documented parameters, by where the callable is: as a `def` would have them; `...` is any default."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

_HOOK = "(self, state, runtime)"
_AROUND = "(self, request, handler)"
_FILES = "deepagents.middleware.filesystem:FilesystemMiddleware"
_TASKS = "deepagents.middleware.subagents:SubAgentMiddleware"
_PROTOCOL = "deepagents.backends.protocol"
_RESULTS = {
    "FileDownloadResponse": "(path, content=None, error=None)",
    "FileUploadResponse": "(path, error=None)",
    "ReadResult": """(error=None, file_data=None, total_lines=None, start_line=None, end_line=None,
        next_offset=None, no_lines_requested=False)""",
    "WriteResult": "(error=None, path=None, files_update=None)",
    "EditResult": "(error=None, path=None, occurrences=None, files_update=None)",
    "DeleteResult": "(error=None, path=None)",
    "LsResult": "(error=None, entries=None)",
    "GrepResult": "(error=None, matches=None, truncated=False)",
    "GlobResult": "(error=None, matches=None, truncated=False, truncation_reason=None)",
    "ExecuteResponse": "(output, exit_code=None, truncated=False)",
    "ExecuteOffloadResult": "(offloaded, response, preview_has_truncation_marker=False)",
}
_OPERATIONS = {
    "ls": "(self, path)",
    "read": "(self, file_path, offset=0, limit=2000)",
    "grep": "(self, pattern, path=None, glob=None, *, max_count=None)",
    "glob": "(self, pattern, path=None)",
    "write": "(self, file_path, content)",
    "edit": "(self, file_path, old_string, new_string, replace_all=False)",
    "delete": "(self, file_path)",
    "upload_files": "(self, files)",
    "download_files": "(self, paths)",
}
_BACKENDS = (
    f"{_PROTOCOL}:BackendProtocol",
    "deepagents.backends.state:StateBackend",
    "deepagents.backends.store:StoreBackend",
    "deepagents.backends.filesystem:FilesystemBackend",
    "deepagents.backends.local_shell:LocalShellBackend",
    "deepagents.backends.composite:CompositeBackend",
    "deepagents.backends.sandbox:BaseSandbox",
)
_HOOKS = {
    name: signature
    for plain, signature in (
        *((hook, _HOOK) for hook in ("before_agent", "before_model", "after_model", "after_agent")),
        *((hook, _AROUND) for hook in ("wrap_model_call", "wrap_tool_call")),
    )
    for name in (plain, f"a{plain}")
}

SIGNATURES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "deepagents:create_deep_agent": """(model=None, tools=None, *, system_prompt=None, middleware=(),
            subagents=None, skills=None, memory=None, permissions=None, backend=None, interrupt_on=None,
            response_format=None, state_schema=None, context_schema=None, checkpointer=None, store=None,
            debug=False, name=None, cache=None)""",
        "deepagents.graph:get_default_model": "()",
        _FILES: """(*, backend=None, system_prompt=None, custom_tool_descriptions=None,
            tool_token_limit_before_evict=20000, human_message_token_limit_before_evict=50000,
            max_execute_timeout=3600, grep_max_count=1000, tools=None, offload_binary_content=False,
            permissions=None, _permissions=None)""",
        _TASKS: """(*, backend=..., subagents=..., system_prompt=..., task_description=None,
            private_state_keys=None, state_schema=None)""",
        "deepagents.middleware.subagents:create_sub_agent": """(spec, *, state_schema=None,
            response_format=None)""",
        "deepagents.middleware.async_subagents:AsyncSubAgentMiddleware": """(*, async_subagents,
            system_prompt=None)""",
        "deepagents.middleware.memory:MemoryMiddleware": """(*, backend, sources, add_cache_control=False,
            system_prompt=...)""",
        "deepagents.middleware.skills:SkillsMiddleware": """(*, backend, sources, system_prompt=...,
            tools=None)""",
        "deepagents.middleware.summarization:SummarizationMiddleware": """(model, *, backend, trigger=None,
            keep=("messages", 20), token_counter=..., summary_prompt=..., trim_tokens_to_summarize=...,
            truncate_args_settings=None, summarizer=None, **deprecated_kwargs)""",
        "deepagents.middleware.summarization:create_summarization_middleware": """(model, backend, *,
            summary_prompt=..., trim_tokens_to_summarize=None, token_counter=..., summarizer=None)""",
        "deepagents.middleware.summarization:compute_summarization_defaults": "(model)",
        "deepagents.middleware.summarization:SummarizationToolMiddleware": """(summarization, *,
            system_prompt=None)""",
        "deepagents.middleware.summarization:create_summarization_tool_middleware": """(model, backend, *,
            system_prompt=None)""",
        "deepagents.middleware.rubric:RubricMiddleware": """(*, model, system_prompt=None, tools=None,
            grader_middleware=None, grader_context_schema=None, grader_state_schema=None,
            prepare_messages_for_grader=None, build_grader_state=None, max_iterations=3,
            on_evaluation=None)""",
        "deepagents.middleware.patch_tool_calls:PatchToolCallsMiddleware": "()",
        "deepagents:FilesystemPermission": '(operations, paths, mode="allow")',
        "deepagents:HarnessProfile": """(base_system_prompt=None, system_prompt_suffix=None,
            tool_description_overrides=..., excluded_tools=..., excluded_middleware=...,
            extra_middleware=..., general_purpose_subagent=None)""",
        "deepagents:HarnessProfileConfig": """(base_system_prompt=None, system_prompt_suffix=None,
            tool_description_overrides=..., excluded_tools=..., excluded_middleware=...,
            general_purpose_subagent=None)""",
        "deepagents:GeneralPurposeSubagentProfile": "(enabled=None, description=None, system_prompt=None)",
        "deepagents:ProviderProfile": "(init_kwargs=..., pre_init=None, init_kwargs_factory=None)",
        "deepagents:register_harness_profile": "(key, profile)",
        "deepagents:register_provider_profile": "(key, profile)",
        "deepagents.profiles.provider:apply_provider_profile": "(spec, kwargs=None, *, run_pre_init=True)",
        "deepagents.profiles.provider:get_provider_profile": "(spec)",
        "deepagents._models:resolve_model": "(model)",
        "deepagents._models:get_model_identifier": "(model)",
        "deepagents._models:get_model_provider": "(model)",
        "deepagents._models:model_matches_spec": "(model, spec)",
        "deepagents.backends:StoreBackend": "(*, namespace=..., store=None)",
        "deepagents.backends:CompositeBackend": "(default, routes, *, artifacts_root=...)",
        "deepagents.backends:FilesystemBackend": "(root_dir=None, virtual_mode=True, max_file_size_mb=10)",
        "deepagents.backends:LocalShellBackend": """(root_dir=None, *, virtual_mode=True, timeout=120,
            max_output_bytes=100000, env=None, inherit_env=False)""",
        "deepagents.backends.langsmith:LangSmithSandbox": "(sandbox)",
        "deepagents.backends.context_hub:ContextHubBackend": "(identifier, *, client=None)",
        "deepagents.backends.sandbox:BaseSandbox.execute_with_offload": """(self, command, capture_path, *,
            max_inline_bytes, max_capture_bytes=None, timeout=None)""",
        f"{_PROTOCOL}:SandboxBackendProtocol.execute": "(self, command, *, timeout=None)",
        f"{_PROTOCOL}:SandboxBackendProtocol.aexecute": "(self, command, *, timeout=None)",
        f"{_PROTOCOL}:execute_accepts_timeout": "(cls)",
        "deepagents.backends.utils:format_grep_matches": "(matches, output_mode=...)",
        "deepagents.middleware.memory:MemoryMiddleware.before_agent": "(self, state, runtime, config=None)",
        "deepagents.middleware.skills:SkillsMiddleware.before_agent": "(self, state, runtime, config=None)",
        "deepagents.backends.utils:create_file_data": '(content, created_at=None, encoding="utf-8")',
        "deepagents.backends.utils:update_file_data": "(file_data, content)",
        "deepagents.backends.utils:file_data_to_string": "(file_data)",
        "deepagents.backends.utils:format_content_with_line_numbers": "(content, start_line=1)",
        "deepagents.backends.utils:slice_read_response": "(file_data, offset, limit)",
        "deepagents.backends.utils:perform_string_replacement": """(content, old_string, new_string,
            replace_all=False)""",
        "deepagents.backends.utils:validate_path": "(path, *, allowed_prefixes=None)",
        "deepagents.backends.utils:grep_matches_from_files": """(files, pattern, path=None, glob=None, *,
            max_count=None)""",
        **{f"{_PROTOCOL}:{name}": signature for name, signature in _RESULTS.items()},
        **{
            f"{backend}.{call_mode}{name}": signature
            for backend in _BACKENDS
            for name, signature in _OPERATIONS.items()
            for call_mode in ("", "a")
        },
        **{
            f"{middleware}.{name}": signature
            for middleware in (_FILES, _TASKS)
            for name, signature in _HOOKS.items()
        },
    }
)

OUR_OWN: Final[Mapping[str, str]] = MappingProxyType(
    {
        "deepagents:create_deep_agent": "limits model_retries fallback_models mcp tool_search file_history",
        _FILES: "read_format edit_form backend_timeout",
    }
)
"""What two of these take beside."""
