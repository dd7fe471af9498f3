"""The footing of the tests, tried."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.conftest import CallMode, NetworkRefused


class Bell:
    def invoke(self, times: int) -> str:
        return "ding " * times

    async def ainvoke(self, times: int) -> str:
        return "dong " * times

    def stream(self, times: int) -> Iterator[str]:
        yield from ["ding"] * times

    async def astream(self, times: int) -> AsyncIterator[str]:
        for _ in range(times):
            yield "dong"


def test_each_colour_calls_its_own_twin(call_mode: CallMode) -> None:
    heard = {"sync": "ding", "async": "dong"}[call_mode.name]

    assert call_mode.invoke(Bell(), 2) == f"{heard} {heard} "
    assert call_mode.call(Bell(), "invoke", times=1) == f"{heard} "
    assert call_mode.stream(Bell(), 2) == [heard, heard]


@pytest.mark.parametrize("case", ["one", "two", "three"])
def test_one_of_the_two_colours_of_a_case_is_slow(
    call_mode: CallMode, case: str, request: pytest.FixtureRequest
) -> None:
    name = request.node.name.replace(call_mode.name, "{}")
    twins = [
        item for item in request.session.items if item.name in (name.format("sync"), name.format("async"))
    ]

    slow = [item.get_closest_marker("slow") is not None for item in twins]
    assert sorted(slow) in ([False], [True], [False, True])


def test_no_test_reaches_another_machine() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line, pytest.raises(NetworkRefused):
        line.connect(("192.0.2.1", 9))
    with pytest.raises(NetworkRefused, match="model.example"):
        socket.create_connection(("model.example", 443), timeout=1)


def test_this_machine_may_be_reached() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname(), timeout=1).close()


def test_no_key_and_no_home_reach_a_test() -> None:
    assert not [name for name in os.environ if name.endswith("_API_KEY")]
    assert Path.home().name.startswith("home")


@pytest.mark.parametrize("turn", ["first", "second"])
def test_what_a_test_puts_on_the_path_is_gone_for_the_next(turn: str) -> None:
    assert "/of/a/test" not in sys.path

    sys.path.insert(0, "/of/a/test")
