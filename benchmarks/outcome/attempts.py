"""One attempt: an arm on a throw-away copy of a task's files, and what became of them."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import deepagents
from benchmarks.contenders import OURS, REFERENCE, ROOT, python_of
from benchmarks.outcome.arms.socket_model import ask
from benchmarks.outcome.box import boxed, places_of
from benchmarks.outcome.environments import SHELL_PYTHON
from benchmarks.outcome.model_server import READY, Settings
from benchmarks.outcome.tasks import Laid, Task

ARMS = Path(__file__).with_name("arms")
SOCKET = "/tmp/model.sock"
_OURS = Path(deepagents.__file__).parents[1]
_CACHES = {"__pycache__", ".pytest_cache"}


@dataclass(frozen=True)
class Result:
    """What came of an attempt; `fault` is empty where the task was solved."""

    task: str
    wave: str
    arm: str
    seed: int
    fault: str
    end: str
    turns: int
    input: int
    output: int
    cached: int
    destroyed: tuple[str, ...]
    seconds: float
    code: str

    @property
    def key(self) -> tuple[str, str, int]:
        """What is not run twice."""
        return self.task, self.arm, self.seed


@dataclass(frozen=True)
class Bench:
    """Where attempts are made: the model's socket, the time limits, and where conversations are kept."""

    socket: Path
    seconds: float
    verify_seconds: float
    logs: Path
    code: str


@contextmanager
def served(settings: Settings, places: tuple[Path, ...] = ()) -> Generator[Path]:
    """Start the model's process and yield its socket.

    Raises:
        RuntimeError: where it does not start.
    """
    with tempfile.TemporaryDirectory(prefix="outcome-") as name:
        path = Path(name) / "model.sock"
        command = [sys.executable, "-m", "benchmarks.outcome.model_server", str(path)]
        # A group of its own, as arms have: Ctrl-C ends what is waited for, and that is not counted.
        server = subprocess.Popen(
            [*command, json.dumps(asdict(settings))],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
            process_group=0,
        )
        try:
            assert server.stdout is not None
            if server.stdout.readline().strip() != READY:
                raise RuntimeError(f"The model {settings.model!r} could not be started; its words are above.")
            yield path
        finally:
            server.terminate()
            server.wait()
            if server.stdout:
                server.stdout.close()


def attempt(task: Task, arm: str, seed: int, bench: Bench) -> Result:
    """Let an arm try a task, check what became of the files, and keep the conversation beside the results.

    Raises:
        RuntimeError: where the arm broke off before its first call of the model, which says nothing about it.
    """
    key = f"{arm} {seed} {task.id}"
    with tempfile.TemporaryDirectory(prefix="outcome-") as name:
        work, gold = Path(name) / "work", Path(name) / "gold"
        work.mkdir()
        gold.mkdir()
        laid = task.lay(work, gold, seed)
        before = snapshot(work)
        started = perf_counter()
        ended = _run(arm, key, seed, laid, work, bench)
        seconds = perf_counter() - started
        after = snapshot(work)
        fault = task.fault(work, ended["answer"], bench.verify_seconds)
        destroyed = find_destroyed(before, after, snapshot(gold)) if laid.has_gold else ()
    used = ask(str(bench.socket), {"used": key})
    if not used["turns"]:
        raise RuntimeError(f"The arm {arm!r} did not start: {ended.get('why', ended['end'])}")
    ended["end"] = how_it_ended(ended["end"], used["said"])
    said = {"prompt": laid.prompt, "fault": fault, "destroyed": destroyed, **ended, "said": used.pop("said")}
    log = bench.logs / f"{key.replace('/', '_').replace(' ', '_')}.json"
    log.write_text(json.dumps(said, ensure_ascii=False, indent=1))
    return Result(
        task.id,
        task.wave,
        arm,
        seed,
        fault,
        ended["end"],
        **used,
        destroyed=destroyed,
        seconds=round(seconds, 1),
        code=bench.code,
    )


def _run(arm: str, key: str, seed: int, laid: Laid, work: Path, bench: Bench) -> dict[str, str]:
    python = Path(python_of(arm if arm == REFERENCE else OURS))
    command = boxed(
        [str(python), str(ARMS / "arm.py"), arm, SOCKET, key, str(seed)],
        work,
        shown=[
            *places_of(python),
            *places_of(SHELL_PYTHON),
            *([] if arm == REFERENCE else [_OURS]),
            ARMS,
        ],
        bound={bench.socket: SOCKET},
        environment={
            "PATH": f"{SHELL_PYTHON.parent}:/usr/bin:/bin",
            "PYTHONDONTWRITEBYTECODE": "1",
            "LANGSMITH_TRACING": "false",
            # There is no network: what asks for it again and again only takes time.
            "npm_config_fetch_retries": "0",
            "PIP_RETRIES": "0",
        },
    )
    try:
        done = subprocess.run(
            command,
            input=laid.prompt,
            capture_output=True,
            text=True,
            timeout=bench.seconds,
            process_group=0,
        )
    except subprocess.TimeoutExpired:
        return {"end": "seconds", "answer": ""}
    if done.returncode:
        return {"end": "crash", "answer": "", "why": done.stderr[-2000:]}
    return json.loads(done.stdout.splitlines()[-1])


def how_it_ended(end: str, said: Sequence[Mapping[str, Any]]) -> str:
    """Tell apart answers without any call of a tool, right after a call that failed, and others.

    Harnesses mark a failure by the status of a result, or by its first word.
    """
    results = [each["data"] for each in said if each["type"] == "tool"]
    if end != "answered" or not said:
        return end
    if not results:
        return "no call"
    text = results[-1]["content"]
    failed = results[-1].get("status") == "error" or str(text).casefold().startswith("error")
    return "after an error" if failed else end


def snapshot(root: Path) -> dict[str, str]:
    """Name every file below a directory with a digest of what it holds."""
    found: dict[str, str] = {}
    for place, directories, names in os.walk(root):
        directories[:] = [each for each in directories if each not in _CACHES]
        for name in names:
            path = Path(place) / name
            found[str(path.relative_to(root))] = _digest(path)
    return found


def _digest(path: Path) -> str:
    if path.is_symlink():
        return f"-> {path.readlink()}"
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        return str(error.errno)


def find_destroyed(
    before: Mapping[str, str], after: Mapping[str, str], gold: Mapping[str, str]
) -> tuple[str, ...]:
    """Name the files that were there, should have stayed as they were, and did not."""
    return tuple(
        name for name, text in sorted(before.items()) if gold.get(name) == text and after.get(name) != text
    )
