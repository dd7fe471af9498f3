"""What the file tools may change is what commands may change: the innermost directory that was given decides."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deepagents.backends import LocalSandbox
from deepagents.errors import ConfigError
from tests.sandbox.users import UNAVAILABLE

pytestmark = pytest.mark.skipif(UNAVAILABLE is not None, reason=str(UNAVAILABLE))


def test_a_directory_to_read_is_read_only_inside_one_to_write_and_beside_one_of_almost_its_name(
    tmp_path: Path,
) -> None:
    for name in ("job/lib", "data", "DATA"):
        (tmp_path / name).mkdir(parents=True)
    backend = LocalSandbox(
        tmp_path / "job",
        readable=[tmp_path / "job/lib", tmp_path / "DATA"],
        writable=[tmp_path / "data"],
    )

    written = {each: backend.write(f"{tmp_path}/{each}/a.txt", "x").error for each in ("job", "data", "DATA")}
    ran = backend.execute(f"touch lib/b.txt; touch {tmp_path}/DATA/b.txt; touch {tmp_path}/data/b.txt")

    assert [each for each, error in written.items() if error] == ["DATA"]
    assert backend.write(f"{tmp_path}/job/lib/a.txt", "x").error
    assert ran.output.count("Read-only file system") == 2
    assert sorted(str(each.relative_to(tmp_path)) for each in tmp_path.rglob("*.txt")) == [
        "data/a.txt",
        "data/b.txt",
        "job/a.txt",
    ]


@pytest.mark.parametrize("name", ["nowhere", "file"])
def test_a_root_that_is_no_directory_is_refused_with_the_way_out(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(ConfigError, match=rf"root_dir must be a directory that is there, got '.*/{name}'"):
        LocalSandbox(tmp_path / name)


@pytest.mark.parametrize("path", ["/", "/proc", "/dev/shm", "/sys"])
def test_what_holds_processes_and_devices_is_not_given(tmp_path: Path, path: str) -> None:
    with pytest.raises(ConfigError, match="holds processes and devices"):
        LocalSandbox(tmp_path, readable=[path])


@pytest.mark.parametrize("name", ["readable", "writable", "protected"])
def test_one_path_is_given_as_a_list(tmp_path: Path, name: str) -> None:
    given: Any = {name: "src"}
    with pytest.raises(ConfigError, match=rf"{name} must be a list of paths, got 'src'; write \['src'\]"):
        LocalSandbox(tmp_path, **given)


@pytest.mark.parametrize("path", ["/", "/proc", "/dev", "/sys"])
def test_what_holds_processes_and_devices_is_no_root(path: str) -> None:
    with pytest.raises(ConfigError, match="root_dir must be a directory of its own"):
        LocalSandbox(path)


def test_a_single_file_is_given_to_commands_and_file_tools_alike(tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()
    (tmp_path / "notes.txt").write_text("given\n")
    (tmp_path / "other.txt").write_text("not given\n")
    backend = LocalSandbox(tmp_path / "job", readable=[tmp_path / "notes.txt"])

    assert backend.execute(f"cat {tmp_path}/notes.txt").output == "given"
    assert "given" in str(backend.read(f"{tmp_path}/notes.txt").file_data)
    assert backend.read(f"{tmp_path}/other.txt").error
    assert backend.write(f"{tmp_path}/notes.txt", "x").error
    assert "other.txt" not in str(backend.ls(str(tmp_path)).entries)


def test_protected_paths_are_protected_in_each_directory_to_write(tmp_path: Path) -> None:
    for name in ("job", "other/.git/hooks"):
        (tmp_path / name).mkdir(parents=True)
    backend = LocalSandbox(tmp_path / "job", writable=[tmp_path / "other"])

    ran = backend.execute(
        "cd ../other; echo x > .git/hooks/pre-commit; echo x > .envrc; touch .git/config a.txt"
    )

    assert "Read-only file system" in ran.output
    assert backend.write(f"{tmp_path}/other/.git/hooks/pre-push", "x").error
    found = sorted(str(each.relative_to(tmp_path)) for each in (tmp_path / "other").rglob("*"))
    assert found == ["other/.git", "other/.git/config", "other/.git/hooks", "other/a.txt"]


def test_file_tools_lead_git_to_no_repository_that_they_have_written(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path / "clone"], check=True)
    backend = LocalSandbox(tmp_path)
    config = f'[core]\nbare = false\nworktree = .\nfsmonitor = "touch {tmp_path}/ran; false"\n'
    layout = {"config": config, "HEAD": "ref: refs/heads/main\n", "objects/x": "", "refs/x": ""}

    for place in ("evil", "made/.git"):
        for name, text in layout.items():
            backend.write(f"{tmp_path}/{place}/{name}", text)
    named = backend.write(f"{tmp_path}/.git", "gitdir: evil\n")
    for each in (tmp_path, tmp_path / "made"):
        subprocess.run(["git", "status"], cwd=each, check=False, capture_output=True)

    assert named.error
    assert not (tmp_path / "ran").exists()
    assert backend.write(f"{tmp_path}/clone/.git/info/exclude", "*.log\n").error is None
    assert backend.delete(f"{tmp_path}/clone").error is None


@pytest.mark.parametrize("bound", ["memory", "processes", "disk"])
def test_a_bound_is_positive(tmp_path: Path, bound: str) -> None:
    given: Any = {bound: 0}
    with pytest.raises(ConfigError, match=f"{bound} must be positive, got 0"):
        LocalSandbox(tmp_path, **given)


@pytest.mark.parametrize("env", [{"A": "x\0--bind\0/\0/mnt"}, {"A=B": "x"}, {"": "x"}, {"A": 1}])
def test_variables_are_names_and_text(tmp_path: Path, env: Any) -> None:
    with pytest.raises(ConfigError, match="env must map names to text"):
        LocalSandbox(tmp_path, env=env)


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Path]:
    """A workspace with a file system of its own in it, whose name has a space and is not UTF-8."""
    place = tmp_path / "job" / os.fsdecode(b"a vol\xfcme")
    place.mkdir(parents=True)
    command = ["mount", "-t", "tmpfs", "-o", "size=200m", "tmpfs", str(place)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("only root can mount a file system, and not everywhere")
    yield tmp_path / "job"
    subprocess.run(["umount", str(place)], check=True)


def test_a_file_system_inside_counts_for_the_bound_on_disk(mounted: Path) -> None:
    backend = LocalSandbox(mounted, disk=20 << 20, timeout=30)

    ran = backend.execute(
        "cd a*; for each in 1 2 3 4 5 6 7; do head -c 15M /dev/zero > $each; sleep 0.2; done"
    )

    assert "it wrote more than 20 MiB to the disk" in ran.output
