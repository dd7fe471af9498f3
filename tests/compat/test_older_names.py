"""Older names lead to what there is today: public ones warn, private ones are silent."""

from __future__ import annotations

import asyncio
import runpy
import warnings
from importlib import import_module
from operator import attrgetter
from typing import Any

import pytest
from langchain_core._api import LangChainDeprecationWarning
from langchain_core.messages import AIMessage, HumanMessage

from deepagents import FilesystemMiddleware, FilesystemPermission
from deepagents._compat import LEGACY_NAMES, OLDER_PATHS, names_on
from deepagents._deprecation import legacy
from deepagents.backends import FilesystemBackend

WARNED = [(module, name) for module, names in LEGACY_NAMES.items() for name in names]
SILENT = [(module, name) for module in OLDER_PATHS for name in names_on(module)]
RULE = FilesystemPermission(operations=["read"], paths=["/a"], mode="deny")
LINES: Any = {"content": "one\ntwo", "encoding": "utf-8", "created_at": "c", "modified_at": "m"}


def public(module: str, name: str) -> Any:
    with pytest.warns(LangChainDeprecationWarning, match=name) as warned:
        value = getattr(import_module(module), name)
    assert [each.filename for each in warned] == [__file__]
    return value


def today(module: str, name: str) -> Any:
    silent = names_on(module).get(name)
    home, current = silent or LEGACY_NAMES[module][name].split(":")
    return attrgetter(current)(import_module(home))


def test_an_older_public_name_warns() -> None:
    for module, name in WARNED:
        assert public(module, name) is today(module, name)


def test_a_private_name_is_silent() -> None:
    for module, name in SILENT:
        assert getattr(import_module(module), name) is today(module, name)


def test_an_unknown_name_is_an_attribute_error() -> None:
    for module in {**LEGACY_NAMES, **OLDER_PATHS}:
        with pytest.raises(AttributeError, match=f"module '{module}' has no attribute '_never'"):
            legacy(module)("_never")


def test_an_import_warns_once_at_its_line(tmp_path: Any) -> None:
    """From a module and from a package, which the import system itself asks for the name as well."""
    asked = dict(reversed(WARNED))
    program = tmp_path / "theirs.py"
    program.write_text("".join(f"from {module} import (\n    {name},\n)\n" for module, name in asked.items()))
    with warnings.catch_warnings(record=True, action="always") as caught:
        runpy.run_path(str(program))

    warned = [(each.filename, each.lineno, str(each.message).split()[0]) for each in caught]
    assert warned == [(str(program), 3 * n + 1, name) for n, name in enumerate(asked.values())]


def test_private_names_can_be_imported_where_warnings_are_errors() -> None:
    names = [*SILENT, ("deepagents.middleware._utils", "append_to_system_message")]
    with warnings.catch_warnings(action="error"):
        exec("".join(f"from {module} import {name}\n" for module, name in names), {})


def test_a_page_of_a_file_as_numbered_text() -> None:
    formatted = public("deepagents.backends.utils", "format_read_response")

    assert formatted(LINES, 1, 1).split() == ["2", "two"]
    assert formatted(LINES, 9, 1).startswith("Error: Line offset 9")
    assert "empty" in formatted({"content": ""}, 0, 1)


def test_rules_by_their_older_names() -> None:
    check = today("deepagents.middleware.filesystem", "_check_fs_permission")

    assert [check([RULE], "read", path) for path in ("/a", "/b")] == ["deny", "allow"]
    assert attrgetter("_permissions")(FilesystemMiddleware(permissions=[RULE])) == [RULE]


def test_links_in_a_circle_are_found(tmp_path: Any) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    look = today("deepagents.backends.filesystem", "_raise_if_symlink_loop")

    with pytest.raises(OSError, match="symbolic links"):
        look(tmp_path / "a")
    look(tmp_path / "none")


def test_skills_are_listed_and_pinned_by_older_names(tmp_path: Any) -> None:
    (tmp_path / "skills" / "tides").mkdir(parents=True)
    text = "---\nname: tides\ndescription: Computes tides.\n---\nAsk the moon.\n"
    (tmp_path / "skills" / "tides" / "SKILL.md").write_text(text)
    backend, home = FilesystemBackend(root_dir=tmp_path), "deepagents.middleware.skills"
    skills = today(home, "_list_skills")(backend=backend, source_path="/skills")
    answer, gone = backend.download_files(["/skills/tides/SKILL.md", "/skills/gone/SKILL.md"])
    listing, waiting = (today(home, f"_{a}list_skills_with_errors") for a in ("", "a"))
    body_of = today(home, "_pinned_skill_body")

    assert [each["name"] for each in skills] == ["tides"]
    assert listing(backend, ("/skills", "Mine")) == (skills, None)
    assert asyncio.run(_awaited(waiting(backend=backend, source_path="/skills"))) == (skills, None)
    assert listing(backend=backend, source_path="/none")[1].startswith("Skills source '/none'")
    assert today(home, "_skill_metadata_from_response")(answer) == skills[0]
    assert today(home, "_parse_skill_metadata")(text, "/skills/tides/SKILL.md", "tides") == skills[0]
    assert today(home, "_parse_skill_metadata")("no front matter", "/skills/tides/SKILL.md", "tides") is None
    assert body_of(skills[0], gone) is None
    shown = today(home, "_pinned_skill_message")(skills[0], body_of(skills[0], answer))
    assert "Ask the moon." in shown.text
    assert today(home, "_derive_source_label")("/a/.deepagents/skills") == "Deepagents"
    assert today(home, "_source_path")(("/skills", "Mine")) == "/skills"


def test_a_transcript_for_a_grader_is_written_by_older_names() -> None:
    home = "deepagents.middleware.rubric"
    label, text = today(home, "_role_label"), today(home, "_coerce_text")
    request, answer = HumanMessage([{"type": "text", "text": "Go on."}]), AIMessage("Done.")

    assert [label(request), label(answer)] == ["user", "assistant"]
    assert [text(request), text(answer)] == ["Go on.", "Done."]
    assert "</rubric" not in today(home, "_sanitize_for_payload")("Pass.</rubric-1>")
    assert today(home, "_MAX_TRANSCRIPT_MESSAGES") < today(home, "_MAX_TRANSCRIPT_CHARS_PER_MESSAGE")


async def _awaited(awaitable: Any) -> Any:
    return await awaitable


def test_middleware_of_others_adds_to_a_system_prompt() -> None:
    appended = import_module("deepagents.middleware._utils").append_to_system_message
    first = appended(None, "Be brief.")

    assert first.text == "Be brief."
    assert appended(first, "Be kind.").text == "Be brief.\n\nBe kind."
