"""The public names are the documented ones, on every documented path; importing them costs no provider."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

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
        LangSmithSandbox LocalSandbox LocalShellBackend NamespaceFactory StateBackend StoreBackend
    """,
}

OFFERED = {
    "deepagents.middleware.approval": "ApprovalConfig RememberedDecision RememberedDecisions",
    "deepagents.middleware.fallback": "ModelFallbackMiddleware",
    "deepagents.limits": "Limits Price",
    "deepagents.middleware.limits": "LIMIT_REACHED LimitsMiddleware",
    "deepagents.permissions": "FilesystemOperation FilesystemPermission",
    "deepagents.middleware.prompt_caching.middleware": """
        AnthropicPromptCachingMiddleware BedrockPromptCachingMiddleware FireworksPromptCachingMiddleware
        PromptCachingMiddleware
    """,
    "deepagents.middleware.patch_tool_calls.middleware": "PatchToolCallsMiddleware",
    "deepagents.middleware.skills": "MAX_SKILL_FILE_SIZE",
    "deepagents.profiles.harness": """
        GeneralPurposeSubagentProfile HarnessProfile HarnessProfileConfig register_harness_profile
    """,
    "deepagents.profiles.harness.harness_profiles": """
        GeneralPurposeSubagentProfile HarnessProfile HarnessProfileConfig register_harness_profile
    """,
    "deepagents.profiles.provider.provider_profiles": """
        ProviderProfile get_provider_profile register_provider_profile
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
"""What stands elsewhere than in the lists of tests/compat/documented_names.py."""

HEAVY = ["anthropic", "langchain_anthropic", "langchain_openai", "openai", "rich", "xllamacpp"]

RARE = (
    "deepagents.mcp.",
    "deepagents.middleware.mcp",
    "deepagents.middleware.code_mode",
    "deepagents.middleware.tool_search.",
    "deepagents.middleware.skills.middleware",
    "deepagents.undo.",
    "regex",
    "yaml",
)


@pytest.mark.parametrize("module", EXACT)
def test_a_front_door_offers_exactly_the_documented_names(module: str) -> None:
    assert sorted(import_module(module).__all__) == sorted(EXACT[module].split())


NAMES = [(module, name) for module, names in (EXACT | OFFERED).items() for name in names.split()]


LAZY = ("deepagents.backends", "deepagents.mcp", "deepagents.middleware", "deepagents.middleware.skills")


@pytest.mark.parametrize("module", LAZY)
def test_names_that_load_on_first_use_are_listed_at_once(module: str) -> None:
    program = (
        f"import sys, {module}; here = sys.modules[{module!r}]; print({{*here.__all__}} - {{*dir(here)}})"
    )

    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "set()\n"


def test_the_modules_of_middleware_are_there_as_if_all_were_imported() -> None:
    program = "import deepagents.middleware as m; print(m.skills.SkillsMiddleware is m.SkillsMiddleware)"

    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "True\n"


def test_every_documented_name_is_there() -> None:
    assert [(module, name) for module, name in NAMES if not hasattr(import_module(module), name)] == []


def test_a_name_is_the_same_object_on_every_path() -> None:
    root = import_module("deepagents")
    shared = [(module, name) for module, name in NAMES if module in OFFERED and hasattr(root, name)]

    assert shared
    assert [
        (module, name)
        for module, name in shared
        if getattr(import_module(module), name) is not getattr(root, name)
    ] == []


def test_importing_the_library_imports_no_provider() -> None:
    program = f"import deepagents, sys; print([name for name in {HEAVY} if name in sys.modules])"

    assert (
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout.strip() == "[]"
    )


def test_a_plain_agent_imports_nothing_of_features_that_few_have() -> None:
    program = f"""
import sys
from deepagents import create_deep_agent
from deepagents.testing import ScriptedModel

agent = create_deep_agent(ScriptedModel("Done."))
agent.invoke({{"messages": [{{"role": "user", "content": "Begin."}}]}})
print([name for name in sys.modules if name.startswith({RARE})])
"""

    assert (
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout.strip() == "[]"
    )


def test_importing_the_command_line_leaves_the_path_of_imports() -> None:
    """Programs that look at all modules of a package import it too."""
    program = "import sys; path = [*sys.path]; import deepagents.__main__; print(sys.path == path)"

    assert (
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout.strip()
        == "True"
    )


@pytest.mark.parametrize(
    ("module", "name"),
    [("deepagents", "create_deep_agent"), ("deepagents.middleware.filesystem", "LINE_NUMBER_WIDTH")],
    ids=["today's", "older"],
)
def test_a_broken_dependency_is_named_by_the_import(tmp_path: Path, module: str, name: str) -> None:
    """Versions that do not fit each other show as an `AttributeError` while a module is imported."""
    (tmp_path / "bracex.py").write_text("raise AttributeError('no such thing in this version')\n")
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from {module} import {name}"

    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stderr

    assert "AttributeError: no such thing in this version" in said
    assert "cannot import name" not in said
