"""The public names are the documented ones, on every documented path; importing them costs no provider."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

EXACT = {
    "deepagents": """
        AsyncSubAgent AsyncSubAgentMiddleware CompiledSubAgent DeepAgentState FilesystemMiddleware
        FilesystemPermission FsToolName GeneralPurposeSubagentProfile HarnessProfile HarnessProfileConfig
        Limits MemoryMiddleware Price ProviderProfile RubricMiddleware SubAgent SubAgentMiddleware
        __version__ create_deep_agent register_harness_profile register_provider_profile
    """,
    "deepagents.backends": """
        BackendProtocol CompositeBackend ContextHubBackend DEFAULT_EXECUTE_TIMEOUT FilesystemBackend
        LangSmithSandbox LocalShellBackend NamespaceFactory StateBackend StoreBackend
    """,
}

OFFERED = {
    "deepagents.graph": "DeepAgentState create_deep_agent get_default_model",
    "deepagents.backends.protocol": """
        BACKEND_TYPES BackendFactory BackendProtocol DeleteResult EditResult ExecuteArtifact
        ExecuteOffloadResult ExecuteResponse FILE_NOT_FOUND FileData FileDownloadResponse FileInfo
        FileOperationError FileUploadResponse GlobResult GrepMatch GrepResult INVALID_PATH IS_DIRECTORY
        LsResult PERMISSION_DENIED ReadResult SandboxBackendProtocol
        WriteResult execute_accepts_timeout
    """,
    "deepagents.backends.composite": "CompositeBackend",
    "deepagents.backends.context_hub": "ContextHubBackend",
    "deepagents.backends.filesystem": "FilesystemBackend",
    "deepagents.backends.langsmith": "LangSmithSandbox",
    "deepagents.backends.local_shell": "DEFAULT_EXECUTE_TIMEOUT LocalShellBackend",
    "deepagents.backends.sandbox": """
        BaseSandbox MAX_BINARY_BYTES MAX_OUTPUT_BYTES SandboxBackendProtocol TRUNCATION_MSG
    """,
    "deepagents.backends.state": "StateBackend",
    "deepagents.backends.store": "BackendContext NamespaceFactory StoreBackend",
    "deepagents.middleware": """
        CompiledSubAgent CriterionEval CriterionFail CriterionPass FilesystemMiddleware GRADER_SYSTEM_PROMPT
        GraderResponse GraderVerdict RUBRIC_GRADER_MESSAGE_SOURCE RubricEvaluation RubricMiddleware
        RubricResult RubricState SkillMetadata SkillToolResolver SkillsMiddleware SkillsState SubAgent
        SubAgentMiddleware
    """,
    "deepagents.middleware.approval": "ApprovalConfig RememberedDecision RememberedDecisions",
    "deepagents.middleware.fallback": "ModelFallbackMiddleware",
    "deepagents.middleware.filesystem": """
        FilesystemMiddleware FilesystemOperation FilesystemPermission FilesystemState FsToolName FileData
    """,
    "deepagents.middleware.memory": "MEMORY_SYSTEM_PROMPT MemoryMiddleware MemoryState",
    "deepagents.limits": "Limits Price",
    "deepagents.middleware.limits": "LIMIT_REACHED LimitsMiddleware",
    "deepagents.middleware.permissions": "FilesystemPermission",
    "deepagents.permissions": "FilesystemOperation FilesystemPermission",
    "deepagents.middleware.prompt_caching.middleware": """
        AnthropicPromptCachingMiddleware BedrockPromptCachingMiddleware FireworksPromptCachingMiddleware
        PromptCachingMiddleware
    """,
    "deepagents.middleware.patch_tool_calls.middleware": "PatchToolCallsMiddleware",
    "deepagents.middleware.rubric": """
        GRADER_SYSTEM_PROMPT RUBRIC_GRADER_MESSAGE_SOURCE GraderResponse RubricEvaluation RubricMiddleware
        RubricState
    """,
    "deepagents.middleware.skills": """
        MAX_SKILL_FILE_SIZE SKILLS_SYSTEM_PROMPT SkillMetadata SkillToolResolver SkillsMiddleware SkillsState
        SkillsStateUpdate disclosed_skill_tool_names
    """,
    "deepagents.middleware.summarization": """
        CompactConversationSchema DEEPAGENTS_DEFAULT_SUMMARY_PROMPT SUMMARIZATION_EVENT_KEY
        SUMMARIZATION_SESSION_ID_KEY SummarizationDefaults SummarizationEvent SummarizationMiddleware
        SummarizationState SummarizationToolMiddleware TriggerClause TruncateArgsSettings
        compute_summarization_defaults create_summarization_middleware create_summarization_tool_middleware
    """,
    "deepagents.middleware.subagents": """
        CompiledSubAgent DEFAULT_GENERAL_PURPOSE_DESCRIPTION DEFAULT_SUBAGENT_PROMPT SubAgent
        SubAgentMiddleware TASK_TOOL_DESCRIPTION
    """,
    "deepagents.profiles": """
        GeneralPurposeSubagentProfile HarnessProfile HarnessProfileConfig ProviderProfile
        register_harness_profile register_provider_profile
    """,
    "deepagents.profiles.harness": """
        GeneralPurposeSubagentProfile HarnessProfile HarnessProfileConfig register_harness_profile
    """,
    "deepagents.profiles.harness.harness_profiles": """
        GeneralPurposeSubagentProfile HarnessProfile HarnessProfileConfig register_harness_profile
    """,
    "deepagents.profiles.provider": """
        ProviderProfile apply_provider_profile get_provider_profile register_provider_profile
    """,
    "deepagents.profiles.provider.provider_profiles": """
        ProviderProfile apply_provider_profile get_provider_profile register_provider_profile
    """,
    "deepagents.testing": """
        Asked PrefixBreak ScriptedModel SharedPrefix WindowedModel assert_prefix_kept call calls
        history_faults is_summary_request prefix_breaks shared_prefix
    """,
    "deepagents.events": """
        ApprovalGiven ApprovalNeeded ApprovalRequest ContextCompacted Custom Event FinalAnswer LimitNear
        LimitReached ModelFailed PlanChanged QuestionAsked Reasoning RunFailed RunStarted RunStopped
        SubagentFinished SubagentStarted TaskChanged Todo Token ToolCalled ToolFinished Usage VERSION
        from_dict
    """,
    "deepagents.observe": "Observer STREAM aobserve interrupts_to_event",
    "deepagents.observe.stream": "Observer STREAM aobserve interrupts_to_event",
    "deepagents.errors": "BackendError ConfigError ErrorCode HarnessError ToolFailure UnknownModel",
}

HEAVY = ["anthropic", "langchain_anthropic", "langchain_openai", "openai", "rich", "xllamacpp"]


@pytest.mark.parametrize("module", EXACT)
def test_a_front_door_offers_exactly_the_documented_names(module: str) -> None:
    assert sorted(import_module(module).__all__) == sorted(EXACT[module].split())


@pytest.mark.parametrize("module", EXACT | OFFERED)
def test_every_documented_name_is_there(module: str) -> None:
    names = (EXACT | OFFERED)[module].split()

    assert [name for name in names if not hasattr(import_module(module), name)] == []


@pytest.mark.parametrize("module", EXACT | OFFERED)
def test_a_name_is_the_same_object_on_every_path(module: str) -> None:
    root = import_module("deepagents")
    shared = [name for name in OFFERED.get(module, "").split() if hasattr(root, name)]

    assert [name for name in shared if getattr(import_module(module), name) is not getattr(root, name)] == []


def test_importing_the_library_imports_no_provider() -> None:
    program = f"import deepagents, sys; print([name for name in {HEAVY} if name in sys.modules])"

    assert (
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout.strip() == "[]"
    )
