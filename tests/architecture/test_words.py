"""The project speaks of itself alone, in the words of its field."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import PurePosixPath

import pytest

from tests.architecture.source import ROOT, Source, sources

HOSTS = (
    "pypi" + r"\.org",
    "python" + "hosted",
    "npmjs" + r"\.(com|org)",
    r"deb\.debian" + r"\.org",
    "crates" + r"\.io",
)
PLACES = (
    "/" + "work/",
    # The home of root, but neither `/proc/PID/root` nor a line of a passwd file, which name no machine.
    r"(?<![\w}])/" + r"root\b(?!:)",
    r"\.\./shared",
    "shared/" + "(design|spec|seeds)",
    "/" + r"tmp/brief",
)
TALK = (
    r"\bissue #?\d",
    r"\b(this|later|next|earlier|previous) issue\b",
    r"\bpeer('s)?\b",
    r"\bhelper session",
)
FORBIDDEN = re.compile("|".join(HOSTS + PLACES + TALK), re.IGNORECASE)

BINARY = (".png", ".jpg", ".gif", ".pdf", ".mp4", ".gguf", ".ico", ".webp")
THIS_FILE = "tests/architecture/test_words.py"


def offences(name: str, text: str) -> Iterator[str]:
    if not FORBIDDEN.search(text):
        return
    for number, line in enumerate(text.splitlines(), 1):
        if found := FORBIDDEN.search(line):
            yield f"{name}:{number}: {found[0]}"


def tracked() -> list[str]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    return [name for name in listed.stdout.split("\0") if name and not name.endswith(BINARY)]


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a git checkout")
def test_no_tracked_file_names_what_is_not_the_project() -> None:
    files = [name for name in tracked() if (ROOT / name).is_file() and name != THIS_FILE]

    assert files
    assert [
        found for name in files for found in offences(name, (ROOT / name).read_text("utf-8", "replace"))
    ] == []


@pytest.mark.parametrize(
    "line",
    ["see https://pypi" + ".org/simple", "/" + "work/main/x.py", "as issue #12 asks", "the peer does this"],
)
def test_a_forbidden_word_is_found(line: str) -> None:
    assert list(offences("x.md", f"fine\n{line}\nfine")) != []


@pytest.mark.parametrize("line", ["the session ends", "open an issue first", "it works/well", "compeer"])
def test_an_innocent_word_passes(line: str) -> None:
    assert list(offences("x.md", line)) == []


DIALECT = frozenset(
    {
        "door", "desk", "shelf", "rim", "office", "colour", "honoured", "handed", "fates", "told", "said",
        "beside", "ledger", "wishes", "acquainted", "newcomer", "whoever", "nobody",
    }
)  # fmt: skip
"""Words that once stood here where the field has its own, and that a reader had to decode."""


def test_names_and_docstrings_use_the_words_of_the_field() -> None:
    assert [found for source in sources("src") for found in dialect_in(source)] == []


def test_a_word_of_the_dialect_is_found() -> None:
    source = Source(PurePosixPath("x.py"), 'def told(desk):\n    """Say what stands beside it."""\n')

    assert [*dialect_in(source)] == ["x.py:1: told", "x.py:1: beside", "x.py:1: desk"]


def dialect_in(source: Source) -> Iterator[str]:
    """Find such words in the names that a file defines, and in its docstrings."""
    for node in source.nodes:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                words = [*_parts(node.name), *re.findall(r"[a-z]+", (ast.get_docstring(node) or "").lower())]
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                words = _parts(name)
            case _:
                continue
        yield from (f"{source.at(node)}: {word}" for word in words if word in DIALECT)


def _parts(name: str) -> list[str]:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower().split("_")


TRANSLATED = re.compile(
    r"\b(of yours|whoever|go(es)? round|summed up|without further words|is found by trying)\b"
)
"""What the documents once said in the manner of another language."""


PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


def translated_in(name: str, text: str) -> list[str]:
    return [f"{name}: {found[0]}" for found in TRANSLATED.finditer(text)]


def test_documents_do_not_sound_translated() -> None:
    assert len(PAGES) > 10
    assert [found for page in PAGES for found in translated_in(page.name, page.read_text("utf-8"))] == []


def test_a_translated_phrase_is_found() -> None:
    assert translated_in("x.md", "a tool of yours could go round a rule") == [
        "x.md: of yours",
        "x.md: go round",
    ]


PACKAGES = sorted(path.name for path in (ROOT / "src").iterdir() if path.name.startswith("deepagents"))


NOT_A = re.compile(r"(?<!there )(?<!There )(?<!here )\b(is|was) no (?!(longer|more|such|one|need|way)\b)")
"""English says of a file that it is not a directory."""


def lines_with_is_no(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if NOT_A.search(line)]


def test_a_file_is_not_a_directory() -> None:
    pages = [Source(PurePosixPath(page.name), page.read_text("utf-8")) for page in PAGES]
    files = [*sources("src"), *pages]

    assert [f"{source.path}: {line}" for source in files for line in lines_with_is_no(source.text)] == []


def test_a_file_that_is_no_directory_is_found() -> None:
    text = "'x' is no directory\nthere is no file\nit is no longer one"

    assert lines_with_is_no(text) == ["'x' is no directory"]


@pytest.mark.parametrize("package", PACKAGES)
def test_a_class_name_has_one_meaning_in_a_package(package: str) -> None:
    assert names_with_two_meanings(sources(f"src/{package}")) == {}


def test_a_second_meaning_is_found() -> None:
    files = [Source(PurePosixPath(f"{name}.py"), "class Rules: ...\n") for name in ("a", "b")]

    assert names_with_two_meanings(files) == {"Rules": ["a.py:1", "b.py:1"]}


def test_no_two_of_our_classes_meet_under_one_name() -> None:
    defined = {node.name for source in sources("src") for node in classes_of(source)}
    met = {str(source.path): names_that_meet(source) & defined for source in sources("src")}

    assert {path: names for path, names in met.items() if names} == {}


@pytest.mark.parametrize(
    "text",
    [
        "from deepagents import a\nfrom deepagents.b import Rules\na.Rules()\n",
        "from deepagents.b import Rules\nclass Rules: ...\n",
        "from deepagents.a import Rules as Others\nfrom deepagents.b import Rules\n",
    ],
)
def test_two_names_that_meet_are_found(text: str) -> None:
    assert names_that_meet(Source(PurePosixPath("x.py"), text)) == {"Rules"}


def names_that_meet(source: Source) -> set[str]:
    """Find the names by which a file means two things of our packages, however it imports them."""
    homes: dict[str, set[str]] = {node.name: {str(source.path)} for node in classes_of(source)}
    modules: dict[str, str] = {}
    for node in source.nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("deepagents"):
            for name in node.names:
                homes.setdefault(name.name, set()).add(str(node.module))
                modules[name.asname or name.name] = f"{node.module}.{name.name}"
    for node in source.nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
            homes.setdefault(node.attr, set()).add(modules[node.value.id])
    return {name for name, places in homes.items() if len(places) > 1}


def classes_of(source: Source) -> list[ast.ClassDef]:
    return [node for node in source.nodes if isinstance(node, ast.ClassDef)]


def names_with_two_meanings(files: list[Source]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for source in files:
        for node in classes_of(source):
            found.setdefault(node.name, []).append(source.at(node))
    return {name: places for name, places in found.items() if len(places) > 1}


VERBS = frozenset(
    re.findall(
        r"\w+",
        """
    Adapt Add Answer Apply Arrange Ask Assemble Bound Bring Build Call Carry Change Check Choose Close
    Compact Compare Compile Complete Compute Confine Convert Copy Count Create Cut Decide Define Delegate
    Delete Describe Do Draw Drive Edit End Escape Expand Explain Fetch Fill Find Fit Follow Format Gather
    Give Group Guide Handle Hide Hold Import Join Keep Know Let Limit List Listen Load Lock Look Make Map Mark
    Match Measure Merge Move Note Notice Offer Open Parse Perform Post Prepare Print Put Queue Reach Read
    Receive Recognize Record Recover Refuse Register Remember Remove Render Repair Replace Report Resolve
    Return Review Run Save Say Search See Send Serve Set Shape Share Show Speak Split Stand Start Stop Stream
    Summarize Take Tell Test Track Translate Turn Understand Undo Use Validate Visit Wait Walk Warn Watch
    Work Wrap Write
    """,
    )
)
"""What a module may begin to say of itself with. Add a verb here, but no noun."""


def modules_without_a_verb(files: list[Source]) -> list[str]:
    texts = ((source.path, ast.get_docstring(source.tree) or "") for source in files if source.lines)
    firsts = ((path, re.split(r"[ ,:.]", text)[0]) for path, text in texts)
    return [f"{path}: {first}" for path, first in firsts if first not in VERBS]


def test_a_module_says_first_what_it_does() -> None:
    assert modules_without_a_verb(sources("src")) == []


def test_a_module_that_begins_with_a_riddle_is_found() -> None:
    texts = {"a.py": '"""What is known of it."""\n', "b.py": '"""Make it known."""\n', "c.py": "x = 1\n"}

    files = [Source(PurePosixPath(name), text) for name, text in texts.items()]

    assert modules_without_a_verb(files) == ["a.py: What", "c.py: "]
