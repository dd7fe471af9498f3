"""What state keeps of skills costs what changes, takes what a caller gives, and belongs to one middleware."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver

from deepagents import create_deep_agent
from deepagents.backends import FilesystemBackend
from deepagents.errors import StackError
from deepagents.middleware.skills import SkillsMiddleware
from deepagents.testing import ScriptedModel, call
from tests.middleware.skilled import THREAD, agent_on, put, skill

MANY = {f"skill-{at}": skill(f"skill-{at}", "words " * 40) for at in range(100)}
LIST = sum(map(len, MANY.values()))


@pytest.fixture
def saver(tmp_path: Path) -> Iterator[SqliteSaver]:
    with closing(sqlite3.connect(tmp_path / "saved.db", check_same_thread=False)) as connection:
        yield SqliteSaver(connection)


def saved(saver: SqliteSaver, thread: str) -> int:
    """Return the bytes that a thread has on disk."""
    columns = (("checkpoints", "checkpoint"), ("writes", "value"))
    return sum(
        saver.conn.execute(
            f"select coalesce(sum(length({column})), 0) from {table} where thread_id = ?", [thread]
        ).fetchone()[0]
        for table, column in columns
    )


def ran(root: Path, saver: SqliteSaver, thread: str, *script: Any) -> int:
    model = ScriptedModel(*script, "Done.")
    agent = create_deep_agent(
        model, backend=FilesystemBackend(root_dir=root), skills=["/skills"], checkpointer=saver
    )
    config: Any = {"configurable": {"thread_id": thread}, "recursion_limit": 1000}
    agent.invoke({"messages": "Go"}, config)
    names = {each["name"] for each in agent.get_state(config).values["skills_metadata"]}
    assert names == {each.name for each in (root / "skills").iterdir()}
    return saved(saver, thread)


def test_a_step_saves_no_skill_again(saver: SqliteSaver, tmp_path: Path) -> None:
    put(tmp_path / "none", "skills", "one")
    put(tmp_path / "many", "skills", **MANY)
    steps = [call("ls", path="/none") for _ in range(40)]
    without, with_many = (ran(tmp_path / each, saver, each, *steps) for each in ("none", "many"))

    assert with_many - without < 4 * LIST


def test_the_list_in_state_is_what_the_next_run_starts_from(tmp_path: Path) -> None:
    changing = call("write_file", file_path="/skills/two/SKILL.md", content=skill("two", "Other."))
    adding = call("write_file", file_path="/skills/abc/SKILL.md", content=skill("abc"))
    root, saver = put(tmp_path, "skills", "one", "two"), InMemorySaver()
    with ScriptedModel(changing, adding, call("delete", file_path="/skills/one"), "Done.", "Again.") as model:
        for _ in range(2):
            agent = agent_on(model, root, checkpointer=saver)
            agent.invoke({"messages": "Hi"}, THREAD)
            found = agent.get_state(THREAD).values["skills_metadata"]
            assert [(each["name"], each["description"]) for each in found] == [
                ("abc", "Does things."),
                ("two", "Other."),
            ]


MINE = {"path": "/x/SKILL.md", "name": "mine", "description": "Given."}


@pytest.mark.parametrize(("given", "names"), [([], []), (None, ["one"]), ([MINE], ["mine"])])
def test_a_list_none_and_an_empty_list_may_be_given(given: Any, names: list[str], tmp_path: Path) -> None:
    with ScriptedModel("1", "2", "3", "4") as model:
        agent = agent_on(model, put(tmp_path, "skills", "one"), checkpointer=InMemorySaver())

        def names_after(**extra: Any) -> list[str]:
            agent.invoke({"messages": "Hi", **extra}, THREAD)
            return [each["name"] for each in agent.get_state(THREAD).values["skills_metadata"]]

        assert names_after(skills_metadata=given) == names_after() == names
        agent.update_state(THREAD, {"skills_metadata": given})
        assert names_after() == names
        assert names_after(skills_metadata=None) == ["one"]

    assert ("**mine**: Given.\n  Read `/x/SKILL.md`" in model.asked[2].system) is (names == ["mine"])


def test_an_agent_that_has_not_run_knows_nothing_of_its_skills() -> None:
    agent = create_deep_agent(ScriptedModel(), skills=["/skills"], checkpointer=InMemorySaver())
    agent.update_state(THREAD, {"messages": "Hi"})

    assert agent.get_state(THREAD).values["skills_metadata"] is None


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"pinned_skills": 5}, r"pinned_skills must be a list of names, such as \['tides'\]; got 5"),
        ({"pinned_skills": [["a"]]}, r"pinned_skills must be a list of names.*got \[\['a'\]\]"),
        ({"pinned_skills": {"a": 1}}, r"pinned_skills must be a list of names.*got \{'a': 1\}"),
        ({"skills_metadata": "x"}, r"skills_metadata must be a list of skills, or None.*got 'x'"),
        ({"skills_metadata": [None]}, r"skills_metadata .*got None"),
        (
            {"skills_metadata": [{"name": "x"}]},
            r"skills_metadata has no 'path' .*got \{'name': 'x'\}",
        ),
        ({"skills_metadata": [{**MINE, "allowed_tools": 7}]}, r"skills_metadata .*'allowed_tools': 7"),
        ({"skills_metadata": [{**MINE, "metadata": []}]}, r"skills_metadata .*'metadata': \[\]"),
        ({"skills_metadata": [{**MINE, "license": 7}]}, r"skills_metadata .*'license': 7"),
    ],
)
def test_what_cannot_be_taken_is_named(given: Any, complaint: str) -> None:
    agent = create_deep_agent(ScriptedModel("Hi."), skills=["/skills"])
    with pytest.raises(TypeError, match=complaint):
        agent.invoke({"messages": "Hi", **given})


class TeamSkills(SkillsMiddleware):
    """A middleware of a name of its own."""


def test_one_agent_has_one_skills_middleware() -> None:
    team = TeamSkills(backend=None, sources=["/b"])
    plain = SkillsMiddleware(backend=None, sources=["/a"])
    spec: Any = {"name": "a", "description": "a", "skills": ["/c"], "middleware": [team]}
    doubled: list[Any] = [
        {"skills": ["/c"], "middleware": [team]},
        {"middleware": [plain, team]},
        {"subagents": [spec]},
    ]
    for options in doubled:
        with pytest.raises(
            StackError, match=r"two skills middleware.*'/[ab]'.*'/[bc]'.*give all sources to one"
        ):
            create_deep_agent(ScriptedModel(), **options)

    create_deep_agent(ScriptedModel(), middleware=[team])
