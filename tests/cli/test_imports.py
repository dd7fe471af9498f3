"""What large packages re-export is imported when it is asked for, and nothing else changes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

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
    [
        "charset_normalizer",
        "idna",
        "langchain.agents.middleware",
        "langchain_openai",
        "langgraph.prebuilt",
        "langgraph_sdk",
        "langsmith.types",
        "openai.types",
    ],
)
def test_a_large_package_holds_what_it_held_and_imports_less(package: str) -> None:
    all_modules, names, at_once = look(package, "at once")
    fewer_modules, _, later = look(package, "later", names)

    assert later == at_once
    assert fewer_modules < all_modules


def run_with(directory: Path, package: dict[str, str], code: str) -> str:
    """Return what a program prints to which `openai.types` is a package of these files."""
    types = directory / "openai" / "types"
    types.mkdir(parents=True, exist_ok=True)
    (directory / "openai/__init__.py").touch()
    for name, text in package.items():
        (types / name).write_text(text)
    begin = (
        "from deepagents_cli.imports import importing_much\nwith importing_much(): import openai.types, sys\n"
    )
    argv = [sys.executable, "-c", begin + code]
    return subprocess.run(argv, cwd=directory, capture_output=True, text=True, check=True).stdout


def test_a_package_does_what_else_it_does(tmp_path: Path) -> None:
    package = {
        "model.py": "class Model: ...",
        "batch.py": "class Batch: ...\nclass Other: ...",
        "__init__.py": (
            "from .batch import Batch as Batch, Other\n"
            "from .model import Model\n"
            "class Larger(Model): ...\n"
            "LIMIT = 3\n"
        ),
    }
    code = (
        "print(openai.types.LIMIT, openai.types.Larger.mro()[1] is openai.types.Model)\n"
        "print('openai.types.batch' in sys.modules, openai.types.Batch, hasattr(openai.types, 'Absent'))"
    )

    assert run_with(tmp_path, package, code) == "3 True\nFalse <class 'openai.types.batch.Batch'> False\n"


@pytest.mark.parametrize(
    ("more", "code", "printed"),
    [
        ("", "from openai.types import *; print(Batch, '_hidden' in dir())", "{Batch} False"),
        ("", "openai.types.Batch; print(dir(openai.types).count('Batch'))", "1"),
        ("batch.Other()", "print(openai.types.Batch)", "{Batch}"),
        ("del batch", "print(openai.types.Batch)", "{Batch}"),
        ("def __getattr__(name): return name", "print(openai.types.Batch, openai.types.New)", "{Batch} New"),
        ("__getattr__ = str", "print(openai.types.Batch, openai.types.New)", "{Batch} New"),
        ("def Batch(): ...", "print(openai.types.Batch())", "None"),
        ("", "import openai.types.tool; from openai.types import tool; print(tool())", "called"),
        ("", "import openai.types_of; print(vars(openai.types_of)['Batch'])", "{Batch}"),
        (
            "from .broken import Part",
            "try: from openai.types import Part\nexcept ImportError as error: print('gone' in str(error))",
            "True",
        ),
    ],
)
def test_a_package_is_what_it_was(tmp_path: Path, more: str, code: str, printed: str) -> None:
    package = {
        "batch.py": "class Batch: ...\nclass Other: ...",
        "broken.py": "import sys; sys.gone",
        "tool.py": "def tool(): return 'called'",
        "__init__.py": f"from .batch import Batch\nfrom .batch import Other as _hidden\n"
        f"from .tool import tool\n{more}\n",
    }
    other = tmp_path / "openai" / "types_of"
    other.mkdir(parents=True)
    (other / "__init__.py").write_text("from .batch import Batch")
    (other / "batch.py").write_text("from openai.types.batch import Batch")

    ran = run_with(tmp_path, package, code)

    assert ran.strip() == printed.format(Batch="<class 'openai.types.batch.Batch'>")


def test_models_are_built_when_they_are_first_used() -> None:
    code = """
from deepagents_cli.imports import importing_much
with importing_much():
    from langchain_core.messages import AIMessage, HumanMessage
    from pydantic import BaseModel

class Own(BaseModel):
    text: str

print(AIMessage.__pydantic_complete__, AIMessage("Done.").text, AIMessage.__pydantic_complete__)
print(HumanMessage.__pydantic_complete__, Own.__pydantic_complete__)
with importing_much():
    class Later(BaseModel):
        text: str
print(Later.__pydantic_complete__, Later(text="Text.").text)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert ran.stdout == "False Done. True\nFalse True\nFalse Text.\n"


@pytest.mark.parametrize(("form", "draws"), [("answer", False), ("json", False), ("text", True)])
def test_rich_is_imported_where_something_is_drawn(form: str, draws: bool) -> None:
    code = """
import asyncio, sys
from pathlib import Path
from deepagents_cli.imports import importing_much
with importing_much():
    from deepagents.events import RunStarted
    from deepagents_cli.protocol import Happened
    from deepagents_cli.views.task import TaskView

async def show():
    view = TaskView(sys.argv[1], Path.cwd())
    view.take(Happened(RunStarted("1", "Go.")))
    await asyncio.sleep(0)

asyncio.run(show())
sys.exit("rich" in sys.modules)
"""
    ran = subprocess.run([sys.executable, "-c", code, form], capture_output=True, check=False)

    assert (ran.returncode, ran.stderr) == (draws, b"")


def test_threads_that_use_a_model_at_once_all_get_it() -> None:
    code = """
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from deepagents_cli.imports import importing_much
with importing_much():
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

def make(number):
    together.wait()
    kind = (AIMessage, HumanMessage, SystemMessage)[number % 3]
    return [kind(f"{number}").text, ToolMessage(f"{number}", tool_call_id="1").text]

together = Barrier(12)
with ThreadPoolExecutor(12) as pool:
    assert [*pool.map(make, range(12))] == [[f"{number}"] * 2 for number in range(12)]
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_older_pydantic_builds_models_at_once(tmp_path: Path) -> None:
    """Before 2.14, threads that use a model first at once could meet a half-made one."""
    package = tmp_path / "pydantic"
    package.mkdir()
    (package / "__init__.py").write_text("from pydantic.main import BaseModel")
    (package / "main.py").write_text("class BaseModel: model_config = {}")
    (package / "version.py").write_text("VERSION = '2.13.4'")
    code = """
import sys
sys.path.insert(0, sys.argv[1])
from deepagents_cli.imports import importing_much
with importing_much():
    from pydantic import BaseModel
    print(BaseModel.model_config)
"""
    command = [sys.executable, "-c", code, str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)

    assert ran.stdout == "{}\n"
