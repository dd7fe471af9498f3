"""Decide which tools are held back, and find and describe them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from operator import is_
from typing import Any, Final, cast

from langchain_core.tools import BaseTool

from deepagents._text import escape_controls
from deepagents._values import valueclass
from deepagents.middleware._requests import DEFERRED, extras_of, without_mark
from deepagents.middleware.tool_search.ranking import Ranking
from deepagents.tools._tool import CHARACTERS_PER_TOKEN, SpecTool, tool_name

_NAME_COUNTS: Final = 3
_MOST_SERVERS: Final = 3_000
_MOST_NAMES: Final = 600


@valueclass
class Held:
    """The tools that are held back, in the order of the request."""

    tools: Mapping[str, BaseTool]

    @cached_property
    def description(self) -> str:
        """Where the tools come from, in at most 4,000 characters; names only where there is no server."""
        served = Counter(filter(None, map(find_server, self.tools.values())))
        servers = [f"{escape_controls(name)[:64]} ({count})" for name, count in served.items()]
        own = [name for name, tool in self.tools.items() if find_server(tool) is None]
        parts = [f"of the servers {_enumerate(servers, _MOST_SERVERS)}"] if servers else []
        parts += [f"of this program {_enumerate(own, _MOST_NAMES)}"] if own else []
        return (
            f"Find and load some of {len(self.tools)} further tools, which are not shown until then: "
            f"{'; '.join(parts)}."
        )

    def find(self, query: str, most: int) -> list[str]:
        """Return the names of the tools that fit a few words best, the best first."""
        names = list(self.tools)
        return [names[at] for at in self._ranking.find(query, most)]

    @cached_property
    def _ranking(self) -> Ranking:
        return Ranking([_text_of(each) for each in self.tools.values()])


class Catalog:
    """The tools of a request, and what those of them cost that are not the library's own.

    It is made once for a list of tools, since to read the schema of a tool takes up to 1 ms.
    """

    def __init__(self, given: Sequence[Any]) -> None:
        self._given = list(given)
        self.tools: Sequence[Any] = [
            # Providers without a search of their own are sent the tools that are called here.
            without_mark(each) if isinstance(each, BaseTool) else each
            for each in given
        ]
        self.names: Sequence[str | None] = [tool_name(each) for each in given]
        self.has_provider_search = any(map(_is_provider_search, given))
        self._held: dict[int, Held] = {}

    @cached_property
    def _costs(self) -> list[tuple[str, BaseTool, bool | None, str | None, int]]:
        """What can be held back: name, tool, mark, server, and how many characters describe it."""
        return [
            (name, tool, _find_mark(given), find_server(tool), len(json.dumps(schema_of(tool), default=str)))
            for name, given, tool in zip(self.names, self._given, self.tools, strict=True)
            # A provider runs what is given as a dict; only what is called here can be loaded later.
            if name and isinstance(tool, BaseTool) and not isinstance(tool, SpecTool)
        ]

    def is_of(self, given: Sequence[Any]) -> bool:
        """Return whether this is the catalog of these very tools."""
        # By identity: `==` compares tools field by field, which takes 35 s for a thousand of them.
        return len(given) == len(self._given) and all(map(is_, given, self._given))

    def hold_back(self, budget: int) -> Held:
        """Return what is held back where descriptions may cost so many tokens.

        The mark of a tool counts first. Tools of servers are held back before those of the caller, which
        are only if they cost too much by themselves.
        """
        if budget not in self._held:
            shown = [(server, size) for *_, mark, server, size in self._costs if mark is not True]
            total = sum(size for _, size in shown)
            own = sum(size for server, size in shown if server is None)
            most = budget * CHARACTERS_PER_TOKEN
            self._held[budget] = Held(
                {
                    name: tool
                    for name, tool, mark, server, _ in self._costs
                    if (mark if mark is not None else (total if server else own) > most)
                }
            )
        return self._held[budget]


def find_server(tool: BaseTool) -> str | None:
    """Return the name of the server that a tool is of; `None` for a tool of the caller."""
    origin: Any = (tool.metadata or {}).get("mcp")
    server: Any = cast("dict[str, Any]", origin).get("server") if isinstance(origin, dict) else None
    name: Any = cast("dict[str, Any]", server).get("name") if isinstance(server, dict) else None
    return name if isinstance(name, str) else None


def _is_provider_search(tool: Any) -> bool:
    """Return whether this is the search of a provider, which loads tools that are marked for it."""
    kind: Any = cast("dict[str, Any]", tool).get("type") if isinstance(tool, dict) else None
    return isinstance(kind, str) and kind.startswith("tool_search")


def _find_mark(tool: BaseTool) -> bool | None:
    mark: Any = extras_of(tool).get(DEFERRED)
    return mark if isinstance(mark, bool) else None


def schema_of(tool: BaseTool) -> Mapping[str, Any]:
    """Return the JSON schema of the arguments of a tool, its description included."""
    # Not `convert_to_openai_tool`, which writes each reference out: a small schema may take minutes.
    shown: Any = tool.tool_call_schema
    return cast("dict[str, Any]", shown) if isinstance(shown, dict) else shown.model_json_schema()


def _text_of(tool: BaseTool) -> str:
    """Return the words by which a tool is found: those of its name count more often."""
    arguments: Any = schema_of(tool).get("properties")
    given = cast("dict[str, Any]", arguments) if isinstance(arguments, dict) else {}
    return " ".join([*[tool.name] * _NAME_COUNTS, tool.description, *_words_of(given)])


def _words_of(arguments: Mapping[str, Any]) -> Iterator[str]:
    for name, about in arguments.items():
        yield name
        text: Any = cast("dict[str, Any]", about).get("description") if isinstance(about, dict) else None
        if isinstance(text, str):
            yield text


def _enumerate(texts: Sequence[str], most: int) -> str:
    """Join as many texts as have room, and count the others."""
    shown: list[str] = []
    for text in texts:
        most -= len(text) + 2
        if most < 0:
            break
        shown.append(text)
    more = len(texts) - len(shown)
    return f"{', '.join(shown)}{f' and {more} more' if more else ''}"
