"""A session: one confined process in which commands start at once and find what earlier ones left."""

from __future__ import annotations

import shutil
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deepagents import FilesystemPermission, create_deep_agent
from deepagents.backends import LocalSandbox
from deepagents.testing import ScriptedModel, call
from tests.conftest import CallMode

pytestmark = [
    pytest.mark.skipif(LocalSandbox.available() is not None, reason=str(LocalSandbox.available())),
    pytest.mark.slow,
]
SERVER = (
    "import http.server, pathlib as p; s = http.server.HTTPServer(('127.0.0.1', 0), "
    "http.server.SimpleHTTPRequestHandler); p.Path('port').write_text(str(s.server_port)); s.serve_forever()"
)
SECRET = "canary-4b7a11"
ANEW = "[The session was started anew, without what earlier commands exported or started"
ASK = "import sys, urllib.request as u; print(u.urlopen('http://127.0.0.1:' + sys.argv[1] + '/page').read())"


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[LocalSandbox]:
    (tmp_path / "work").mkdir()
    with LocalSandbox(tmp_path / "work", session=True, timeout=30) as sandbox:
        yield sandbox


def run(sandbox: LocalSandbox, rules: Any, command: str) -> str:
    """Let an agent with rules run a command, and return what it reads of it."""
    with ScriptedModel(call("execute", command=command), "Done.") as model:
        agent = create_deep_agent(model, backend=sandbox, permissions=rules)
        return agent.invoke({"messages": "Go"})["messages"][-2].text


def test_a_command_finds_what_earlier_ones_left(sandbox: LocalSandbox) -> None:
    sandbox.execute("export NAME='two words'; mkdir sub; cd sub; echo kept > /tmp/file")
    done = sandbox.execute('echo "$NAME $#"; pwd; cat /tmp/file')

    assert done.output == f"two words 0\n{sandbox.cwd}/sub\nkept"
    assert done.exit_code == 0


def test_a_failing_command_tells_so_and_leaves_its_directory_too(sandbox: LocalSandbox) -> None:
    assert sandbox.execute("cd /tmp; exit 7").exit_code == 7
    assert sandbox.execute("if then").exit_code == 2
    assert sandbox.execute("pwd").output == "/tmp"


def test_an_agent_asks_the_server_that_it_started(sandbox: LocalSandbox, call_mode: CallMode) -> None:
    (sandbox.cwd / "page").write_text("hello from the server")
    with ScriptedModel(
        call("execute", command=f'exec python3 -c "{SERVER}"', background=True),
        call("execute", command=f'until test -s port; do sleep 0.05; done; python3 -c "{ASK}" $(cat port)'),
        "Done.",
    ) as model:
        agent = create_deep_agent(model, backend=sandbox)
        messages = call_mode.invoke(agent, {"messages": "Go"})["messages"]

    assert "hello from the server" in messages[-2].text
    sandbox.execute("rm port")


def test_a_command_whose_time_is_over_ends_and_the_session_goes_on(sandbox: LocalSandbox) -> None:
    sandbox.execute("export NAME=kept")
    done = sandbox.execute("trap '' TERM; sleep 60; sleep 60", timeout=1)

    assert done.exit_code == 124
    assert "timed out after 1 seconds" in done.output
    assert sandbox.execute("echo $NAME").output == "kept"


def test_a_process_whose_name_is_no_text_ends_too(sandbox: LocalSandbox) -> None:
    renamed = "import ctypes, time; ctypes.CDLL(None).prctl(15, b'\\xff'); time.sleep(60)"
    sandbox.execute("export NAME=kept")
    done = sandbox.execute(f'trap "" TERM; python3 -c "{renamed}" & sleep 60', timeout=1)

    assert done.exit_code == 124
    assert sandbox.execute("echo $NAME").output == "kept"


def test_a_command_that_is_ended_ends_with_all_that_it_started(sandbox: LocalSandbox) -> None:
    names = ("child", "stubborn", "orphan")
    (sandbox.cwd / "beat").write_text("for i in $(seq 600); do echo $i > $1; sleep 0.05; done")
    (sandbox.cwd / "stubborn-beat").write_text("trap '' TERM HUP INT; . ./beat")
    command = sandbox.start_command(
        "sh beat child & setsid sh stubborn-beat stubborn & (setsid sh stubborn-beat orphan &); wait"
    )
    while not all((sandbox.cwd / each).exists() for each in names):
        time.sleep(0.01)
    sandbox.stop_command(command)
    before = [(sandbox.cwd / each).read_text() for each in names]
    time.sleep(0.5)

    assert [(sandbox.cwd / each).read_text() for each in names] == before
    assert sandbox.execute("echo goes on").output == "goes on"


def test_a_session_that_answers_no_more_is_started_anew(sandbox: LocalSandbox) -> None:
    done = sandbox.execute("kill -STOP -1; sleep 60", timeout=1)

    assert done.exit_code == 124
    assert "Error: The session has ended." in done.output
    assert sandbox.execute("echo again").output == f"again\n{ANEW}.]"


def test_commands_run_side_by_side(sandbox: LocalSandbox) -> None:
    waits = sandbox.start_command("until test -e go; do sleep 0.01; done; echo went")
    sandbox.execute("touch go")

    assert sandbox.poll_command(waits, wait=30).output == "went\n"


def test_a_session_that_was_ended_is_started_anew(sandbox: LocalSandbox) -> None:
    lost = sandbox.execute("kill -9 $PPID; sleep 20")

    assert "The session has ended" in lost.output
    assert lost.exit_code != 0
    assert sandbox.execute("echo again").output == f"again\n{ANEW}.]"
    assert sandbox.execute("echo again").output == "again"


RECKLESS = {
    "exec sh -c 'exit 3'": 3,
    "trap 'exit 4' EXIT; true": 4,
    "trap '' EXIT TERM; set -eu; false; echo not here": 1,
    "ulimit -f 0; ulimit -n 8; true": 0,
    "umask 777; exit 5": 5,
    "exec <&- >&- 2>&-; sleep 0.1; exit 6": 6,
    "cd() { exit 9; }; pwd() { exit 9; }; set -f; set -C; exit 7": 7,
    "stty sane; stty -a; false": 1,
    "head -c 3000000 /dev/zero | tr '\\0' x; exit 8": 8,
    "sleep 60 & sleep 60 & exit 9": 9,
    "export HUGE=$(head -c 120000 /dev/zero | tr '\\0' x); export MORE=$HUGE; exit 10": 10,
    "rm -rf /tmp/* /dev/shm/* $HOME; exit 11": 11,
    "pkill python3; pkill -f 'sock[e]t'; kill $PPID; kill -INT $PPID; exit 12": 12,
    "kill -9 $$": -9,
    # What is said of a command does not come by what it prints, nor by files that it could open.
    "echo ':'; printf '=i?' ; for each in /proc/$PPID/fd/*; do echo 0 > $each; done; exit 13": 13,
    "echo x > /proc/$PPID/mem; cat /proc/$PPID/environ; exit 14": 14,
}


def test_a_session_outlives_what_commands_do_to_their_shell(sandbox: LocalSandbox) -> None:
    sandbox.execute("export KEPT=yes; cd /")
    after: dict[str, str] = {}
    ended: dict[str, int | None] = {}
    for command in RECKLESS:
        ended[command] = sandbox.execute(command).exit_code
        after[command] = sandbox.execute("echo $KEPT; pwd; ls /nowhere").output.split(":")[0]

    assert ended == RECKLESS
    assert set(after.values()) == {"yes\n/\n[stderr] ls"}


def test_a_command_holds_no_open_file_by_which_it_could_forge_a_report(sandbox: LocalSandbox) -> None:
    forge = "import os\nfor each in range(3, 99):\n  try: os.write(each, bytes(5)); print(each)\n  except OSError: pass"
    done = sandbox.execute(f"python3 -c '{forge}'; ls /proc/self/fd; exit 15")

    assert done.exit_code == 15
    assert done.output.split()[:4] == ["0", "1", "2", "3"]


def test_each_of_two_sets_of_rules_has_a_session_of_its_own(sandbox: LocalSandbox) -> None:
    (sandbox.cwd / ".env").write_text(SECRET)
    rules = [FilesystemPermission(["read", "write"], ["/**/.env"], "deny")]
    sandbox.execute("export NAME=free")
    first = run(sandbox, rules, "cat .env; echo [$NAME]; export NAME=ruled")
    second = run(sandbox, list(rules), "cat .env; echo [$NAME]")

    assert "[]" in first
    assert "[ruled]" in second
    assert SECRET not in first + second
    assert sandbox.execute("cat .env; echo; echo [$NAME]").output == f"{SECRET}\n[free]"


def test_a_file_that_takes_the_place_of_a_masked_one_is_masked_too(sandbox: LocalSandbox) -> None:
    rules = [FilesystemPermission(["read"], [f"{sandbox.cwd}/.env"], "deny")]
    (sandbox.cwd / ".env").write_text("old")
    run(sandbox, rules, "cat .env")
    # As editors save: the mount on the old file goes with it.
    (sandbox.cwd / "new").write_text(SECRET)
    (sandbox.cwd / "new").replace(sandbox.cwd / ".env")
    answer = run(sandbox, rules, "cat .env; echo done")

    assert SECRET not in answer
    assert "done" in answer
    assert f"{ANEW}: files that commands may not change were replaced.]" in answer


def test_a_setting_that_the_user_changes_cannot_be_changed_by_a_command(sandbox: LocalSandbox) -> None:
    git = sandbox.cwd / ".git"
    git.mkdir()
    (git / "config").write_text("[core]\n")
    sandbox.execute("true")
    (git / "new").write_text("[core]\n\teditor = vi\n")
    (git / "new").replace(git / "config")
    sandbox.execute("echo '\tfsmonitor = evil' >> .git/config; mv .git old; rm -rf .git")

    assert (git / "config").read_text() == "[core]\n\teditor = vi\n"


def test_hooks_that_a_command_plants_in_a_new_repository_are_gone_after_it(sandbox: LocalSandbox) -> None:
    hooks = sandbox.cwd / ".git/hooks"
    assert sandbox.execute("git init -q . && echo x > .git/hooks/pre-commit").exit_code == 0
    assert not (hooks / "pre-commit").exists()
    # From the next command on, they are held like those of any repository.
    again = sandbox.execute("echo x > .git/hooks/pre-commit; git status")

    assert "Permission denied" in again.output or "Read-only" in again.output
    assert f"{ANEW}: other files must be kept from it than before.]" in again.output
    assert ANEW not in sandbox.execute("git status").output


def test_hooks_that_something_left_running_plants_are_gone_after_the_next_command(
    sandbox: LocalSandbox,
) -> None:
    plant = "mkdir -p .git/hooks; echo x > .git/hooks/pre-commit; echo > planted"
    sandbox.execute(f"(until test -e go; do sleep 0.01; done; {plant}) > /dev/null 2>&1 &")
    (sandbox.cwd / "go").touch()
    while not (sandbox.cwd / "planted").exists():
        time.sleep(0.01)
    sandbox.execute("true")

    assert not (sandbox.cwd / ".git/hooks/pre-commit").exists()


def test_what_something_left_running_makes_against_a_rule_is_removed(sandbox: LocalSandbox) -> None:
    rules = [FilesystemPermission(["write"], ["/**/*.lock"], "deny")]
    run(sandbox, rules, "(until test -e go; do sleep 0.01; done; echo > a.lock; echo > made) > log 2>&1 &")
    (sandbox.cwd / "go").touch()
    while not (sandbox.cwd / "made").exists():
        time.sleep(0.01)
    answer = run(sandbox, rules, "ls")

    assert not (sandbox.cwd / "a.lock").exists()
    assert f"was removed: {sandbox.cwd}/a.lock]" in answer


def test_what_the_user_makes_between_commands_is_the_users(sandbox: LocalSandbox) -> None:
    rules = [FilesystemPermission(["write"], ["/**/*.lock"], "deny")]
    hook, config = sandbox.cwd / ".git/hooks/pre-commit", sandbox.cwd / ".git/config"
    run(sandbox, rules, "true")
    sandbox.execute("true")
    hook.parent.mkdir(parents=True)
    hook.write_text("mine")
    config.write_text("[core]\n\teditor = vi\n")
    (sandbox.cwd / "a.lock").touch()
    run(sandbox, rules, "echo x > .git/hooks/pre-commit; echo x > .git/config; rm -f a.lock")
    sandbox.execute("echo x > .git/hooks/pre-commit; echo x > .git/config")
    sandbox.close()

    assert (hook.read_text(), config.read_text()) == ("mine", "[core]\n\teditor = vi\n")
    assert (sandbox.cwd / "a.lock").exists()


def test_each_command_is_shown_what_it_was_refused_itself(tmp_path: Path) -> None:
    def asking(host: str) -> str:
        return f"curl -s -o /dev/null http://{host}.example/; exit 0"

    with LocalSandbox(tmp_path, session=True, network=["good.example"], timeout=30) as sandbox:
        waits = sandbox.start_command(f"until test -e go; do sleep 0.01; done; {asking('slow')}")
        first, second, third = (
            sandbox.execute(each).output for each in (asking("one"), asking("two"), "echo three")
        )
        sandbox.execute("touch go")
        slow = sandbox.poll_command(waits, wait=30).refused

    assert first.startswith("[one.example:80 is refused: ")
    assert second.startswith("[two.example:80 is refused: ")
    assert "one.example" not in second
    assert third == "three"
    assert "slow.example" in slow[-1]


def test_a_session_is_confined_and_bounded(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("hidden")
    (tmp_path / "work").mkdir()
    with LocalSandbox(tmp_path / "work", session=True, memory=200 << 20, timeout=30) as sandbox:
        seen = sandbox.execute(f"cat {tmp_path}/secret; cat /proc/1/environ; id -u")
        sandbox.execute("python3 -c 'x = bytearray(400 << 20); print(len(x))'")
        after = sandbox.execute("echo fine")

    assert "hidden" not in seen.output
    assert after.output == f"fine\n{ANEW}: it used more than 200 MiB of memory.]"


def test_a_command_starts_sooner_than_in_a_sandbox_of_its_own(sandbox: LocalSandbox, tmp_path: Path) -> None:
    times: dict[str, list[float]] = {"session": [], "alone": []}
    alone = LocalSandbox(tmp_path)
    for each in (sandbox, alone) * 15:
        started = time.perf_counter()
        each.execute("true")
        times["alone" if each is alone else "session"].append(time.perf_counter() - started)

    assert statistics.median(times["session"]) < statistics.median(times["alone"])


def test_a_session_that_is_full_of_processes_is_started_anew(tmp_path: Path) -> None:
    with LocalSandbox(tmp_path, session=True, processes=24, timeout=30) as sandbox:
        sandbox.execute("for i in $(seq 40); do sleep 60 & done")
        deadline = time.monotonic() + 30
        # Where no control groups can be made, whoever watches may see it only during a later command.
        while not (after := sandbox.execute("/bin/echo works")).output.startswith("works"):
            assert time.monotonic() < deadline, after.output

    assert ANEW in after.output


def test_nothing_is_left_when_it_is_closed(tmp_path: Path) -> None:
    beat = tmp_path / "beat"
    with LocalSandbox(tmp_path, session=True) as sandbox:
        sandbox.execute("(for i in $(seq 300); do echo $i > beat; sleep 0.1; done) > /dev/null 2>&1 &")
        while not beat.exists():
            time.sleep(0.01)
    before = beat.read_text()
    time.sleep(0.5)

    assert beat.read_text() == before


def test_pipes_in_the_place_of_its_files_keep_no_later_command_from_running(sandbox: LocalSandbox) -> None:
    sandbox.execute("cd /dev/shm; for each in .s*; do rm $each; mkfifo $each; done", timeout=1)

    assert sandbox.execute("echo hello").output.startswith("hello")


def test_a_command_that_cannot_be_started_ends_nothing_else(sandbox: LocalSandbox) -> None:
    sandbox.execute("export KEPT=yes")
    long = sandbox.execute("true " + "x" * 140_000)

    assert "cannot be started: Argument list too long" in long.output
    assert long.exit_code == 126
    assert sandbox.execute("echo $KEPT").output == "yes"


@pytest.mark.parametrize("size", [131_060, 200_000])
def test_what_is_too_large_to_be_exported_leaves_the_rest_as_it_was(sandbox: LocalSandbox, size: int) -> None:
    sandbox.execute("export KEPT=yes")
    sandbox.execute(f"export BIG=$(head -c {size} /dev/zero | tr '\\0' x); cd /tmp")

    assert sandbox.execute("echo $KEPT ${#BIG}; pwd").output == f"yes 0\n{sandbox.cwd}"


@pytest.mark.parametrize("session", [False, True])
def test_a_command_goes_on_when_its_directory_is_removed(tmp_path: Path, session: bool) -> None:
    (tmp_path / "work").mkdir()
    with LocalSandbox(tmp_path / "work", session=session, timeout=30) as sandbox:
        command = sandbox.start_command("touch begun; sleep 0.5; echo went on")
        while not (sandbox.cwd / "begun").exists():
            time.sleep(0.01)
        shutil.rmtree(sandbox.cwd)
        status = sandbox.poll_command(command, wait=30)

    assert (status.output, status.exit_code) == ("went on\n", 0)
