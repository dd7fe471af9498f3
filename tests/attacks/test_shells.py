"""Commands do not bypass a rule: where they could, there are no commands or no agent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deepagents import FilesystemMiddleware, create_deep_agent
from deepagents.backends import CompositeBackend, FilesystemBackend, LocalShellBackend, StateBackend
from deepagents.backends.protocol import BackendProtocol, LsResult
from deepagents.errors import HarnessError
from deepagents.permissions import FilesystemPermission
from deepagents.testing import ScriptedModel, call
from tests.attacks.harness import CANARY, Ground
from tests.conftest import CallMode


def deny(*paths: str) -> list[FilesystemPermission]:
    return [FilesystemPermission(["read", "write"], list(paths), "deny")]


def shell(root: Path) -> LocalShellBackend:
    return LocalShellBackend(root)


def shell_and_route(root: Path) -> CompositeBackend:
    return CompositeBackend(
        default=LocalShellBackend(root), routes={"/mem/": FilesystemBackend(root / "secrets")}
    )


class Silent(BackendProtocol):
    """Hands files of this disk on, and does not say so."""

    def __init__(self, files: FilesystemBackend) -> None:
        self._files = files

    def ls(self, path: str) -> LsResult:
        return self._files.ls(path)


def shell_and_silent_route(root: Path) -> CompositeBackend:
    return CompositeBackend(
        default=LocalShellBackend(root), routes={"/mem/": Silent(FilesystemBackend(root / "secrets"))}
    )


def shell_and_silent_routes(root: Path) -> CompositeBackend:
    inner = CompositeBackend(
        default=StateBackend(), routes={"/mem/": Silent(FilesystemBackend(root / "secrets"))}
    )
    return CompositeBackend(default=LocalShellBackend(root), routes={"/inner/": inner})


def shell_in_a_route_in_a_route(root: Path) -> CompositeBackend:
    inner = CompositeBackend(
        default=LocalShellBackend(root), routes={"/x/": FilesystemBackend(root / "secrets")}
    )
    return CompositeBackend(default=inner, routes={"/other/": StateBackend()})


REFUSED: dict[str, tuple[Callable[[Path], Any], list[str]]] = {
    "a rule on a shell": (shell, ["/secrets/**"]),
    "a rule on one file of a shell": (shell, ["/secrets/plan.txt"]),
    "a rule on a route that lies on this disk": (shell_and_route, ["/mem/**"]),
    "a rule on a route that does not say where it lies": (shell_and_silent_route, ["/mem/**"]),
    "a rule on a route of a route that does not say where it lies": (
        shell_and_silent_routes,
        ["/inner/mem/**"],
    ),
    "a rule on a name that begins like a route": (shell_and_route, ["/memory/**"]),
    "a rule on all names": (shell_and_route, ["/**/*.env"]),
    "a rule on a route beside a rule that holds": (shell_and_route, ["/mem/a", "/secrets/**"]),
    "a rule on a route of a route": (shell_in_a_route_in_a_route, ["/x/**"]),
}


@pytest.mark.parametrize(("make", "paths"), REFUSED.values(), ids=list(REFUSED))
@pytest.mark.parametrize("mode", ["deny", "interrupt"])
def test_rules_that_commands_go_round_are_not_accepted(
    tmp_path: Path, make: Callable[[Path], Any], paths: list[str], mode: Any
) -> None:
    rules = [FilesystemPermission(["read"], paths, mode)]

    with pytest.raises((NotImplementedError, HarnessError), match="execute"):
        create_deep_agent(ScriptedModel(), backend=make(tmp_path), permissions=rules)


def test_without_commands_a_rule_on_a_shell_holds(tmp_path: Path, call_mode: CallMode) -> None:
    root = tmp_path / "real" / "root"
    (root / "secrets").mkdir(parents=True)
    (root / "secrets" / "plan.txt").write_text(CANARY)
    backend = LocalShellBackend(root)
    files = FilesystemMiddleware(backend=backend, tools=["ls", "read_file"])
    options = {"backend": backend, "middleware": [files], "permissions": deny("/secrets/**")}
    made = Ground(tmp_path / "real", root, options, kept=[root / "secrets"])
    run = made.run(
        call_mode,
        call("read_file", file_path="/secrets/plan.txt"),
        call("execute", command="cat secrets/plan.txt"),
    )

    assert [each for each in run.problems() if not each.startswith("execute")] == []
    assert run.answers[1].status == "error"


def test_a_backend_chosen_at_run_time_does_not_bring_commands_past_a_rule(
    tmp_path: Path, call_mode: CallMode
) -> None:
    root = tmp_path / "real" / "root"
    (root / "secrets").mkdir(parents=True)
    (root / "secrets" / "plan.txt").write_text(CANARY)
    with pytest.warns(DeprecationWarning, match="factory"):
        files = FilesystemMiddleware(
            backend=lambda runtime: LocalShellBackend(root), permissions=deny("/secrets/**")
        )
    made = Ground(tmp_path / "real", root, {"middleware": [files]}, kept=[root / "secrets"])
    run = made.run(call_mode, call("execute", command="cat secrets/plan.txt; rm -r secrets"))

    assert run.problems() == []
    assert run.codes == ["permission_denied"]


def test_commands_see_no_key_of_this_process(
    disk: Ground, call_mode: CallMode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    disk.options["backend"] = LocalShellBackend(disk.root)
    disk.harmless |= {"execute"}

    run = disk.run(call_mode, call("execute", command="env; set; cat /proc/self/environ"))

    assert run.answers[0].status == "success"
    assert [each for each in run.problems() if CANARY in each] == []
