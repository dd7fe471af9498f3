"""An agent sees one namespace of a store, exactly, whatever it and its neighbours call their files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

from deepagents import create_deep_agent
from deepagents.backends import CompositeBackend, StateBackend, StoreBackend
from deepagents.errors import RunConfigError
from deepagents.testing import ScriptedModel, call, calls
from tests.attacks.harness import CANARY, HINT, Ground, every_other, in_turn, on_path
from tests.conftest import CallMode

OWN = ("users", "ada")
OTHERS = {
    "above": ("users",),
    "below": ("users", "ada", "private"),
    "beside": ("users", "bob"),
    "with the same beginning": ("users", "ada2"),
    "that ends alike": ("users2", "ada"),
    "with a dot": ("users", "ada%2Eprivate"),
}
SECRET_KEYS = ("/secret.txt", "/notes.txt", f"/{CANARY}.txt", "/deep/secret.txt")


def file(content: str) -> dict[str, Any]:
    return {"content": content, "encoding": "utf-8"}


def items(store: InMemoryStore) -> list[Any]:
    """Describe all that other namespaces hold."""
    return sorted(
        (namespace, item.key, item.value["content"], item.updated_at)
        for namespace in OTHERS.values()
        for item in store.search(namespace, limit=1000)
        if item.namespace == namespace
    )


@pytest.fixture
def stored(tmp_path: Path) -> Ground:
    """Files in one namespace, and secrets under the same names and others in all around it."""
    store = InMemoryStore()
    for namespace in OTHERS.values():
        for key in SECRET_KEYS:
            store.put(namespace, key, file(CANARY))
    store.put(OWN, "/notes.txt", file("mine\n"))
    backend = StoreBackend(store=store, namespace=lambda runtime: OWN)
    return Ground(tmp_path, tmp_path, {"backend": backend, "store": store}, watched=[lambda: items(store)])


INTO_OTHERS = {
    "a child by its name": "/private/secret.txt",
    "a neighbour by its name": "/bob/secret.txt",
    "a neighbour by the whole namespace": "/users/bob/secret.txt",
    "a neighbour by a dotted namespace": "/users.bob.secret.txt",
    "a longer name": "2/secret.txt",
    "an empty part": "//private//secret.txt",
    "a wildcard for a part": "/*/secret.txt",
    "a wildcard for all": "/**",
    "a percent sign of a database": "/%",
    "an underscore of a database": "/_ecret.txt",
    "a quote": "/'; DROP TABLE store; --",
    "a part with a colon": "/users:bob:secret.txt",
    "a part with a pipe": "/users|bob/secret.txt",
    "the name of a secret": "/secret.txt",
}


def test_no_path_leads_into_another_namespace(stored: Ground, call_mode: CallMode) -> None:
    stored.harmless |= {"write_file", "delete"}

    assert stored.run(call_mode, *on_path(*every_other(call_mode, INTO_OTHERS))).problems() == []


def test_no_search_finds_what_is_in_another_namespace(stored: Ground, call_mode: CallMode) -> None:
    run = stored.run(
        call_mode,
        calls(
            ("ls", {"path": "/"}),
            ("ls", {"path": "/private"}),
            ("glob", {"pattern": "**/*"}),
            ("glob", {"pattern": "*secret*"}),
            ("grep", {"pattern": HINT, "output_mode": "content"}),
            ("grep", {"pattern": ".", "regex": True, "output_mode": "count"}),
        ),
    )

    assert run.problems() == []
    assert "secret" not in "".join(answer.text for answer in run.answers)
    assert run.answers[-1].text == "/notes.txt: 1"


def test_deleting_everything_of_ones_own_spares_all_others(stored: Ground, call_mode: CallMode) -> None:
    stored.harmless |= {"delete"}
    run = stored.run(call_mode, call("delete", file_path="/notes.txt"), call("delete", file_path="/private"))

    assert run.problems() == []


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who uses the agent, as the server that runs it says."""

    name: str


FORGED = {
    "a wildcard": "*",
    "a wildcard for a part": "b*b",
    "nothing": "",
    "a part more": "ada/private",
    "dot-dot": "../bob",
    "a line break": "ada\n",
    "a space": " bob",
    "NUL": "bob\0",
    "a percent-encoded dot": "ada%2Eprivate",
    "a look-alike": "b\u043eb",
    "a quote": "bob' OR '1'='1",
}


@in_turn("name", FORGED)
def test_a_forged_name_makes_no_namespace(stored: Ground, call_mode: CallMode, name: str) -> None:
    store: InMemoryStore = stored.options["store"]
    before = items(store)
    backend = StoreBackend(namespace=lambda runtime: ("users", runtime.context.name))
    for attempt in (
        call("ls", path="/"),
        call("read_file", file_path="/secret.txt"),
        call("write_file", file_path="/x", content="x"),
    ):
        agent = create_deep_agent(
            ScriptedModel(attempt), backend=backend, store=store, context_schema=Visitor
        )
        with pytest.raises(RunConfigError, match="namespace") as refused:
            call_mode.invoke(agent, {"messages": "Go"}, context=Visitor(name))
        assert CANARY not in str(refused.value)
    assert items(store) == before


def test_a_route_is_no_door_between_two_namespaces(stored: Ground, call_mode: CallMode) -> None:
    store: InMemoryStore = stored.options["store"]
    shared = StoreBackend(store=store, namespace=("users", "ada", "shared"))
    stored.options["backend"] = CompositeBackend(
        default=StateBackend(),
        routes={"/mine/": StoreBackend(store=store, namespace=OWN), "/mine/shared/": shared},
    )
    stored.harmless |= {"write_file", "delete"}
    run = stored.run(
        call_mode,
        *on_path("/mine/private/secret.txt"),
        *on_path("/mine/shared/../private/secret.txt"),
        call("grep", pattern=HINT, output_mode="content"),
        call("glob", pattern="/mine/**"),
        call("delete", file_path="/mine/shared/private"),
    )

    assert [each for each in run.problems() if "not refused" not in each] == []
