"""What stands in a path, a query or a header is attacked wherever an endpoint reads it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote
from uuid import uuid4

import pytest

from deepagents_server import api
from deepagents_server.api.app import PARTS
from deepagents_server.api.openapi import describe
from tests.attacks.server.conftest import CANARY, World
from tests.attacks.server.test_forged import SQL
from tests.attacks.server.test_tenants import ATTACKS, ENDPOINTS_OF_PARTS, are_alike

pytestmark = pytest.mark.slow

Parameter = tuple[str, str, str]
Ask = Callable[[World, Parameter, str], tuple[int, str]]
PARAMETERS = [
    (f"{method.upper()} {path}", each["in"], each["name"])
    for path, operations in describe(PARTS)["paths"].items()
    for method, operation in operations.items()
    for each in operation.get("parameters", ())
]
OF_PARTS = {
    part: found
    for part, endpoints in ENDPOINTS_OF_PARTS.items()
    if (found := [parameter for parameter in PARAMETERS if parameter[0] in endpoints])
}
ORDERED = "before"
"""What is smaller than an id is shown, whoever has that: ids are in the order of time."""
OF_CALLERS = {"authorization", "x-api-key", "origin", "host"}
"""Headers that every endpoint reads: who asks, from which page, and under which name."""


def test_every_header_that_is_read_is_attacked() -> None:
    sources = [path.read_text() for path in Path(api.__file__).parent.glob("*.py")]
    names = {name for text in sources for name in re.findall(r"""headers\.get\("([\w-]+)\"""", text)}

    assert names - OF_CALLERS <= {name for _, place, name in PARAMETERS if place == "header"}


@pytest.fixture(scope="module")
def bob() -> dict[str, dict[str, str]]:
    """What Bob has in each world, as long as he asks for nothing that removes it."""
    return {}


@pytest.fixture
def ask(bob: dict[str, dict[str, str]]) -> Ask:
    """Let Bob ask with what is his, but for one parameter."""

    def ask(world: World, parameter: Parameter, text: str) -> tuple[int, str]:
        endpoint, place, name = parameter
        method, path = endpoint.split(" ")
        if world.url not in bob:
            bob[world.url] = world.of_bob()
        ids = bob[world.url]
        body = json.dumps(ATTACKS[endpoint][0]({**world.ids, **ids})).replace(CANARY, "mine")
        inside = {**ids, **({name: text} if place == "path" else {})}
        request = world.bob.build_request(
            method,
            path.format(**{key: quote(value, safe="") for key, value in inside.items()}),
            params={name: text} if place == "query" else None,
            headers={name: text} if place == "header" else None,
            content=body,
        )
        answered = world.bob.send(request, stream=True)
        if answered.is_success and (method == "DELETE" or "/stream" in path):
            # Something of his may be gone, or comes without an end: a stream of a thread ends with it.
            world.bob.delete(f"/threads/{bob.pop(world.url)['thread_id']}")
        return answered.status_code, answered.read().decode()

    return ask


@pytest.mark.parametrize("parameters", OF_PARTS.values(), ids=OF_PARTS)
def test_a_text_is_no_sql_in_any_parameter(each_world: World, ask: Ask, parameters: list[Parameter]) -> None:
    with each_world.attacked():
        for parameter in parameters:
            for text in (SQL, "%' OR '1'='1", "9" * 40, *(["nul \0"] if parameter[1] != "header" else [])):
                status, shown = ask(each_world, parameter, text)

                assert status < 500, (parameter, text, shown)
                assert "sql" not in shown.replace(SQL, "").lower(), parameter


@pytest.mark.parametrize("parameters", OF_PARTS.values(), ids=OF_PARTS)
def test_an_id_of_others_leads_nowhere_in_any_parameter(
    world: World, ask: Ask, parameters: list[Parameter]
) -> None:
    """Where all else is Bob's own."""
    with world.attacked():
        for parameter in parameters:
            name = parameter[2]
            unknown = ask(world, parameter, str(uuid4()))

            for of_alice in [world.ids[name]] if name in world.ids else world.ids.values():
                shown = ask(world, parameter, of_alice)

                assert CANARY not in shown[1], parameter
                assert are_alike(shown, unknown) or name == ORDERED, parameter
