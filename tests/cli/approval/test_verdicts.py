"""Mode, rules and facts say what becomes of a call."""

from __future__ import annotations

import pytest

from deepagents.tools import specs_by_name
from deepagents_cli.approval.facts import action_of
from deepagents_cli.approval.rules import read_rule
from deepagents_cli.approval.verdicts import Facts, decide
from deepagents_cli.values import Mode

SPECS = specs_by_name()
IN = Facts("read", ("/here/a.py",))
MAKE = Facts("command", ("make",))
CONFINED = MAKE._replace(confined=True)
TYPED = Facts("command", confined=True)


@pytest.mark.parametrize(
    ("name", "facts", "answers"),
    [
        ("read_file", IN, ("allow", "allow", "allow", "allow")),
        ("write_file", IN, ("ask", "allow", "refuse", "allow")),
        ("delete", IN, ("ask", "allow", "refuse", "allow")),
        ("write_file", IN._replace(guarded=frozenset({"git"})), ("ask", "ask", "refuse", "allow")),
        ("delete", IN._replace(guarded=frozenset({"programs"})), ("ask", "ask", "refuse", "allow")),
        ("read_file", IN._replace(guarded=frozenset({"secrets"})), ("ask", "ask", "ask", "allow")),
        ("execute", MAKE, ("ask", "ask", "refuse", "allow")),
        ("execute", CONFINED, ("ask", "allow", "refuse", "allow")),
        ("execute", CONFINED._replace(guarded=frozenset({"git"})), ("ask", "ask", "refuse", "allow")),
        ("write_command", TYPED, ("ask", "allow", "refuse", "allow")),
    ],
)
def test_each_mode_has_its_answer(name: str, facts: Facts, answers: tuple[str, ...]) -> None:
    modes: tuple[Mode, ...] = ("ask", "auto", "plan", "full")
    known = facts._replace(action=action_of(SPECS[name]))

    assert tuple(decide(known, each, ()).kind for each in modes) == answers


@pytest.mark.parametrize(
    ("rule", "name", "facts", "kind"),
    [
        ("edit: /here/a.py", "edit_file", IN, "allow"),
        ("edit: /here/b.py", "edit_file", IN, "ask"),
        ("edits: /here", "write_file", IN, "allow"),
        ("edits: /her", "write_file", IN, "ask"),
        ("edits: /here", "delete", IN, "ask"),
        ("edits: /here", "write_file", IN._replace(guarded=frozenset({"secrets"})), "ask"),
        ("edits: /here", "write_file", IN._replace(about=("/here/link", "/there/a")), "ask"),
        ("edit: /here/a.py", "write_file", IN._replace(guarded=frozenset({"git"})), "allow"),
        ("command: make", "execute", MAKE, "allow"),
        ("commands: make test", "execute", MAKE, "ask"),
    ],
)
def test_a_rule_lets_through_what_it_names(rule: str, name: str, facts: Facts, kind: str) -> None:
    known = facts._replace(action=action_of(SPECS[name]))

    assert decide(known, "ask", [read_rule(rule)]).kind == kind


def test_how_a_command_begins_is_a_rule_in_the_sandbox_alone() -> None:
    rules = [read_rule("commands: wget")]

    def kind(facts: Facts) -> str:
        return decide(facts._replace(about=("wget -O hook x",)), "ask", rules).kind

    assert (kind(CONFINED), kind(MAKE)) == ("allow", "ask")
