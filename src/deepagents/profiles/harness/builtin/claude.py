"""Profiles for models of Anthropic: habits that they do not have by themselves."""

from __future__ import annotations

from typing import Final

from deepagents.profiles.harness.profile import HarnessProfile

WITH_HABITS: Final = ("anthropic:claude-sonnet-4-6", "anthropic:claude-haiku-4-5")
OPUS: Final = "anthropic:claude-opus-4-7"

_COMMON: Final = """\
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

_OF_OPUS: Final = """\
<tool_usage>
What can change or be looked up, look up: files, states, versions, figures. Prefer one more call to an \
answer from memory.
</tool_usage>

<subagent_usage>
Do not delegate what you can do in one reply. Where several pieces of work do not need each other, such as \
many files to go through, start a subagent for each in one turn.
</subagent_usage>"""

HABITS: Final = HarnessProfile(system_prompt_suffix=_COMMON)
HABITS_OF_OPUS: Final = HarnessProfile(system_prompt_suffix=f"{_COMMON}\n\n{_OF_OPUS}")
