"""A SKILL.md is read as people write it, and what is wrong with it is said."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepagents.middleware.skills.parse import (
    MAX_HEADER_LENGTH,
    MAX_SKILL_FILE_SIZE,
    Parsed,
    Unreadable,
    body_of,
    parse_skill,
    split_skill,
    split_tools,
)
from tests.middleware.skilled import skill

PATH = "/skills/tides/SKILL.md"
PLAIN: dict[str, Any] = {
    "path": PATH,
    "name": "tides",
    "description": "Computes tides.",
    "license": None,
    "compatibility": None,
    "metadata": {},
    "allowed_tools": [],
}


def parse(text: str) -> Parsed:
    return parse_skill(text.encode(), PATH)


def front(*lines: str) -> Parsed:
    return parse("\n".join(["---", "name: tides", "description: Computes tides.", *lines, "---", ""]))


@pytest.mark.parametrize(
    "text",
    [
        skill("tides", "Computes tides."),
        "\ufeff" + skill("tides", "Computes tides."),
        "\n \n" + skill("tides", "Computes tides."),
        skill("tides", "Computes tides.").replace("\n", "\r\n"),
        "---  \nname: tides\ndescription: Computes tides.\n---",
        "---\nname: ' tides '\ndescription: >\n  Computes\n  tides.\n---\t\n",
        "---\n# a comment\nname: tides\ndescription: Computes tides.\nunknown: [1, {a: b}]\n---\n",
    ],
)
def test_it_may_be_written_in_many_ways(text: str) -> None:
    assert parse(text) == Parsed(PLAIN, [])  # pyright: ignore[reportArgumentType]


def test_all_fields_at_once() -> None:
    parsed = front(
        "license: ' MIT '",
        "compatibility: Python 3",
        "metadata:",
        "  author: ada",
        "  version: 1.0",
        "  enabled: on",
        "  since: 2026-01-02",
        "  tags: [a, b]",
        "  gone:",
        "  include_tools: [tide, moon_phase, tide]",
        "allowed-tools: Read, Bash(git add:*) Grep",
    )

    assert parsed.problems == []
    assert parsed.skill == {
        **PLAIN,
        "license": "MIT",
        "compatibility": "Python 3",
        "metadata": {
            "author": "ada",
            "version": "1.0",
            "enabled": "on",
            "since": "2026-01-02",
            "tags": "['a', 'b']",
            "include_tools": "tide moon_phase",
        },
        "allowed_tools": ["Read", "Bash(git add:*)", "Grep"],
    }


def test_null_is_missing_and_words_stay_words() -> None:
    parsed = front("license:", "compatibility: ~", "metadata: null", "allowed-tools:")
    assert parsed == Parsed(PLAIN, [])  # pyright: ignore[reportArgumentType]

    worded = parse("---\nname: on\ndescription: yes\nlicense: 1.10\n---\n").skill
    assert worded is not None
    assert (worded["name"], worded["description"], worded["license"]) == ("on", "yes", "1.10")


@pytest.mark.parametrize(
    ("line", "description"),
    [
        ("description: Use when: a person asks", "Use when: a person asks"),
        ("description: Use it\n  when: a person\n  asks: this", "Use it when: a person asks: this"),
        ('description: "Tides" and more', '"Tides" and more'),
        ("description: @tides: yes \\ 'no'", "@tides: yes \\ 'no'"),
        ("description: [tides]: all", None),
    ],
)
def test_values_that_yaml_trips_over_are_taken_as_they_stand(line: str, description: str | None) -> None:
    parsed = parse(f"---\nname: tides\nlicense: ~\n{line}\nmetadata:\n  a: b: c\n---\n")

    if description is None:
        assert parsed.skill is None
        assert "not YAML" in parsed.problems[0]
        assert "in line" in parsed.problems[0]
    else:
        assert parsed.skill is not None
        assert parsed.skill["description"] == description
        assert parsed.skill["license"] is None
        assert parsed.skill["metadata"] == {"a": "b: c"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "does not begin with front matter"),
        ("# Tides\n", "does not begin with front matter"),
        ("---\nname: tides\n", "no closing line"),
        ("---\n- a\n---\n", "not a mapping"),
        ("---\n---\n", "not a mapping"),
        ("---\nname: [tides\n---\n", "not YAML"),
        ("---\nname: !!python/object:os.system {}\n---\n", "it has no 'name' and 'description'"),
        ("---\nname: &a [*a]\n---\n", "uses YAML aliases"),
        ("---\nname:\ndescription: x\n---\n", "it has no 'name'."),
        ("---\nname: tides\ndescription: '  '\n---\n", "it has no 'description'."),
        ("---\nname: {a: b}\ndescription: x\n---\n", "it has no 'name'."),
        (f"---\nname: {'x' * MAX_HEADER_LENGTH}\n---\n", f"more than {MAX_HEADER_LENGTH}"),
        (f"---\nname: {'[' * 5000}\n---\n", "not YAML|too deep"),
    ],
)
def test_what_cannot_be_a_skill_is_skipped_with_the_reason(text: str, why: str) -> None:
    parsed = parse(text)

    assert parsed.skill is None
    assert parsed.problems[-1].startswith(f"{PATH}: skill skipped: ")
    assert any(each in parsed.problems[-1] for each in why.split("|"))


def test_bytes_that_are_no_text_none_and_too_many_are_skipped() -> None:
    assert "not UTF-8" in parse_skill(b"---\n\xff", PATH).problems[0]
    assert "no content" in parse_skill(None, PATH).problems[0]
    large = parse_skill(skill("tides").encode() + b"x" * MAX_SKILL_FILE_SIZE, PATH)
    assert f"over the limit of {MAX_SKILL_FILE_SIZE}" in large.problems[0]


@pytest.mark.parametrize(
    ("line", "field", "kept", "said"),
    [
        ("license: [MIT]", "license", None, "'license' is not text"),
        (f"compatibility: {'c' * 501}", "compatibility", "c" * 500, "'compatibility' has 501 characters"),
        ("metadata: some", "metadata", {}, "'metadata' is not a mapping"),
        ("metadata: {include_tools: {a: b}}", "metadata", {}, "'include_tools' must be names"),
        ("allowed-tools: {a: b}", "allowed_tools", [], "'allowed-tools' must be names"),
        ("allowed-tools: true", "allowed_tools", [], "'allowed-tools' must be names"),
        ("allowed-tools: 42", "allowed_tools", [], "'allowed-tools' must be names"),
        (
            "allowed-tools: [Read, 42, [x], ' Grep ']",
            "allowed_tools",
            ["Read", "Grep"],
            "holds what is not a name",
        ),
    ],
)
def test_what_is_bent_is_said_and_the_skill_stays(line: str, field: str, kept: Any, said: str) -> None:
    parsed = front(line)

    assert parsed.skill == {**PLAIN, field: kept}
    assert len(parsed.problems) == 1
    assert parsed.problems[0].startswith(f"{PATH}: ")
    assert said in parsed.problems[0]


def test_a_long_description_is_cut_and_the_limit_named() -> None:
    parsed = parse(skill("tides", "d" * 1025))

    assert parsed.skill is not None
    assert parsed.skill["description"] == "d" * 1024
    assert parsed.problems == [
        f"{PATH}: 'description' has 1025 characters, over the limit of 1024, and is cut."
    ]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("tides", None),
        ("mare-é-2", "is not the name of its directory, 'tides'"),
        ("Tides", "lowercase letters, digits and hyphens only"),
        ("ti des", "lowercase letters, digits and hyphens only"),
        ("潮", "lowercase letters, digits and hyphens only"),
        ("-tides", "hyphen"),
        ("tides-", "hyphen"),
        ("ti--des", "hyphen"),
        ("x" * 65, "has 65 characters, over the limit of 64"),
    ],
)
def test_a_name_that_is_out_of_form_is_said_and_the_skill_stays(name: str, said: str | None) -> None:
    parsed = parse(skill(name))

    assert parsed.skill is not None
    assert parsed.skill["name"] == name
    assert len(parsed.problems) == (said is not None)
    assert all(str(said) in problem for problem in parsed.problems)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Read Write", ["Read", "Write"]),
        ("Read,Write, Grep", ["Read", "Write", "Grep"]),
        ("Bash(git add:*) Bash(npm run [a b], x)", ["Bash(git add:*)", "Bash(npm run [a b], x)"]),
        ("Read) Write", ["Read)", "Write"]),
        ("Bash(git Read", ["Bash(git", "Read"]),
        (" , ", []),
    ],
)
def test_tools_are_split_outside_brackets(text: str, names: list[str]) -> None:
    assert split_tools(text) == names


@pytest.mark.parametrize(
    "given_as",
    ["include_tools: tide moon", "include_tools: 'tide, moon'", "include_tools:\n    - tide\n    - moon"],
)
def test_included_tools_come_as_text_or_as_a_list(given_as: str) -> None:
    parsed = front("metadata:", f"  {given_as}")

    assert parsed.skill is not None
    assert parsed.skill["metadata"] == {"include_tools": "tide moon"}
    assert parsed.problems == []


def test_the_body_is_what_follows() -> None:
    assert body_of(skill("tides", body="One.\n---\nTwo.").encode()) == "One.\n---\nTwo."
    assert [body_of(each) for each in (None, b"\xff", b"no front matter")] == [None, None, None]


@given(st.text(alphabet=st.sampled_from("-: \n\r\t'\"[]{}&*!|>#%@`a1\ufeff"), max_size=80))
def test_no_text_is_too_strange(text: str) -> None:
    for given_text in (text, f"---\nname: tides\ndescription: {text}\n---\n", f"---\n{text}\n---\n"):
        parsed = parse(given_text)
        assert parsed.skill is not None or parsed.problems


@given(st.text(max_size=200))
def test_splitting_loses_nothing_of_the_body(body: str) -> None:
    try:
        found = split_skill(f"---\na: b\n---\n{body}")[1]
    except Unreadable:
        pytest.fail("there is front matter")
    assert found == body.replace("\r\n", "\n").replace("\r", "\n").strip("\n")
