"""With a session go the files that it alone refers to, and no file of anybody else."""

from __future__ import annotations

from pathlib import Path

import pytest

from deepagents.testing import ScriptedModel, call
from tests.cli.conftest import Command

pytestmark = pytest.mark.slow

PLACE = ".deepagents/artifacts"
RESULTS = f"{PLACE}/large_tool_results"
HISTORY = f"{PLACE}/conversation_history"
LONG = "canary " * 12_000


def read_long(thread: str, cli: Command, *texts: str) -> None:
    """Work in a session that reads what is too long for a result, and is told something."""
    reads = call("execute", command=f"cat long.md # {thread}")
    said = " ".join(texts) or "Read it."
    cli.run(said, "--thread", thread, "--shell", "--yes", model=ScriptedModel(reads, "Done."))


def files(directory: Path, below: str = PLACE) -> set[str]:
    """The files that lie there, without the one for git."""
    found = (each for each in (directory / below).rglob("*") if each.is_file())
    return {str(each.relative_to(directory)) for each in found if each.name != ".gitignore"}


@pytest.fixture
def long(directory: Path) -> Path:
    """The directory, with a long file."""
    (directory / "long.md").write_text(f"{LONG}\nthe end\n")
    return directory


def test_results_and_long_messages_go_with_their_session(cli: Command, long: Path) -> None:
    read_long("first", cli, LONG * 3)
    of_first = files(long)
    read_long("second", cli)
    of_second = files(long) - of_first

    ended = cli("sessions", "delete", "first")

    assert (len(of_first), len(of_second)) == (2, 1)
    assert files(long) == of_second
    assert f"removed 2 of their files (0.3 MB) from {long}/{PLACE}\n" in ended.out


def test_a_session_that_is_too_large_to_be_kept_takes_its_files_with_it(cli: Command, long: Path) -> None:
    read_long("large", cli, LONG * 13)
    of_large = files(long)
    read_long("small", cli)

    ended = cli("sessions", "prune", "--dir", str(long), "--keep", "1")

    assert f"removed 2 of their files (1.2 MB) from {long}/{PLACE}\n" in ended.out
    assert not files(long) & of_large
    assert len(files(long)) == 1


def test_what_a_subagent_moved_to_files_goes_too(cli: Command, long: Path) -> None:
    model = ScriptedModel(
        call("task", description="read", subagent_type="general-purpose"),
        call("execute", command="cat long.md"),
        "Read.",
        "Done.",
    )
    cli.run("go", "--thread", "first", "--shell", "--yes", model=model)
    assert len(files(long)) == 1

    cli("sessions", "delete", "first")

    assert files(long) == set()


def test_a_fork_keeps_the_files_of_its_source(cli: Command, long: Path) -> None:
    read_long("first", cli)
    fork = cli("sessions", "fork", "first").out.strip()
    shared = files(long)

    cli("sessions", "delete", "first")
    assert files(long) == shared != set()

    cli("sessions", "delete", fork)
    assert files(long) == set()


def test_an_archive_goes_with_all_its_parts_and_what_it_names(cli: Command, long: Path) -> None:
    compacts("first", cli)
    fork = cli("sessions", "fork", "first").out.strip()
    shared = files(long, HISTORY)
    (archive,) = shared
    part = long / archive.replace(".md", ".2.md")
    medium = long / HISTORY / "media" / f"{'0' * 32}.png"
    medium.parent.mkdir()
    medium.write_bytes(b"a picture")
    part.write_text(f'\n## Summarized at noon\n\n{{"$media":"/{medium.relative_to(long)}"}}\n')

    cli("sessions", "delete", "first")
    assert len(files(long)) == len(shared) + 2

    cli("sessions", "delete", fork)
    assert files(long) == set()


def compacts(thread: str, cli: Command) -> None:
    """Work in a session whose first messages are summed up."""
    words = "word " * 1_500
    for text in ("one", "two", "three", "four", "five"):
        model = ScriptedModel(*["A summary."] * 3, profile={"max_input_tokens": 8_000})
        cli.run(f"{text} {words}", "--thread", thread, model=model)


def test_a_session_that_lists_the_files_of_others_takes_none_with_it(cli: Command, long: Path) -> None:
    compacts("first", cli)
    read_long("second", cli)
    others = files(long)
    shows = ScriptedModel(call("glob", pattern=f"{PLACE}/**"), "Listed.")
    cli.run("look", "--thread", "third", model=shows)

    cli("sessions", "delete", "third")

    assert len(others) >= 2
    assert files(long) == others


@pytest.mark.parametrize(
    "name",
    [
        f"{HISTORY}/notes.md",
        f"{HISTORY}/first.md",
        f"{RESULTS}/notes.md",
        f"{RESULTS}/../../../notes-0123456789ab",
        f"{RESULTS}/call-0123456789ab/kept.md",
        "notes-0123456789ab",
    ],
)
def test_a_forged_name_removes_no_file_of_the_project(cli: Command, long: Path, name: str) -> None:
    kept = long / name
    (long / RESULTS).mkdir(parents=True)
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text("of the project")
    read_long("first", cli, f"Look at /{name} and {long}/{kept.parent}")

    assert cli("sessions", "delete", "first").code == 0

    assert kept.read_text() == "of the project"


@pytest.mark.parametrize("link", [".deepagents", PLACE, RESULTS, HISTORY])
@pytest.mark.parametrize("target", ["planted", "../outside"])
def test_no_link_leads_the_removal_elsewhere(cli: Command, long: Path, link: str, target: str) -> None:
    place = long / target
    names = ("first.md", "call-0123456789ab", f"media/{'0' * 32}.png")
    for folder in ("", "artifacts/large_tool_results/", "large_tool_results/", "conversation_history/"):
        for name in names:
            path = place / folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("\n## Summarized at noon\n")
    marks = [f"/{folder}/{name}" for folder in (RESULTS, HISTORY) for name in names]
    read_long("first", cli, *marks)
    if (long / link).exists():
        (long / link).rename(long / "moved")
    (long / link).parent.mkdir(parents=True, exist_ok=True)
    (long / link).symlink_to(place)
    before = files(long, target)

    assert cli("sessions", "delete", "first").code == 0

    assert files(long, target) == before != set()


def test_a_link_in_the_place_of_a_file_goes_and_what_it_leads_to_stays(cli: Command, long: Path) -> None:
    read_long("first", cli)
    (result,) = files(long)
    (long / result).unlink()
    (long / result).symlink_to(long / "long.md")

    cli("sessions", "delete", "first")

    assert not (long / result).is_symlink()
    assert (long / "long.md").is_file()


def test_a_session_whose_directory_is_gone_is_removed(cli: Command, long: Path) -> None:
    read_long("first", cli)
    long.rename(long.with_name("elsewhere"))

    assert cli("sessions", "delete", "first").out == "removed first  Read it.\n"
