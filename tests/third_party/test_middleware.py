"""Middleware and agent factories of other packages work in and on a deep agent."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from advisor_middleware import AdvisorMiddleware
from compact_middleware import CompactionConfig, CompactionToolMiddleware, create_compaction_middleware
from deep_db_agents import create_deep_db_agents, create_deep_db_multi_agents
from langchain_skill_router.core.judge import Answer, YesNo
from langchain_skill_router.langchain.middleware import SkillRouterMiddleware
from langchain_skill_router.testing.fakes import ScriptedJudge, yes
from langgraph.checkpoint.memory import InMemorySaver

from deepagents import create_deep_agent
from deepagents.backends import FilesystemBackend, StateBackend
from deepagents.testing import ScriptedModel, call

SKILLS = ("tides", "moons", "stars")


def answers(result: Any, name: str) -> list[str]:
    return [each.text for each in result["messages"] if each.type == "tool" and each.name == name]


def pick_tides(_: object, questions: Any) -> dict[str, Answer]:
    return {
        key: yes(0.99) if isinstance(question, YesNo) else Answer({"tides": 0.99})
        for key, question in questions.items()
    }


async def test_a_router_takes_the_place_of_the_skills(tmp_path: Path) -> None:
    for name in SKILLS:
        (tmp_path / "skills" / name).mkdir(parents=True)
        front = f"---\nname: {name}\ndescription: About {name}.\n---\nAsk the {name}.\n"
        (tmp_path / "skills" / name / "SKILL.md").write_text(front)
    backend = FilesystemBackend(root_dir=tmp_path)
    router = SkillRouterMiddleware(backend=backend, sources=["/skills/"], judge=ScriptedJudge(pick_tides))
    model = ScriptedModel(call("find_skill", query="the moon"), "At noon.", "At noon again.")
    agent = create_deep_agent(model, backend=backend, skills=["/skills/"], middleware=[router])
    result = await agent.ainvoke({"messages": "When is high tide?"})
    agent.invoke({"messages": "When is high tide?"})

    assert "Ask the tides." in model.asked[0].last
    assert "About moons." not in model.asked[0].system
    assert "/skills/tides/SKILL.md" in answers(result, "find_skill")[0]
    assert "About moons." in model.asked[2].system


def test_a_compactor_writes_the_archive_with_the_agents_files() -> None:
    backend = StateBackend()
    summarizer = ScriptedModel(always=lambda _: "Eight files of x.")
    config = CompactionConfig(trigger=("tokens", 4_000), keep=("messages", 4))
    compactor = create_compaction_middleware(summarizer, backend, config)
    reads = [call("read_file", file_path=f"/{number}.txt") for number in range(8)]
    with ScriptedModel(*reads, call("compact_conversation"), "Done.") as model:
        agent = create_deep_agent(
            model,
            backend=backend,
            middleware=[compactor, CompactionToolMiddleware(compactor)],
            checkpointer=InMemorySaver(),
        )
        files = {f"/{number}.txt": {"content": "x" * 3_000, "encoding": "utf-8"} for number in range(8)}
        start: Any = {"messages": "Read them.", "files": files}
        result = agent.invoke(start, {"configurable": {"thread_id": "1"}})

    assert answers(result, "compact_conversation")[0].startswith("Conversation compacted.")
    assert "/conversation_history/1.md" in result["files"]
    assert len(model.asked[-1].messages) < 10


def test_an_advisor_is_asked_by_a_tool() -> None:
    advisor = ScriptedModel(always=lambda _: "Use a sextant.")
    middleware = AdvisorMiddleware(advisor)
    [tool] = middleware.tools
    with ScriptedModel(call(tool.name, question="How do I find north?"), "With a sextant.") as model:
        result = create_deep_agent(model, middleware=[middleware]).invoke({"messages": "Find north."})

    assert "Use a sextant." in answers(result, tool.name)[0]


def test_agents_for_databases_and_one_over_them(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "books.db")) as database, database:
        database.execute("create table books (title text, pages int)")
        database.executemany("insert into books values (?, ?)", [("Tides", 200), ("Moons", 120)])
    listing = ScriptedModel(call("list_tables"), "The table is books.")
    books = create_deep_db_agents(f"sqlite:///{tmp_path}/books.db", model=listing)
    over = ScriptedModel(call("task", description="Which tables?", subagent_type="books"), "One: books.")
    agent = create_deep_db_multi_agents(
        {"books": {"description": "Books (SQLite)", "agent": books}}, model=over
    )
    result = agent.invoke({"messages": "Which tables are there?"})

    assert answers(result, "task") == ["The table is books."]
    assert "books" in listing.asked[1].last
    assert "materialize" in " ".join(listing.asked[0].tool_names)
