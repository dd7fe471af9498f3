"""Deny means deny: by every tool, for every name a place has, in whatever backend it lies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

from deepagents.backends import CompositeBackend, FilesystemBackend, StateBackend, StoreBackend
from deepagents.permissions import FilesystemPermission
from deepagents.testing import call, calls
from tests.attacks.harness import CANARY, HINT, Ground, every_other, in_turn, on_path
from tests.attacks.test_kept_aside import shout
from tests.conftest import CallMode

SECRETS = {
    "/secrets/plan.txt": f"one\n{CANARY}\nthree\n",
    "/secrets/.env": f"KEY={CANARY}\n",
    "/secrets/.d/deep/x.txt": CANARY,
    f"/secrets/{CANARY}.txt": "named",
    "/secrets/a b.txt": CANARY,
    "/secrets/ünï.txt": CANARY,
    "/secrets/-rf": CANARY,
    "/secrets/[a].txt": CANARY,
}
OPEN = {"/open/notes.txt": "mine\n", "/open/.hidden": "mine\n"}
DENY = [FilesystemPermission(["read", "write"], ["/secrets/", "/secrets/**"], "deny")]
WHERE = [("disk", "sync"), ("disk", "async"), ("state", "sync"), ("store", "async"), ("route", "sync")]
in_each_place = pytest.mark.parametrize(("ruled", "call_mode"), WHERE, indirect=True)


def data(text: str) -> dict[str, Any]:
    return {"content": text, "encoding": "utf-8"}


def on_disk(root: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        (root / path[1:]).parent.mkdir(parents=True, exist_ok=True)
        (root / path[1:]).write_text(text)


def below(prefix: str, files: dict[str, str]) -> dict[str, str]:
    return {path.removeprefix(prefix): text for path, text in files.items() if path.startswith(prefix)}


def ground(
    where: str, top: Path, rules: list[FilesystemPermission], secrets: dict[str, str] = SECRETS
) -> Ground:
    """Put the secrets and the open files into a backend, under rules."""
    root = top / "root"
    made = Ground(top, root, {"permissions": rules} if rules else {})
    files = {**secrets, **OPEN}
    match where:
        case "disk":
            on_disk(root, files)
            made.options["backend"] = FilesystemBackend(root)
            made.kept = [root / "secrets"]
        case "state":
            made.given = {"files": {path: data(text) for path, text in files.items()}}
            made.kept_files = {path: data(text) for path, text in secrets.items()}
        case "store":
            store = InMemoryStore()
            for path, text in files.items():
                store.put(("files",), path, data(text))
            made.options |= {"store": store, "backend": StoreBackend(namespace=lambda runtime: ("files",))}
            made.watched = [lambda: [item.dict() for item in map(_of(store), sorted(secrets)) if item]]
        case _:
            on_disk(root, below("/secrets", files))
            on_disk(top / "default", below("/open", files))
            routes: Any = {"/secrets/": FilesystemBackend(root), "/open/": FilesystemBackend(top / "default")}
            made.options["backend"] = CompositeBackend(default=StateBackend(), routes=routes)
            made.kept = [root]
    return made


def _of(store: InMemoryStore) -> Any:
    return lambda key: store.get(("files",), key)


@pytest.fixture
def ruled(request: pytest.FixtureRequest, tmp_path: Path) -> Ground:
    """Secrets that no tool may read or write, in each backend."""
    return ground(request.param, tmp_path / "real", DENY)


NAMES = {
    "as it is": "/secrets/plan.txt",
    "a hidden file": "/secrets/.env",
    "in a hidden directory": "/secrets/.d/deep/x.txt",
    "doubled slashes": "//secrets///plan.txt",
    "dots between": "/./secrets/./plan.txt",
    "without a slash": "secrets/plan.txt",
    "backslashes": "\\secrets\\plan.txt",
    "mixed slashes": "/secrets\\.env",
    "a trailing slash": "/secrets/plan.txt/",
    "a trailing dot": "/secrets/plan.txt/.",
    "dot-dot": "/open/../secrets/plan.txt",
    "spaces in the name": "/secrets/a b.txt",
    "letters with marks": "/secrets/ünï.txt",
    "like an option": "/secrets/-rf",
    "like a pattern": "/secrets/[a].txt",
    "something new": "/secrets/new.txt",
    "something new, hidden": "/secrets/.new",
    "something new in a new directory": "/secrets/new/new.txt",
    "the directory": "/secrets",
    "the directory with a slash": "/secrets/",
}


@pytest.mark.parametrize("ruled", ["disk", "state", "store", "route"], indirect=True)
def test_no_name_of_a_denied_place_is_good_for_anything(ruled: Ground, call_mode: CallMode) -> None:
    run = ruled.run(call_mode, *on_path(*every_other(call_mode, NAMES)))

    assert run.problems() == []
    assert set(run.codes) <= {"permission_denied", "invalid_path"}


@in_each_place
def test_no_search_shows_what_is_denied(ruled: Ground, call_mode: CallMode) -> None:
    run = ruled.run(
        call_mode,
        calls(
            ("ls", {"path": "/"}),
            *(
                ("glob", {"pattern": each})
                for each in ("**", "**/*", "**/.*", "*.txt", ".env", "{secrets,open}/**")
            ),
            *(
                ("glob", {"pattern": each})
                for each in ("/secrets/*", "s*/*", "?ecrets/**", "[s]ecrets/.d/**")
            ),
            *(
                ("grep", {"pattern": HINT, "output_mode": mode})
                for mode in ("content", "count", "files_with_matches")
            ),
            ("grep", {"pattern": HINT, "glob": "secrets/**", "output_mode": "content"}),
            ("grep", {"pattern": ".*", "regex": True, "output_mode": "content", "context": 50}),
            ("grep", {"pattern": HINT, "max_count": 1}),
        ),
    )

    assert run.problems() == []
    assert "plan" not in "".join(answer.text for answer in run.answers)


QUESTIONS = [
    ("ls", {"path": "/"}),
    ("ls", {"path": "/secrets"}),
    ("read_file", {"file_path": "/secrets/plan.txt"}),
    ("read_file", {"file_path": "/secrets/plan.txt", "offset": 10_000}),
    ("read_file", {"file_path": "/secrets/.d"}),
    ("read_file", {"file_path": "/secrets/plan.txt/x"}),
    ("glob", {"pattern": "**"}),
    ("glob", {"pattern": "*.txt", "path": "/secrets"}),
    ("glob", {"pattern": "plan*"}),
    ("grep", {"pattern": HINT}),
    ("grep", {"pattern": HINT, "output_mode": "count"}),
    ("grep", {"pattern": HINT, "max_count": 1}),
    ("grep", {"pattern": "e", "max_count": 1}),
    ("grep", {"pattern": "e", "max_count": 2, "output_mode": "content"}),
    ("grep", {"pattern": "^KEY=T", "regex": True}),
    ("grep", {"pattern": HINT, "path": "/secrets/plan.txt"}),
    ("grep", {"pattern": "x", "path": "/secrets/nothing"}),
]
TO_CHANGE = [
    ("edit_file", {"file_path": "/secrets/plan.txt", "old_string": CANARY[:3], "new_string": "x"}),
    ("write_file", {"file_path": "/secrets/plan.txt", "content": "x"}),
    ("write_file", {"file_path": "/secrets/plan.txt/x", "content": "x"}),
    ("delete", {"file_path": "/secrets/plan.txt"}),
    ("delete", {"file_path": "/secrets/.d"}),
]
ASKED = [calls(*QUESTIONS), *map(calls, TO_CHANGE)]


@pytest.mark.parametrize(("where", "call_mode"), WHERE, indirect=["call_mode"])
def test_no_answer_tells_whether_something_is_there(tmp_path: Path, call_mode: CallMode, where: str) -> None:
    other = {"/secrets/else": "nothing of note"}
    told: list[list[Any]] = []
    for name, secrets in (("full", SECRETS), ("empty", other)):
        run = ground(where, tmp_path / name, DENY, secrets).run(call_mode, *ASKED)
        told.append([(answer.name, answer.text, answer.status) for answer in run.answers])

    assert told[0] == told[1]


@pytest.mark.parametrize(("where", "call_mode"), WHERE, indirect=["call_mode"])
def test_without_the_rule_the_same_calls_show_all(tmp_path: Path, call_mode: CallMode, where: str) -> None:
    told = [
        ground(where, tmp_path / name, [], secrets).run(call_mode, *ASKED)
        for name, secrets in (("full", SECRETS), ("empty", {"/secrets/else": "nothing of note"}))
    ]
    problems = told[0].problems()

    assert [answer.text for answer in told[0].answers] != [answer.text for answer in told[1].answers]
    assert {"leaked", "touched", "refused"} <= {
        word for problem in problems for word in problem.replace(":", " ").split()
    }


DELETIONS = {
    "the directory above": ("/vault", ["/vault/secrets/**"]),
    "what holds a hidden secret": ("/vault", ["/vault/secrets/.env"]),
    "what a pattern may match": ("/vault", ["/**/*.key"]),
    "what a pattern in braces may match": ("/vault", ["/{vault,other}/secrets/*"]),
    "a directory with a denied file deep in it": ("/vault/secrets", ["/vault/secrets/.d/deep/*.txt"]),
    "by a spelling": ("//vault/./", ["/vault/secrets/**"]),
    "by backslashes": ("\\vault\\", ["/vault/secrets/**"]),
}


@pytest.mark.parametrize(("where", "call_mode"), WHERE[1:4:2], indirect=["call_mode"])
@pytest.mark.parametrize(("path", "patterns"), DELETIONS.values(), ids=list(DELETIONS))
def test_a_directory_is_not_deleted_over_what_is_denied_in_it(
    tmp_path: Path, call_mode: CallMode, where: str, path: str, patterns: list[str]
) -> None:
    vault = {f"/vault{name}": text for name, text in {**SECRETS, "/secrets/a.key": CANARY}.items()}
    allow = FilesystemPermission(["write"], ["/vault", "/vault/secrets"], "allow")
    made = ground(where, tmp_path / "real", [allow, FilesystemPermission(["write"], patterns, "deny")], vault)
    made.kept = [made.root / "vault"] if where == "disk" else []

    assert made.run(call_mode, call("delete", file_path=path)).problems() == []


RULES = {
    "all of it": ["/**"],
    "by the name": ["/**/*.env", "/**/.env"],
    "by a class": ["/[s]ecrets/**"],
    "by braces": ["/{secrets,private}/**"],
    "by question marks": ["/???????/**"],
    "by stars": ["/*/**"],
}


@in_turn("patterns", RULES)
def test_a_rule_covers_hidden_names_too(tmp_path: Path, call_mode: CallMode, patterns: list[str]) -> None:
    rules = [FilesystemPermission(["read", "write"], patterns, "deny")]
    made = ground("disk", tmp_path / "real", rules, {"/secrets/.env": CANARY, "/secrets/x/.env": CANARY})

    looks = calls(("grep", {"pattern": HINT}), ("glob", {"pattern": "**/.env"}))

    assert made.run(call_mode, *on_path("/secrets/.env", "/secrets/x/.env"), looks).problems() == []


def test_all_but_one_place_is_denied(tmp_path: Path, call_mode: CallMode) -> None:
    rules = [
        FilesystemPermission(["read", "write"], ["/open/**"], "allow"),
        FilesystemPermission(["read", "write"], ["/**"], "deny"),
    ]
    made = ground("disk", tmp_path / "real", rules)
    paths = "/open/../secrets/plan.txt", "/secrets/plan.txt", "/opening", "/open"

    assert made.run(call_mode, *on_path(*paths)).problems() == []


def test_results_kept_aside_are_not_forged_under_a_rule(tmp_path: Path, call_mode: CallMode) -> None:
    kept = {"/large_tool_results/call_0": f"the true {CANARY}"}
    made = ground(
        "disk", tmp_path / "real", [FilesystemPermission(["write"], ["/large_tool_results/**"], "deny")], kept
    )
    made.kept = [made.root / "large_tool_results"]
    run = made.run(
        call_mode,
        call("write_file", file_path="/large_tool_results/call_0", content="forged"),
        call("edit_file", file_path="/large_tool_results/call_0", old_string="true", new_string="false"),
        call("delete", file_path="/large_tool_results"),
    )

    assert run.problems() == []


def test_a_rule_on_what_is_kept_aside_does_not_keep_the_harness_from_it(
    tmp_path: Path, call_mode: CallMode
) -> None:
    made = ground(
        "disk", tmp_path / "real", [FilesystemPermission(["write"], ["/large_tool_results/**"], "deny")]
    )
    made.options["tools"] = [shout]
    made.harmless |= {"shout"}
    run = made.run(call_mode, call("shout", text="xyz"))

    assert run.problems() == []
    assert len(list((made.root / "large_tool_results").iterdir())) == 1
