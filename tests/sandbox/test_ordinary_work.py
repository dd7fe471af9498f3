"""What people do all day works in a sandbox: shells, repositories, compilers, servers, packages."""

from __future__ import annotations

import shutil
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from deepagents.backends import LocalSandbox
from deepagents.errors import ConfigError
from tests.sandbox.users import UNAVAILABLE, USERS, run_drills

pytestmark = [pytest.mark.skipif(UNAVAILABLE is not None, reason=str(UNAVAILABLE)), pytest.mark.slow]
_GIT = "git -c user.name=me -c user.email=me@example.org"


def needs(*programs: str) -> pytest.MarkDecorator:
    missing = [each for each in programs if shutil.which(each, path="/usr/bin:/bin:/usr/local/bin") is None]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


def run(backend: LocalSandbox, command: str) -> str:
    ran = backend.execute(command, timeout=100)
    assert ran.exit_code == 0, ran.output
    return ran.output


@pytest.fixture
def backend(tmp_path: Path) -> LocalSandbox:
    return LocalSandbox(tmp_path)


@needs("bash")
def test_bash_with_pipes_arrays_here_documents_and_process_substitution(backend: LocalSandbox) -> None:
    script = """bash <<'END'
set -euo pipefail
names=(one two three)
sort -r <(printf '%s\\n' "${names[@]}") | tee sorted.txt | wc -l
cat sorted.txt | while read -r each; do echo "-$each"; done
mkfifo pipe; (echo through > pipe &); cat pipe
echo $((1 << 10)) > /dev/stderr 2>/dev/null; date +%Y >/dev/null; id -un
END"""
    assert run(backend, script).splitlines()[:5] == ["3", "-two", "-three", "-one", "through"]


def test_an_environment_of_python_is_found_by_one_word(tmp_path: Path) -> None:
    environment, work = tmp_path / "environment", tmp_path / "work"
    work.mkdir()
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    (packages,) = environment.glob("lib/python*/site-packages")
    (packages / "plots.py").write_text("NAME = 'plots'\n")
    look = "python -c 'import sqlite3, plots, sys; print(plots.NAME, sys.prefix)'"

    for session in (False, True):
        with LocalSandbox(work, python=environment, session=session) as backend:
            assert run(backend, look) == f"plots {environment}"
            assert backend.execute(f"touch {packages}/other.py").exit_code
            assert "Python" in run(backend, "python3 --version; echo $VIRTUAL_ENV")
    assert "No module named 'plots'" in LocalSandbox(work).execute("python3 -c 'import plots'").output


@needs("git")
def test_worktrees_submodules_and_bare_copies_are_made_and_used_in_later_commands(tmp_path: Path) -> None:
    for session in (False, True):
        top = tmp_path / str(session)
        top.mkdir()
        with LocalSandbox(top, session=session) as backend:
            run(backend, f"git init -q .; {_GIT} commit -q --allow-empty -m first")
            run(backend, "git worktree add -q .worktrees/a; git clone -q --bare . copy.git")
            run(
                backend,
                f"cd .worktrees/a; touch f; git add f; {_GIT} commit -q -m second; git push -q ../../copy.git a",
            )
            run(backend, "git worktree remove .worktrees/a; test ! -e .git/worktrees/a")
            run(backend, "git -c protocol.file.allow=always submodule add -q ./copy.git sub")
            run(backend, f"cd sub; touch g; git add g; {_GIT} commit -q -m third; git status")
            run(backend, f"git add -A sub; {_GIT} commit -q -m fourth; git status")


def test_an_environment_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"such as sys\.prefix: there is no .*/bin/python"):
        LocalSandbox(tmp_path, python=tmp_path)


def test_files_of_commands_and_of_tools_are_the_same_at_the_same_paths(
    backend: LocalSandbox, tmp_path: Path
) -> None:
    path = str(tmp_path / "sub/a.txt")
    backend.write(path, "from a tool\n")

    assert run(backend, f"cat {path}; echo from a command >> sub/a.txt; pwd").splitlines() == [
        "from a tool",
        str(tmp_path),
    ]
    assert (tmp_path / "sub/a.txt").read_text() == "from a tool\nfrom a command\n"


@needs("python3")
def test_a_virtual_environment_of_python(backend: LocalSandbox) -> None:
    if subprocess.run(
        ["/usr/bin/python3", "-c", "import ensurepip"], capture_output=True, check=False
    ).returncode:
        pytest.skip("the system's Python has no ensurepip")

    output = run(
        backend,
        "/usr/bin/python3 -m venv --without-pip env && . env/bin/activate && "
        "python -c 'import sys, sqlite3, ssl, ctypes, multiprocessing; print(sys.prefix)'",
    )

    assert output.endswith("/env")


@needs("python3")
def test_processes_and_threads_of_python(backend: LocalSandbox) -> None:
    code = """
import multiprocessing, concurrent.futures
def square(n): return n * n
if __name__ == '__main__':
    with multiprocessing.Pool(2) as pool:
        print(pool.map(square, range(4)))
    with concurrent.futures.ThreadPoolExecutor() as threads:
        print(sum(threads.map(square, range(100))))
"""
    assert run(backend, f"cat > work.py <<'END'\n{code}\nEND\npython3 work.py").splitlines() == [
        "[0, 1, 4, 9]",
        "328350",
    ]


@needs("git")
def test_a_repository_is_made_and_gets_commits_branches_and_a_merge_over_several_calls(
    backend: LocalSandbox, tmp_path: Path
) -> None:
    run(backend, "git init -q -b main . && echo one > a.txt && git add -A")
    run(backend, f"{_GIT} commit -q -m first && git switch -q -c side && echo two > b.txt && git add b.txt")
    run(
        backend, f"{_GIT} commit -q -m second && git switch -q main && {_GIT} merge -q --no-ff -m merged side"
    )

    assert run(backend, "git status --short; git log --topo-order --format=%s").splitlines() == [
        "merged",
        "second",
        "first",
    ]
    # A hook directory is made by `git init`, and gone afterwards; git does well without one.
    seen = subprocess.run(
        ["git", "log", "--topo-order", "--format=%s"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert seen.stdout.splitlines() == ["merged", "second", "first"] or "dubious ownership" in seen.stderr
    assert not (tmp_path / ".git/hooks").exists()


@needs("gcc")
def test_a_program_is_compiled_and_runs(backend: LocalSandbox) -> None:
    run(
        backend,
        "printf '#include <stdio.h>\\nint main(void) { puts(\"compiled\"); }\\n' > a.c && gcc -O1 -o a a.c",
    )

    assert run(backend, "./a") == "compiled"


@needs("python3", "curl")
def test_a_server_is_started_and_asked_within_one_command(backend: LocalSandbox) -> None:
    assert run(
        backend,
        "echo served > page.txt; python3 -m http.server 8123 --bind 127.0.0.1 >/dev/null 2>&1 & "
        "curl -sS --retry 50 --retry-connrefused --retry-delay 0 --retry-max-time 20 http://127.0.0.1:8123/page.txt",
    ).endswith("served")


@needs("node")
def test_javascript_runs(backend: LocalSandbox) -> None:
    code = "const {execSync} = require('child_process'); console.log(1 + 1, String(execSync('echo child')).trim())"

    assert run(backend, f'node -e "{code}"') == "2 child"


@pytest.fixture
def https_repository(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A repository with one commit on an HTTPS server of this machine, as `host:port`."""
    place = tmp_path_factory.mktemp("https")
    made = (
        f"git init -q -b main work && cd work && echo one > a.txt && git add -A && {_GIT} commit -q -m first && "
        "cd .. && git clone -q --bare work repository.git && git -C repository.git update-server-info && "
        "openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=localhost"
    )
    subprocess.run(["sh", "-ec", made], cwd=place, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(place / "cert.pem", place / "key.pem")

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(place))) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@needs("git", "openssl")
def test_a_repository_is_cloned_by_https_through_the_proxy(tmp_path: Path, https_repository: str) -> None:
    backend = LocalSandbox(tmp_path, network=[https_repository])
    # The proxy is for other machines: by default, what is on this one is asked directly, and is not there.
    clone = "NO_PROXY= no_proxy= git -c http.sslVerify=false clone -q"

    run(backend, f"{clone} https://{https_repository}/repository.git cloned")
    refused = backend.execute(f"{clone} https://evil.example/repository.git other")

    assert (tmp_path / "cloned/a.txt").read_text() == "one\n"
    assert refused.exit_code
    assert "evil.example:443 is refused" in refused.output


@pytest.mark.parametrize(
    ("package", "shown"),
    [
        pytest.param("python_package", "True", marks=needs("python3")),
        pytest.param("javascript_package", "001", marks=needs("npm", "node")),
    ],
)
def test_a_package_is_installed_through_the_proxy(package: str, shown: str) -> None:
    output: str = run_drills("tests.sandbox.package_drills", next(iter(USERS)))[package]
    if output.startswith("unreachable"):
        pytest.skip(output)

    assert output == shown
