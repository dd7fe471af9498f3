"""What is measured beside what, and the environments that they live in."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from hashlib import sha256
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OURS, BARE, REFERENCE = "deepagents", "create_agent", "reference"
REFERENCE_RELEASE = "deepagents==0.7.32"
REFERENCE_HOME = ROOT / ".venv-reference"
PLAIN_HOME = ROOT / ".venv-plain"
COMMAND_HOME = ROOT / ".venv-command"
STANDS_ON = (
    # A newer one than ours may be faster or slower to import, and that would be taken for the harness.
    "anthropic",
    "langchain",
    "langchain-anthropic",
    "langchain-core",
    "langgraph",
    "langgraph-prebuilt",
    "langsmith",
    "pydantic",
)
"""What we and the reference stand on, in the versions that are used here."""
_KEEPERS = (
    "langgraph-checkpoint-sqlite",
    "langgraph-checkpoint-postgres",
    "psycopg",
    "psycopg-binary",
)
"""What the reference keeps threads with."""
SHOWN_PACKAGES = ("deepagents", "langchain", "langchain-core", "langgraph", "pydantic")
_DROPPED = ("PYTHON", "DEEPAGENTS_", "LANGCHAIN_", "LANGGRAPH_", "LANGSMITH_", "COV_", "COVERAGE_")


def agent_of(contender: str) -> str:
    """Name the probe module that makes a contender's agents."""
    return "create_agent" if contender == BARE else "deep_agent"


def python_of(contender: str) -> str:
    """Name the interpreter that a contender runs in."""
    return str(REFERENCE_HOME / "bin" / "python") if contender == REFERENCE else sys.executable


def plain_python_of(contender: str) -> str:
    """Name an interpreter without what people who install the contender do not have.

    Packages look for others at import: here they would find a hundred modules more.
    """
    return python_of(contender) if contender == REFERENCE else str(PLAIN_HOME / "bin" / "python")


def install_reference() -> None:
    """Make the environment of the reference implementation, once; it is run as a black box."""
    _install(REFERENCE_HOME, REFERENCE_RELEASE, *_pinned_as_here(_KEEPERS))


def install_plain() -> None:
    """Make the environments of people who install this package without extras, and the command, once."""
    _install(PLAIN_HOME, f"--editable={ROOT}")
    _install(COMMAND_HOME, f"--editable={ROOT}[cli,openai]")


def _install(home: Path, *package: str) -> None:
    wanted = [*package, *_pinned_as_here(STANDS_ON)]
    made_of = [sys.version, (ROOT / "pyproject.toml").read_text(), *wanted]
    ready = home / f".{sha256(' '.join(made_of).encode()).hexdigest()}"
    if ready.exists():
        return
    print(f"Installing {Path(package[0]).name} into {home.name}, once", file=sys.stderr)
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(home)], check=True)
    pip = [str(home / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "-qq", "install"]
    subprocess.run([*pip, *wanted], check=True)
    ready.touch()


def _pinned_as_here(packages: Sequence[str]) -> list[str]:
    return [f"{name}=={metadata.version(name)}" for name in packages]


def without_ripgrep() -> tuple[str, dict[str, str]]:
    """Name an interpreter and an environment that see the same packages, but no `rg`."""
    places = child_environment()["PATH"].split(os.pathsep)
    kept = [place for place in places if not shutil.which("rg", path=place)]
    paths = os.pathsep.join(path for path in sys.path if path)
    return str(Path(sys.executable).resolve()), {"PATH": os.pathsep.join(kept), "PYTHONPATH": paths}


def child_environment() -> dict[str, str]:
    """Copy the environment without keys and settings, and with our own programs first on the search path."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(_DROPPED) and not name.endswith(("_API_KEY", "_AUTH_TOKEN"))
    }
    own = str(Path(sys.executable).parent)
    path = os.pathsep.join([own, kept.get("PATH", os.defpath)])
    return {**kept, "PATH": path, "LANGSMITH_TRACING": "false"}


def versions(contender: str) -> dict[str, str]:
    """Tell the versions of the packages that matter."""
    ask = f"import importlib.metadata as m; print({{name: m.version(name) for name in {SHOWN_PACKAGES!r}}})"
    done = subprocess.run(
        [python_of(contender), "-c", ask],
        capture_output=True,
        text=True,
        check=True,
        cwd=tempfile.gettempdir(),
    )
    return ast.literal_eval(done.stdout)
