"""What this program obeys and keeps is guarded wherever it lies, and so are the dot files of a home."""

from __future__ import annotations

from pathlib import Path

import pytest

from deepagents.testing import ScriptedModel, call
from tests.cli.approval.test_sandbox import needs_sandbox
from tests.cli.conftest import Command

KEY = "canary-77aa"


@pytest.fixture
def home(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of the agent, as the home of this person, with what programs keep in one."""
    monkeypatch.setenv("HOME", str(directory))
    for name in ("DEEPAGENTS_SETTINGS", "DEEPAGENTS_STATE", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name in (".ssh/config", ".bashrc", ".local/state/deepagents/kept"):
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(f"{KEY}\n")
    (directory / "dots").mkdir()
    (directory / "dots/profile").write_text(f"{KEY}\n")
    (directory / ".profile").symlink_to("dots/profile")
    return directory


OBEYED = (
    ".deepagents/settings.toml",
    ".deepagents/plugins/x/hooks/hooks.json",
    ".claude/commands/x.md",
    ".ssh/authorized_keys",
    ".ssh/config",
    ".bashrc",
    "dots/profile",
    ".config/autostart/x.desktop",
)


def test_in_a_home_what_programs_obey_is_not_written_unasked(cli: Command, home: Path) -> None:
    writes = [call("write_file", file_path=each, content="x") for each in ("new.md", *OBEYED)]

    ended = cli.run("go", "--mode", "auto", model=ScriptedModel(*writes, "Done."))

    assert ended.code == 3
    assert f"{len(OBEYED)} calls were refused" in ended.err
    assert "your home directory" in ended.err
    assert (home / "new.md").read_text() == "x"
    assert [each for each in OBEYED if (home / each).exists()] == [".ssh/config", ".bashrc", "dots/profile"]
    for name in (".ssh/config", ".profile"):
        assert (home / name).read_text() == f"{KEY}\n"


@pytest.mark.slow
@needs_sandbox
@pytest.mark.parametrize("above", [False, True])
def test_commands_in_a_home_change_nothing_that_programs_obey_and_see_no_conversation(
    cli: Command, home: Path, above: bool
) -> None:
    lines = [f"mkdir -p {home}/$(dirname {each}); echo x > {home}/{each}" for each in OBEYED]
    lines += [f"cat {home}/.local/state/deepagents/*", f"echo x > {home}/new.md", f"cat {home}/.ssh/config"]
    model = ScriptedModel(*(call("execute", command=each) for each in lines), "Done.")
    where = ("--dir", str(home.parent)) if above else ()

    ended = cli("run", "go", "--mode", "auto", *(where or ("--dir", str(home))), model=model)

    # The one that names a file which any program of this kind obeys is asked about.
    assert "1 call was refused" in ended.err
    assert [each for each in OBEYED if (home / each).exists()] == [".ssh/config", ".bashrc", "dots/profile"]
    for name in (".bashrc", ".profile"):
        assert (home / name).read_text() == f"{KEY}\n"
    results = [each.text for each in model.asked[-1].messages if each.type == "tool"]
    assert [KEY in each for each in results] == [*[False] * (len(lines) - 1), True]
    assert (home / "new.md").read_text() == "x\n"


@needs_sandbox
def test_settings_and_state_are_guarded_where_they_were_moved_to(
    cli: Command, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, state = directory / "conf/my.toml", directory / "odd [x]" / "kept"
    monkeypatch.setenv("DEEPAGENTS_SETTINGS", str(settings))
    monkeypatch.setenv("DEEPAGENTS_STATE", str(state))
    kept = next(each for each in [state / "threads.sqlite"])
    model = ScriptedModel(
        call("execute", command="mkdir -p conf; echo x > conf/my.toml; ls 'odd [x]/kept'; rm -rf 'odd [x]'"),
        call("read_file", file_path=str(kept)),
        call("write_file", file_path="conf/my.toml", content='mode = "full"'),
        call("delete", file_path=str(state)),
        call("grep", pattern="go", path="/"),
        "Done.",
    )

    ended = cli.run("go", "--mode", "auto", model=model)

    results = [each.text for each in model.asked[-1].messages if each.type == "tool"]
    assert kept.exists()
    assert not settings.exists()
    assert "threads.sqlite" not in results[0]
    assert "permission_denied" in results[1]
    assert "threads.sqlite" not in results[4]
    assert "Refused" in results[2]
    assert ended.code == 3


@pytest.mark.parametrize("options", [(), ("--shell",)])
def test_without_a_sandbox_the_file_tools_are_bound_too(
    cli: Command, home: Path, options: tuple[str, ...]
) -> None:
    model = ScriptedModel(
        call("write_file", file_path="/.deepagents/settings.toml", content="x"),
        call("read_file", file_path="/.local/state/deepagents/kept"),
        call("write_file", file_path="/.local/state/deepagents/kept", content="x"),
        call("glob", pattern="**/kept"),
        call("write_file", file_path="/new.md", content="x"),
        "Done.",
        provider="local" if not options else "scripted",
    )

    ended = cli.run("go", "--mode", "ask" if not options else "auto", *options, model=model)

    results = [each.text for each in model.asked[-1].messages if each.type == "tool"]
    assert "Refused" in results[0]
    assert KEY not in results[1]
    assert "permission" in results[2]
    assert "kept" not in results[3]
    assert (home / "new.md").exists() == bool(options)
    assert ended.code == 3


@needs_sandbox
def test_commands_do_not_change_what_editors_and_agents_obey_unless_they_name_it(
    cli: Command, directory: Path
) -> None:
    (directory / ".zed").mkdir()
    (directory / ".zed/tasks.json").write_text("[]\n")
    model = ScriptedModel(
        call("execute", command="a=claude; mkdir .$a; echo x > .$a/settings.json; echo x > .z*/tasks.json"),
        call("execute", command="mkdir -p .claude; echo x > .claude/settings.json"),
        "Done.",
    )

    ended = cli.run("go", "--mode", "auto", model=model)

    assert "1 call was refused" in ended.err
    assert not (directory / ".claude/settings.json").exists()
    assert (directory / ".zed/tasks.json").read_text() == "[]\n"
    assert "removed: " in model.asked[1].last
