"""Every module has tests where its name, or the table here, says they are."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from tests.architecture.rules import expected_tests
from tests.architecture.source import ROOT, sources

TESTED_BY: dict[str, str] = {
    "deepagents/_beta.py": "agents/test_forks.py",
    "deepagents/_checks.py": "agents/test_namesakes.py",
    "deepagents/_children.py": "agents/test_subagents.py",
    "deepagents/_compat.py": "compat/test_honoured.py",
    "deepagents/_api/deprecation.py": "compat/test_deprecation.py",
    "deepagents/_editable.py": "compat/test_private_names.py",
    "deepagents/_honoured.py": "compat/test_private_names.py",
    "deepagents/_messages_reducer.py": "compat/test_private_names.py",
    "deepagents/backends/sandbox/honoured.py": "compat/test_older_commands.py",
    "deepagents/backends/sandbox/scripts/older.py": "compat/test_older_commands.py",
    "deepagents/middleware/_honoured.py": "compat/test_private_names.py",
    "deepagents/middleware/_message_eviction.py": "compat/test_private_names.py",
    "deepagents/middleware/_state.py": "compat/test_private_names.py",
    "deepagents/middleware/_tool_exclusion.py": "compat/test_honoured.py",
    "deepagents/middleware/filesystem/honoured.py": "compat/test_honoured.py",
    "deepagents/middleware/skills/honoured.py": "compat/test_honoured.py",
    "deepagents/middleware/async_subagents/honoured.py": "compat/test_honoured.py",
    "deepagents/_deadline.py": "middleware/test_limits.py",
    "deepagents/limits.py": "middleware/test_limits.py",
    "deepagents/middleware/_accounts.py": "agents/test_runaways.py",
    "deepagents/middleware/_ledger.py": "agents/test_runaways_resumed.py",
    "deepagents/middleware/_meter.py": "middleware/test_limits.py",
    "deepagents/_deprecation.py": "compat/test_creating.py",
    "deepagents/_exclusions.py": "profiles/test_exclusions.py",
    "deepagents/_models.py": "compat/test_models.py",
    "deepagents/models/profile_keys.py": "models/test_provider_profiles.py",
    "deepagents/models/registry.py": "models/test_provider_profiles.py",
    "deepagents/profiles/harness/honoured.py": "compat/test_honoured.py",
    "deepagents/profiles/provider/honoured.py": "compat/test_honoured.py",
    "deepagents/profiles/provider/provider_profiles.py": "compat/test_names.py",
    "deepagents/_handed.py": "agents/test_handed_files.py",
    "deepagents/_lazy.py": "architecture/test_exports.py",
    "deepagents/_makers.py": "agents/test_create_deep_agent.py",
    "deepagents/_plan.py": "agents/test_create_deep_agent.py",
    "deepagents/_prompt.py": "agents/test_create_deep_agent.py",
    "deepagents/_slots.py": "agents/test_create_deep_agent.py",
    "deepagents/_stack.py": "agents/test_create_deep_agent.py",
    "deepagents/_compiled.py": "agents/test_streaming.py",
    "deepagents/_state.py": "agents/test_create_deep_agent.py",
    "deepagents/_tools.py": "agents/test_create_deep_agent.py",
    "deepagents/_version.py": "architecture/test_exports.py",
    "deepagents/backends/_appending.py": "backends/test_appending.py",
    "deepagents/backends/_answering.py": "backends/test_flat.py",
    "deepagents/backends/_enforcing.py": "agents/test_permissions.py",
    "deepagents/backends/_flowing.py": "backends/test_store.py",
    "deepagents/backends/_guard.py": "agents/test_permissions.py",
    "deepagents/backends/_honoured.py": "compat/test_honoured.py",
    "deepagents/backends/_legacy.py": "compat/test_older_backends.py",
    "deepagents/backends/_missing.py": "agents/test_permissions.py",
    "deepagents/backends/_older_names.py": "compat/test_older_backends.py",
    "deepagents/backends/_older_shapes.py": "compat/test_older_backends.py",
    "deepagents/backends/_namespaces.py": "backends/test_store.py",
    "deepagents/backends/_rewrite.py": "backends/test_store.py",
    "deepagents/backends/_shelf.py": "backends/test_store.py",
    "deepagents/backends/_stored.py": "backends/test_store.py",
    "deepagents/backends/calls.py": "tools/test_read_file.py",
    "deepagents/backends/guarded.py": "agents/test_permissions.py",
    "deepagents/backends/matches.py": "backends/test_utils.py",
    "deepagents/graph.py": "agents/test_create_deep_agent.py",
    "deepagents/middleware/_cache_marks.py": "middleware/test_prompt_caching.py",
    "deepagents/middleware/_cache_places.py": "middleware/test_prompt_caching.py",
    "deepagents/_announced.py": "observe/test_observe.py",
    "deepagents/middleware/_announcing.py": "observe/test_observe.py",
    "deepagents/middleware/_base.py": "middleware/test_filesystem.py",
    "deepagents/middleware/_dangling.py": "middleware/test_patch_tool_calls.py",
    "deepagents/middleware/_notices.py": "middleware/test_eviction.py",
    "deepagents/middleware/_turns.py": "middleware/test_unsupported_content.py",
    "deepagents/middleware/summarization/estimates.py": "middleware/test_counting.py",
    "deepagents/middleware/summarization/sizes.py": "middleware/test_policy.py",
    "deepagents/middleware/_fs_interrupt.py": "agents/test_permissions.py",
    "deepagents/middleware/_approval_entries.py": "agents/test_wrong_answers.py",
    "deepagents/middleware/_approval_state.py": "agents/test_remembering.py",
    "deepagents/middleware/_handed_decisions.py": "agents/test_remembering.py",
    "deepagents/middleware/_same_tools.py": "agents/test_remembering.py",
    "deepagents/middleware/_remembered.py": "agents/test_remembering.py",
    "deepagents/middleware/_waiting.py": "agents/test_permissions.py",
    "deepagents/middleware/_approval_requests.py": "agents/test_approval.py",
    "deepagents/middleware/_utils.py": "compat/test_honoured.py",
    "deepagents/middleware/interrupts.py": "agents/test_asking.py",
    "deepagents/middleware/tool_exclusion.py": "agents/test_create_deep_agent.py",
    "deepagents/tools/_seen.py": "tools/test_edit_file.py",
    "deepagents/tools/_tool.py": "tools/test_ls.py",
}
"""Modules that are tested through the front door of another."""


def test_every_module_has_a_test_file() -> None:
    files = {_test_file(path.relative_to(ROOT / "tests")) for path in (ROOT / "tests").rglob("test_*.py")}
    modules = [source.path.relative_to("src") for source in sources("src") if source.path.stem != "__init__"]
    untested = [
        str(module)
        for module in modules
        if str(module) not in TESTED_BY and files.isdisjoint(expected_tests(module))
    ]

    assert not untested, "\n".join(["", *untested])


def test_the_table_names_what_is_there_and_needed() -> None:
    assert [module for module in TESTED_BY if not (ROOT / "src" / module).exists()] == []
    assert [test for test in TESTED_BY.values() if not (ROOT / "tests" / test).exists()] == []


def test_a_module_is_tested_by_its_name_or_by_the_name_of_its_folder() -> None:
    assert "kernel/test_flow.py" in expected_tests(PurePosixPath("deepagents/_flow.py"))
    assert expected_tests(PurePosixPath("deepagents_cli/modes/print.py")) == [
        "cli/test_print.py",
        "cli/test_modes.py",
    ]
    assert expected_tests(PurePosixPath("deepagents/middleware/filesystem/eviction.py")) == [
        "middleware/test_eviction.py",
        "middleware/test_filesystem.py",
        "agents/test_eviction.py",
        "agents/test_filesystem.py",
    ]


def _test_file(path: Path) -> str:
    """Name a test file by its area, whatever folders it is sorted into."""
    return f"{path.parts[0]}/{path.name.replace('test__', 'test_')}"
