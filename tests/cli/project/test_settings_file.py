"""The program changes the settings of a person: their words stay, and the file is private and whole."""

from __future__ import annotations

import stat
import threading
from pathlib import Path

import pytest

from deepagents_cli.approval.rules import Permission
from deepagents_cli.errors import CommandError
from deepagents_cli.project.settings import Chosen, Settings, TrustedDirectory, merge, read_user
from deepagents_cli.project.settings_file import (
    add_permission,
    add_trusted,
    remove_permission,
    remove_trusted,
)

WRITTEN = """\
# My settings.
model = "anthropic:claude-sonnet-4-6"  # the good one

[limits]
tokens = 1000  # enough
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home/.deepagents/settings.toml"


def read(path: Path) -> Settings:
    found: Chosen = read_user(path.parent, {"DEEPAGENTS_SETTINGS": str(path)})
    assert found.notices == ()
    return merge(found)


def test_comments_and_order_stay(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.write_text(WRITTEN)

    add_permission(path, Permission("execute(ls)", Path("/srv")))

    settings = read(path)
    assert settings.limits["tokens"] == 1000
    assert settings.permissions == (Permission("execute(ls)", Path("/srv")),)
    lines = path.read_text().splitlines()
    assert lines[:2] == WRITTEN.splitlines()[:2]
    assert "tokens = 1000  # enough" in lines


def test_the_file_is_made_private_and_follows_the_link_of_a_person(path: Path, tmp_path: Path) -> None:
    add_trusted(path, TrustedDirectory(Path("/srv"), "1"))

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700

    kept = path.rename(tmp_path / "kept.toml")
    path.symlink_to(kept)
    remove_trusted(path, Path("/srv"))

    assert (path.is_symlink(), kept.read_text().strip()) == (True, "")
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_rules_come_once_and_go(path: Path) -> None:
    rule, elsewhere = Permission("execute(ls)"), Permission("execute(ls)", Path("/srv"))
    for each in (rule, elsewhere, rule):
        add_permission(path, each)

    assert {*read(path).permissions} == {rule, elsewhere}
    assert len(read(path).permissions) == 2

    remove_permission(path, rule)
    assert read(path).permissions == (elsewhere,)

    remove_permission(path, elsewhere)
    assert path.read_text().strip() == ""


def test_rules_can_be_written_as_inline_tables_too(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.write_text('permissions = [\n  {rule = "a"},  # first\n]\n')

    add_permission(path, Permission("b"))

    assert read(path).permissions == (Permission("a"), Permission("b"))
    assert "# first" in path.read_text()


def test_a_directory_is_trusted_as_it_is_now(path: Path) -> None:
    for digest in ("1", "2"):
        add_trusted(path, TrustedDirectory(Path("/srv"), digest))
    add_trusted(path, TrustedDirectory(Path("/opt"), "3"))

    assert read(path).trusted == (TrustedDirectory(Path("/srv"), "2"), TrustedDirectory(Path("/opt"), "3"))

    remove_trusted(path, Path("/srv"))
    assert read(path).trusted == (TrustedDirectory(Path("/opt"), "3"),)


def test_two_programs_lose_no_rule_of_each_other(path: Path) -> None:
    rules = [Permission(f"rule{number}") for number in range(8)]
    threads = [threading.Thread(target=add_permission, args=(path, rule)) for rule in rules]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert {*read(path).permissions} == {*rules}


@pytest.mark.parametrize("text", ["model = ", "permissions = 3"])
def test_a_file_that_cannot_be_changed_stays_as_it_is(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True)
    path.write_text(text)

    with pytest.raises(CommandError, match=str(path)):
        add_permission(path, Permission("execute(ls)"))

    assert path.read_text() == text
