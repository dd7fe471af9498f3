"""Commands run in a sandbox wherever there is one, and what leaves it is asked about."""

from __future__ import annotations

import os
import re
import signal
from functools import partial
from pathlib import Path

import pytest

from deepagents.backends import LocalSandbox
from deepagents.testing import ScriptedModel, call
from tests.cli.conftest import Command, Nursery
from tests.cli.scenarios import goes_on, names_its_tools_without_bubblewrap, serves
from tests.sandbox.users import find_processes

pytestmark = pytest.mark.slow

needs_sandbox = pytest.mark.skipif(LocalSandbox.available() is not None, reason=str(LocalSandbox.available()))
needs_wheel = pytest.mark.skipif(
    any(os.access(f"/{each}/bwrap", os.X_OK) for each in ("usr/bin", "usr/local/bin", "bin")),
    reason="bubblewrap of the system cannot be taken away",
)
SECRET = "canary-51e0"
QUESTION = r"\[y\]es.*\? $"


def runs(command: str, *, provider: str = "scripted") -> ScriptedModel:
    """Run one command, and answer with what it printed."""
    return ScriptedModel(call("execute", command=command), lambda asked: asked.last, provider=provider)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A directory beside that of the agent."""
    place = tmp_path / "outside"
    place.mkdir()
    (place / "secret").write_text(SECRET)
    return place


@needs_sandbox
def test_a_command_works_in_the_directory_and_reaches_nothing_else(
    cli: Command, directory: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", SECRET)
    model = runs(f"cp notes.md copy.md; cat {outside}/secret; env; cat /proc/net/dev; echo x > {outside}/new")

    ended = cli.run("try", "--yes", model=model)

    assert (ended.code, ended.err) == (0, "")
    assert (directory / "copy.md").read_text() == "first line\nsecond line\n"
    assert "PATH=" in model.asked[-1].last
    assert SECRET not in model.asked[-1].last
    assert "lo:" in model.asked[-1].last
    assert "eth" not in model.asked[-1].last
    assert [each.name for each in outside.iterdir()] == ["secret"]


@needs_sandbox
def test_a_file_has_the_same_name_in_commands_and_file_tools(cli: Command, directory: Path) -> None:
    model = ScriptedModel(
        call("execute", command=f"echo one > {directory}/new.md"),
        call("edit_file", file_path="new.md", old_string="one", new_string="two"),
        call("glob", pattern="*.md"),
        call("execute", command="cat new.md"),
        "Done.",
    )

    ended = cli.run("go", "--yes", model=model)

    assert model.asked[3].last.splitlines() == [f"{directory}/new.md", f"{directory}/notes.md"]
    assert model.asked[-1].last.startswith("two")
    assert "\n✓ edit_file new.md\n" in ended.out


@needs_sandbox
def test_a_person_is_asked_before_a_confined_command_as_before_an_edit(
    nursery: Nursery, directory: Path
) -> None:
    child = nursery.at_terminal(partial(runs, "touch made; cat notes.md"), "go")

    asked = child.wait_for(QUESTION)
    assert "The agent wants to run a command in the sandbox\n  $ touch made; cat notes.md\n" in asked
    assert not (directory / "made").exists()
    child.type("y")

    assert child.end() == 0
    assert "second line" in child.output
    assert (directory / "made").exists()


@needs_sandbox
def test_a_command_is_refused_when_nobody_can_be_asked(cli: Command, directory: Path) -> None:
    ended = cli.run("go", model=runs("touch made"))

    assert ended.code == 3
    assert not (directory / "made").exists()


@needs_sandbox
def test_with_auto_confined_commands_and_changes_in_the_directory_go_through(
    cli: Command, directory: Path
) -> None:
    model = ScriptedModel(
        call("execute", command="touch made"), call("write_file", file_path="new.md", content="x"), "Done."
    )

    ended = cli.run("go", "--auto", model=model)

    assert ended.code == 0
    assert (directory / "made").exists()
    assert (directory / "new.md").exists()


@needs_sandbox
def test_with_auto_the_commands_of_a_subagent_run_unasked_too(cli: Command, directory: Path) -> None:
    model = ScriptedModel(
        call("task", description="touch it", subagent_type="general-purpose"),
        call("execute", command="touch made"),
        "Touched.",
        "Done.",
    )

    assert cli.run("go", "--auto", model=model).code == 0
    assert (directory / "made").exists()


def test_without_the_sandbox_each_command_is_asked_about_with_auto_too(cli: Command, directory: Path) -> None:
    ended = cli.run("go", "--shell", "--auto", model=runs("touch made"))

    assert ended.code == 3
    warning = "--shell: commands run without the sandbox and can do whatever you can; each is asked about"
    assert ended.err.splitlines()[0] == f"deepagents: {warning}"
    assert not (directory / "made").exists()


def test_a_question_about_an_unconfined_command_says_so(nursery: Nursery, directory: Path) -> None:
    child = nursery.at_terminal(partial(runs, "touch made"), "go", "--shell")

    assert "The agent wants to run a command without the sandbox" in child.wait_for(QUESTION)
    child.type("y")

    assert child.end() == 0
    assert (directory / "made").exists()


@pytest.mark.parametrize("options", [pytest.param((), marks=needs_sandbox), ("--shell",)])
def test_a_command_in_the_background_goes_on_while_a_person_is_asked_and_ends_with_the_program(
    nursery: Nursery, options: tuple[str, ...]
) -> None:
    mark = f"64.{os.getpid()}"
    child = nursery.at_terminal(partial(serves, mark), "go", *options)

    child.wait_for(QUESTION)
    child.type("y")
    asked = child.wait_for(QUESTION)
    assert "Started in the background: command-" in asked
    child.type("y")

    assert child.end() == 0
    assert re.search(r"    command-[0-9a-f]{4}-1: saw it\n", child.output)
    assert "[It runs]" in child.output
    assert find_processes(mark) == []


@needs_sandbox
def test_a_directory_to_read_and_one_to_write_are_given(
    cli: Command, directory: Path, outside: Path, tmp_path: Path
) -> None:
    (tmp_path / "target").mkdir()
    (outside / "data").write_text(SECRET)
    given = ["--read", str(outside), "--write", str(tmp_path / "target")]
    model = ScriptedModel(
        call("execute", command=f"cp {outside}/data {tmp_path}/target/copy; echo x > {outside}/new"),
        call("read_file", file_path=f"{tmp_path}/target/copy"),
        call("write_file", file_path=f"{outside}/other", content="x"),
        lambda asked: asked.last,
    )

    ended = cli.run("go", "--yes", *given, model=model)

    assert (tmp_path / "target" / "copy").read_text() == SECRET
    assert SECRET in model.asked[2].last
    assert "permission_denied" in ended.out
    assert sorted(each.name for each in outside.iterdir()) == ["data", "secret"]


@needs_sandbox
def test_a_host_that_was_named_is_all_of_the_network(cli: Command) -> None:
    model = runs("echo proxy=$HTTPS_PROXY; cat /proc/net/dev; curl -sS http://not.example.org")

    cli.run("go", "--yes", "--network", "example.com", "--network", "*.example.com", model=model)

    said = model.asked[-1].last
    assert "proxy=http://127.0.0.1:" in said
    assert "eth" not in said
    assert "not.example.org" in said


@needs_sandbox
def test_the_whole_network_is_given_by_a_word(cli: Command) -> None:
    model = runs("cut -d: -f1 /proc/net/dev")

    cli.run("go", "--yes", "--network", "all", model=model)

    interfaces = [line.partition(":")[0] for line in Path("/proc/net/dev").read_text().splitlines()[2:]]
    assert [each for each in interfaces if each not in model.asked[-1].last] == []


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--shell", "--network", "all"], "--network is about the sandbox"),
        (["--shell", "--read", "."], "--read is about the sandbox"),
        (["--network", "all", "--network", "example.org"], "leave the others out"),
    ],
)
def test_options_that_contradict_each_other_are_wrong_usage(
    cli: Command, capsys: pytest.CaptureFixture[str], argv: list[str], said: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.run("go", *argv, model=ScriptedModel())

    assert ended.value.code == 2
    assert said in capsys.readouterr().err


@needs_sandbox
@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--read", "/nowhere/at/all"], "'/nowhere/at/all' does not exist"),
        (["--write", "/proc"], "'/proc'"),
        (["--network", "https://example.org/"], "'https://example.org/'"),
    ],
)
def test_what_no_sandbox_can_be_given_is_named(cli: Command, argv: list[str], said: str) -> None:
    ended = cli.run("go", *argv, model=ScriptedModel())

    assert ended.code == 2
    assert said in ended.err
    assert ended.err.count("\n") == 1


@needs_sandbox
def test_the_root_of_this_machine_is_worked_on_without_commands(cli: Command) -> None:
    model = ScriptedModel("Hello.")

    ended = cli("run", "hello", "--dir", "/", model=model)

    assert ended.code == 0
    assert "the agent runs no commands: " in ended.err
    assert "--dir" in ended.err
    assert "execute" not in model.asked[0].tool_names


def test_the_small_local_model_gets_no_commands(cli: Command) -> None:
    model = ScriptedModel("Hello.", provider="local")

    assert cli.run("hello", model=model).err == ""
    assert "execute" not in model.asked[0].tool_names

    ended = cli.run("hello", "--auto", model=ScriptedModel(provider="local"))
    assert ended.code == 2
    assert "--auto is not offered to the local model" in ended.err


@needs_wheel
def test_without_bubblewrap_there_are_no_commands_and_one_line_says_what_to_install(
    nursery: Nursery,
) -> None:
    child = nursery.piped(names_its_tools_without_bubblewrap, "go")

    assert child.end() == 0
    assert "deepagents: the agent runs no commands: bubblewrap is missing: install " in child.output
    assert "Tools: " in child.output
    assert "execute" not in child.output


@needs_wheel
def test_without_bubblewrap_the_options_of_the_sandbox_are_refused(nursery: Nursery) -> None:
    child = nursery.piped(names_its_tools_without_bubblewrap, "go", "--auto")

    assert child.end() == 2
    assert "deepagents: --auto needs the sandbox: bubblewrap is missing: install " in child.output


@needs_sandbox
def test_a_command_that_was_asked_about_before_a_crash_is_asked_about_again(
    nursery: Nursery, directory: Path
) -> None:
    child = nursery.at_terminal(partial(runs, "touch made"), "go")
    child.wait_for(QUESTION)
    child.signal(signal.SIGKILL)
    child.end()

    again = nursery.at_terminal(goes_on, "--continue")
    assert "run a command in the sandbox" in again.wait_for(QUESTION)
    again.type("y")

    assert again.end() == 0
    assert (directory / "made").exists()


@needs_sandbox
def test_a_thread_that_named_files_from_the_directory_on_reads_where_they_are_now(
    cli: Command, directory: Path
) -> None:
    earlier = ScriptedModel(call("read_file", file_path="/notes.md"), "Read.", provider="local")
    cli.run("read it", model=earlier)
    assert "first line" in earlier.asked[-1].last
    model = ScriptedModel(
        call("read_file", file_path="/notes.md"), call("read_file", file_path="notes.md"), "Read again."
    )

    ended = cli.run("again", "--continue", model=model)

    assert ended.code == 0
    assert f"outside of the sandbox, which has {directory}" in model.asked[1].last
    assert "first line" in model.asked[2].last
