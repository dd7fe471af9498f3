"""What large packages re-export is imported when it is asked for, and nothing else changes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

NAMES = """
import json, pkgutil, sys
from importlib import import_module
from deepagents_cli.imports import importing_much


def describe(value):
    where = getattr(value, '__module__', '')
    return f"{type(value).__name__} {where} {getattr(value, '__qualname__', value)!r}"


if sys.argv[2] == "later":
    with importing_much():
        top = import_module(sys.argv[1])
top = import_module(sys.argv[1])
at_first = len(sys.modules)
inside = [each.name for each in pkgutil.walk_packages(top.__path__, f"{top.__name__}.") if each.ispkg]
packages = [top, *map(import_module, inside)]
if sys.argv[2] == "later":
    names = json.loads(sys.stdin.read())
else:
    names = [[each.__name__, name] for each in packages for name in dir(each) if not name.startswith("__")]
print(json.dumps([at_first, names, [describe(getattr(sys.modules[each], name)) for each, name in names]]))
"""


def look(package: str, when: str, names: object = None) -> tuple[int, object, list[str]]:
    """Return the number of modules imported with a package, the names in it, and what they stand for."""
    argv = [sys.executable, "-c", NAMES, package, when]
    ran = subprocess.run(argv, input=json.dumps(names), capture_output=True, text=True, check=True)
    count, names, found = json.loads(ran.stdout)
    return count, names, found


@pytest.mark.parametrize(
    "package",
    ["langchain.agents.middleware", "langchain_openai", "langgraph_sdk", "langsmith.types", "openai.types"],
)
def test_a_large_package_holds_what_it_held_and_imports_less(package: str) -> None:
    all_modules, names, at_once = look(package, "at once")
    fewer_modules, _, later = look(package, "later", names)

    assert later == at_once
    assert fewer_modules < all_modules


def test_a_package_does_what_else_it_does(tmp_path: Path) -> None:
    types = tmp_path / "openai" / "types"
    types.mkdir(parents=True)
    (tmp_path / "openai/__init__.py").touch()
    (types / "model.py").write_text("class Model: ...")
    (types / "batch.py").write_text("class Batch: ...\nclass Other: ...")
    (types / "__init__.py").write_text(
        "from .batch import Batch as Batch, Other\n"
        "from .model import Model\n"
        "class Larger(Model): ...\n"
        "LIMIT = 3\n"
    )
    code = (
        "from deepagents_cli.imports import importing_much\n"
        "with importing_much():\n"
        "    import openai.types, sys\n"
        "print(openai.types.LIMIT, openai.types.Larger.mro()[1] is openai.types.Model)\n"
        "print('openai.types.batch' in sys.modules, openai.types.Batch, hasattr(openai.types, 'Absent'))"
    )

    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    assert ran.stdout == "3 True\nFalse <class 'openai.types.batch.Batch'> False\n"
