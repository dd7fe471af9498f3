"""List the built-in harness profiles by their keys: habits that models do not have themselves."""

from __future__ import annotations

from typing import Final

from deepagents.profiles.harness.profile import HarnessProfile

_CLAUDE: Final = """\
<use_parallel_tool_calls>
Make all calls that do not need each other's results in one turn: three files to read are three calls at \
once. Call one after the other only where an argument comes from an earlier result; never guess one.
</use_parallel_tool_calls>

<investigate_before_answering>
Say nothing about a file, a function or a result that you have not looked at. When the user names a file, \
read it before you answer. What you infer and have not seen, mark as a guess.
</investigate_before_answering>

<tool_result_reflection>
After each result ask whether it is what you expected and what it changes, then choose the next step from \
that. A result that surprises you is followed up before you go on.
</tool_result_reflection>"""

_OPUS: Final = """\
<tool_usage>
What can change or be looked up, look up: files, states, versions, figures. Prefer one more call to an \
answer from memory.
</tool_usage>

<subagent_usage>
Do not delegate what you can do in one reply. Where several pieces of work do not need each other, such as \
many files to go through, start a subagent for each in one turn.
</subagent_usage>"""

# The plan that it speaks of is the agent's own to-do list.
_CODEX: Final = """\
## Codex-Specific Behavior

- Work on your own: find what you need, change it, check it. Stop to ask only where you cannot go on safely.
- A request for work is a request for the work itself, not for a plan or a proposal of it.
- Go on until the task is done from end to end. A failure on the way is a step, not the end.
- Begin with the work, without announcing it.

## Parallel Tool Use

- Decide first what you need to see, then ask for all of it in one turn.
- Call one after the other only where a call needs the result of another.

## Plan Hygiene

- Before you finish, each step of the to-do list is completed, or dropped with a reason.
- Make no plan of a single step, and do not end your turn with a plan alone."""

BUILT_IN: Final = {
    # Only where an agent has `web_search()`: the providers bill each search.
    "anthropic": HarnessProfile(
        web_search={"type": "web_search_20250305", "name": "web_search", "max_uses": 8}
    ),
    "openai": HarnessProfile(web_search={"type": "web_search"}),
    "google_genai": HarnessProfile(web_search={"google_search": {}}),
    **dict.fromkeys(
        ("anthropic:claude-sonnet-4-6", "anthropic:claude-haiku-4-5"),
        HarnessProfile(system_prompt_suffix=_CLAUDE),
    ),
    "anthropic:claude-opus-4-7": HarnessProfile(system_prompt_suffix=f"{_CLAUDE}\n\n{_OPUS}"),
    **dict.fromkeys(
        ("openai:gpt-5.1-codex", "openai:gpt-5.2-codex", "openai:gpt-5.3-codex"),
        HarnessProfile(system_prompt_suffix=_CODEX),
    ),
}
