"""What was summarized away is found again by words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from deepagents import FilesystemPermission, create_deep_agent
from deepagents._async import run
from deepagents.backends import FilesystemBackend, StateBackend
from deepagents.backends.handle import open_backend
from deepagents.middleware.summarization.search import search_archive
from deepagents.middleware.tool_exclusion import ToolExclusionMiddleware
from deepagents.testing import Asked, WindowedModel, assert_prefix_kept, call
from tests.conftest import CallMode
from tests.middleware.voyages import ARCHIVE, THREAD

MANY = 28


def read_log(day: int) -> str:
    """Read a page of the log."""
    return (
        f"Day {day}. " + "Nothing but waves. " * 40 + f"The ship met captain Name{day}x7. " + "Rain. " * 400
    )


def reading(**settings: Any) -> WindowedModel:
    days = [call("read_log", day=n) for n in range(MANY)]
    asking = [call("search_history", query=f"Which captain on day {n}: name{n}x7?") for n in range(MANY)]
    return WindowedModel(*days, "Read.", *asking, "Done.", window=8_000, **settings)


def found(messages: list[Any]) -> list[str]:
    return [each.text for each in messages if each.type == "tool" and each.name == "search_history"]


@pytest.mark.parametrize("call_mode", ["sync"], indirect=True)
def test_every_fact_is_found_after_five_compactions_and_in_another_process(
    call_mode: CallMode, tmp_path: Path
) -> None:
    model, saver = reading(), InMemorySaver()

    def agent() -> Any:
        backend = FilesystemBackend(root_dir=tmp_path, virtual_mode=True)
        return create_deep_agent(model, tools=[read_log], backend=backend, checkpointer=saver)

    call_mode.invoke(agent(), {"messages": "Read the log."}, THREAD)
    summaries = {each.messages[1].id for each in model.turns if "<summary>" in each.messages[1].text}
    result = call_mode.invoke(agent(), {"messages": "Whom did we meet?"}, THREAD)
    answers = found(result["messages"])
    compacted = ["<summary>" in each.messages[1].text for each in model.turns]

    assert len(summaries) >= 5
    assert len(answers) == MANY
    searching = [each for each in model.turns if each.messages[-1].text.startswith(tuple(answers))]
    # The newest days are in no archive yet: they stand in the context.
    read = ["".join(message.text for message in each.messages) for each in searching]
    assert [n for n, text in enumerate(read) if f"captain Name{n}x7" in text] == [*range(MANY)]
    assert all(f"{ARCHIVE}, line " in each and len(each) < 8_000 for each in answers[: MANY - 5])
    assert ["search_history" in each.tool_names for each in model.turns] == compacted
    assert_prefix_kept(model.turns, is_compaction)


def is_compaction(broken: Any) -> bool:
    after: Asked = broken.after
    return "<summary>" in after.messages[1].text


def test_an_archive_that_may_not_be_read_is_not_searched() -> None:
    denied = FilesystemPermission(["read"], ["/conversation_history/**"], "deny")
    model = WindowedModel(
        *[call("read_log", day=n) for n in range(12)],
        call("search_history", query="captain"),
        "Done.",
        window=8_000,
    )
    agent = create_deep_agent(model, tools=[read_log], backend=StateBackend(), permissions=[denied])
    result = agent.invoke({"messages": "Read the log."}, THREAD)

    assert any("<summary>" in each.messages[1].text for each in model.turns)
    assert not any("search_history" in each.tool_names for each in model.turns)
    assert "Name0x7" not in "".join(found(result["messages"]))


def test_the_summary_names_no_search_that_was_not_offered() -> None:
    def told(*own: Any) -> str:
        model = WindowedModel(*[call("read_log", day=n) for n in range(12)], "Done.", window=8_000)
        create_deep_agent(model, tools=[read_log], middleware=own).invoke({"messages": "Read."}, THREAD)
        return next(each.messages[1].text for each in model.turns if "<summary>" in each.messages[1].text)

    assert "grep finds a detail in it, and read_file" in told()
    without = told(ToolExclusionMiddleware(excluded=frozenset({"grep"})))
    assert "grep" not in without
    assert "read_file with offset and limit shows it." in without


def test_a_tool_of_the_callers_of_that_name_stands() -> None:
    def search_history(query: str) -> str:
        """Search the history of whaling."""
        return f"whaling: {query}"

    model = WindowedModel(
        *[call("read_log", day=n) for n in range(12)],
        call("search_history", query="captain"),
        "Done.",
        window=8_000,
    )
    result = create_deep_agent(model, tools=[read_log, search_history]).invoke({"messages": "Go."}, THREAD)

    assert found(result["messages"]) == ["whaling: captain"]
    assert {each.tool_names.count("search_history") for each in model.turns} == {1}


def test_an_archive_that_is_gone_is_not_said_to_hold_nothing(tmp_path: Path) -> None:
    days = [call("read_log", day=n) for n in range(12)]
    model = WindowedModel(*days, "Read.", call("search_history", query="waves"), "Done.", window=8_000)
    backend = FilesystemBackend(root_dir=tmp_path, virtual_mode=True)
    agent = create_deep_agent(model, tools=[read_log], backend=backend, checkpointer=InMemorySaver())
    agent.invoke({"messages": "Read the log."}, THREAD)
    (tmp_path / ARCHIVE[1:]).unlink()
    (answer,) = found(agent.invoke({"messages": "Search."}, THREAD)["messages"])

    assert "Nothing was found" not in answer
    assert ARCHIVE in answer


def test_scripts_without_spaces_are_searched_by_parts_of_sentences() -> None:
    def decide() -> str:
        """Decide."""
        return "我们决定把端口改为八千零八十，然后重启服务。"

    model = WindowedModel(
        call("decide"),
        *[call("read_log", day=n) for n in range(12)],
        call("search_history", query="端口"),
        call("search_history", query="口端"),
        "Done.",
        window=8_000,
    )
    result = create_deep_agent(model, tools=[read_log, decide]).invoke({"messages": "Go."}, THREAD)

    assert ["端口改为" in each for each in found(result["messages"])] == [True, False]


def test_parts_that_could_not_be_searched_are_named(tmp_path: Path) -> None:
    files = open_backend(FilesystemBackend(root_dir=tmp_path, virtual_mode=True)).files(None)
    (tmp_path / "newest.2.md").write_text("Nothing but waves.")
    answer = run(search_archive(files, "/newest.2.md", "waves"))

    assert "/newest.2.md, line 1:\nNothing but waves." in answer
    assert answer.endswith("[Not searched: /newest.md.]")
