"""Pages in the terminal: of named hosts unasked, of others when the person agrees, and for how long."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from deepagents.testing import ScriptedModel, call
from deepagents_cli.approval.rules import Permission
from deepagents_cli.project.settings_file import add_permission
from tests.cli.approval.test_approval import QUESTION
from tests.cli.conftest import Command, Nursery
from tests.cli.scenarios import PAGE, fetches_a_page
from tests.conftest import NetworkRefused
from tests.tools.sites import Site, serving


@pytest.fixture
def site() -> Iterator[Site]:
    with serving() as made:
        yield made


def test_a_named_host_is_fetched_from_unasked(cli: Command, site: Site) -> None:
    url = site.place("/page", "<title>Tea</title><p>Boil water.</p>")
    ran = cli.run("go", "--network", site.host, model=ScriptedModel(call("web_fetch", url=url), "Done."))

    assert ran.code == 0
    assert f"web_fetch {url}" in ran.out + ran.err
    assert "Title: Tea" in ran.out + ran.err
    assert len(site.seen) == 1


@pytest.mark.parametrize("options", [(), ("--mode", "auto"), ("--mode", "plan")])
def test_without_a_person_another_host_is_not_reached(cli: Command, options: tuple[str, ...]) -> None:
    assert cli.run("go", *options, model=fetches_a_page()).code == 3


@pytest.mark.parametrize("options", [("--yes",), ("--mode", "full")])
def test_what_approves_everything_names_no_host(cli: Command, options: tuple[str, ...]) -> None:
    ran = cli.run("go", *options, "--json", model=fetches_a_page())

    assert "this one was not named at the start (--network HOST names one)" in ran.out


@pytest.mark.parametrize("rule", ["fetch: docs.test", "host: docs.test"])
def test_a_rule_lets_pages_of_its_host_through(cli: Command, tmp_path: Path, rule: str) -> None:
    add_permission(tmp_path / "settings.toml", Permission(rule))

    with pytest.raises(NetworkRefused, match="docs.test"):
        cli.run("go", model=fetches_a_page())


def test_all_hosts_of_the_command_line_are_reached_unasked(cli: Command) -> None:
    with pytest.raises(NetworkRefused, match="docs.test"):
        cli.run("go", "--network", "all", model=fetches_a_page())


def test_a_person_agrees_to_a_host_for_good(nursery: Nursery, tmp_path: Path) -> None:
    settings = tmp_path / "settings.toml"
    child = nursery.at_terminal(fetches_a_page, "read", DEEPAGENTS_SETTINGS=str(settings))
    child.wait_for(QUESTION)
    assert "wants to fetch a page of docs.test" in child.output
    assert PAGE in child.output
    child.type("a")
    child.wait_for("pages of docs.test")
    child.type("1")
    child.wait_for("For how long")
    child.type("3")

    assert child.end() == 0
    assert 'rule = "fetch: docs.test"' in settings.read_text()


def test_the_provider_of_the_model_searches_where_the_person_turned_that_on(
    cli: Command, tmp_path: Path
) -> None:
    (tmp_path / "settings.toml").write_text("web_search = true\n")
    claude = ScriptedModel("Done.", provider="anthropic", model_name="claude")
    other = ScriptedModel("Done.", provider="mistral", model_name="small")

    assert cli.run("go", model=claude).code == 0
    assert "web_search_20250305" in [each.get("type") for each in claude.asked[0].tools]
    ran = cli.run("go", model=other)
    assert "web_search has no effect: the provider of mistral:small does not search" in ran.err
    assert "web_fetch" in other.asked[0].tool_names
