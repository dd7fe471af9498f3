"""What the file tools may change is what commands may change: the innermost directory that was given decides."""

from __future__ import annotations

from pathlib import Path

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


@pytest.mark.parametrize("path", ["/", "/proc", "/dev/shm", "/sys"])
def test_what_holds_processes_and_devices_is_not_given(tmp_path: Path, path: str) -> None:
    with pytest.raises(ConfigError, match="holds processes and devices"):
        LocalSandbox(tmp_path, readable=[path])
