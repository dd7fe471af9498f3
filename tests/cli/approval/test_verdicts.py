"""Mode, rules and facts say what becomes of a call."""

from __future__ import annotations

import pytest

from deepagents.tools import specs_by_name
from deepagents_cli.approval.rules import read_rule
from deepagents_cli.approval.verdicts import Facts, decide
from deepagents_cli.values import Mode

SPECS = specs_by_name()
IN = Facts(("/here/a.py",))
CONFINED = Facts(confined=True)


@pytest.mark.parametrize(
    ("name", "facts", "answers"),
    [
        ("read_file", IN, ("allow", "allow", "allow", "allow")),
        ("write_file", IN, ("ask", "allow", "refuse", "allow")),
        ("delete", IN, ("ask", "allow", "refuse", "allow")),
        ("write_file", IN._replace(guarded=frozenset({"git"})), ("ask", "ask", "refuse", "allow")),
        ("delete", IN._replace(guarded=frozenset({"programs"})), ("ask", "ask", "refuse", "allow")),
        ("read_file", IN._replace(guarded=frozenset({"secrets"})), ("ask", "ask", "ask", "allow")),
        ("execute", Facts(), ("ask", "ask", "refuse", "allow")),
        ("execute", CONFINED, ("ask", "allow", "refuse", "allow")),
        ("execute", CONFINED._replace(guarded=frozenset({"git"})), ("ask", "ask", "refuse", "allow")),
        ("write_command", CONFINED, ("ask", "allow", "refuse", "allow")),
    ],
)
def test_each_mode_has_its_answer(name: str, facts: Facts, answers: tuple[str, ...]) -> None:
    modes: tuple[Mode, ...] = ("ask", "auto", "plan", "full")
    args = {"command": "make"}

    assert tuple(decide(SPECS[name], args, each, (), facts).kind for each in modes) == answers


@pytest.mark.parametrize(
    ("rule", "name", "facts", "kind"),
    [
        ("edit: /here/a.py", "edit_file", IN, "allow"),
        ("edit: /here/b.py", "edit_file", IN, "ask"),
        ("edits: /here", "write_file", IN, "allow"),
        ("edits: /her", "write_file", IN, "ask"),
        ("edits: /here", "delete", IN, "ask"),
        ("edits: /here", "write_file", IN._replace(guarded=frozenset({"secrets"})), "ask"),
        ("edits: /here", "write_file", Facts(("/here/link", "/there/a")), "ask"),
        ("edit: /here/a.py", "write_file", IN._replace(guarded=frozenset({"git"})), "allow"),
        ("command: make", "execute", Facts(), "allow"),
        ("commands: make test", "execute", Facts(), "ask"),
    ],
)
def test_a_rule_lets_through_what_it_names(rule: str, name: str, facts: Facts, kind: str) -> None:
    assert decide(SPECS[name], {"command": "make"}, "ask", [read_rule(rule)], facts).kind == kind


def test_how_a_command_begins_is_a_rule_in_the_sandbox_alone() -> None:
    rules = [read_rule("commands: wget")]

    def kind(facts: Facts) -> str:
        return decide(SPECS["execute"], {"command": "wget -O hook x"}, "ask", rules, facts).kind

    assert (kind(CONFINED), kind(Facts())) == ("allow", "ask")
