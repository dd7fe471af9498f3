"""Show the model, its context, and what was used."""

from __future__ import annotations

import json
from asyncio import create_task, to_thread
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.runnables.config import set_config_context
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.graph import END

from deepagents.middleware.summarization import SummarizationMiddleware
from deepagents.models.traits import input_window
from deepagents_cli.errors import CommandError
from deepagents_cli.project.models import find_models
from deepagents_cli.protocol import Choice, Result
from deepagents_cli.session.agent.effort import DEFAULT, effort_levels
from deepagents_cli.session.conversation.conversation import Conversation
from deepagents_cli.session.slash.command import SlashCommand, until_stopped
from deepagents_cli.session.slash.project import describe_skills
from deepagents_cli.session.threads.driver import is_from_harness, messages_in
from deepagents_cli.session.threads.usage import sum_used
from deepagents_cli.session.turns.steering import NODE

_WIDTH: Final = 24
"""Columns of a bar; a line has fewer than 60."""
_STYLES: Final = ("35", "34", "36", "33", "32", "31", "95", "94")
_FREE: Final = "90"
_KEPT: Final = 4
"""Messages that stay whole when the context is made smaller."""


async def _model(talk: Conversation, name: str) -> Result:
    if not name:
        found = await to_thread(find_models)
        choices = [Choice(each.name, each.name, each.missing or each.detail, each.usable) for each in found]
        return Result(choices=choices)
    talk.require_idle("change the model")
    await to_thread(talk.workplace.choose_model, name)
    talk.driver.agent = talk.make_agent()
    talk.say_status()
    return Result(text=f"From now on {talk.workplace.label} answers.")


async def _effort(talk: Conversation, level: str) -> Result:
    place = talk.workplace
    levels = effort_levels(place.model)
    if not level and not levels:
        raise CommandError(f"{place.label} has no levels of effort to choose from")
    if not level:
        present = place.effort or DEFAULT
        return Result(
            choices=[Choice(each, each, "now" if each == present else "") for each in (DEFAULT, *levels)]
        )
    talk.require_idle("change the effort")
    chosen = None if level == DEFAULT else level
    place.choose_effort(chosen)
    talk.driver.agent = talk.make_agent()
    place.record.save_effort(talk.thread, chosen)
    talk.say_status()
    if chosen is None:
        return Result(text=f"From now on the provider of {place.label} chooses the effort.")
    return Result(text=f"From now on {place.label} reasons with effort {chosen}.")


async def _cost(talk: Conversation, arguments: str) -> Result:
    await talk.workplace.usage.finish()
    used = talk.workplace.usage.used
    if not used:
        return Result(text="Nothing was used yet.")
    lines = ["| agent | model | read | of it cached | written | cost |", "|---|---|---|---|---|---|"]
    lines += [
        f"| {each.agent or 'main'} | {each.model} | {each.tokens.input:,} "
        f"| {each.tokens.cached:,} | {each.tokens.output:,} | {_money(each.cost)} |"
        for each in sorted(used, key=lambda each: -each.tokens.input)
    ]
    lines += ["", f"In all: {_money(sum_used(used)[1])}"]
    if breaks := talk.workplace.usage.breaks:
        counts = ", ".join(f"{reason} {count}" for reason, (count, _) in sorted(breaks.items()))
        lost = sum(tokens for _, tokens in breaks.values())
        lines += ["", f"The provider's cache was broken ({counts}): about {lost:,} tokens were lost from it."]
    return Result(text="\n".join(lines))


async def _compact(talk: Conversation, arguments: str) -> Result:
    talk.require_idle("compact the context")
    return await compact(talk, _KEPT)


async def compact(talk: Conversation, keep: int) -> Result:
    """Replace all messages but the last ones by a summary."""
    driver, done = talk.driver, await until_stopped(talk, _summarize(talk, keep))
    if done is None:
        return Result(text="There is nothing to compact yet.")
    count, update = done
    await driver.agent.aupdate_state(driver.config, update, as_node=NODE)
    await driver.agent.aupdate_state(driver.config, None, as_node=END)
    return Result(text=f"{count} messages were replaced by a summary; they are kept whole in an archive.")


async def _summarize(talk: Conversation, keep: int) -> tuple[int, Mapping[str, Any]] | None:
    state = await talk.driver.read()
    if not messages_in(state):
        return None
    place = talk.workplace
    summarizing = SummarizationMiddleware(
        place.model, backend=place.policy.backend, trigger=("messages", 1), keep=("messages", keep)
    )
    # So that the archive is that of this thread, as where the agent compacts by itself.
    with set_config_context(talk.driver.config) as context:
        return await create_task(summarizing.acompact(state.values), context=context)


async def _context(talk: Conversation, arguments: str) -> Result:
    parts = await _count_parts(talk)
    window = input_window(talk.workplace.model)
    total = sum(parts.values())
    most = max(window or total, 1)
    lines = [_line(name, count, most, _STYLES[at % 8]) for at, (name, count) in enumerate(parts.items())]
    if window:
        lines.append(_line("free", max(window - total, 0), most, _FREE))
    known = f"of {window:,} tokens" if window else "tokens; the model's window is not known"
    if talk.steering.request is None:
        lines += [
            "",
            "The system prompt and the tools come in addition;",
            "their size is known after a first step.",
        ]
    return Result(ansi="\n".join([f"About {total:,} {known}", "", *lines]))


async def _count_parts(talk: Conversation) -> dict[str, int]:
    """Estimate the tokens of each part of the next request."""
    project, request = talk.workplace.project, talk.steering.request
    memory = sum(_tokens(each.read_text("utf-8", "replace")) for each in project.memory())
    skills = sum(_tokens(each) for each in await to_thread(describe_skills, project))
    given = request.tools if request else ()
    sent = [convert_to_openai_tool(each) if isinstance(each, BaseTool) else each for each in given]
    tools = [json.dumps(each, default=str) for each in sent]
    system = request.system_message if request else None
    prompt = max(_tokens(system.text) - memory - skills, 0) if system else 0
    kinds: Counter[str] = Counter()
    for each in messages_in(await talk.driver.read()):
        kinds.update(_count(each))
    fixed = {"system prompt": prompt, "memory": memory, "skills": skills, "tools": sum(map(_tokens, tools))}
    return {name: count for name, count in {**fixed, **kinds}.items() if count}


def _count(message: BaseMessage) -> dict[str, int]:
    count = count_tokens_approximately([message])
    match message:
        case HumanMessage():
            return {"harness" if is_from_harness(message) else "your messages": count}
        case AIMessage(tool_calls=calls):
            of_calls = min(_tokens(json.dumps(calls, default=str)), count) if calls else 0
            return {"answers": count - of_calls, "calls": of_calls}
        case ToolMessage():
            return {"results": count}
        case _:
            return {"other messages": count}


def _line(name: str, count: int, most: int, style: str) -> str:
    filled = max(round(_WIDTH * count / most), 1 if count else 0)
    bar = f"\x1b[{style}m{'█' * filled}\x1b[0m{'·' * (_WIDTH - filled)}"
    return f"{name:15} {bar} {count:>10,} {count / most:>4.0%}"


def _tokens(text: str) -> int:
    return len(text) // 4


def _money(cost: float | None) -> str:
    return "not known" if cost is None else f"${cost:,.4f}"


COMMANDS: Sequence[SlashCommand] = (
    SlashCommand("model", "show or change the model", "[PROVIDER:NAME]", _model),
    SlashCommand("effort", "show or change how much the model reasons", "[low|medium|high|...]", _effort),
    SlashCommand("compact", "replace older messages by a summary now", "", _compact),
    SlashCommand("context", "show what fills the model's window", "", _context),
    SlashCommand("cost", "show tokens and cost by agent and model", "", _cost),
)
