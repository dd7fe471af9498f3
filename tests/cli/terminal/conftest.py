"""One terminal with one conversation for most stories: a start takes longer than a story."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from tests.cli.openai_server import OpenAIServer, serving
from tests.cli.terminal.person import SIZE, Home, Person


@pytest.fixture(scope="session")
def server() -> Iterator[OpenAIServer]:
    """The model."""
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed")
    with serving() as server:
        yield server


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory, server: OpenAIServer) -> Home:
    """A directory and a home for the stories that share them."""
    return Home(tmp_path_factory.mktemp("terminal"), server)


@pytest.fixture(scope="session")
def sitting(home: Home) -> Iterator[Person]:
    """A person at a conversation that most stories share: all of the program, as it is started."""
    with home.sit_down(real=True) as person:
        person.sees("scripted in\\b")
        yield person


@pytest.fixture(autouse=True)
def script(server: OpenAIServer) -> None:
    """Begin each story with an empty script: one that has failed leaves answers."""
    server.forget()


@pytest.fixture
def person(sitting: Person, request: pytest.FixtureRequest) -> Iterator[Person]:
    """The same person, in a new session."""
    if sitting.lost:
        pytest.fail("an earlier story has left the conversation where nothing can be begun")
    sitting.lost = True
    sitting.begins_anew()
    sitting.lost = False
    failures = request.session.testsfailed
    yield sitting
    if request.session.testsfailed > failures:
        # It may have left a question, or an answer that does not end. Escape and the next key are one key
        # to a terminal, so what is typed next must not be of a story.
        sitting.presses("Escape", "C-l")
        sitting.terminal.resize(*SIZE)
