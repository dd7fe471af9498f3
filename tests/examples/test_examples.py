"""Every example runs, with a scripted model in the model's place."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from deepagents.testing import ScriptedModel, call, calls

EXAMPLES = Path(__file__).parents[2] / "examples"


def load(name: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    spec = spec_from_file_location(f"examples_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


def tidy_notes(example: Any) -> None:
    script = (
        calls(("read_file", {"file_path": "/monday.txt"}), ("read_file", {"file_path": "/tuesday.txt"})),
        call("write_file", file_path="/todo.md", content="- Buy milk\n"),
        "It is in /todo.md.",
    )
    with ScriptedModel(*script) as model:
        assert example.main(model) == "- Buy milk\n"


def two_reviewers(example: Any) -> None:
    both = calls(
        ("task", {"subagent_type": "judge", "description": "Judge it"}),
        ("task", {"subagent_type": "corrector", "description": "Correct it"}),
    )
    judge = ScriptedModel(call("Verdict", grade="good", reason="true"))
    edit = call("edit_file", file_path="/draft.md", old_string="cause by", new_string="caused by")
    with ScriptedModel(both, "Good.") as model:
        done = example.main(model, judge, ScriptedModel(edit, "ok"))

    assert done["draft"].startswith("Tides are caused by")
    assert any('"grade":"good"' in message.text for message in model.asked[1].messages)


def ask_first(example: Any) -> None:
    write = call("write_file", file_path="/haiku.md", content="Rain.")
    with ScriptedModel(write, "Done.") as model:
        assert example.main(model, ask=lambda question: "y")["/haiku.md"]["content"] == "Rain."
    with ScriptedModel(write.model_copy(), "All right.") as model:
        assert example.main(model, ask=lambda question: "") == {}


def graded(example: Any) -> None:
    write = call("write_file", file_path="/haiku.md", content="Rain on the roof\nRain in the street\nSun")
    mend = call("edit_file", file_path="/haiku.md", old_string="Sun", new_string="Rain again")
    unmet = {"name": "rain in each line", "passed": False, "gap": "the third line speaks of the sun"}
    met = {"name": "rain in each line", "passed": True}
    grader = ScriptedModel(
        call("GraderResponse", result="needs_revision", explanation="Nearly.", criteria=[unmet]),
        call("GraderResponse", result="satisfied", explanation="Good.", criteria=[met]),
    )
    with grader, ScriptedModel(write, "Done.", mend, "Rain, rain, rain.") as model:
        answer, gradings = example.main(model, grader)

    assert answer == "Rain, rain, rain."
    assert [each["result"] for each in gradings] == ["needs_revision", "satisfied"]


STORIES = {story.__name__: story for story in (tidy_notes, two_reviewers, ask_first, graded)}


@pytest.mark.parametrize("name", sorted(path.stem for path in EXAMPLES.glob("*.py")))
def test_the_example_runs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    STORIES[name](load(name, monkeypatch))
