"""A command of the person's own prints a line that stands below the status line."""

from __future__ import annotations

import re

import pytest

from tests.cli.openai_server import OpenAIServer
from tests.cli.terminal.person import IDLE, Home
from tests.cli.tmux import needs_tmux

pytestmark = [needs_tmux, pytest.mark.slow]
SHOWS_MODE = r"""status_line = '''printf '\033[32mmine\033[0m \033[2J: '; grep -o '"mode": "[a-z]*"' '''"""


@pytest.fixture
def own(tmp_path_factory: pytest.TempPathFactory, server: OpenAIServer) -> Home:
    return Home(tmp_path_factory.mktemp("own"), server)


def test_the_line_follows_the_session_with_its_colours_and_nothing_else(own: Home) -> None:
    (own.home / "settings.toml").write_text(SHOWS_MODE)
    with own.sit_down(NO_COLOR="") as person:
        person.sees(r'^mine \\x1b\[2J: "mode": "ask"$')
        assert re.search(r"\x1b\[32m(\x1b\[49m)?mine", person.terminal.screen(colours=True))
        person.enters("/mode auto")
        person.sees(r'^mine \\x1b\[2J: "mode": "auto"$')
        person.asks("Hi.", "Hello.")
        person.sees("^Hello.")


def test_one_that_fails_or_hangs_is_told_of_once_and_holds_nothing_up(own: Home) -> None:
    (own.home / "settings.toml").write_text("status_line = 'sleep 60'\n")
    with own.sit_down() as person:
        person.sees("^The command of the status line shows nothing: it ")
        person.enters("/mode auto")
        person.asks("Hi.", "Hello.")
        person.sees("^Hello.")
        person.asks("Hi.", "Again.")
        shown = person.sees("^Again.")
        assert shown.count("The command of the status line") == 1


def test_that_of_a_project_runs_once_the_directory_is_trusted(own: Home) -> None:
    (own.directory / ".deepagents/settings.toml").write_text("status_line = 'echo of the project'\n")
    with own.sit_down() as person:
        shown = person.sees("setting status_line: echo of the project")
        assert "^of the project" not in shown
        person.sees(r"\[n\]o")
        person.enters("n")
        person.sees(IDLE)
        person.asks("Hi.", "Hello.")
        person.sees("^Hello.")
        assert "\nof the project" not in person.terminal.screen()
    with own.sit_down() as person:
        person.sees(r"\[y\]es")
        person.enters("y")
        person.sees("^of the project$")
