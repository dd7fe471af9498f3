"""No spelling of a path leads out of the root."""

from __future__ import annotations

import pytest

from tests.attacks.harness import Ground, at_once, every_other, on_path
from tests.conftest import CallMode

pytestmark = pytest.mark.slow

REFUSED = {
    "dot-dot": "../outside/secret.txt",
    "dot-dot after the root": "/../outside/secret.txt",
    "dot-dot after a directory": "/d/../../outside/secret.txt",
    "dot-dot at the end": "/d/../..",
    "more dot-dots than directories": "/" + "../" * 40 + "etc/passwd",
    "dot-dot behind single dots": "/./d/./.././../outside/secret.txt",
    "dot-dot behind doubled slashes": "//d//..//..//outside//secret.txt",
    "dot-dot under a name that is not a directory": "/in.txt/../../outside/secret.txt",
    "backslashes": "..\\outside\\secret.txt",
    "mixed separators": "/d/..\\..\\outside/secret.txt",
    "doubled backslashes": "\\\\..\\\\outside\\\\secret.txt",
    "right-to-left override": "/\u202e/../../outside/secret.txt",
    "byte order mark": "\ufeff/../outside/secret.txt",
    "a home directory": "~/secret.txt",
    "another home directory": "~root/secret.txt",
    "a drive": "C:/secret.txt",
    "a drive with backslashes": "C:\\secret.txt",
    "a drive without a slash": "c:secret.txt",
    "a stream of a file": "/in.txt::$DATA/../../secret.txt",
    "a URL with dot-dot": "file:///../outside/secret.txt",
    "NUL": "/in.txt\x00../outside/secret.txt",
    "NUL before the suffix": "/../outside/secret.txt\x00.md",
    "a line break": "/in.txt\n../outside/secret.txt",
    "a carriage return": "/in.txt\r",
    "an escape": "/\x1b[2J",
    "a delete character": "/\x7f",
    "a control character of Latin-1": "/\x85secret.txt",
    "a very deep climb": "/" + "a/../" * 3000 + "../outside/secret.txt",
    "half a character": "/\ud800",
    "an over-long path": "/" + "a" * 5000,
    "a path of too many directories": "/a" * 300,
    "the descriptors of the process": "/dev/fd/../../etc/passwd",
}
ONLY_NAMES = {
    "percent-encoded": "/%2e%2e/outside/secret.txt",
    "percent-encoded slash": "/..%2foutside%2fsecret.txt",
    "percent-encoded twice": "/%252e%252e%252foutside%252fsecret.txt",
    "over-long UTF-8 of a slash": "/..%c0%afoutside/secret.txt",
    "an HTML entity": "/&#46;&#46;/outside/secret.txt",
    "full-width dots": "/\uff0e\uff0e/outside/secret.txt",
    "full-width slash": "/..\uff0foutside\uff0fsecret.txt",
    "division slash": "/..\u2215outside\u2215secret.txt",
    "fraction slash": "/..\u2044outside\u2044secret.txt",
    "one dot leaders": "/\u2024\u2024/outside/secret.txt",
    "two dot leader": "/\u2025/outside/secret.txt",
    "soft hyphen between dots": "/.\u00ad./outside/secret.txt",
    "zero width space between dots": "/.\u200b./outside/secret.txt",
    "dot-dot with a trailing space": "/.. /outside/secret.txt",
    "three dots": "/.../outside/secret.txt",
    "dot-dot with a leading space": "/ ../outside/secret.txt",
    "a home directory after the root": "/~/secret.txt",
    "a variable": "/$HOME/secret.txt",
    "a command": "/$(cat ..)/`id`",
    "an option": "/-rf",
    "wildcards": "/*/[a-z]?",
    "a network share": "\\\\host\\share\\secret.txt",
    "a URL": "file:///etc/passwd",
    "the process": "/proc/self/environ",
    "the password file": "/etc/passwd",
    "doubled slashes": "//outside//secret.txt",
}


def own_names(ground: Ground) -> set[str]:
    """What stands in the root that was not there at first."""
    return {path.name for path in ground.root.rglob("*") if path.is_file()} - {"in.txt"}


def test_no_spelling_leads_out(disk: Ground, call_mode: CallMode) -> None:
    run = disk.run(call_mode, *at_once(*every_other(call_mode, REFUSED)))

    assert run.problems() == []
    assert set(run.codes) == {"invalid_path"}
    assert own_names(disk) == set()


def test_a_name_too_long_for_the_disk_is_refused(disk: Ground, call_mode: CallMode) -> None:
    assert disk.run(call_mode, *on_path("/" + "a" * 300)).problems() == []


def test_what_looks_like_a_way_out_is_a_name_inside(disk: Ground, call_mode: CallMode) -> None:
    disk.harmless |= {"write_file", "delete"}
    run = disk.run(call_mode, *on_path(*every_other(call_mode, ONLY_NAMES)))
    changes = [answer for answer in run.answers if answer.name in ("write_file", "delete")]

    assert run.problems() == []
    assert [answer.text for answer in changes if answer.status != "success"] == []


def test_a_guessed_path_of_this_machine_is_a_name_inside(disk: Ground, call_mode: CallMode) -> None:
    disk.harmless |= {"write_file", "delete"}
    guessed = disk.top.parent / "known" / "outside" / "secret.txt"

    assert disk.run(call_mode, *on_path(str(guessed))).problems() == []
