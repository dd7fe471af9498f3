"""Python files as values: their path, text and syntax tree."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[2]

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Source:
    """One Python file, by its path from the root of the repository."""

    path: PurePosixPath
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    @cached_property
    def lines(self) -> int:
        return len(self.text.splitlines())

    @cached_property
    def comments(self) -> list[tokenize.TokenInfo]:
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        return [token for token in tokens if token.type == tokenize.COMMENT]

    @property
    def functions(self) -> Iterator[Function]:
        return (node for node in self.nodes if isinstance(node, Function))

    def at(self, node: ast.expr | ast.stmt | ast.arg) -> str:
        return f"{self.path}:{node.lineno}"

    def within(self, *folders: str) -> bool:
        return any(self.path.is_relative_to(folder) for folder in folders)


def sources(*folders: str) -> list[Source]:
    """Return every Python file in these folders of the repository, read and parsed once for all tests."""
    return [_source(path) for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


@cache
def _source(path: Path) -> Source:
    return Source(PurePosixPath(path.relative_to(ROOT).as_posix()), path.read_text("utf-8"))


def docstring_lines(node: ast.Module | Definition) -> int:
    """Count the lines of a definition's docstring."""
    if ast.get_docstring(node, clean=False) is None:
        return 0
    return _span(node.body[0])


def function_lines(function: Function) -> int:
    """Count the lines of a function's body, its docstring left out."""
    last = function.end_lineno or function.lineno
    return last - function.body[0].lineno + 1 - docstring_lines(function)


def nesting(function: Function) -> int:
    """Tell how deep blocks stand inside each other in a function; an `elif` stands beside its `if`."""
    return max((_depth(statement) for statement in function.body), default=0)


_BLOCKS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.TryStar, ast.Match)


def _depth(node: ast.AST) -> int:
    if isinstance(node, Definition):
        return 0
    if isinstance(node, ast.If) and len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
        then = 1 + max(map(_depth, node.body))
        return max(then, _depth(node.orelse[0]))
    below = max(map(_depth, ast.iter_child_nodes(node)), default=0)
    return below + isinstance(node, _BLOCKS)


def _span(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1
