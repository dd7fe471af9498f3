"""What the model answers on each page of the documents."""

from __future__ import annotations

import json
from collections.abc import Mapping

from langchain_core.messages import AIMessage

from deepagents.testing import call
from tests.docs.provider import Answers


def _verdict(result: str) -> str:
    met = result == "satisfied"
    criterion = {"name": "names a source", "passed": met, **({} if met else {"gap": "no source is named"})}
    return json.dumps({"result": result, "explanation": "It reads so.", "criteria": [criterion]})


_TIDE = json.dumps({"port": "Saint-Malo", "metres": 13.0})

ANSWERS: Mapping[str, Mapping[str, Answers]] = {
    "README.md": {
        "*": [
            call("search", query="tides"),
            call("write_file", file_path="/report.md", content="# Tides"),
            "The report is in /report.md.",
        ]
    },
    "docs/index.md": {
        "*": [
            call("write_todos", todos=[{"content": "Compare the three", "status": "in_progress"}]),
            call("write_file", file_path="/storage.md", content="# Three ways"),
            "The comparison is in /storage.md.",
        ]
    },
    "docs/quickstart.md": {
        "*": [
            call("write_file", file_path="/haiku.md", content="Rain on the window."),
            "It is in /haiku.md.",
            call("task", subagent_type="critic", description="Judge /haiku.md"),
            "Too short.",
            call("edit_file", file_path="/haiku.md", old_string="window", new_string="window pane"),
            "Done.",
        ]
    },
    "docs/concepts/checks.md": {
        "*": [
            call("write_file", file_path="hello.py", content='import os\n\nprint("hello")\n'),
            "Written.",
            call("write_file", file_path="hello.py", content='print("hello")\n'),
            "Mended.",
        ]
    },
    "docs/backends/state.md": {
        "*": [call("edit_file", file_path="/plan.md", old_string="draft", new_string="final"), "Done."]
    },
    "docs/backends/store.md": {
        "*": [
            call("write_file", file_path="/preferences.md", content="Signs with: Best, Bo"),
            "Noted.",
            call("read_file", file_path="/preferences.md"),
            "Best, Bo",
            call("write_file", file_path="/notes.md", content="Ann's"),
            "Kept.",
        ]
    },
    "docs/backends/composite.md": {
        "*": [
            call("write_file", file_path="/draft.md", content="Dear Ada"),
            call("write_file", file_path="/memories/preferences.md", content="Signs with: Best, Bo"),
            "Drafted, and noted how you sign.",
            call("grep", pattern="Signs with"),
            "Best, Bo",
        ]
    },
    "docs/migration.md": {
        "*": [
            call("write_file", file_path="/memories/tides.md", content="High at noon."),
            call("task", description="Read /memories/tides.md and say when.", subagent_type="reader"),
            "At noon.",
            "High tide is at noon.",
            call("read_file", file_path="/a.txt"),
            "Read.",
        ]
    },
    "docs/concepts/tool-search.md": {
        "*": [
            call("search_tools", query="overdue invoices"),
            call("list_invoices", status="overdue"),
            "Invoice 7.",
        ]
    },
    "docs/concepts/code-mode.md": {
        "*": [
            call(
                "run_code",
                code="""
import asyncio

ports = ["Brest", "Saint-Malo", "Toulon"]
heights = await asyncio.gather(*[tide(port=port) for port in ports])
height, port = max((float(height), port) for height, port in zip(heights, ports))
print(port, height)
""",
            ),
            "In Saint-Malo.",
        ]
    },
    "docs/concepts/agents.md": {
        "*": [
            "Hello. What shall we work on?",
            "Hello.",
            call("write_file", file_path="/a.md", content="A"),
            "Done.",
        ]
    },
    "docs/concepts/backends.md": {
        "*": [call("edit_file", file_path="/notes.md", old_string="one", new_string="two"), "Done."]
    },
    "docs/concepts/web.md": {"*": [call("web_search", query="making tea"), "With boiling water."]},
    "docs/concepts/tools.md": {"*": [call("weather", city="Oslo"), "Yes, it rains in Oslo."]},
    "docs/concepts/files-and-media.md": {
        "*": [call("read_file", file_path="/plan.png"), "A plan of a house."]
    },
    "docs/concepts/memory.md": {
        "*": [
            call("edit_file", file_path="/AGENTS.md", old_string="tabs", new_string="four spaces"),
            "I will remember that.",
            call("write_file", file_path="/me/AGENTS.md", content="Call me Bo."),
            "I will, Bo.",
        ]
    },
    "docs/concepts/skills.md": {
        "*": [
            call("read_file", file_path="/skills/tides/SKILL.md"),
            "Thirteen metres.",
            call("read_file", file_path="/skills/tides/SKILL.md"),
            call("tide", place="Saint-Malo"),
            "Thirteen metres.",
        ]
    },
    "docs/concepts/context.md": {
        "claude-sonnet-4-6": [
            *(call("look_up", topic=f"{kind} whale") for kind in ("blue", "grey", "sperm", "right", "fin")),
            "They are all mammals.",
        ],
        "claude-haiku-4-5": ["Goal: find out about five kinds of whales. See the archive."],
    },
    "docs/concepts/caching.md": {"*": ["Hello."]},
    "docs/concepts/rubric.md": {
        "claude-sonnet-4-6": [
            "Up to 13 metres.",
            "Up to 13 metres, according to the harbour office.",
            "13 metres, according to the harbour office.",
        ],
        "claude-haiku-4-5": [
            _verdict("needs_revision"),
            _verdict("satisfied"),
            _verdict("satisfied"),
        ],
    },
    "docs/concepts/subagents.md": {
        "claude-sonnet-4-6": [
            call("task", subagent_type="researcher", description="How high do tides get in Saint-Malo?"),
            "Thirteen metres.",
            call("task", subagent_type="checker", description="Check the figure of 13 metres."),
            "The figure is right.",
            "Thirteen metres. The figure was checked.",
        ],
        "claude-haiku-4-5": ["Up to 13 m."],
    },
    "docs/concepts/streaming.md": {
        "claude-sonnet-4-6": [
            call("task", subagent_type="researcher", description="How high do tides get in Saint-Malo?"),
            "Thirteen metres.",
        ]
        * 5,
        "claude-haiku-4-5": [call("look_up", place="Saint-Malo"), "Up to 13 m."] * 5,
    },
    "docs/concepts/human-approval.md": {
        "*": [
            call("write_file", file_path="/law.md", content="Be kind."),
            "It is written.",
            call("write_file", file_path="/second.md", content="Be brief."),
            "It is written.",
            call("send", to="Ada", text="Hello"),
            call("send", to="Ada", text="And bye"),
            "Both are sent.",
        ]
    },
    "docs/concepts/permissions.md": {"*": [call("read_file", file_path="/secrets/.env"), "I may not."]},
    "docs/concepts/models.md": {
        "claude-opus-4-6": ["I am the large one."],
        "claude-opus-4-8": [TimeoutError("busy"), TimeoutError("busy")],
        "claude-sonnet-4-6": ["Hello from the second model."],
    },
    "docs/concepts/threat-model.md": {
        "*": [
            call("grep", pattern="KEY"),
            call("read_file", file_path="/secrets/.env"),
            "I cannot see it.",
        ]
    },
    "docs/concepts/limits.md": {"*": [call("ls", path=path) for path in ("/", "/a", "/a/b")]},
    "docs/concepts/errors.md": {
        "*": [
            call("divide", a=1, b=0),
            "One cannot divide by zero.",
            call("ls", path="/"),
            "The files cannot be reached.",
            call("divide", a=1, b=0),
            AIMessage("Once upon a time there", response_metadata={"stop_reason": "max_tokens"}),
        ]
    },
    "docs/concepts/older-versions.md": {"*": [call("ls", path="/"), "/a.md and /b.md."]},
    "docs/concepts/structured-output.md": {
        "*": [_TIDE, call("Tide", **json.loads(_TIDE))],
    },
    "docs/concepts/persistence.md": {
        "*": [
            call("write_file", file_path="/me.md", content="Ann"),
            "Noted.",
            "Ann",
            "Hello, Ann.",
            call("write_file", file_path="/memories/me.md", content="Best, Bo"),
            "Noted.",
            call("read_file", file_path="/memories/me.md"),
            "Best, Bo",
        ]
    },
    "docs/concepts/undo.md": {
        "*": [call("write_file", file_path="/page.html", content="<h1>New</h1>"), "Written."]
    },
    "docs/concepts/mcp.md": {
        "*": [
            call("mcp__clock__time_in", city="Rome"),
            "It is noon in Rome.",
            call("mcp__booking__book", hotel="Hotel Roma"),
            "The room is booked.",
        ]
    },
}
