"""Every example in the documents runs as it stands on its page; a broken one is noticed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage

from deepagents.testing import call
from tests.agent_protocol import agent_server
from tests.architecture.source import ROOT
from tests.docs.answers import ANSWERS
from tests.docs.pages import find_pages, run_page
from tests.docs.provider import Script

PAGES = find_pages()
WITH_SERVER = "docs/concepts/async-subagents.md"
WITH_DATABASE = "docs/concepts/persistence.md"
BARE_INSTALL = re.compile(r"pip install (?:-\S+ )*[\"']?deepagents(?![\w-])(?!\S* @ )")


@pytest.mark.parametrize("page", [page for page in PAGES if page not in (WITH_SERVER, WITH_DATABASE)])
def test_the_examples_of_a_page_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_page(PAGES[page], Script(ANSWERS.get(page, {})), tmp_path, monkeypatch)


def test_the_page_about_tasks_in_the_background_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with agent_server() as server:

        def finish_task(request: object) -> str:
            server.finishes(server.only_task(), "Thirteen metres.")
            return "I have asked."

        def wait_for_task(request: object) -> AIMessage:
            (task_id,) = re.findall(r"task_id: ([\w-]+)", str(request))
            return call("wait_async_task", task_id=task_id)

        start = call("start_async_task", subagent_type="researcher", description="How high do tides get?")
        monkeypatch.setenv("RESEARCHER_URL", server.url)
        here = [start, wait_for_task, "Thirteen metres."]
        script = Script(
            {
                "claude-sonnet-4-6": [*here, start, finish_task, "Thirteen metres."],
                "claude-haiku-4-5": ["Up to 13 m."],
            }
        )
        run_page(PAGES[WITH_SERVER], script, tmp_path, monkeypatch)


def test_the_page_about_databases_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, postgres: str
) -> None:
    monkeypatch.setenv("DATABASE_URL", postgres)
    run_page(PAGES[WITH_DATABASE], Script(ANSWERS[WITH_DATABASE]), tmp_path, monkeypatch)


def test_answers_belong_to_pages() -> None:
    assert sorted(ANSWERS.keys() - PAGES.keys()) == []


GREETING = """
```python
from deepagents import create_deep_agent

agent = create_deep_agent("anthropic:claude-sonnet-4-6")
```

The same agent answers:

```python
{first}
result = agent.invoke({{"messages": "Hello"}})
print(result["messages"][-1].text)  # {shown}
```
"""


def run_greeting(first: str, shown: str, folder: Path, environment: pytest.MonkeyPatch) -> None:
    page = folder / "page.md"
    page.write_text(GREETING.format(first=first, shown=shown))
    run_page(page, Script({"*": ["Good morning."]}), folder, environment)


def test_a_page_is_run_as_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_greeting("# continued", "Good morning.", tmp_path, monkeypatch)


def test_another_output_than_the_page_shows_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(AssertionError, match="Good evening"):
        run_greeting("# continued", "Good evening.", tmp_path, monkeypatch)


def test_a_block_that_needs_another_one_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NameError, match="agent"):
        run_greeting("# a block of its own", "Good morning.", tmp_path, monkeypatch)


def test_an_answer_that_no_block_asks_for_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(1)  # 1\n```\n")

    with pytest.raises(AssertionError, match="Hello"):
        run_page(page, Script({"*": ["Hello"]}), tmp_path, monkeypatch)


def test_no_page_hides_code_from_its_reader() -> None:
    hidden = re.compile(r"<!--[^>]*(invisible-code|skip:)|^ *```python \S", re.MULTILINE)

    assert [name for name, page in PAGES.items() if hidden.search(page.read_text())] == []
    assert hidden.search("<!-- invisible-code: python\nx = 1\n-->")


def test_no_page_and_no_message_installs_another_package_of_this_name() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
    pages += (ROOT / "src").rglob("*.py")
    bare = [str(page.relative_to(ROOT)) for page in pages if BARE_INSTALL.search(page.read_text())]

    assert len(pages) > 30
    assert bare == []


@pytest.mark.parametrize(
    ("line", "is_bare"),
    [
        ("pip install deepagents", True),
        ('python -m pip install -U "deepagents[cli]"', True),
        ("pip install deepagents==0.7.100", True),
        ("pip install '.[cli]'", False),
        ('pip install "deepagents @ file:///src/deepagents"', False),
        ("pip install deepagents-acp", False),
    ],
)
def test_a_bare_install_line_is_noticed(line: str, is_bare: bool) -> None:
    assert bool(BARE_INSTALL.search(line)) is is_bare


def test_a_reader_learns_why_deepagents_code_cannot_be_installed_here() -> None:
    page = (ROOT / "docs/third-party.md").read_text("utf-8")

    assert re.search(r"^- \*\*deepagents-code\*\* needs exactly one version of .*`==`", page, re.MULTILINE)
