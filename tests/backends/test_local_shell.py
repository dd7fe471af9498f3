"""Commands on this machine: they end in time, leave nothing hanging, and say how they ended."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from deepagents.backends.local_shell import LocalShellBackend
from deepagents.backends.local_shell.process import Bounded, Stream
from deepagents.backends.protocol import SandboxBackendProtocol
from deepagents.errors import ConfigError
from tests.conftest import CallMode

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")


@pytest.fixture
def shell(tmp_path: Path) -> LocalShellBackend:
    return LocalShellBackend(tmp_path)


def ends_soon(pid: int) -> bool:
    last = time.monotonic() + 5
    while time.monotonic() < last:
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return True
        if stat.rpartition(")")[2].split()[0] in "ZX":
            return True
    return False


def test_a_command_runs_in_the_root_and_files_are_beside_it(
    shell: LocalShellBackend, tmp_path: Path, call_mode: CallMode
) -> None:
    call_mode.call(shell, "write", "/a.txt", "text\n")

    result = call_mode.call(shell, "execute", "cat a.txt && pwd -P")

    assert (result.output, result.exit_code, result.truncated) == (f"text\n{tmp_path.resolve()}", 0, False)


@pytest.mark.parametrize(
    ("command", "output", "exit_code"),
    [
        ("true", "<no output>", 0),
        ("echo out; echo err >&2", "out\n[stderr] err", 0),
        ("printf 'a\\nb\\n' >&2; exit 3", "[stderr] a\n[stderr] b\nExit code: 3", 3),
        ("echo one; sleep 0.5; echo two >&2; sleep 0.5; echo three", "one\n[stderr] two\nthree", 0),
        ("printf 'no end'", "no end", 0),
        ("printf 'caf\\351 \\377'; exit 7", "caf\ufffd \ufffd\nExit code: 7", 7),
        ("cat", "<no output>", 0),
        ("kill -TERM $$", "<no output>\nExit code: -15 (killed by SIGTERM)", -15),
        ("(exit 137)", "<no output>\nExit code: 137 (128 + 9: a process was killed by SIGKILL)", 137),
        ("no-such-command-anywhere 2>/dev/null", "<no output>\nExit code: 127", 127),
        ("echo '€'", "€", 0),
    ],
)
def test_a_command_says_what_it_printed_and_how_it_ended(
    shell: LocalShellBackend, command: str, output: str, exit_code: int
) -> None:
    result = shell.execute(command)

    assert (result.output, result.exit_code) == (output, exit_code)


@pytest.mark.parametrize("command", ["", "  ", None, 7, "a\0b", "echo \ud800"], ids=ascii)
def test_what_is_no_command_is_an_answer(shell: LocalShellBackend, command: str, call_mode: CallMode) -> None:
    result = call_mode.call(shell, "execute", command)

    assert (result.output.startswith("Error: Command must"), result.exit_code) == (True, 1)


def test_a_root_that_is_not_there_yet_is_made_by_a_command_as_by_a_write(tmp_path: Path) -> None:
    made = LocalShellBackend(tmp_path / "new/project").execute("pwd")

    assert made.output == f"{tmp_path}/new/project"


def test_a_root_that_is_no_directory_is_an_answer_without_its_path(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    shell = LocalShellBackend(tmp_path / "file")

    result = shell.execute("true")
    status = shell.poll_command(shell.start_command("true"), wait=10)

    assert (result.exit_code, status.exit_code) == (1, 1)
    assert result.output == status.output == "Error executing command (FileExistsError): File exists"


@pytest.mark.parametrize("seconds", [0, -1])
def test_no_time_at_all_is_misuse(
    shell: LocalShellBackend, tmp_path: Path, call_mode: CallMode, seconds: int
) -> None:
    with pytest.raises(ValueError, match="timeout"):
        LocalShellBackend(tmp_path, timeout=seconds)
    with pytest.raises(ValueError, match="timeout"):
        call_mode.call(shell, "execute", "true", timeout=seconds)


def test_a_command_out_of_time_is_ended_with_all_that_it_started(tmp_path: Path, call_mode: CallMode) -> None:
    shell = LocalShellBackend(tmp_path, timeout=1)
    command = (
        "echo before; sleep 61 & echo $! > child; (trap '' TERM; sleep 62) & echo $! > stubborn; sleep 63"
    )
    started = time.monotonic()

    result = call_mode.call(shell, "execute", command)

    assert time.monotonic() - started < 10
    assert (result.exit_code, result.output.startswith("before\n")) == (124, True)
    assert "timed out after 1 seconds" in result.output
    assert "timeout parameter" in result.output
    if sys.platform == "linux":
        assert ends_soon(int((tmp_path / "child").read_text()))
        assert ends_soon(int((tmp_path / "stubborn").read_text()))


def test_a_subclass_sets_its_own_time_and_bound(tmp_path: Path, call_mode: CallMode) -> None:
    class Hasty(LocalShellBackend):
        def __init__(self, root: Path) -> None:
            super().__init__(root)
            self._default_timeout = 1
            self._max_output_bytes = 100

    result = call_mode.call(Hasty(tmp_path), "execute", "seq 1000; sleep 60")

    assert result.exit_code == 124
    assert "timed out after 1 seconds" in result.output
    assert "Output truncated at 100 bytes" in result.output


@pytest.mark.parametrize("command", ["sleep 60", "yes"])
def test_a_time_given_for_one_command_is_named(shell: LocalShellBackend, command: str) -> None:
    result = shell.execute(command, timeout=1)

    assert result.exit_code == 124
    assert "custom timeout" in result.output
    assert "may be stuck" in result.output


def test_one_that_hides_in_a_session_of_its_own_and_holds_the_output_does_not_hold_the_call(
    shell: LocalShellBackend, tmp_path: Path
) -> None:
    hiding = "import os, time; os.setsid(); open('pid', 'w').write(str(os.getpid())); time.sleep(60)"
    started = time.monotonic()

    result = shell.execute(f'{sys.executable} -S -c "{hiding}" & sleep 60', timeout=1)

    assert (result.exit_code, time.monotonic() - started < 10) == (124, True)
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


def test_a_background_process_does_not_hold_the_call_and_goes_on(
    shell: LocalShellBackend, tmp_path: Path, call_mode: CallMode
) -> None:
    started = time.monotonic()

    result = call_mode.call(shell, "execute", "sleep 60 & echo $! > pid; echo hi")

    pid = int((tmp_path / "pid").read_text())
    assert (result.output, result.exit_code, time.monotonic() - started < 10) == ("hi", 0, True)
    os.kill(pid, 0)
    os.kill(pid, signal.SIGKILL)


def test_a_background_process_that_never_stops_printing_does_not_hold_the_call(
    shell: LocalShellBackend, tmp_path: Path
) -> None:
    result = shell.execute("yes & echo $! > pid; sleep 0.1; exit 4")

    assert (result.exit_code, result.output.startswith("y\ny\n")) == (4, True)
    assert ends_soon(int((tmp_path / "pid").read_text()))


async def test_cancelling_ends_the_command_at_once(shell: LocalShellBackend, tmp_path: Path) -> None:
    running = asyncio.create_task(shell.aexecute("echo $$ > pid; echo > ready; sleep 60; echo > late"))
    while not (tmp_path / "ready").exists():
        await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(running, 10)

    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)
    assert not (tmp_path / "late").exists()


async def test_many_commands_run_side_by_side_and_leave_no_thread(shell: LocalShellBackend) -> None:
    before = threading.active_count()
    started = time.monotonic()

    results = await asyncio.gather(*(shell.aexecute(f"sleep 0.5; echo {number}") for number in range(20)))

    assert [result.output for result in results] == [str(number) for number in range(20)]
    assert time.monotonic() - started < 8
    assert threading.active_count() <= before + 20


def test_long_output_keeps_its_beginning_and_its_end(tmp_path: Path) -> None:
    result = LocalShellBackend(tmp_path, max_output_bytes=1000).execute("seq 100000; exit 5")

    assert (result.truncated, result.exit_code) == (True, 5)
    assert result.output.startswith("1\n2\n3\n")
    assert "99999\n100000\n[Output truncated at 1000 bytes" in result.output
    assert "bytes left out] ..." in result.output
    assert len(result.output.encode()) < 1300
    assert result.output.endswith("\nExit code: 5")


def test_endless_output_takes_bounded_memory(tmp_path: Path) -> None:
    shell = LocalShellBackend(tmp_path, max_output_bytes=10_000)

    result = shell.execute("head -c 50000000 /dev/zero | tr '\\0' x")

    assert result.truncated
    assert "49990000 bytes left out" in result.output


def test_output_of_exactly_the_limit_is_whole(tmp_path: Path) -> None:
    shell = LocalShellBackend(tmp_path, max_output_bytes=100)

    assert shell.execute("printf '%099d\\n' 0").truncated is False
    assert shell.execute("printf '%0100d\\n' 0").truncated is True


def test_a_cut_never_falls_inside_a_character() -> None:
    kept = Bounded(101)
    kept.add("€" * 100)

    text = kept.close()

    assert set(text.replace("\n", "")) >= {"€"}
    assert "\ufffd" not in text
    assert kept.left_out == 300 - 101


def test_a_stream_prefixes_lines_however_they_arrive() -> None:
    whole, pieces = Stream("> "), Stream("> ")
    data = "one\ntwo ü\n\nlast".encode()

    in_pieces = "".join(pieces.feed(data[at : at + 1]) for at in range(len(data))) + pieces.feed(
        b"", final=True
    )

    assert whole.feed(data) + whole.feed(b"", final=True) == in_pieces == "> one\n> two ü\n> \n> last"


def test_a_very_long_line_is_handed_on_in_pieces_under_one_prefix() -> None:
    stream = Stream("> ")

    text = "".join([stream.feed(b"x" * 5000), stream.feed(b"x" * 5000), stream.feed(b"x\ny\n")])

    assert text == f"> {'x' * 10001}\n> y\n"


def test_commands_see_little_of_this_process_unless_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_SECRET", "s")
    monkeypatch.setenv("WANTED", "w")
    command = "echo $SOME_SECRET,$WANTED,$GIVEN,${HOME:+home},${PATH:+path}"

    shells = [
        LocalShellBackend(tmp_path),
        LocalShellBackend(tmp_path, env={"GIVEN": "g"}),
        LocalShellBackend(tmp_path, inherit_env=["WANTED"]),
        LocalShellBackend(tmp_path, inherit_env=True, env={"WANTED": "x"}),
    ]

    assert [shell.execute(command).output for shell in shells] == [
        ",,,home,path",
        ",,g,home,path",
        ",w,,home,path",
        "s,x,,home,path",
    ]


def test_it_can_execute_and_has_a_name_of_its_own(tmp_path: Path) -> None:
    one, other = LocalShellBackend(tmp_path), LocalShellBackend(tmp_path)

    assert one.capabilities().execute
    assert one.capabilities().versions
    assert isinstance(one, SandboxBackendProtocol)
    assert one.id.startswith("local-")
    assert one.id == one.id != other.id


def test_one_name_of_the_environment_is_given_as_a_list(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"inherit_env must be a list of names, got 'WANTED'"):
        LocalShellBackend(tmp_path, inherit_env="WANTED")


@pytest.mark.parametrize("env", [{"PORT": 80}, {"A=B": "x"}, {"": "x"}, {"A": "x\0"}])
def test_a_variable_that_is_none_is_refused_before_any_command(tmp_path: Path, env: Any) -> None:
    with pytest.raises(ConfigError, match="env must map names to text"):
        LocalShellBackend(tmp_path, env=env)
