"""What packages of types re-export is imported when it is asked for, and nothing else changes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

NAMES = """
import json, pkgutil, sys, warnings
from importlib import import_module
from deepagents_cli.imports import importing_much

if sys.argv[2] == "later":
    with importing_much():
        top = import_module(sys.argv[1])
else:
    top = import_module(sys.argv[1])
inside = [each.name for each in pkgutil.walk_packages(top.__path__, f"{top.__name__}.") if each.ispkg]
packages = [top, *map(import_module, inside)]
before = len([each for each in sys.modules if each.startswith(top.__name__)])
found = {
    each.__name__: {name: repr(getattr(each, name)) for name in dir(each) if not name.startswith("_")}
    for each in packages
}
for each in packages:
    for name in list(found[each.__name__]):
        if found[each.__name__][name].startswith("<module") or name == "annotations":
            del found[each.__name__][name]
print(json.dumps([before, found]))
"""


def look(package: str, when: str) -> tuple[int, dict[str, dict[str, str]]]:
    ran = subprocess.run(
        [sys.executable, "-c", NAMES, package, when], capture_output=True, text=True, check=True
    )
    count, names = json.loads(ran.stdout)
    return count, names


@pytest.mark.parametrize("package", ["openai.types", "langsmith.types"])
def test_a_package_of_types_holds_what_it_held(package: str) -> None:
    many, at_once = look(package, "at once")
    few, later = look(package, "later")

    assert later == at_once
    assert few < many / 5


def test_a_package_that_holds_more_is_imported_as_it_stands(tmp_path: Path) -> None:
    types = tmp_path / "openai" / "types"
    types.mkdir(parents=True)
    (tmp_path / "openai/__init__.py").touch()
    (types / "model.py").write_text("class Model: ...")
    (types / "__init__.py").write_text("from .model import Model as Model\nLIMIT = 3\n")
    code = (
        "from deepagents_cli.imports import importing_much\n"
        "with importing_much():\n"
        "    import openai.types, sys\n"
        "print(openai.types.LIMIT, 'openai.types.model' in sys.modules)"
    )

    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    assert ran.stdout == "3 True\n"
