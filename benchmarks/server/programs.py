"""The programs that are measured: servers and workers as processes that can be killed and started again."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, TypeAlias

import httpx

from benchmarks.contenders import ROOT, child_environment

AGENTS = Path(__file__).with_name("agents.py")
GRAPHS = {name: f"{AGENTS}:{name}" for name in ("brief", "talker", "lifter")}
_COMMAND = (sys.executable, "-m", "deepagents_cli")
_PATIENCE = 240.0

Start: TypeAlias = "Callable[..., Running]"


class Running(Protocol):
    """What a drill does with a process."""

    @property
    def pid(self) -> int: ...
    def send_signal(self, sig: int, /) -> None: ...
    def wait(self) -> int: ...


class Program:
    """A process with a log of its own; `start` starts it as `subprocess.Popen` does."""

    def __init__(
        self, directory: Path, command: Sequence[str], start: Start = subprocess.Popen, **environment: str
    ) -> None:
        self._directory = directory
        self._command = list(command)
        self._start = start
        self._environment = {**child_environment(), "PYTHONPATH": str(ROOT / "src"), **environment}
        self._running: Running | None = None

    def start(self) -> None:
        """Start the process, and wait for nothing."""
        with (self._directory / "log").open("ab") as log:
            self._running = self._start(
                self._command, cwd=self._directory, env=self._environment, stdout=log, stderr=log
            )

    @property
    def pid(self) -> int:
        """Its number; 0 when it does not run."""
        return self._running.pid if self._running else 0

    def send(self, number: signal.Signals) -> None:
        """Send a signal."""
        if self._running:
            self._running.send_signal(number)

    def end(self, how: signal.Signals = signal.SIGKILL) -> None:
        """End it by a signal."""
        if self._running:
            self._running.send_signal(how)
            self._running.wait()
            self._running = None

    def memory(self) -> float:
        """Return the megabytes that it holds."""
        return _status(self.pid)

    def processor(self) -> float:
        """Return the seconds of processor time that it has used."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _status(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1000 for line in lines if line.startswith("VmRSS"))


class Server(Program):
    """A program that answers at a port, also after it was started again."""

    def __init__(
        self, directory: Path, command: Sequence[str], start: Start = subprocess.Popen, **environment: str
    ) -> None:
        self.port = _free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        super().__init__(directory, [*command, "--port", str(self.port)], start, **environment)

    def wait(self) -> None:
        """Wait until it answers."""
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            try:
                if httpx.get(f"{self.url}/ok", timeout=5).is_success:
                    return
            except httpx.HTTPError:
                time.sleep(0.1)
        raise TimeoutError(f"{self.url} did not answer; see {self._directory / 'log'}")


def deepagents(directory: Path, *options: str, start: Start = subprocess.Popen, **environment: str) -> Server:
    """Make `deepagents serve`."""
    _write_config(directory)
    return Server(directory, [*_COMMAND, "serve", *options], start, **environment)


def worker(directory: Path, *options: str, start: Start = subprocess.Popen, **environment: str) -> Program:
    """Make `deepagents worker`."""
    _write_config(directory)
    return Program(directory, [*_COMMAND, "worker", *options], start, **environment)


def langgraph_dev(directory: Path, runs: int) -> Server:
    """Make `langgraph dev`, a black box from an environment of its own."""
    _write_config(directory)
    program = str(LANGGRAPH_DEV / "bin" / "langgraph")
    options = ("--host", "127.0.0.1", "--no-browser", "--no-reload", "--n-jobs-per-worker", str(runs))
    environment = {"LANGSMITH_TRACING": "false", "LANGGRAPH_CLI_NO_ANALYTICS": "1"}
    return Server(directory, [program, "dev", *options], subprocess.Popen, **environment)


LANGGRAPH_DEV = ROOT / ".bench" / "langgraph-dev"


def install_langgraph_dev() -> None:
    """Make the environment of `langgraph dev`, once, with what our library needs."""
    if (LANGGRAPH_DEV / "bin" / "langgraph").exists():
        return
    subprocess.run([sys.executable, "-m", "venv", str(LANGGRAPH_DEV)], check=True)
    wanted = ["langgraph-cli[inmem]", "langchain", "langchain-anthropic", "regex", "bracex"]
    pip = [str(LANGGRAPH_DEV / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "-qq"]
    subprocess.run([*pip, "install", *wanted], check=True)


def _write_config(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "langgraph.json").write_text(json.dumps({"dependencies": ["."], "graphs": GRAPHS}))


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]
