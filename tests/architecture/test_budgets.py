"""The budgets of shape, measured over the source; CONTRIBUTING.md says what each is for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from statistics import median

import pytest

from tests.architecture import rules
from tests.architecture.source import (
    Source,
    function_lines,
    nesting,
    sources,
)

SRC = sources("src")
LIBRARY = sources("src/deepagents")
TESTS = sources("tests", "typing_tests")

LONG_FILES: dict[str, str] = {
    "src/deepagents/_agent/factories.py": "each row of the stack of middleware, and how it is made",
    "src/deepagents/middleware/summarization/compaction.py": "what is tried, in order, to make a context fit",
    "src/deepagents/_text/mend.py": "each way in which a quote differs, and what that says of the new text",
    "src/deepagents/backends/operations.py": "each operation on files, as a value",
    "src/deepagents_sandbox/backend.py": "one class, whose public methods take most of it",
    "src/deepagents/events.py": "each event of a run, as a value",
    "src/deepagents/_state/runtime.py": "all that stands on LangGraph's internals",
    "src/deepagents/_state/channels.py": "each channel of the state of an agent",
    "src/deepagents_cli/views/conversation/chat.py": "each message of a session, and all that a person does",
    "src/deepagents_cli/views/acp/talk.py": "each message of a session, and all that an editor does",
    "src/deepagents_cli/views/chat/screen/screen.py": "each thing that a key does, and when it is drawn",
    "src/deepagents_cli/protocol.py": "each message between a view and a session, as a value",
}
"""Files between 400 and 700 lines, each with its reason."""

PRIVATE_ADAPTERS = {
    "src/deepagents/_state/runtime.py": "LangGraph has no public way to reach a running graph's channels",
    "src/deepagents_server/auth.py": "the SDK keeps the handlers that people register for servers to read",
    "src/deepagents/backends/sandbox/scripts/common.py": "the module json imports `re`, which is slow",
    "src/deepagents/models/traits.py": "a chat model tells its provider only to LangChain's tracing",
}

# Every operation in a sandbox is a process of its own, which pays for what it imports at its start.
SENT_TO_SANDBOXES = (
    "src/deepagents/backends/sandbox/scripts",
    "src/deepagents/backends/_ripgrep.py",
    "src/deepagents/_text/endings.py",
)

REPLACING = {"tests/compat/test_replaced_names.py": "names that other programs may replace, by promise"}

OPTIONAL_PACKAGES = frozenset(
    {
        "PIL",
        "certifi",
        "html_to_markdown",
        "pypdf",
        "av",
        "av.error",
        "deepagents_local",
        "yaml",
        "langchain_anthropic",
        "genai_prices",
        "langchain_openai",
        "langgraph.checkpoint.sqlite",
        "langgraph_sdk",
        "openai",
        "langgraph_sdk.errors",
        "regex",
        "xllamacpp",
    }
)


def none(found: Iterable[str]) -> bool:
    """Fail with one line for each offence."""
    listed = list(found)
    assert not listed, "\n".join(["", *listed])
    return True


def offences(rule: Callable[[Source], Iterator[str]], files: list[Source], *exempt: str) -> list[str]:
    return [found for source in files if not source.within(*exempt) for found in rule(source)]


def test_a_file_stays_under_400_lines_or_says_why_and_never_passes_700() -> None:
    long = {str(source.path): source.lines for source in SRC if source.lines > 400}

    assert none(path for path in long if path not in LONG_FILES)
    assert none(path for path, lines in long.items() if lines > 700)


def test_a_function_stays_under_80_lines_and_most_are_short() -> None:
    sizes = {source.at(function): function_lines(function) for source in SRC for function in source.functions}

    assert none(f"{at}: {lines} lines" for at, lines in sizes.items() if lines > 80)
    assert median(sizes.values()) <= 9


def test_blocks_nest_at_most_three_deep() -> None:
    assert none(
        source.at(function) for source in SRC for function in source.functions if nesting(function) > 3
    )


def test_docstrings_and_comments_keep_their_share() -> None:
    lines = sum(source.lines for source in SRC)

    assert sum(map(rules.all_docstring_lines, SRC)) / lines <= 0.18
    assert sum(map(rules.comment_lines, SRC)) / lines <= 0.04


@pytest.mark.parametrize("files", [SRC, TESTS], ids=["src", "tests"])
def test_fewer_than_one_suppression_in_a_thousand_lines(files: list[Source]) -> None:
    found = offences(rules.suppressions, files)

    assert len(found) <= sum(source.lines for source in files) / 1000, "\n".join(["", *found])


def test_nobody_touches_a_foreign_underscore() -> None:
    assert none(offences(rules.foreign_privates, SRC, *PRIVATE_ADAPTERS))


def test_backends_and_models_are_asked_what_they_can_do_never_what_they_are() -> None:
    assert none(offences(rules.sniffing, LIBRARY, "src/deepagents/backends", "src/deepagents/models"))


def test_only_optional_packages_are_imported_late() -> None:
    def late(source: Source) -> Iterator[str]:
        return rules.late_imports(source, OPTIONAL_PACKAGES)

    assert none(offences(late, LIBRARY, *SENT_TO_SANDBOXES))


def test_no_function_rebinds_a_global() -> None:
    assert none(offences(rules.globals_written, SRC))


def test_tests_replace_none_of_our_names() -> None:
    assert none(offences(rules.patches, TESTS, *REPLACING))
