"""What is installed beside the library: every module imports, and what the packages ask for is there."""

from __future__ import annotations

import re
from importlib import import_module, metadata
from pathlib import Path
from pkgutil import walk_packages

import pytest

import deepagents

PACKAGES = {
    "advisor-middleware": "advisor_middleware",
    "compact-middleware": "compact_middleware",
    "deep-db-agents": "deep_db_agents",
    "deepagents-acp": "deepagents_acp",
    "deepagents-monty": "deepagents_monty",
    "deepagents-okf-backend": "deepagents_okf_backend",
    "langchain-azure-storage": "langchain_azure_storage.deepagents",
    "langchain-quickjs": "langchain_quickjs",
    "langchain-repl": "langchain_repl",
    "langchain-runloop": "langchain_runloop",
    "langchain-skill-router": "langchain_skill_router",
}
OPTIONAL = re.compile(r"\.__main__$|\.providers\.jev$|\.dialects\.(?!sqlite)")
"""Programs, and modules that want further packages."""


def test_the_library_under_test_stands_for_their_requirement() -> None:
    source = Path(__file__).parents[2] / "src" / "deepagents" / "__init__.py"

    assert Path(deepagents.__file__) == source
    assert metadata.version("deepagents") == deepagents.__version__


@pytest.mark.parametrize(("name", "module"), PACKAGES.items())
def test_every_module_of_a_package_imports(name: str, module: str) -> None:
    package = import_module(module)
    found = [each.name for each in walk_packages(package.__path__, f"{module}.")]
    imported = [import_module(each) for each in found if not OPTIONAL.search(each)]

    assert metadata.version(name)
    assert imported
