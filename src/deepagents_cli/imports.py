"""Import in less time what a command needs.

Clients of models come with hundreds of modules of types, which their packages import all at once; a task
needs a few. To import the others when they are asked for saves a quarter of the CPU of a task. Such a package
holds nothing but names from modules of its own, and each is still found there (PEP 562). One that holds more
is imported as it stands.
"""

from __future__ import annotations

import ast
import gc
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType
from typing import Any, Final

_OF_TYPES: Final = ("langsmith.types", "openai.types")


@contextmanager
def importing_much() -> Generator[None]:
    """Put off, from now on, what packages of types re-export, and look for no garbage meanwhile.

    Hardly anything that is imported becomes garbage, and to look takes a tenth of the time.
    """
    if _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        gc.enable()


class _Finder:
    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return how to import a package of types; all else is left to the finders behind this one."""
        if not name.startswith(_OF_TYPES):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec and spec.submodule_search_locations and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(name, spec.loader.path)
        return spec


class _Loader(SourceFileLoader):
    def exec_module(self, module: ModuleType) -> None:
        """Note where each name of the package stands, and import it when it is asked for."""
        places = _read_re_exports(self.get_source(module.__name__) or "")
        if not places:
            super().exec_module(module)
            return

        def find(name: str) -> Any:
            if name not in places:
                raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
            place, original = places[name]
            found = getattr(import_module(place, module.__name__), original)
            setattr(module, name, found)
            return found

        vars(module).update(__getattr__=find, __all__=list(places), __dir__=lambda: [*vars(module), *places])


def _read_re_exports(source: str) -> dict[str, tuple[str, str]]:
    """Return the module and the name there for each name of a package, or nothing where it holds more."""
    places = dict[str, tuple[str, str]]()
    for statement in ast.parse(source).body:
        match statement:
            case ast.ImportFrom(module="__future__"):
                pass
            case ast.ImportFrom(module=str(module), level=1, names=names) if names[0].name != "*":
                places |= {each.asname or each.name: (f".{module}", each.name) for each in names}
            case _:
                return {}
    return places
