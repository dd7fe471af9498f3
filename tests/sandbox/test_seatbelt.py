"""The profile for macOS, as text: it was not run, so what it holds is not shown here."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from deepagents_sandbox.limits import CommandLimits, Controllers
from deepagents_sandbox.macos import LEADER, SHELL, ProcessTableWatchdog
from deepagents_sandbox.platforms import find_confinement, find_not_held
from deepagents_sandbox.seatbelt import (
    Seatbelt,
    SeatbeltRules,
    command_line,
    find,
    write_profile,
)

ROOT = Path("/Users/me/project")
RULES = SeatbeltRules(ROOT, {ROOT: "writable"}, [ROOT / ".git/hooks"])


def in_full(rules: SeatbeltRules) -> str:
    """Put paths where a profile has parameters, and everything on one line."""
    text = " ".join(write_profile(rules).split())
    for name, path in values(rules).items():
        text = text.replace(f'(param "{name}")', f"<{path}>")
    return text


def values(rules: SeatbeltRules) -> dict[str, str]:
    options = [each for each in command_line(rules, ["/bin/sh"]) if each.startswith("-D")]
    return dict(each.removeprefix("-D").split("=", 1) for each in options)


def last_word(rules: SeatbeltRules, operation: str, path: Path) -> str:
    """Return what the last rule says that speaks of an operation and a path, as Seatbelt decides."""
    said = "deny"
    for rule in re.findall(r"\((?:allow|deny) [^()]*(?:\((?:[^()]|\([^()]*\))*\)\s*)*\)", in_full(rules)):
        head, *_ = rule[1:].split("(")
        word, *operations = head.split()
        is_meant = any(
            each == operation or (each.endswith("*") and operation.startswith(each[:-1]))
            for each in operations
        )
        below = [Path(each) for each in re.findall(r"\(subpath [<\"]([^>\"]*)[>\"]\)", rule)]
        exactly = [Path(each) for each in re.findall(r"\(literal [<\"]([^>\"]*)[>\"]\)", rule)]
        if is_meant and (path in exactly or any(path.is_relative_to(each) for each in below)):
            said = word
    return said


def test_all_is_denied_that_is_not_allowed() -> None:
    assert in_full(RULES).startswith("(version 1) (deny default) ")
    assert "(allow default)" not in in_full(RULES)
    # A rule without a filter is for every path, service or address.
    bare = re.findall(r"\(allow ([^()]*)\)", in_full(RULES))
    assert bare == ["process-fork process-exec", "ipc-posix-sem"]


@pytest.mark.parametrize(
    ("operation", "path", "word"),
    [
        ("file-read-data", "/usr/lib/libc.dylib", "allow"),
        ("file-write-data", "/usr/lib/libc.dylib", "deny"),
        ("file-read-data", "/Users/me/.ssh/id_ed25519", "deny"),
        ("file-read-data", "/Users/me/Library/Keychains/login.keychain-db", "deny"),
        ("file-read-data", "/private/etc/master.passwd", "deny"),
        ("file-read-data", "/System/Volumes/Data/Users/me/.ssh/id_ed25519", "deny"),
        ("file-read-data", "/Users/me", "deny"),
        ("file-read-metadata", "/Users/me", "allow"),
        ("file-read-data", "/Users/me/project-of-others/a.txt", "deny"),
        ("file-write-data", "/dev/tty", "deny"),
        ("file-write-data", "/private/tmp/a.txt", "deny"),
        ("file-write-data", "/Users/me/project/a.txt", "allow"),
        ("file-write-create", "/Users/me/project/.git/config", "allow"),
        ("file-write-create", "/Users/me/project/.git/hooks/pre-commit", "deny"),
        ("file-write-unlink", "/Users/me/project/.git", "deny"),
        ("file-write-unlink", "/Users/me/project", "deny"),
        ("file-read-data", "/Users/me/project/.git/hooks/pre-commit", "allow"),
    ],
)
def test_a_command_reaches_its_root_and_the_system_and_changes_nothing_protected(
    operation: str, path: str, word: str
) -> None:
    assert last_word(RULES, operation, Path(path)) == word


def test_the_innermost_directory_decides_and_rules_decide_after_it() -> None:
    rules = SeatbeltRules(
        ROOT,
        {
            ROOT / "vendor": "readable",
            Path("/data"): "readable",
            ROOT / "vendor/cache": "writable",
            ROOT: "writable",
        },
        modes={
            ROOT / "secrets": "hidden",
            ROOT / "secrets/open.txt": "readable",
            ROOT / "locked": "readable",
        },
    )

    said = {
        path: (last_word(rules, "file-read-data", Path(path)), last_word(rules, "file-write-data", Path(path)))
        for path in (f"{ROOT}/a", "/data/a", f"{ROOT}/vendor/a", f"{ROOT}/vendor/cache/a", f"{ROOT}/secrets/a",
                     f"{ROOT}/secrets/open.txt", f"{ROOT}/locked/a")
    }  # fmt: skip
    assert list(said.values()) == [
        ("allow", "allow"), ("allow", "deny"), ("allow", "deny"), ("allow", "allow"), ("deny", "deny"),
        ("allow", "deny"), ("allow", "deny"),
    ]  # fmt: skip
    # What rules bind must not be moved away with the directory that it is in.
    assert last_word(rules, "file-write-unlink", ROOT / "secrets") == "deny"


@pytest.mark.parametrize(
    ("network", "said"),
    [
        ("none", []),
        ("all", ["(allow network-outbound (remote ip \"*:*\"))", "(allow network-bind network-inbound (local ip \"*:*\"))"]),
        (49_321, ['(allow network-outbound (remote tcp "localhost:49321"))']),
    ],
)  # fmt: skip
def test_the_network_is_none_or_all_or_one_port_of_this_machine(network: int, said: list[str]) -> None:
    text = in_full(replace(RULES, network=network))

    assert [each for each in said if each not in text] == []
    assert text.count("network-") == {"none": 0, "all": 4}.get(str(network), 1)
    # The sockets of this machine's services have paths; only the one that resolves names is reached.
    assert text.count("mDNSResponder") == (network == "all")


@pytest.mark.parametrize("port", [0, -1, 70_000])
def test_a_port_that_is_none_is_refused(port: int) -> None:
    with pytest.raises(ValueError, match=rf"between 1 and 65535, got {port}"):
        write_profile(replace(RULES, network=port))


@pytest.mark.parametrize(
    "name",
    ['a"b', "a\\b", "a\nb", 'x")) (allow default) (allow file-read* (subpath "/', "a;b", "$(id)", "a=b", "ä b", "-p"],
)  # fmt: skip
def test_no_path_is_read_as_a_part_of_the_profile(name: str) -> None:
    root = Path("/Users/me") / name
    hostile, plain = (SeatbeltRules(each, {each: "writable"}, [each / ".git/hooks"]) for each in (root, ROOT))

    if len(root.parts) == len(ROOT.parts):
        assert write_profile(hostile) == write_profile(plain)
    assert str(root) not in write_profile(hostile)
    assert str(root) in values(hostile).values()
    assert "(allow default)" not in write_profile(hostile)


def test_a_path_that_no_system_has_is_refused() -> None:
    with pytest.raises(ValueError, match="NUL"):
        write_profile(SeatbeltRules(ROOT, {Path("/a\0b"): "writable"}))


def test_the_program_and_its_arguments_come_last_and_as_they_are() -> None:
    line = command_line(RULES, ["/bin/sh", "-c", 'echo "$HOME"; -p'])

    assert line[0] == "/usr/bin/sandbox-exec"
    assert line[-4:] == ["--", "/bin/sh", "-c", 'echo "$HOME"; -p']
    assert line[-6:-4] == ["-p", write_profile(RULES)]


def test_each_system_has_one_way_or_a_sentence(tmp_path: Path) -> None:
    program = tmp_path / "sandbox-exec"
    missing = find(str(program))
    program.write_text("")
    program.chmod(0o755)

    assert (
        missing
        == f"{program} is missing, which is a part of macOS: repair the system, or run commands in a container"
    )
    assert find(str(program)) == Seatbelt(str(program))
    assert "no sandbox for win32" in str(find_confinement("win32"))
    assert isinstance(find_confinement("darwin"), str) == (sys.platform != "darwin")


def test_what_macos_does_not_hold_is_said() -> None:
    said = find_not_held(Seatbelt(), Controllers(), "all")

    subjects = [sentence.partition(":")[0] for sentence in said]
    assert subjects == [
        "Network", "All of it", "Memory and processes", "Processes", "Proxy", "Disk", "Processor"
    ]  # fmt: skip


def test_what_a_command_leaves_in_its_group_ends_with_it() -> None:
    script = "sleep 60 & echo $!; exit 7"

    ran = led(script)

    assert ran.returncode == 7
    assert is_gone(int(ran.stdout))


def test_a_command_ends_when_its_harness_is_gone() -> None:
    harness = subprocess.Popen(["true"])
    harness.wait()

    ran = led("sleep 60", harness.pid)

    assert ran.returncode == 137


def led(script: str, harness: int = 1) -> subprocess.CompletedProcess[str]:
    line = [SHELL, "-c", LEADER, "sh", str(harness), "/bin/sh", "-c", script]
    return subprocess.run(
        line, capture_output=True, text=True, timeout=30, start_new_session=True, check=False
    )


def is_gone(pid: int) -> bool:
    # What is killed is not dead at once on a busy machine.
    last = time.monotonic() + 20
    while (shown := _state_of(pid)) not in ("", "Z") and time.monotonic() < last:
        time.sleep(0.05)
    return shown in ("", "Z")


def _state_of(pid: int) -> str:
    shown = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return shown.stdout.strip()[:1]


def test_processes_and_memory_are_counted_by_ps_too(tmp_path: Path) -> None:
    script = "import sys; held = bytearray(64 << 20); print(flush=True); sys.stdin.read()"
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )  # fmt: skip
    assert process.stdout is not None
    process.stdout.readline()

    def excess(memory: int, processes: int) -> str | None:
        return ProcessTableWatchdog(CommandLimits(memory, processes, 1 << 40), [tmp_path]).describe_excess(
            process.pid
        )

    found = [excess(1 << 30, 10), excess(32 << 20, 10), excess(1 << 30, 0)]
    process.communicate()

    assert found == [None, "it used more than 32 MiB of memory", "it started more than 0 processes"]
