"""Names that other packages import still mean what they meant, and warn at the line that asks."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from importlib import import_module
from typing import Any

import pytest

from deepagents import FilesystemMiddleware, FilesystemPermission
from deepagents._compat import LEGACY_NAMES
from deepagents._deprecation import legacy
from deepagents.backends import CompositeBackend, FilesystemBackend, StateBackend
from deepagents.backends.protocol import BackendProtocol, GrepMatch, GrepResult

ROWS = [(module, name) for module, names in LEGACY_NAMES.items() for name in names]
RULE = FilesystemPermission(operations=["read"], paths=["/a"], mode="deny")
LINES: Any = {"content": "one\ntwo", "encoding": "utf-8", "created_at": "c", "modified_at": "m"}


def honoured(module: str, name: str) -> Any:
    with pytest.warns(DeprecationWarning, match=name) as warned:
        value = getattr(import_module(f"deepagents.{module}"), name)
    assert [each.filename for each in warned] == [__file__]
    return value


@pytest.mark.parametrize(("module", "name"), ROWS)
def test_an_older_name_leads_to_what_there_is_today(module: str, name: str) -> None:
    home, _, today = LEGACY_NAMES[module][name].partition(":")

    assert honoured(module.removeprefix("deepagents."), name) is getattr(import_module(home), today)


@pytest.mark.parametrize("module", LEGACY_NAMES)
def test_a_name_that_never_was_is_an_attribute_error(module: str) -> None:
    with pytest.raises(AttributeError, match=f"module '{module}' has no attribute '_never'"):
        legacy(module)("_never")


def test_an_import_warns_once_at_its_line(tmp_path: Any) -> None:
    """From a module and from a package, which the import system itself asks for the name as well."""
    asked = {module: next(iter(names)) for module, names in LEGACY_NAMES.items()}
    program = tmp_path / "theirs.py"
    program.write_text("".join(f"from {module} import (\n    {name},\n)\n" for module, name in asked.items()))
    ended = subprocess.run(
        [sys.executable, "-W", "always", str(program)], capture_output=True, text=True, check=True
    )

    told = re.findall(rf"^{re.escape(str(program))}:(\d+): DeprecationWarning: (\w+)", ended.stderr, re.M)
    assert told == [(str(3 * n + 1), name) for n, name in enumerate(asked.values())]
    assert ended.stderr.count("DeprecationWarning") == len(told)


def test_what_was_asked_about_a_backend(tmp_path: Any) -> None:
    supports_delete = honoured("backends.protocol", "_supports_delete")
    accepts_max_count = honoured("backends.protocol", "_method_accepts_max_count")
    capped = honoured("backends.protocol", "_apply_grep_max_count")
    match: GrepMatch = {"path": "/a", "line": 1, "text": "x"}
    found = GrepResult(matches=[match] * 3)

    assert supports_delete(StateBackend())
    assert not supports_delete(BackendProtocol())
    assert accepts_max_count(FilesystemBackend, "agrep")
    assert capped(found, 3) is found
    assert capped(found, 2).truncated


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (FileNotFoundError(2, "x"), "file_not_found"),
        (PermissionError(13, "x"), "permission_denied"),
        (IsADirectoryError(21, "x"), "is_directory"),
        (OSError(28, "x"), None),
        (KeyError("x"), None),
    ],
)
def test_an_exception_as_a_standard_error(error: Exception, code: str | None) -> None:
    assert honoured("backends.filesystem", "_map_exception_to_standard_error")(error) == code


def test_text_helpers() -> None:
    older: Any = honoured("backends.utils", "_to_legacy_file_data")(LINES)
    formatted = honoured("backends.utils", "format_read_response")
    searched = honoured("backends.utils", "_grep_search_files")

    assert older == {"content": ["one", "two"], "created_at": "c", "modified_at": "m"}
    assert formatted(older, 1, 1).split() == ["2", "two"]
    assert formatted(LINES, 9, 1).startswith("Error: Line offset 9")
    assert "empty" in formatted({"content": ""}, 0, 1)
    assert searched({"/a.md": LINES}, "two", output_mode="content") == "/a.md:\n  2: two"
    assert "'../*'" in searched({"/a.md": LINES}, "two", glob="../*")
    assert honoured("backends.utils", "_looks_like_regex")("a.*b")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("_permissions", [RULE]),
        ("_custom_system_prompt", "Files are dear."),
        ("_large_tool_results_prefix", "/kept/large_tool_results"),
        ("_conversation_history_prefix", "/kept/conversation_history"),
    ],
)
def test_what_was_looked_up_on_the_middleware(name: str, value: Any) -> None:
    backend = CompositeBackend(default=StateBackend(), routes={}, artifacts_root="/kept/")
    files = FilesystemMiddleware(backend=backend, permissions=[RULE], system_prompt="Files are dear.")
    with pytest.warns(DeprecationWarning, match=name) as warned:
        assert getattr(files, name) == value

    assert [each.filename for each in warned] == [__file__]
    with pytest.raises(AttributeError, match="'FilesystemMiddleware' object has no attribute '_never'"):
        getattr(files, name.replace(name, "_never"))


def test_the_file_tools_of_a_backend() -> None:
    tools = honoured("middleware.filesystem", "_get_filesystem_tools")(StateBackend(), {"ls": "Look."})

    assert {each.name: each.description for each in tools}["ls"] == "Look."


def test_skills_are_listed_and_pinned_by_older_names(tmp_path: Any) -> None:
    (tmp_path / "skills" / "tides").mkdir(parents=True)
    text = "---\nname: tides\ndescription: Computes tides.\n---\nAsk the moon.\n"
    (tmp_path / "skills" / "tides" / "SKILL.md").write_text(text)
    backend, home = FilesystemBackend(root_dir=tmp_path), "middleware.skills"
    skills = honoured(home, "_list_skills")(backend, "/skills")
    answer = backend.download_files(["/skills/tides/SKILL.md"])[0]
    listing = honoured(home, "_alist_skills_with_errors")

    assert [each["name"] for each in skills] == ["tides"]
    assert honoured(home, "_list_skills_with_errors")(backend, ("/skills", "Mine")) == (skills, [])
    assert asyncio.run(_awaited(listing(backend, "/skills"))) == (skills, [])
    assert honoured(home, "_list_skills_with_errors")(backend, "/none")[1][0].startswith(
        "Skills source '/none'"
    )
    assert honoured(home, "_skill_metadata_from_response")(answer) == skills[0]
    body = honoured(home, "_pinned_skill_body")(answer.content)
    assert "Ask the moon." in honoured(home, "_pinned_skill_message")(skills[0], body).text
    assert honoured(home, "_derive_source_label")("/a/.deepagents/skills") == "Deepagents"
    assert honoured(home, "_source_path")(("/skills", "Mine")) == "/skills"
    assert honoured(home, "_format_skills_source_error")("/a", "gone") == "Skills source '/a': gone"


async def _awaited(awaitable: Any) -> Any:
    return await awaitable


def test_middleware_of_others_adds_to_a_system_prompt() -> None:
    appended = honoured("middleware._utils", "append_to_system_message")
    first = appended(None, "Be brief.")

    assert first.text == "Be brief."
    assert appended(first, "Be kind.").text == "Be brief.\n\nBe kind."


def test_the_tools_and_the_headers_of_asynchronous_subagents() -> None:
    spec = {"name": "digger", "description": "Digs.", "graph_id": "dig", "headers": {"Authorization": "x"}}
    tools = honoured("middleware.async_subagents", "_build_async_subagent_tools")([spec])
    headers = honoured("middleware.async_subagents", "_resolve_headers")(spec)
    reducer = honoured("middleware.async_subagents", "_tasks_reducer")

    assert [tool.name.split("_")[0] for tool in tools] == ["start", "check", "update", "cancel", "list"]
    assert headers == {"x-auth-scheme": "langsmith", "Authorization": "x"}
    assert reducer({"a": 1}, {"a": 2, "b": 3}) == {"a": 2, "b": 3}
    assert reducer(None, None) == {}
