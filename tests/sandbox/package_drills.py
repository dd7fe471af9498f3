"""Packages from the registries on the network, in a process of its own: tests do not leave this machine."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

from deepagents.backends import LocalSandbox
from tests.sandbox.users import main


def python_package() -> str:
    return _install(
        _python_registry(),
        "python3 -m pip install -q --target lib --no-cache-dir --disable-pip-version-check six",
        "PYTHONPATH=lib python3 -c 'import six; print(six.PY3)'",
    )


def javascript_package() -> str:
    return _install(
        [urlsplit(_ask("npm", "config", "get", "registry")).hostname or ""],
        "npm install --silent --no-audit --no-fund left-pad",
        "node -e \"console.log(require('left-pad')('1', 3, '0'))\"",
    )


def _python_registry() -> list[str]:
    """Return the hosts that pip asks unless it is told otherwise; the project names none."""
    code = "from pip._internal.models.index import PyPI; print(PyPI.netloc, PyPI.file_storage_domain)"
    return _ask(sys.executable, "-c", code).split()


def _ask(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.strip()


def _install(hosts: list[str], install: str, use: str) -> str:
    try:
        socket.create_connection((hosts[0], 443), 3).close()
    except OSError as error:
        return f"unreachable: {hosts[0]}: {error}"
    top = Path(tempfile.mkdtemp(prefix="packages-", dir="/var/tmp"))
    try:
        backend = LocalSandbox(top, network=hosts, timeout=100)
        installed = backend.execute(install)
        return backend.execute(use).output if installed.exit_code == 0 else installed.output
    finally:
        shutil.rmtree(top, ignore_errors=True)


if __name__ == "__main__":
    main([python_package, javascript_package])
