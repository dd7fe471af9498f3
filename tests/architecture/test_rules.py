"""Each rule of shape, shown to see a bad sample and to let a good one pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from textwrap import dedent

import pytest

from tests.architecture import rules
from tests.architecture.source import Source, function_lines, nesting, sources


def sample(text: str) -> Source:
    return Source(PurePosixPath("src/deepagents/sample.py"), dedent(text))


def late_imports(source: Source) -> Iterator[str]:
    return rules.late_imports(source, frozenset({"optional"}))


CASES: list[tuple[Callable[[Source], Iterator[str]], str, str]] = [
    (rules.suppressions, "x = 1  # noqa: E501", "x = 1  # because the sea is wide"),
    (rules.suppressions, "# pyright: basic", "y = '# noqa'"),
    (rules.suppressions, "x = f()  # type: ignore[misc]", "x = f()"),
    (rules.foreign_privates, "graph._nodes", "self._nodes"),
    (rules.foreign_privates, "from langgraph._internal import thing", "from deepagents._async import run"),
    (rules.foreign_privates, "from langchain.tools import _hidden", "from langchain.tools import shown"),
    (
        rules.foreign_privates,
        "other._text",
        "class A:\n    _text: str\n    def same(self, other): return other._text",
    ),
    (rules.sniffing, "isinstance(x, StateBackend)", "isinstance(x, str)"),
    (rules.sniffing, "isinstance(x, (str, protocol.BackendProtocol))", "capabilities(x).execute"),
    (rules.sniffing, "isinstance(m, ChatOpenAI)", "isinstance(m, Reply | None)"),
    (late_imports, "def f():\n    import json", "import json\ndef f(): return json"),
    (
        late_imports,
        "def f():\n    from deepagents import graph",
        "def f():\n    from optional.part import it",
    ),
    (late_imports, "def f():\n    import json", "def __getattr__(name):\n    import json"),
    (
        rules.patches,
        "from unittest.mock import patch\nwith patch('deepagents.graph.create_agent'): pass",
        "with patch('time.monotonic'): pass",
    ),
    (
        rules.patches,
        "from deepagents import graph\nmonkeypatch.setattr(graph, 'x', 1)",
        "import shutil\nmonkeypatch.setattr(shutil, 'which', None)",
    ),
    (
        rules.patches,
        "import deepagents.graph as g\nmock.patch.object(g.create, 'x')",
        "import deepagents\nmonkeypatch.setenv('X', 'deepagents')",
    ),
    (rules.globals_written, "def f():\n    global x\n    x = 1", "x = 1"),
]


@pytest.mark.parametrize(("rule", "bad", "good"), CASES)
def test_a_rule_sees_the_bad_sample_only(
    rule: Callable[[Source], Iterator[str]], bad: str, good: str
) -> None:
    assert len(list(rule(sample(bad)))) == 1
    assert list(rule(sample(good))) == []


def test_a_function_is_measured_without_its_docstring_and_signature() -> None:
    source = sample(
        '''
        def f(
            a,
        ):
            """Do.

            Long.
            """
            x = a

            return x
        '''
    )

    assert [function_lines(function) for function in source.functions] == [3]


def test_nesting_counts_blocks_inside_blocks() -> None:
    source = sample(
        """
        def deep():
            for a in b:
                if a:
                    with a:
                        try:
                            pass
                        finally:
                            pass

        def flat():
            if a:
                pass
            elif b:
                pass
            elif c:
                for d in e:
                    pass
        """
    )

    assert [nesting(function) for function in source.functions] == [4, 2]


def test_shares_of_words_are_counted_by_line() -> None:
    source = sample('"""Header."""\n# why\nx = 1  # beside code\n\ndef f():\n    """One\n    two.\n    """\n')

    assert rules.all_docstring_lines(source) == 4
    assert rules.comment_lines(source) == 1


def test_the_measured_folders_are_not_empty() -> None:
    assert sources("src")
    assert sources("tests")
