"""Import in less time what a command needs.

Packages of models and agents import hundreds of modules for the names that they re-export; a task needs few.
To import such a module when one of its names is asked for saves a quarter of the CPU of a task. A name is
still found where it was (PEP 562); what else a package does is done at once. Their hundreds of models of
pydantic are built when each is first used.
"""

from __future__ import annotations

import ast
import gc
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import find_spec, resolve_name
from types import ModuleType
from typing import Any, Final

_LARGE: Final = (
    "charset_normalizer.",
    "idna.",
    "langchain.agents.middleware.",
    "langchain_openai.",
    "langgraph.prebuilt.",
    "langsmith.types.",
    "openai.types.",
)
"""Packages that re-export much, with the packages in them."""
_ALONE: Final = ("langgraph_sdk", "pydantic.main")
"""A package that re-exports much, while those in it define much; and the module of all models."""


@contextmanager
def importing_much() -> Generator[None]:
    """Put off, from now on, what large packages re-export, and look for no garbage meanwhile.

    Hardly anything that is imported becomes garbage, and to look takes a tenth of the time.
    """
    if _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)
    gc.disable()
    if pydantic := sys.modules.get("pydantic.main"):
        _defer_build(pydantic)
    try:
        yield
        gc.freeze()
    finally:
        gc.enable()
        if pydantic := sys.modules.get("pydantic"):
            pydantic.BaseModel.model_config.pop("defer_build", None)


class _Finder:
    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return how to import a large package; all else is left to the finders behind this one."""
        if name not in _ALONE and not f"{name}.".startswith(_LARGE):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(name, spec.loader.path)
        return spec


class _Loader(SourceFileLoader):
    def exec_module(self, module: ModuleType) -> None:
        """Note where each name that the package re-exports stands, and do the rest of it."""
        if not hasattr(module, "__path__"):
            super().exec_module(module)
            if module.__name__ == "pydantic.main":
                _defer_build(module)
            return
        package = module.__name__
        rest = ast.parse(self.get_data(self.path))
        places = _take_re_exports(rest, package)

        def find(name: str) -> Any:
            if name in places:
                place, original = places[name]
                setattr(module, name, getattr(_import(place), original))
            elif name == "__all__":
                return [each for each in dir(module) if not each.startswith("_")]
            elif find_spec(f"{package}.{name}"):
                # Its own modules were there too, once any of them had been imported.
                _import(f"{package}.{name}")
            else:
                raise AttributeError(f"module {package!r} has no attribute {name!r}")
            return vars(module)[name]

        vars(module).update(__getattr__=find, __dir__=lambda: {*vars(module), *places})
        exec(compile(rest, self.path, "exec", dont_inherit=True), vars(module))


def _defer_build(main: ModuleType) -> None:
    # Since pydantic 2.14, threads that first use a model wait for each other.
    major, minor, *_ = import_module("pydantic.version").VERSION.split(".")
    if (int(major), int(minor)) >= (2, 14):
        main.BaseModel.model_config["defer_build"] = True


def _import(module: str) -> ModuleType:
    try:
        return import_module(module)
    except AttributeError as error:
        # As it is, it would only say that the name is not there.
        raise ImportError(f"{module} cannot be imported: {error}", name=module) from error


def _take_re_exports(code: ast.Module, package: str) -> dict[str, tuple[str, str]]:
    """Take out of the code of a package the imports from its own modules of names that it does not use.

    Returns:
        The module of each name, and its name there.
    """
    used = {node.id for node in ast.walk(code) if isinstance(node, ast.Name)}
    used |= {node.name for node in code.body if isinstance(node, ast.FunctionDef)}
    places = dict[str, tuple[str, str]]()
    for statement in [*code.body]:
        if isinstance(statement, ast.ImportFrom) and "__getattr__" not in used:
            origin = resolve_name("." * statement.level + (statement.module or ""), package)
            names = {each.asname or each.name: (origin, each.name) for each in statement.names}
            # A module gets a name in its package, too: it may be used here, or be that of what it holds.
            module = origin[len(package) + 1 :].partition(".")[0] if origin.startswith(f"{package}.") else ""
            if module and used.isdisjoint({module, *names}) and names.keys().isdisjoint({module, "*"}):
                places |= names
                code.body.remove(statement)
    return places
