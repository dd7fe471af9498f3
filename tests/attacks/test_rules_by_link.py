"""No link leads past a rule, and nobody who turns a link is faster than one."""

from __future__ import annotations

import shutil
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from deepagents.backends import CompositeBackend, FilesystemBackend, StateBackend
from deepagents.backends.results import (
    DeleteResult,
    GlobResult,
    GrepResult,
    LsResult,
    ReadResult,
    WriteResult,
)
from deepagents.errors import AwaitableOnly
from deepagents.permissions import FilesystemPermission
from deepagents.testing import calls
from tests.attacks.flipping import FLIP_LINK, meanwhile
from tests.attacks.harness import (
    CANARY,
    CHANGES,
    HINT,
    LOOKS,
    Ground,
    Run,
    every_other,
    in_turn,
    on_path,
    tried,
)
from tests.attacks.test_races import TURNS
from tests.attacks.test_rules import DENY, ground
from tests.conftest import CallMode


@pytest.fixture
def crossed(tmp_path: Path) -> Ground:
    """Secrets on disk, and links among what is open that lead to them."""
    made = ground("disk", tmp_path / "real", DENY)
    links = {
        "open/to-secrets": "../secrets",
        "open/to-plan": "../secrets/plan.txt",
        "open/to-hidden": "../secrets/.env",
        "open/absolute": made.root / "secrets",
        "open/chain": "to-secrets",
        "open/to-root": "..",
        "alias": "secrets",
        "open/new-in-secrets": "../secrets/new.txt",
        "open/innocent.md": "to-plan",
    }
    for name, target in links.items():
        (made.root / name).symlink_to(target)
    return made


BY_LINK = {
    "a link to the directory": "/open/to-secrets/plan.txt",
    "a link to the directory, hidden file": "/open/to-secrets/.env",
    "an absolute link": "/open/absolute/plan.txt",
    "a chain": "/open/chain/plan.txt",
    "a link to the root": "/open/to-root/secrets/plan.txt",
    "links to the root again and again": "/open/to-root/open/to-root/secrets/.env",
    "another name beside it": "/alias/plan.txt",
    "something new behind a link": "/open/to-secrets/new.txt",
    "a new directory behind a link": "/alias/new/new.txt",
}
LINKS = {
    "a link with another suffix": "/open/innocent.md",
    "a link to a file": "/open/to-plan",
    "a link to a hidden file": "/open/to-hidden",
    "a link to where nothing is yet": "/open/new-in-secrets",
    "a link to the directory itself": "/alias",
}


def test_no_link_leads_past_a_rule(crossed: Ground, call_mode: CallMode) -> None:
    assert crossed.run(call_mode, *on_path(*every_other(call_mode, BY_LINK))).problems() == []


def test_a_link_to_what_is_denied_is_at_most_deleted_itself(crossed: Ground, call_mode: CallMode) -> None:
    crossed.harmless |= {"delete"}

    assert crossed.run(call_mode, *on_path(*every_other(call_mode, LINKS))).problems() == []


def test_no_search_goes_by_a_link_to_what_is_denied(crossed: Ground, call_mode: CallMode) -> None:
    crossed.harmless |= {"ls"}
    run = crossed.run(
        call_mode,
        calls(
            *(("ls", {"path": path}) for path in ("/", "/open", "/alias", "/open/chain")),
            *(
                ("glob", {"pattern": each})
                for each in ("**", "alias/*", "open/**", "*.md", "open/to-root/**")
            ),
            *(
                ("grep", {"pattern": HINT, "path": path, "output_mode": "content"})
                for path in ("/", "/open", "/alias")
            ),
            ("grep", {"pattern": HINT, "path": "/open/innocent.md", "output_mode": "content"}),
        ),
    )

    assert run.problems() == []
    assert "innocent" not in "".join(answer.text for answer in run.answers if answer.status == "success")


class Careless(FilesystemBackend):
    """Takes any option of a call, and hands none on."""

    def ls(self, path: str, **options: Any) -> LsResult:
        return super().ls(path)

    def read(self, file_path: str, offset: int = 0, limit: int = 2000, **options: Any) -> ReadResult:
        return super().read(file_path, offset, limit)

    def write(self, file_path: str, content: str, **options: Any) -> WriteResult:
        return super().write(file_path, content)

    def glob(self, pattern: str, path: str | None = None, **options: Any) -> GlobResult:
        return super().glob(pattern, path)

    def grep(
        self, pattern: str, path: str | None = None, glob: str | None = None, **options: Any
    ) -> GrepResult:
        return super().grep(pattern, path, glob)

    def delete(self, file_path: str, **options: Any) -> DeleteResult:
        return super().delete(file_path)


class Halved(FilesystemBackend):
    """Awaiting methods of its own, from before there were rules."""

    async def als(self, path: str, **options: Any) -> LsResult:
        return self.ls(path)

    async def aread(self, file_path: str, offset: int = 0, limit: int = 2000, **options: Any) -> ReadResult:
        return self.read(file_path, offset, limit)

    async def awrite(self, file_path: str, content: str, **options: Any) -> WriteResult:
        return self.write(file_path, content)

    async def aglob(self, pattern: str, path: str | None = None, **options: Any) -> GlobResult:
        return self.glob(pattern, path)

    async def agrep(
        self, pattern: str, path: str | None = None, glob: str | None = None, **options: Any
    ) -> GrepResult:
        return self.grep(pattern, path, glob)

    async def adelete(self, file_path: str, **options: Any) -> DeleteResult:
        return self.delete(file_path)


@pytest.mark.parametrize("under", ["", "/data"])
@pytest.mark.parametrize("kind", [Careless, Halved])
def test_a_subclass_that_drops_the_rules_is_kept_to_them(
    crossed: Ground, call_mode: CallMode, kind: type[FilesystemBackend], under: str
) -> None:
    own = kind(crossed.root)
    crossed.options["backend"] = CompositeBackend(StateBackend(), {under: own}) if under else own
    crossed.options["permissions"] = [
        FilesystemPermission(["read", "write"], [f"{under}/secrets/"], "deny"),
    ]
    crossed.harmless = frozenset((*crossed.harmless, "delete"))
    looks = [("glob", {"pattern": "**"}), ("grep", {"pattern": HINT, "output_mode": "content"})]
    paths = (f"{under}/open/to-plan", f"{under}/alias/plan.txt", f"{under}/alias")
    script = calls(*looks, ("ls", {"path": f"{under}/"})), *on_path(*paths)
    if kind is Halved and call_mode.name == "sync":
        with pytest.raises(AwaitableOnly):
            crossed.run(call_mode, *script)
        return
    run = crossed.run(call_mode, *script)

    assert run.problems() == []


@in_turn("kind", {"looking": "looking", "changing": "changing"})
def test_nobody_is_faster_than_a_rule(tmp_path: Path, call_mode: CallMode, kind: str) -> None:
    run = raced(tmp_path, call_mode, kind, DENY)

    assert run.problems() == []
    assert None in run.codes


@pytest.mark.parametrize("call_mode", ["sync"], indirect=True)
def test_without_the_rule_the_race_is_lost(tmp_path: Path, call_mode: CallMode) -> None:
    # On a machine that does other things, a whole run may never meet the link turned.
    places = [tmp_path / name for name in ("a", "b", "c", "d")]
    for each in places:
        each.mkdir()
    runs = (raced(each, call_mode, "looking", []) for each in places)

    # Searches find what is denied elsewhere too; by its own path, it is only there when the link has turned.
    read = (answer for run in runs for answer in run.answers if answer.name == "read_file")
    assert any(CANARY in answer.text for answer in read)


def raced(tmp_path: Path, call_mode: CallMode, kind: str, rules: list[FilesystemPermission]) -> Run:
    made = ground("disk", tmp_path / "real", rules)
    (made.root / "open2").mkdir()
    (made.root / "open2" / "plan.txt").write_text("mine")
    shutil.move(made.root / "open2", made.root / "open" / "open")
    link = made.root / "open" / "flip"
    link.symlink_to("open")
    tools = LOOKS if kind == "looking" else CHANGES
    turn = [
        *(tried(tool, path) for tool in tools for path in ("/open/flip/plan.txt", "/open/flip/new/new.txt")),
        ("glob", {"pattern": "**/*"}),
        ("grep", {"pattern": HINT, "output_mode": "content"}),
        ("ls", {"path": "/open/flip"}),
    ]
    made.harmless = frozenset((*LOOKS, *CHANGES))
    with meanwhile(FLIP_LINK, link, Path("../secrets")):
        return made.run(call_mode, *(calls(*turn) for _ in range(TURNS)))


@in_turn("behind", {"as it is": "{}", "with something below": "{}/new.txt", "far below": "{}/new/new.txt"})
def test_behind_a_link_nobody_learns_what_is_there(crossed: Ground, call_mode: CallMode, behind: str) -> None:
    """A file, a directory and nothing at all give the same answers."""
    (crossed.root / "secrets" / "sub").mkdir()
    paths = [behind.format(f"/alias/{name}") for name in ("plan.txt", "sub", "none")]
    crossed.harmless = frozenset()
    run = crossed.run(call_mode, *(calls(*(tried(tool, path) for path in paths)) for tool in LOOKS + CHANGES))

    assert run.problems() == []
    assert set(run.codes) == {"permission_denied"}
    told = [answer.text.replace(path, "") for answer, path in zip(run.answers, cycle(paths), strict=False)]
    assert told[0::3] == told[1::3] == told[2::3]
