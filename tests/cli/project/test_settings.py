"""What a person and a project set counts as far as each may set it; what is wrong is named."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from deepagents.middleware import EditCheck
from deepagents_cli.approval.rules import Permission
from deepagents_cli.project.project import Project
from deepagents_cli.project.settings import Hook, Settings, TrustedDirectory, merge, read_project, read_user


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "home"
    place.mkdir()
    monkeypatch.setenv("HOME", str(place))
    return place


def write(place: Path, text: str) -> Path:
    path = place / ".deepagents/settings.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def read(home: Path, directory: Path, *, trusted: bool = False) -> Settings:
    return merge(read_user(home, {}), read_project(Project(directory, home)), trusted=trusted)


def test_a_person_sets_everything(home: Path, directory: Path) -> None:
    (home / "library").mkdir()
    (home / "notes").mkdir()
    write(
        home,
        """
        model = "anthropic:claude-sonnet-4-6"
        mode = "full"
        theme = "dark"
        plain = true
        editor = "vi"
        network = ["example.org"]
        read = ["~/library", "/usr"]
        write = ["notes"]
        [limits]
        tokens = 1000
        money = 2.5
        seconds = "1h30m"
        [hooks]
        before_tool = ["./check", {command = "./look", tools = ["execute"]}]
        [checks]
        pyright = "pyright"
        "ruff format" = {command = "ruff format {files}", files = ["*.py"], formats = true, seconds = "5s"}
        [[permissions]]
        rule = "execute(git status)"
        [[permissions]]
        rule = "edit_file"
        directory = "~/project"
        [[trusted]]
        directory = "/srv/project"
        digest = "0123"
        """,
    )

    assert read(home, directory) == Settings(
        model="anthropic:claude-sonnet-4-6",
        mode="full",
        theme="dark",
        plain=True,
        editor="vi",
        network=("example.org",),
        read=(home / "library", Path("/usr")),
        write=(home / "notes",),
        limits={"tokens": 1000, "money": 2.5, "seconds": 5400},
        permissions=(Permission("execute(git status)"), Permission("edit_file", home / "project")),
        trusted=(TrustedDirectory(Path("/srv/project"), "0123"),),
        hooks=(Hook("before_tool", "./check"), Hook("before_tool", "./look", ("execute",))),
        checks={
            "pyright": EditCheck("pyright"),
            "ruff format": EditCheck("ruff format {files}", ("*.py",), formats=True, seconds=5),
        },
    )


def test_nothing_is_set_where_there_is_no_file(home: Path, directory: Path) -> None:
    assert read(home, directory) == Settings()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('moddel = "x:y"', "'moddel' is not a setting; is it 'model'?"),
        ('mode = "atuo"', "mode = 'atuo': write one of 'ask', 'auto', 'plan', 'full'; is it 'auto'?"),
        ("model = 3", "model = 3: write a text in quotes"),
        ('plain = "yes"', "plain = 'yes': write true or false"),
        ('network = "example.org"', "network = 'example.org': write a list of texts"),
        ('network = ["http://x"]', "write hosts, such as example.org"),
        ('read = ["/nowhere"]', "there is no directory '/nowhere'"),
        ("network = [1]", "network = [1]: write a text in quotes"),
        ("limits = 3", "limits = 3: write a table, [limits]"),
        ('limits.seconds = "soon"', "limits.seconds = 'soon': 'soon' is not a time; write 90s, 10m or 1h30m"),
        ("limits.tokens = true", "limits.tokens = True: write a number"),
        ("limits.tokns = 1", "'limits.tokns' is not a setting; is it 'limits.tokens'?"),
        ('permissions = "all"', "permissions = 'all': write a list of tables"),
        ('permissions = [{rules = "x"}]', "'rules' is not known here; known are rule, directory"),
        ('permissions = [{rule = "x", directory = "sub"}]', "'sub' must begin with / or ~"),
        ("hooks.before_tool = [{tools = []}]", "write a text in quotes"),
        ('checks = "ruff"', "checks = 'ruff': write a table, [checks]"),
        ("checks.ruff = 3", "checks.ruff = 3: write a text in quotes"),
        ('checks.ruff = {comand = "ruff"}', "'comand' is not known here; known are command, files, formats"),
        ('checks.ruff = "ruff check {files}"', "leave it out, or add formats=True"),
        ('checks.ruff = {command = "ruff", seconds = "soon"}', "'soon' is not a time"),
        (r'"\u001b\u202e" = 1', r"'\x1b\u202e' is not a setting"),
        ("model = ", "is not used: Invalid value (at end of document)"),
        ("model = " + "[" * 100_000, "is not used: maximum recursion depth exceeded"),
    ],
)
def test_whatever_is_wrong_is_named_with_the_way_out(
    home: Path, directory: Path, text: str, said: str
) -> None:
    path = write(home, f'theme = "dark"\n{text}')

    settings = read(home, directory)

    (notice,) = settings.notices
    assert notice.startswith(str(path))
    assert said in notice
    assert settings.theme == ("auto" if "is not used" in said else "dark")


def test_a_wrong_rule_takes_no_other_with_it(home: Path, directory: Path) -> None:
    write(home, 'permissions = [{rule = "a"}, {rule = 3}, {rule = "b"}]')

    assert read(home, directory).permissions == (Permission("a"), Permission("b"))


def test_a_project_sets_what_lets_no_more_happen(home: Path, directory: Path) -> None:
    write(home, 'model = "mine:x"\nmode = "auto"\nlimits.tokens = 1000\nlimits.tool_calls = 5')
    write(directory, 'model = "theirs:y"\nmode = "plan"\nlimits.tokens = 2000\nlimits.tool_calls = 2')

    settings = read(home, directory)

    assert (settings.model, settings.mode) == ("mine:x", "plan")
    assert settings.limits == {"tokens": 1000, "tool_calls": 2}
    assert settings.notices == ()


def test_a_trusted_project_sets_more_and_never_what_is_the_persons(home: Path, directory: Path) -> None:
    (directory.parent / "build").mkdir()
    write(home, 'network = ["mine"]\nhooks.end_of_turn = ["mine"]')
    path = write(
        directory,
        """
        model = "theirs:y"
        mode = "auto"
        network = ["example.org"]
        write = ["../build"]
        editor = "./evil"
        trusted = [{directory = "/", digest = "x"}]
        permissions = [{rule = "execute"}]
        hooks.end_of_turn = ["theirs"]
        """,
    )

    before, after = read(home, directory), read(home, directory, trusted=True)

    assert (before.model, before.mode, before.network, before.write) == (None, None, ("mine",), ())
    assert (after.model, after.mode, after.network) == ("theirs:y", "auto", ("example.org",))
    assert after.write == (directory / "../build",)
    assert [hook.command for hook in after.hooks] == ["mine", "theirs"]
    assert (after.editor, after.permissions, after.trusted) == (None, (), ())
    only = "is ignored: only your own settings may say this"
    assert [only in notice and str(path) in notice for notice in after.notices] == [True] * 3


def test_no_project_leads_out_of_plan_mode(home: Path, directory: Path) -> None:
    write(home, 'mode = "plan"')
    write(directory, 'mode = "ask"')

    assert read(home, directory).mode == "plan"
    assert read(home, directory, trusted=True).mode == "ask"


def test_mode_full_is_the_persons_alone(home: Path, directory: Path) -> None:
    write(directory, 'mode = "full"')

    assert read(home, directory, trusted=True).mode is None


def test_the_directory_wins_over_the_repository(home: Path, directory: Path) -> None:
    (directory / ".git").mkdir()
    below = directory / "below"
    below.mkdir()
    write(directory, 'mode = "ask"\nlimits.tokens = 5')
    write(below, 'mode = "plan"')

    settings = read(home, below)

    assert (settings.mode, settings.limits) == ("plan", {"tokens": 5})


def test_the_home_is_no_project(home: Path) -> None:
    write(home, 'mode = "full"')

    assert read_project(Project(home, home)) == []
    assert read(home, home).mode == "full"


def test_a_project_file_that_is_no_small_file_of_its_own_is_not_read(
    home: Path, directory: Path, tmp_path: Path
) -> None:
    path = write(directory, "x = 1" * 100_000)
    assert "is longer than 262,144 bytes" in read(home, directory).notices[0]
    path.unlink()

    os.mkfifo(path)
    assert "is not a file" in read(home, directory).notices[0]
    path.unlink()

    (tmp_path / "elsewhere").write_text('mode = "plan"')
    path.symlink_to(tmp_path / "elsewhere")
    assert "is a link that leads elsewhere" in read(home, directory).notices[0]


def test_another_file_can_be_named(home: Path, tmp_path: Path) -> None:
    (tmp_path / "other.toml").write_text('theme = "light"')

    assert merge(read_user(home, {"DEEPAGENTS_SETTINGS": str(tmp_path / "other.toml")})).theme == "light"
