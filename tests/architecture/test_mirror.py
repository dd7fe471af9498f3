"""A reader finds the tests of a public module by its name."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from tests.architecture.rules import expected_tests
from tests.architecture.source import ROOT, sources

TESTED_BY: dict[str, str] = {
    "deepagents_cli/commands/chat.py": "cli/test_chat.py",
    "deepagents_cli/project/state.py": "cli/test_sessions.py",
    "deepagents_cli/session/conversation": "cli/test_session.py",
    "deepagents_cli/session/display": "cli/test_session.py",
    "deepagents_cli/session/threads": "cli/test_session.py",
    "deepagents_cli/session/workplace": "cli/test_session.py",
    "deepagents_cli/session/workplace/confined.py": "cli/test_servers.py",
    "deepagents_cli/session/threads/driver.py": "cli/test_session.py",
    "deepagents_cli/project/machine.py": "cli/test_doctor.py",
    "deepagents_cli/project/checks.py": "cli/test_doctor.py",
    "deepagents_cli/session/threads/export.py": "cli/test_sessions.py",
    "deepagents_cli/session/agent/access.py": "cli/test_args.py",
    "deepagents_cli/views/chat/input": "cli/test_pieces.py",
    "deepagents_cli/views/chat/screen": "cli/test_pieces.py",
    "deepagents_cli/views/chat/worker": "cli/test_chat.py",
    "deepagents_cli/views/conversation": "cli/test_pieces.py",
    "deepagents_cli/views/rendering": "cli/test_pieces.py",
    "deepagents_cli/views/terminal": "cli/test_pieces.py",
    "deepagents_cli/views/lines.py": "cli/test_approval.py",
    "deepagents_cli/views/region.py": "cli/terminal/test_one_task.py",
    "deepagents_cli/project/markdown.py": "cli/test_commands.py",
    "deepagents_cli/project/setup.py": "cli/test_trust.py",
    "deepagents_cli/approval/backends.py": "cli/test_sandbox.py",
    "deepagents_cli/approval/facts.py": "cli/test_policy.py",
    "deepagents_cli/approval/questions.py": "cli/test_approval.py",
    "deepagents_cli/values.py": "cli/test_limits.py",
    "deepagents_local/catalog.py": "local/test_weights.py",
    "deepagents_local/engine.py": "local/test_llama.py",
    "deepagents_local/provider.py": "models/test_resolve.py",
    "deepagents_local/streams.py": "local/test_chat.py",
    "deepagents_local/errors.py": "local/test_weights.py",
    "deepagents_cli/commands/keys.py": "server/test_keys.py",
    "deepagents_cli/commands/runs.py": "server/test_run_control.py",
    "deepagents_server/api/access.py": "server/test_auth.py",
    "deepagents_server/api/forms.py": "server/test_mcp.py",
    "deepagents_server/api/gate.py": "server/test_keys.py",
    "deepagents_server/api/endpoint.py": "server/test_system.py",
    "deepagents_server/api/parameters.py": "server/test_system.py",
    "deepagents_server/api/request_log.py": "server/test_logs.py",
    "deepagents_server/api/openapi.py": "server/test_system.py",
    "deepagents_server/background.py": "server/test_crons.py",
    "deepagents_server/config_file.py": "server/test_config.py",
    "deepagents_server/create.py": "server/test_runs.py",
    "deepagents_server/deliveries.py": "server/test_webhooks.py",
    "deepagents_server/errors.py": "server/test_runs.py",
    "deepagents_server/graphs.py": "server/test_config.py",
    "deepagents_server/loopback.py": "server/test_async_subagents.py",
    "deepagents_server/serialize.py": "server/test_threads.py",
    "deepagents_server/server.py": "server/test_system.py",
    "deepagents_server/serve.py": "server/test_system.py",
    "deepagents_server/state.py": "server/test_threads.py",
    "deepagents_server/events.py": "server/test_streaming.py",
    "deepagents_server/thread_events.py": "server/test_thread_streams.py",
    "deepagents_server/message_blocks.py": "server/test_thread_streams.py",
    "deepagents_server/protocol_events.py": "server/test_thread_streams.py",
    "deepagents_server/api/app.py": "server/test_system.py",
    "deepagents_server/api/bodies.py": "server/test_system.py",
    "deepagents_server/api/common.py": "server/test_threads.py",
    "deepagents_server/database/fenced.py": "server/test_database.py",
    "deepagents_server/database/filters.py": "server/test_threads.py",
    "deepagents_server/database/run_control.py": "server/test_run_control.py",
    "deepagents_server/database/notices.py": "server/test_workers.py",
    "deepagents_server/runs/liveness.py": "server/test_workers.py",
    "deepagents_server/runs/stream.py": "server/test_streaming.py",
    "deepagents_server/runs/active.py": "server/test_cancel.py",
    "deepagents_server/runs/usage.py": "server/test_metrics.py",
    "deepagents_cli/views/acp/answering.py": "cli/views/acp/test_terminals.py",
    "deepagents_cli/views/acp/calls.py": "cli/views/acp/test_agent.py",
    "deepagents_cli/views/acp/options.py": "cli/views/acp/test_sessions.py",
    "deepagents_cli/views/acp/outbox.py": "cli/views/acp/test_agent.py",
    "deepagents_cli/views/acp/questions.py": "cli/views/acp/test_agent.py",
    "deepagents_cli/views/acp/talk.py": "cli/views/acp/test_agent.py",
    "deepagents_cli/views/acp/updates.py": "cli/views/acp/test_agent.py",
    "deepagents/decisions.py": "agents/test_remembering.py",
    "deepagents/limits.py": "middleware/test_limits.py",
    "deepagents/mcp/calls.py": "mcp/test_questions.py",
    "deepagents/mcp/connection.py": "mcp/test_failures.py",
    "deepagents/mcp/core.py": "mcp/test_servers.py",
    "deepagents/mcp/listing.py": "mcp/test_changes.py",
    "deepagents/mcp/loop.py": "mcp/test_servers.py",
    "deepagents/mcp/offered.py": "mcp/test_bounds.py",
    "deepagents/mcp/status.py": "mcp/test_servers.py",
    "deepagents/mcp/stdio.py": "mcp/test_processes.py",
    "deepagents/mcp/tools.py": "mcp/test_servers.py",
    "deepagents/mcp/wire.py": "mcp/test_bounds.py",
    "deepagents/middleware/mcp.py": "mcp/test_servers.py",
    "deepagents/network.py": "sandbox/test_network.py",
    "deepagents/models/registry.py": "models/test_provider_profiles.py",
    "deepagents/profiles/harness/harness_profiles.py": "profiles/test_registry.py",
    "deepagents/profiles/provider/provider_profiles.py": "compat/test_names.py",
    "deepagents/backends/capabilities.py": "backends/test_protocol.py",
    "deepagents/backends/keyed_files.py": "backends/test_state.py",
    "deepagents/backends/foreign/__init__.py": "backends/test_subclassing.py",
    "deepagents/backends/foreign/answers.py": "compat/test_older_backends.py",
    "deepagents/backends/foreign/enforcement.py": "agents/test_permissions.py",
    "deepagents/backends/foreign/forms.py": "compat/test_older_backends.py",
    "deepagents/backends/foreign/methods.py": "backends/test_call.py",
    "deepagents/backends/foreign/whole.py": "backends/test_appending.py",
    "deepagents/backends/guard.py": "agents/test_permissions.py",
    "deepagents/backends/handle.py": "backends/test_call.py",
    "deepagents/backends/operations.py": "backends/test_call.py",
    "deepagents/backends/filesystem/locks.py": "backends/test_filesystem_crashes.py",
    "deepagents_sandbox/backend.py": "sandbox/test_escapes.py",
    "deepagents_sandbox/bridge.py": "sandbox/test_network.py",
    "deepagents_sandbox/bubblewrap.py": "sandbox/test_escapes.py",
    "deepagents_sandbox/first_process.py": "sandbox/test_killed.py",
    "deepagents_sandbox/given.py": "sandbox/test_given_paths.py",
    "deepagents_sandbox/guard.py": "sandbox/test_killed.py",
    "deepagents_sandbox/held.py": "sandbox/test_session.py",
    "deepagents_sandbox/inside.py": "sandbox/test_network.py",
    "deepagents_sandbox/leftovers.py": "sandbox/test_killed.py",
    "deepagents_sandbox/limits.py": "sandbox/test_limits.py",
    "deepagents_sandbox/macos.py": "sandbox/test_seatbelt.py",
    "deepagents_sandbox/mounts.py": "sandbox/test_escapes.py",
    "deepagents_sandbox/obeyed.py": "sandbox/test_escapes.py",
    "deepagents_sandbox/platforms.py": "sandbox/test_seatbelt.py",
    "deepagents_sandbox/proxy.py": "sandbox/test_network.py",
    "deepagents_sandbox/rules.py": "sandbox/test_rules.py",
    "deepagents_sandbox/seatbelt.py": "sandbox/test_seatbelt.py",
    "deepagents_sandbox/seccomp.py": "sandbox/test_escapes.py",
    "deepagents_sandbox/session.py": "sandbox/test_session.py",
    "deepagents_sandbox/session_inside.py": "sandbox/test_session.py",
    "deepagents/graph.py": "agents/test_create_deep_agent.py",
    "deepagents/middleware/retries.py": "middleware/test_fallback.py",
    "deepagents/middleware/tool_exclusion.py": "agents/test_create_deep_agent.py",
    "deepagents/models/compaction.py": "middleware/test_provider_compaction.py",
    "deepagents/models/endings.py": "agents/test_broken_answers.py",
    "deepagents/models/keyless.py": "agents/test_wrong_arguments.py",
}
"""Public modules, or all of a folder, that are tested through another; private ones are held by coverage."""


def test_every_public_module_has_a_test_file() -> None:
    files = {_test_file(path.relative_to(ROOT / "tests")) for path in (ROOT / "tests").rglob("test_*.py")}
    modules = [source.path.relative_to("src") for source in sources("src")]
    untested = [
        str(module)
        for module in modules
        if not any(part.startswith("_") for part in module.parts)
        and TESTED_BY.keys().isdisjoint({str(module), str(module.parent)})
        and files.isdisjoint(expected_tests(module))
    ]

    assert not untested, "\n".join(["", *untested])


def test_a_module_is_tested_by_its_name_or_by_the_name_of_its_folder() -> None:
    assert expected_tests(PurePosixPath("deepagents_cli/terminal.py")) == ["cli/test_terminal.py"]
    assert expected_tests(PurePosixPath("deepagents/middleware/filesystem/eviction.py")) == [
        "middleware/test_eviction.py",
        "middleware/test_filesystem.py",
        "agents/test_eviction.py",
        "agents/test_filesystem.py",
    ]


def _test_file(path: Path) -> str:
    """Name a test file by its area, whatever folders it is sorted into."""
    return f"{path.parts[0]}/{path.name.replace('test__', 'test_')}"
