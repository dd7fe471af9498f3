"""The lock files hold what pyproject.toml asks for, by hash, and name no place to get it from."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from packaging.requirements import Requirement

from tests.architecture.source import ROOT

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS: dict[str, list[str]] = PROJECT["project"]["optional-dependencies"]
GROUPS: dict[str, list[Any]] = PROJECT["dependency-groups"]
DEVELOPMENT = [group for name, group in GROUPS.items() if name != "docs"]
CORE: list[str] = PROJECT["project"]["dependencies"]


def read_names(file: str) -> list[str]:
    """Read the requirements in a file that a lock is made of."""
    return re.findall(r"^([a-z].*)$", (ROOT / "requirements" / file).read_text(), re.MULTILINE)


NEEDED = {
    "third-party.lock": [*CORE, *read_names("third-party.in")],
    "scanned.lock": read_names("scanned.in"),
    "run.lock": [*CORE, *EXTRAS["cli"], *EXTRAS["local"], *GROUPS["build"]],
    "dev.lock": [*CORE, *(each for group in [*EXTRAS.values(), *DEVELOPMENT] for each in group)],
    "docs.lock": GROUPS["docs"],
}
OLDER: Mapping[str, set[str]] = {"third-party.lock": {"pydantic-monty"}}
"""What a package of others needs in an older version, in its own environment."""
PINNED = re.compile(r"^([a-z0-9._-]+)==([^ ;\\]+)((?:.*\\\n)+)", re.MULTILINE)


def locked(text: str) -> dict[str, str]:
    """Read a lock file: name to version, of what is pinned and hashed."""
    return {found[1]: found[2] for found in PINNED.finditer(text)}


def missing(wanted: Iterable[Any], found: Mapping[str, str]) -> list[str]:
    """Name the requirements that no locked version satisfies."""
    requirements = [Requirement(each) for each in wanted if isinstance(each, str)]
    return [
        str(each)
        for each in requirements
        if each.name != "deepagents" and not _holds(each, found.get(each.name.lower()))
    ]


def _holds(requirement: Requirement, version: str | None) -> bool:
    return version is not None and requirement.specifier.contains(version)


@pytest.mark.parametrize("lock", NEEDED)
def test_a_lock_holds_what_the_project_asks_for(lock: str) -> None:
    assert missing(NEEDED[lock], locked((ROOT / "requirements" / lock).read_text())) == []


@pytest.mark.parametrize("lock", NEEDED)
def test_all_locks_hold_the_same_versions(lock: str) -> None:
    held, dev = (locked((ROOT / "requirements" / name).read_text()) for name in (lock, "dev.lock"))

    others = {name: version for name, version in held.items() if dev.get(name, version) != version}
    assert others.keys() == OLDER.get(lock, set())


def test_no_lock_holds_the_library_itself() -> None:
    assert [
        lock for lock in NEEDED if "deepagents" in locked((ROOT / "requirements" / lock).read_text())
    ] == []


@pytest.mark.parametrize("lock", NEEDED)
def test_a_lock_is_hashed_throughout_and_names_no_host(lock: str) -> None:
    text = (ROOT / "requirements" / lock).read_text()

    assert len(PINNED.findall(text)) == len(re.findall(r"^[a-z]", text, re.MULTILINE))
    assert set(re.findall(r"--[a-z-]+", text)) == {"--hash"}
    assert "//" not in text


def test_what_a_lock_lacks_is_noticed() -> None:
    found = locked("one==1.2 \\\n    --hash=sha256:aa\ntwo==2.0\n")

    assert found == {"one": "1.2"}
    assert missing(["one>=1", "one>=2", "two"], found) == ["one>=2", "two"]
