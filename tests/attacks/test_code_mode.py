"""A program that a model writes reaches nothing but the tools, and these under every rule."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from deepagents import FilesystemPermission, create_deep_agent
from deepagents.backends import FilesystemBackend
from deepagents.middleware import CodeModeMiddleware
from deepagents.testing import ScriptedModel, call
from tests.conftest import CallMode

SECRET = "pearl-4711"
THREAD: Any = {"configurable": {"thread_id": "one"}}

PAST_THE_INTERPRETER = [
    "open({path!r}).read()",
    "from pathlib import Path\nPath({path!r}).read_text()",
    "from pathlib import Path\nlist(Path('/').iterdir())",
    "import os\nos.environ['SECRET']",
    "import os\nos.getenv('SECRET')",
    "import os\nos.listdir('/')",
    "import os\nos.system('cat {path}')",
    "import subprocess\nsubprocess.run(['cat', {path!r}])",
    "import socket\nsocket.create_connection(('127.0.0.1', 80))",
    "import urllib.request\nurllib.request.urlopen('file://{path}').read()",
    "import ctypes",
    "import sys\nsys.modules",
    "import importlib\nimportlib.import_module('os')",
    "import builtins\nbuiltins.open({path!r})",
    "__import__('os').environ",
    "().__class__.__base__.__subclasses__()",
    "(lambda: 0).__globals__",
    "look.__globals__['SECRET']",
    "look.__closure__",
    "look.__code__",
    "eval(\"__import__('os')\")",
    "exec('import socket')",
    "globals()['__builtins__']",
    "'{{0.__class__.__init__.__globals__}}'.format(look)",
    "async def f():\n    await look()\nf().cr_frame",
    "try:\n    1 / 0\nexcept Exception as error:\n    print(error.__traceback__.tb_frame.f_back.f_globals)",
]
PAST_THE_RULES = [
    "print(await read_file(file_path='/vault/key'))",
    "print(await grep(pattern='pearl'))",
    "print(await glob(pattern='**/*'))",
    "print(await edit_file(file_path='/vault/key', old_string='pearl', new_string='x'))",
    "print(await write_file(file_path='/vault/key', content='x'))",
    "print(await delete(file_path='/vault'))",
    "print(await task(description='/vault/key', subagent_type='general-purpose'))",
]


def look() -> str:
    """Look around."""
    return "nothing to see"


def run(code: str, root: Path, mode: CallMode, **options: Any) -> str:
    """Run a program over files that hold a secret, and return all that the model has read."""
    (root / "vault").mkdir()
    (root / "vault" / "key").write_text(SECRET)
    rules = [FilesystemPermission(["read", "write"], ["/vault", "/vault/**"], "deny")]
    inside = call("read_file", file_path="/vault/key")
    script = [inside, "Tried."] if "task(" in code else []
    with ScriptedModel(call("run_code", code=code), *script, "Done.") as model:
        agent = create_deep_agent(
            model,
            tools=[look],
            middleware=[CodeModeMiddleware(seconds=5)],
            backend=FilesystemBackend(root, virtual_mode=True),
            permissions=rules,
            **options,
        )
        mode.invoke(agent, {"messages": "Go"}, THREAD)
    assert (root / "vault" / "key").read_text() == SECRET
    return "".join(each.text for asked in model.asked for each in asked.messages if each.type == "tool")


@pytest.mark.parametrize("code", PAST_THE_INTERPRETER)
def test_the_interpreter_holds_nothing_of_the_process(
    code: str, tmp_path: Path, call_mode: CallMode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", SECRET)
    read = run(code.format(path=str(tmp_path / "vault" / "key")), tmp_path, call_mode)

    assert SECRET not in read
    assert read.startswith("Error: the program failed: Traceback"), read


@pytest.mark.parametrize("code", PAST_THE_RULES)
def test_calls_of_a_program_keep_to_the_rules(code: str, tmp_path: Path, call_mode: CallMode) -> None:
    assert SECRET not in run(code, tmp_path, call_mode)


@pytest.mark.parametrize(
    "code",
    [
        "await look()",
        "f = look\nawait f()",
        "import asyncio\nawait asyncio.gather(look(), look())",
        "await task(description='look', subagent_type='general-purpose')",
    ],
)
def test_what_waits_for_a_person_is_made_by_no_program(
    code: str, tmp_path: Path, call_mode: CallMode
) -> None:
    made: list[int] = []

    def look() -> str:
        """Look around."""
        made.append(1)
        return SECRET

    script = [call("look"), "Tried."] if "task(" in code else []
    with ScriptedModel(call("run_code", code=code), *script, "Done.") as model:
        agent = create_deep_agent(
            model,
            tools=[look],
            middleware=[CodeModeMiddleware(seconds=5)],
            interrupt_on={"look": True},
            checkpointer=InMemorySaver(),
        )
        call_mode.invoke(agent, {"messages": "Go"}, THREAD)

    assert made == []
