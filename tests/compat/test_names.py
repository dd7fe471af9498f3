"""Every documented name can be imported from its documented path, and is one object on all paths."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
from langchain_core.tools import BaseTool

import deepagents
from deepagents import FilesystemMiddleware, SubAgentMiddleware
from deepagents.backends import FilesystemBackend, LocalShellBackend, StateBackend
from deepagents.middleware import filesystem, subagents
from deepagents.testing import ScriptedModel
from deepagents.tools._video import video_dependencies_available

NAMES = {
    "deepagents.graph": "BASE_AGENT_PROMPT Checkpointer DeepAgentState create_deep_agent get_default_model",
    "deepagents.middleware": """
        CompiledSubAgent DEEPAGENTS_DEFAULT_SUMMARY_PROMPT FilesystemMiddleware SubAgent SubAgentMiddleware
        SummarizationMiddleware SummarizationToolMiddleware create_summarization_tool_middleware
    """,
    "deepagents.middleware.summarization": """
        CompactConversationSchema DEEPAGENTS_DEFAULT_SUMMARY_PROMPT SUMMARIZATION_EVENT_KEY
        SUMMARIZATION_SESSION_ID_KEY SummarizationDefaults SummarizationEvent SummarizationMiddleware
        SummarizationState SummarizationToolMiddleware TriggerClause TruncateArgsSettings
        compute_summarization_defaults create_summarization_middleware create_summarization_tool_middleware
    """,
    "deepagents.middleware.subagents": """
        CompiledSubAgent DEFAULT_GENERAL_PURPOSE_DESCRIPTION DEFAULT_SUBAGENT_PROMPT
        GENERAL_PURPOSE_SUBAGENT SubAgent SubAgentMiddleware TASK_SYSTEM_PROMPT TASK_TOOL_DESCRIPTION
        TaskToolSchema create_sub_agent
    """,
    "deepagents.middleware.filesystem": """
        DEFAULT_READ_LIMIT DEFAULT_READ_OFFSET DELETE_TOOL_DESCRIPTION DeleteSchema EDIT_FILE_TOOL_DESCRIPTION
        EMPTY_CONTENT_WARNING EXECUTE_TOOL_DESCRIPTION EditFileSchema ExecuteSchema FILESYSTEM_SYSTEM_PROMPT
        GLOB_TIMEOUT GREP_GLOB_DESCRIPTION GREP_OUTPUT_MODE_DESCRIPTION READ_FILE_TRUNCATION_MSG
        FileData FilesystemMiddleware FilesystemState FsToolName GLOB_TOOL_DESCRIPTION GLOB_TRUNCATION_NOTE
        GLOB_UNREADABLE_NOTE GREP_TOOL_DESCRIPTION GREP_TRUNCATION_NOTE GlobSchema GrepSchema
        LIST_FILES_TOOL_DESCRIPTION LsSchema NO_LINES_REQUESTED_WARNING NUM_CHARS_PER_TOKEN
        READ_FILE_TOOL_DESCRIPTION ReadFileSchema TOOLS_EXCLUDED_FROM_EVICTION WRITE_FILE_TOOL_DESCRIPTION
        WriteFileSchema sanitize_tool_call_id supports_execution
    """,
    "deepagents.middleware.patch_tool_calls": "PatchToolCallsMiddleware",
    "deepagents.backends": """
        BackendProtocol DEFAULT_EXECUTE_TIMEOUT FilesystemBackend LocalShellBackend StateBackend
    """,
    "deepagents.backends.protocol": """
        ASYNC_GREP_TIMEOUT BACKEND_TYPES BackendFactory BackendProtocol DEFAULT_GREP_TIMEOUT DeleteResult
        EditResult ExecuteArtifact ExecuteOffloadResult ExecuteResponse FileData FileDownloadResponse FileInfo
        FileOperationError FileUploadResponse GlobResult GrepMatch GrepResult LsResult ReadResult
        SandboxBackendProtocol WriteResult execute_accepts_timeout
    """,
    "deepagents.backends.state": "StateBackend",
    "deepagents.backends.filesystem": "FilesystemBackend",
    "deepagents.backends.local_shell": "DEFAULT_EXECUTE_TIMEOUT LocalShellBackend",
    "deepagents.backends.utils": """
        EMPTY_CONTENT_WARNING InvalidGlobPatternError MAX_LINE_LENGTH TOOL_RESULT_TOKEN_LIMIT
        TRUNCATION_GUIDANCE check_empty_content create_file_data file_data_to_string
        format_content_with_line_numbers format_grep_matches grep_matches_from_files
        perform_string_replacement regex_literal_hint sanitize_tool_call_id slice_read_response
        truncate_if_too_long update_file_data validate_path
    """,
    "deepagents.profiles": "GeneralPurposeSubagentProfile HarnessProfile register_harness_profile",
}

FACADES = [*filter(lambda module: not module.endswith((".patch_tool_calls", ".backends.state")), NAMES)]
FRONT_DOORS: tuple[str, ...] = ("deepagents", "deepagents.middleware", "deepagents.backends")


@pytest.mark.parametrize("module", NAMES)
def test_a_documented_name_can_be_imported(module: str) -> None:
    missing = [name for name in NAMES[module].split() if not hasattr(import_module(module), name)]

    assert missing == []


@pytest.mark.parametrize("module", FACADES)
def test_a_documented_name_is_promised(module: str) -> None:
    promised: list[str] = import_module(module).__all__

    assert sorted({*NAMES[module].split()} - {*promised}) == []


@pytest.mark.parametrize("door", FRONT_DOORS)
def test_a_name_is_one_object_on_every_path(door: str) -> None:
    front = import_module(door)
    offered: list[str] = front.__all__
    homes = {name: module for module, names in NAMES.items() for name in names.split() if name in offered}

    assert homes
    assert [
        name for name, home in homes.items() if getattr(import_module(home), name) is not getattr(front, name)
    ] == []


def test_a_name_that_never_was_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'create_shallow_agent'"):
        _ = deepagents.create_shallow_agent


def test_a_description_is_what_the_model_reads() -> None:
    tools: dict[str, BaseTool] = {each.name: each for each in FilesystemMiddleware().tools}
    read = "READ_FILE_VIDEO" if video_dependencies_available() else "READ_FILE"
    constants = {name: name.upper() for name in tools} | {"ls": "LIST_FILES", "read_file": read}

    assert {
        name: getattr(filesystem, f"{constant}_TOOL_DESCRIPTION") for name, constant in constants.items()
    } == {name: each.description for name, each in tools.items()}


def test_the_general_purpose_agent_can_be_built_upon() -> None:
    spec: Any = {**subagents.GENERAL_PURPOSE_SUBAGENT, "model": ScriptedModel(), "tools": []}

    assert SubAgentMiddleware(subagents=[spec]).subagent_names == {"general-purpose"}


def test_a_backend_tells_whether_it_runs_commands(tmp_path: Any) -> None:
    assert not filesystem.supports_execution(StateBackend())
    assert not filesystem.supports_execution(FilesystemBackend(root_dir=tmp_path))
    assert filesystem.supports_execution(LocalShellBackend(root_dir=tmp_path))
