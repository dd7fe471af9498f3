"""glob: paths by pattern, one a line."""

from __future__ import annotations

from tests.tools.bench import Bench, code_of


def test_a_bare_name_is_found_at_any_depth(bench: Bench) -> None:
    for path in ("/a.py", "/deep/down/b.py", "/c.txt"):
        bench.place(path, "x")

    assert sorted(bench.use("glob", pattern="*.py").text.split("\n")) == ["/a.py", "/deep/down/b.py"]


def test_a_path_narrows_it(bench: Bench) -> None:
    bench.place("/a.py", "x")
    bench.place("/deep/b.py", "x")

    assert bench.use("glob", pattern="*.py", path="/deep").text == "/deep/b.py"


def test_nothing_found_says_so(bench: Bench) -> None:
    assert bench.use("glob", pattern="*.rs").text == "No files found"


def test_a_pattern_that_leads_out_is_refused(bench: Bench) -> None:
    assert code_of(bench.use("glob", pattern="../*")) == "invalid_pattern"
