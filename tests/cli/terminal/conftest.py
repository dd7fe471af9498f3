"""One terminal with one conversation for all stories of a file: a start takes longer than a story."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from tests.cli.openai_server import OpenAIServer, serving
from tests.cli.terminal.person import Home, Person


@pytest.fixture(scope="module")
def server() -> Iterator[OpenAIServer]:
    """The model."""
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed")
    with serving() as server:
        yield server


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, server: OpenAIServer) -> Home:
    """A directory and a home for all stories of a file."""
    return Home(tmp_path_factory.mktemp("terminal"), server)


@pytest.fixture(scope="module")
def sitting(home: Home) -> Iterator[Person]:
    """A person at a conversation that all stories of a file share; its editor makes files English."""
    with home.sit_down() as person:
        person.sees("scripted in\\b")
        yield person


@pytest.fixture
def person(sitting: Person) -> Person:
    """The same person, in a new session."""
    sitting.begins_anew()
    return sitting
