"""The rules of shape that ruff and pyright do not know: each takes a file and returns its offences."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from tests.architecture.source import Definition, Source, docstring_lines

Offences = Iterator[str]

SUPPRESSION = re.compile(
    r"#\s*(noqa|type:\s*ignore|pyright:|ruff:|mypy:|pragma:\s*no\s*cover)", re.IGNORECASE
)
OWN_PACKAGES = ("deepagents", "deepagents_cli", "deepagents_local", "deepagents_sandbox", "deepagents_server")
PATCHING = re.compile(r"\b(patch(\.\w+)?|(set|del)attr|setitem)\(")
PATCHERS = {"patch", "patch.object", "patch.dict", "patch.multiple", "setattr", "delattr", "setitem"}


def suppressions(source: Source) -> Offences:
    """Comments that silence a tool."""
    # Splitting a file into tokens takes long, and hardly any has one.
    comments = source.comments if SUPPRESSION.search(source.text) else ()
    return (
        f"{source.path}:{comment.start[0]}: {comment.string}"
        for comment in comments
        if SUPPRESSION.search(comment.string)
    )


def comment_lines(source: Source) -> int:
    """Count the lines that hold nothing but a comment."""
    return sum(comment.line.lstrip().startswith("#") for comment in source.comments)


def all_docstring_lines(source: Source) -> int:
    """Count the lines of all docstrings in a file."""
    nodes = [node for node in source.nodes if isinstance(node, ast.Module | Definition)]
    return sum(docstring_lines(node) for node in nodes)


def foreign_privates(source: Source) -> Offences:
    """Uses of an underscore name, or of an underscore module, that belongs to someone else."""
    for node in source.nodes:
        match node:
            case ast.Attribute(value=ast.Name(id="self" | "cls")):
                continue
            case ast.Attribute(value=ast.Name(id="os"), attr="_exit"):
                continue
            case ast.Attribute(attr=name) if _private(name) and not _defined_here(source, name):
                yield f"{source.at(node)}: .{name}"
            case ast.ImportFrom(module=str(module), names=names):
                private = [alias.name for alias in names if _private(alias.name) and not _own(module)]
                if private or (not _own(module) and any(map(_private, module.split(".")))):
                    yield f"{source.at(node)}: from {module} import {', '.join(a.name for a in names)}"
            case _:
                continue


def sniffing(source: Source) -> Offences:
    """Questions about the class of a backend or of a chat model, instead of about what it can do."""
    for node in source.nodes:
        match node:
            case ast.Call(func=ast.Name(id="isinstance" | "issubclass"), args=[_, classes]):
                if name := next(filter(_backend_or_model, _names(classes)), None):
                    yield f"{source.at(node)}: isinstance on {name}"
            case _:
                continue


def late_imports(source: Source, allowed: frozenset[str]) -> Offences:
    """Imports inside functions, but for optional packages and for a module's lazy `__getattr__`."""
    for function in source.functions:
        if function.name == "__getattr__":
            continue
        for node in ast.walk(function):
            module = _imported(node)
            if isinstance(node, ast.stmt) and module and not _below(module, allowed):
                yield f"{source.at(node)}: import of {module} inside {function.name}"


def patches(source: Source) -> Offences:
    """Tests that replace a name of ours behind its back."""
    # Parsing takes long, and few files have such a word.
    if not PATCHING.search(source.text):
        return
    ours = _own_names(source)
    for node in source.nodes:
        match node:
            case ast.Call(func=func, args=[target, *_]) if _patcher(func) and _is_ours(target, ours):
                yield f"{source.at(node)}: {ast.unparse(func)}({ast.unparse(target)}, ...)"
            case _:
                continue


def globals_written(source: Source) -> Offences:
    """Functions that rebind a name of their module."""
    return (
        f"{source.at(node)}: global {', '.join(node.names)}"
        for node in source.nodes
        if isinstance(node, ast.Global)
    )


def expected_tests(module: PurePosixPath) -> list[str]:
    """Name the test files, any of which may stand for a module: its own, or its feature folder's."""
    own, folder = module.stem.strip("_"), module.parent.name.strip("_")
    areas = _areas(module)
    names = [own, folder] if len(module.parts) > 2 else [own]
    return [f"{area}/test_{name}.py" for area in areas for name in names]


def _areas(module: PurePosixPath) -> list[str]:
    package, *inner, _ = module.parts
    if package != "deepagents":
        return [package.removeprefix("deepagents_")]
    if not inner or inner[0].startswith("_"):
        return ["kernel", "agents", "observe"]
    return [inner[0], "agents"] if inner[0] == "middleware" else [inner[0]]


def _private(name: str) -> bool:
    return name.startswith("_") and not (name.startswith("__") and name.endswith("__")) and name != "_"


def _below(module: str, packages: frozenset[str]) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def _own(module: str) -> bool:
    return module.split(".")[0] in OWN_PACKAGES


def _defined_here(source: Source, name: str) -> bool:
    for node in source.nodes:
        match node:
            case ast.FunctionDef(name=found) | ast.AsyncFunctionDef(name=found) | ast.ClassDef(name=found):
                known = found == name
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=found, ctx=ast.Store()):
                known = found == name
            case ast.AnnAssign(target=ast.Name(id=found)):
                known = found == name
            case _:
                known = False
        if known:
            return True
    return False


def _names(classes: ast.expr) -> Iterator[str]:
    for node in ast.walk(classes):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr


def _backend_or_model(name: str) -> bool:
    return name.endswith(("Backend", "BackendProtocol", "ChatModel", "LanguageModel")) or bool(
        re.fullmatch(r"Chat[A-Z]\w+", name)
    )


def _imported(node: ast.AST) -> str | None:
    match node:
        case ast.Import(names=[first, *_]):
            return first.name
        case ast.ImportFrom(module=str(module)):
            return module
        case _:
            return None


def _own_names(source: Source) -> set[str]:
    ours: set[str] = set()
    for node in source.nodes:
        if isinstance(node, ast.Import):
            ours |= {alias.asname or alias.name.split(".")[0] for alias in node.names if _own(alias.name)}
        elif isinstance(node, ast.ImportFrom) and node.module and _own(node.module):
            ours |= {alias.asname or alias.name for alias in node.names}
    return ours


def _patcher(func: ast.expr) -> bool:
    spelled = ast.unparse(func)
    return any(spelled == name or spelled.endswith(f".{name}") for name in PATCHERS)


def _is_ours(target: ast.expr, ours: set[str]) -> bool:
    if isinstance(target, ast.Constant):
        return isinstance(target.value, str) and _own(target.value)
    first = next((node.id for node in ast.walk(target) if isinstance(node, ast.Name)), None)
    return first in ours
