"""The command answers at once, and imports nothing heavy before a command runs."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.openai_server import MODEL, call, serving

pytestmark = pytest.mark.slow

HEAVY = ("langchain", "langchain_core", "langgraph", "pydantic", "rich", "deepagents.graph")

UNUSED = (
    *("anthropic", "dbos", "sqlalchemy", "uvicorn", "starlette", "prompt_toolkit", "llama_cpp", "mcp"),
    *("markdown_it", "tomlkit", "jsonschema_rs", "genai_prices", "numpy", "PIL", "openai.types.beta"),
    *("deepagents_server.server", "regex", "yaml", "deepagents.middleware.skills.middleware"),
    *("deepagents.middleware.async_subagents.tools", "deepagents.middleware.code_mode"),
    *("deepagents_cli.commands.serve", "deepagents_cli.commands.sessions"),
)
"""What a task with an answer alone has no use for."""


def python(*argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *argv], capture_output=True, text=True)


@pytest.mark.parametrize(
    "argv",
    [
        ["--help"],
        ["--version"],
        ["run", "--help"],
        ["models", "--help"],
        ["first-run", "--help"],
        ["sessions"],
    ],
)
def test_what_needs_no_agent_imports_nothing_heavy(argv: list[str]) -> None:
    program = (
        "import sys\n"
        "from deepagents_cli.__main__ import main\n"
        "try:\n"
        f"    main({argv!r})\n"
        "except SystemExit as end:\n"
        "    assert not end.code\n"
        f"print('heavy:', [name for name in {HEAVY!r} if name in sys.modules])"
    )

    assert python("-c", program).stdout.endswith("heavy: []\n")


def test_a_task_imports_nothing_that_it_does_not_use(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from deepagents_cli.__main__ import main\n"
        "argv = ['run', '-q', '--yes', '--mode', 'auto', '--model', 'local-server:scripted', 'Go.']\n"
        "assert main(argv) == 0\n"
        f"print('unused:', [name for name in {UNUSED!r} if name in sys.modules])"
    )
    work = tmp_path / "work"
    work.mkdir()
    with serving(call("write_file", file_path="a.md", content="a\n"), "Done.") as server:
        ended = subprocess.run(
            [sys.executable, "-c", program],
            cwd=work,
            env={**os.environ, "HOME": str(tmp_path), "DEEPAGENTS_LOCAL_SERVER": server.address},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )

    assert ended.stdout == "Done.\nunused: []\n", ended.stderr
    assert (work / "a.md").read_text() == "a\n"


def test_the_version_is_the_library_s() -> None:
    from_library = python("-c", "import deepagents; print(deepagents.__version__)").stdout

    for module in ("deepagents", "deepagents_cli"):
        assert python("-m", module, "--version").stdout == f"deepagents {from_library}"


@pytest.mark.parametrize(
    ("command", "package", "extra"),
    [
        (["run", "hello"], "aiosqlite", "cli"),
        (["sessions", "search", "hello"], "langgraph.checkpoint.sqlite", "cli"),
        (["serve", "agent.py:agent"], "sqlalchemy", "server"),
        (["worker", "--database", "postgresql://db.example/agents"], "dbos", "server"),
        (["keys", "list"], "sqlalchemy", "server"),
        (["db", "vacuum"], "sqlalchemy", "server"),
    ],
)
def test_missing_packages_are_named_with_the_way_to_get_them(
    command: list[str], package: str, extra: str
) -> None:
    program = (
        "import sys\n"
        f"sys.modules[{package!r}] = None\n"
        "from deepagents_cli.__main__ import main\n"
        f"sys.exit(main({command!r}))"
    )

    ended = python("-c", program)

    assert ended.returncode == 1
    assert f"{package.partition('.')[0]} is missing" in ended.stderr
    assert f"pip install '.[{extra}]' in a checkout" in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_a_command_runs_in_a_process_of_its_own() -> None:
    ended = python("-m", "deepagents_cli", "models", "list")

    assert ended.returncode == 0
    assert "qwen2.5-coder-1.5b" in ended.stdout


@pytest.mark.parametrize(("begun_before", "freed"), [(False, ""), (True, "before\nfreed\n")])
def test_what_others_do_at_exit_is_done_and_then_nothing_is_freed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begun_before: bool, freed: str
) -> None:
    program = (
        "import atexit, sys\n"
        # With a method of this module it would stand in a circle, and Python frees none that is older than
        # the imports of a command.
        "kept = type('Kept', (), {'__del__': eval('lambda _: print(\"freed\")', {})})()\n"
        f"if {begun_before}: atexit.register(print, 'before')\n"
        "from deepagents_cli.__main__ import run_program\n"
        "code = run_program()\n"
        "atexit.register(print, 'later')\n"
        "sys.exit(code)"
    )
    monkeypatch.chdir(tmp_path)

    with serving("Done.") as server:
        monkeypatch.setenv("DEEPAGENTS_LOCAL_SERVER", server.address)
        ended = python("-c", program, "-q", "--model", f"local-server:{MODEL}", "Hi.")

    assert (ended.returncode, ended.stdout) == (0, f"Done.\nlater\n{freed}")


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ((), "\x1b[2mstarting\x1b[0m\r\x1b[K"),
        (("--json",), ""),
        (("--quiet",), ""),
    ],
)
def test_a_terminal_tells_of_the_start_until_it_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], shown: str
) -> None:
    monkeypatch.setenv("NO_COLOR", "")
    monkeypatch.setenv("TERM", "xterm")
    reading, writing = pty.openpty()
    command = [
        sys.executable,
        "-m",
        "deepagents_cli",
        "run",
        "hello",
        "--dir",
        str(tmp_path / "none"),
        *options,
    ]

    ended = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=writing, stderr=subprocess.PIPE, text=True
    )

    os.write(writing, b".")
    seen = ""
    while not seen.endswith("."):
        seen += os.read(reading, 1000).decode()
    assert seen == f"{shown}."
    os.close(reading)
    os.close(writing)
    assert ended.stderr == f"deepagents: '{tmp_path}/none' is not a directory\n"
