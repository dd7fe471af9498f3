"""Writes the generated parts of the pages in docs/reference; --check lists those that are out of date."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, get_args, get_type_hints

from deepagents import middleware
from deepagents._agent.stack import STACK, Slot
from deepagents._state.schema import COMMON_KEYS, SHARED, Sharing, collect_sharing
from deepagents.errors import ErrorCode
from deepagents.middleware._base import BaseMiddleware
from deepagents.middleware.async_subagents.tools import TOOLS, WAIT
from deepagents.middleware.summarization.policy import SummarizationDefaults, defaults_for
from deepagents.profiles.harness.profile import REQUIRED
from deepagents.tools import FILE_TOOLS
from deepagents.tools._tool import ToolSpec
from deepagents_cli.commands.args import build_parser
from deepagents_cli.commands.completion import find_parsers

REFERENCE = Path(__file__).parent / "reference"
COMPATIBILITY = Path(__file__).parent / "compatibility.md"
CONTEXT = Path(__file__).parent / "concepts/context.md"
FORMS = Path(__file__).parents[1] / "tests/compat/documented_forms.py"
BLOCK = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)

ERROR_MEANINGS: dict[ErrorCode, str] = {
    "file_not_found": "nothing is at that path",
    "permission_denied": "the operating system or a rule forbids it",
    "is_directory": "a file was asked for, a directory is there",
    "not_a_directory": "a directory was asked for, a file is there",
    "invalid_path": "the path is malformed or leaves its root",
    "invalid_pattern": "the glob or regular expression cannot be read",
    "invalid_argument": "an argument makes no sense, alone or with another",
    "invalid_encoding": "the file is not text in the expected encoding",
    "already_exists": "something is at that path, and would have to be replaced",
    "no_match": "the text to replace is not in the file; the message shows the nearest match",
    "ambiguous_match": "the text to replace is there more than once",
    "stale_version": "the file changed since it was last read",
    "parallel_mutation": "two calls of one turn change the same file",
    "too_large": "over a size limit",
    "timeout": "a deadline passed",
    "not_supported": "this backend, or this tool, cannot do that",
    "io_error": "the operating system refused for another reason",
    "unknown_subagent": "no subagent has that name",
    "tool_failed": "a tool raised an exception that has no code",
    "incomplete_answer": "the model's answer with this call broke off, or the answer of a subagent did",
    "not_run": "a call waited for a person's decision, and none came that could be used",
    "cancelled": "a run was cancelled while a call ran; it may have taken effect",
    "result_lost": "a run ended before the result of a call was recorded; it may have taken effect",
    "limit_reached": "a limit on the run was reached, so the call was not made",
    "remote_failed": "a server elsewhere refused, failed, or cannot be reached",
}


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Lay out a Markdown table."""
    names = list(head)
    lines = [names, ["---"] * len(names), *rows]
    return "".join(
        f"| {' | '.join(' '.join(cell.split()).replace('|', chr(92) + '|') for cell in line)} |\n"
        for line in lines
    )


def errors() -> str:
    """Return the table of error codes."""
    return table(["code", "meaning"], [[f"`{code}`", ERROR_MEANINGS[code]] for code in get_args(ErrorCode)])


def tools() -> str:
    """Return the table of the file tools."""
    return _tools(FILE_TOOLS)


def async_tools() -> str:
    """Return the table of the tools for asynchronous subagents."""
    return _tools([*TOOLS, WAIT])


def _tools(specs: Iterable[ToolSpec]) -> str:
    rows = [[f"`{spec.name}`", _arguments(spec.args.model_json_schema()), spec.description] for spec in specs]
    return table(["tool", "arguments", "what the model reads"], rows)


def _arguments(schema: dict[str, dict[str, object]]) -> str:
    needed = schema.get("required", {})
    return ", ".join(f"`{name}`" if name in needed else f"`{name}`?" for name in schema.get("properties", {}))


def stack() -> str:
    """Return the table of middleware, outermost first."""
    rows = [
        [f"`{row.name}`", row.reason, "yes" if row.name in REQUIRED else ""]
        if isinstance(row, Slot)
        else [f"*{row.name.lower()}*", row.reason, ""]
        for row in STACK
    ]
    return table(["middleware", "why there", "required"], rows)


def state() -> str:
    """Return the table of state keys, and how an agent shares them with its subagents."""
    for name in middleware.__all__:
        # Classes are found when they are there, and these load on first use.
        getattr(middleware, name)
    rows = {key: [f"`{key}`", "LangChain", *_show_sharing(each)] for key, each in COMMON_KEYS.items()}
    for kind in sorted(_find_kinds(BaseMiddleware), key=lambda each: each.__name__):
        shared = collect_sharing([kind.state_schema])
        for key in get_type_hints(kind.state_schema):
            rows.setdefault(key, [f"`{key}`", f"`{kind.__name__}`", *_show_sharing(shared.get(key, SHARED))])
    rows["*"] = ["any other", "you", *_show_sharing(SHARED)]
    return table(["key", "declared by", "to isolated ones", "to forks", "comes back"], rows.values())


def _find_kinds(kind: type[BaseMiddleware]) -> Iterator[type[BaseMiddleware]]:
    for each in kind.__subclasses__():
        if each.__module__.startswith(f"{middleware.__name__}."):
            yield from (each, *_find_kinds(each))


def _show_sharing(sharing: Sharing) -> list[str]:
    return ["yes" if shared else "" for shared in (sharing.down, sharing.forks, sharing.back)]


def cli() -> str:
    """Return the help of every command; only Python 3.11 writes it, because each words it differently."""
    parsers = find_parsers(build_parser()[0])
    return "\n".join(f"```text\n{_format_help(each)}```\n" for each in parsers)


def _format_help(parser: argparse.ArgumentParser) -> str:
    # Its type in the standard library names no width.
    formatter: Any = parser.formatter_class
    parser.formatter_class = partial(formatter, width=98)
    return parser.format_help()


def compaction() -> str:
    """Return the table of what compaction does by default."""
    known, unknown = (_name_settings(defaults_for(window)) for window in (1, None))
    rows = [[name, known[name], unknown[name]] for name in known]
    return table(["setting", "if the window is known", "otherwise"], rows)


def _name_settings(given: SummarizationDefaults) -> dict[str, str]:
    clip = given["truncate_args_settings"]
    values = {
        "`trigger`": given["trigger"],
        "`keep`": given["keep"],
        '`truncate_args_settings["trigger"]`': clip.get("trigger"),
    }
    return {name: f"`{value}`".replace("'", '"') for name, value in values.items()}


def forms() -> str:
    """Return the table of documented forms, with the tests that run them."""
    rows = [
        [f"{form.document} {form.number}", form.page, form.shows, _tests(form.tests)]
        for form in _load_module(FORMS).FORMS
    ]
    return table(["number", "page", "what it shows", "the test that runs it"], rows)


def _tests(names: Sequence[str]) -> str:
    tests = [name.split(".") for name in names]
    return "<br>".join(f"`{file}::{test}`" for file, test in tests) or "no Python"


def counted() -> str:
    """Return how many forms run in tests."""
    found = _load_module(FORMS).FORMS
    run = sum(bool(form.tests) for form in found)
    return f"{len(found)} forms: {run} run in tests, and the rest is not Python.\n"


def api_pages() -> dict[Path, str]:
    """Return the API pages; only Python 3.11 writes them, because each shows annotations differently."""
    if sys.version_info[:2] != (3, 11):
        return {}
    pages: dict[str, str] = _load_module(Path(__file__).with_name("api.py")).make_pages()
    return {REFERENCE / "api" / name: text for name, text in pages.items()}


def _load_module(path: Path) -> Any:
    spec = spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(path)
    module = module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)
    spec.loader.exec_module(module)
    return module


BLOCKS: dict[str, Callable[[], str]] = {
    "errors": errors,
    "stack": stack,
    "state": state,
    "tools": tools,
    "compaction": compaction,
    "async_tools": async_tools,
    "counted": counted,
    "forms": forms,
}
if sys.version_info[:2] == (3, 11):
    BLOCKS["cli"] = cli


def render(page: str) -> str:
    """Return a page with new generated blocks."""
    return BLOCK.sub(lambda found: f"{found[1]}{_block(found[2], found[0])}{found[3]}", page)


def _block(name: str, current: str) -> str:
    return BLOCKS[name]() if name in BLOCKS else current.split("\n", 1)[1].removesuffix("<!-- end -->")


def main(arguments: list[str]) -> int:
    """Rewrite the pages, or check them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="change nothing; fail when a page is out of date"
    )
    parser.add_argument("--folder", type=Path, default=REFERENCE, help="where the pages are")
    options = parser.parse_args(arguments)
    made = {page: render(page.read_text()) for page in sorted(options.folder.glob("*.md"))}
    api = api_pages() if options.folder == REFERENCE else {}
    if options.folder == REFERENCE:
        made |= {page: render(page.read_text()) for page in (COMPATIBILITY, CONTEXT)} | api
    stale = [page for page, text in made.items() if not page.exists() or page.read_text() != text]
    gone = [page for page in (REFERENCE / "api").glob("*.md") if api and page not in api]
    for page in gone:
        print(f"{page.name} has no module any more; {'run: make docs' if options.check else 'removed'}")
        if not options.check:
            page.unlink()
    for page in stale:
        print(f"{page.name} is out of date; run: make docs" if options.check else f"wrote {page.name}")
        if not options.check:
            page.parent.mkdir(exist_ok=True)
            page.write_text(made[page])
    return 1 if (stale or gone) and options.check else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
