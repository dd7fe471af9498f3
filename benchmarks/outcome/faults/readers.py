"""What a reader takes from the result of a call that erred: only what stands there, by these rules.

- It makes a call again that was not JSON, if the result speaks of its arguments.
- It takes the right name of an argument or a tool, if the result has it.
- It takes a path of the file's name, if the result has another than its own.
- It quotes anew from lines that are shown with their numbers: the careful reader the lines that it meant,
  the hasty one all that are shown first. Where several places are named it looks at the file.
- It goes on copying line numbers, escaping line ends or writing fences, until a result speaks of them.
- It reads the file where the result says so, or names lines that it does not show.
- The thorough reader is careful, and looks for itself where a result says nothing.
- It stops repeating itself when the result says that it does.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

from benchmarks.outcome.faults.slips import Slip
from benchmarks.outcome.faults.tasks import Step

Reader = Literal["careful", "hasty", "thorough"]
Advice = Literal["right", "look", "stuck"]

_FAILED: Final = re.compile(r"\W*(error|fail|invalid|cannot|could not|unknown)", re.IGNORECASE)
_NUMBERED: Final = re.compile(r"^ *(\d+)\t(.*)$")
_PATH: Final = re.compile(r"/[\w./-]*\w")
_SEVERAL: Final = re.compile(r"\bmultiple places\b|\b([2-9]|\d\d+) (places|times)\b")
_LINES_NAMED: Final = re.compile(r"\blines? \d+")
_SAYS_READ: Final = re.compile(r"\bread (it|the file)\b|read_file", re.IGNORECASE)
_SAYS_DONE: Final = re.compile(r"\b(already|same call|same result)\b", re.IGNORECASE)
_ABOUT_ARGUMENTS: Final = re.compile(r"json|pars|malformed|argument", re.IGNORECASE)
HABITS: Final = MappingProxyType(
    {
        "line numbers": re.compile(r"(leave|without|drop|remove).{0,30}number|number.{0,40}(leave|left) "),
        "escaped line ends": re.compile(r"escap|backslash", re.IGNORECASE),
        "fenced": re.compile(r"fence", re.IGNORECASE),
    }
)
_NEW_FOLDER: Final = re.compile(
    r"new (folder|director)|(folder|directory) [^.]*(created|made)", re.IGNORECASE
)


@dataclass(frozen=True)
class Quote:
    """Another text to replace: what was shown, whole."""

    text: str


def has_failed(text: str, status: str) -> bool:
    """Return whether a result tells of a failure, to one who reads its beginning."""
    return status == "error" or _FAILED.match(text) is not None


def notices(step: Step, slip: Slip | None, text: str) -> bool:
    """Return whether a result that is no failure shows that the call was not the one that was meant."""
    return (
        slip is not None
        and slip.kind == "root"
        and step.tool == "write_file"
        and bool(_NEW_FOLDER.search(text))
    )


def is_told_to_stop(text: str) -> bool:
    """Return whether the result says that it brings nothing new."""
    return _SAYS_DONE.search(text) is not None


def advise(step: Step, slip: Slip | None, text: str, reader: Reader) -> Advice | Quote:
    """Return what the reader of a failure does next."""
    looks: Advice = "look" if reader == "thorough" or _SAYS_READ.search(text) else "stuck"
    match slip:
        case Slip("no JSON"):
            return _right_if(_ABOUT_ARGUMENTS.search(text))
        case Slip("argument", name) | Slip("tool", name):
            return _right_if(re.search(rf"\b{name}\b", text))
        case Slip("root", root):
            others = [path for path in _PATH.findall(text) if not path.endswith(root + step.path)]
            found = any(path.endswith(step.path) for path in others)
            return "look" if reader == "thorough" and not found else _right_if(found)
        case Slip("drift", way):
            return _quote_again(step, way, text, reader, looks)
        case _:
            return "look" if _SEVERAL.search(text) or _LINES_NAMED.search(text) else looks


def _right_if(helped: object) -> Advice:
    return "right" if helped else "stuck"


def _quote_again(step: Step, way: str, text: str, reader: Reader, looks: Advice) -> Advice | Quote:
    if habit := HABITS.get(way):
        return _right_if(habit.search(text))
    shown = _shown_places(text)
    if _SEVERAL.search(text):
        return "look"
    if shown and reader == "hasty":
        return Quote(shown[0])
    if any(str(step.arguments["old_string"]).strip("\n") in place for place in shown):
        return "right"
    return "look" if _LINES_NAMED.search(text) else looks


def _shown_places(text: str) -> list[str]:
    places: list[list[str]] = []
    last = -1
    for found in map(_NUMBERED.match, text.split("\n")):
        if found is None:
            last = -1
            continue
        number, line = int(found[1]), found[2]
        if number != last + 1 or last < 0:
            places.append([])
        places[-1].append(line)
        last = number
    return ["\n".join(place) for place in places]
