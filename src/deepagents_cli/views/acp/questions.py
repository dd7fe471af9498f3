"""Ask the person, through the client, about calls that wait and about what has answers to choose from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from acp import helpers, schema
from acp.exceptions import RequestError
from acp.interfaces import Client
from pydantic import ValidationError

from deepagents_cli import protocol
from deepagents_cli.text import clean
from deepagents_cli.values import SCOPES, Scope
from deepagents_cli.views.acp import updates

Pending: TypeAlias = protocol.Decide | protocol.Answer | protocol.Stop
"""What a question ends with."""
_SCOPES: Final[Sequence[Scope]] = ("session", "directory")
_PLAN_KINDS: Final[dict[str, schema.PermissionOptionKind]] = {"auto": "allow_always", "plan": "reject_once"}
_FIELD: Final = "answer"
_CANNOT: Final = (
    "Refused: the editor could not ask the person about this call. Do not try again; say in your answer what "
    "you would have done."
)


async def ask_client(
    client: Client, session: str, asked: protocol.Ask | protocol.Question, plan_call: str | None
) -> tuple[Pending, list[updates.Update]]:
    """Ask, and return the answer with what is to be shown of it; without one, the turn stops."""
    if isinstance(asked, protocol.Ask):
        call, answers = _of_call(asked), _answers(asked)
    else:
        call, answers = _of_question(asked, plan_call), _choices(asked)
    options = [each for each, _ in answers.values()]
    try:
        response = await client.request_permission(session_id=session, tool_call=call, options=options)
    except (RequestError, ValidationError):
        # Nobody was asked, and so nobody has agreed.
        refusal = protocol.Decide(asked.id, "reject", _CANNOT, unasked=True)
        return (refusal if isinstance(asked, protocol.Ask) else protocol.Stop()), []
    except ConnectionError:
        return protocol.Stop(), []
    is_own = isinstance(asked, protocol.Question) or asked.call_id is None
    # A question about no call of a tool has no result that would end it.
    further = [helpers.update_tool_call(call.tool_call_id, status="completed")] if is_own else []
    if not isinstance(response.outcome, schema.AllowedOutcome):
        return protocol.Stop(), []
    known = answers.get(response.outcome.option_id)
    return (protocol.Stop() if known is None else known[1]), [*further]


async def ask_in_form(client: Client, session: str, asked: protocol.Question) -> Pending | None:
    """Ask in a form of the client, and return the answer; `None` where it can show none for a text."""
    wanted = asked.form or {"properties": {_FIELD: {"type": "string", "title": "Answer"}}}
    message = updates.sound(f"{asked.agent or 'The agent'}: {asked.text}")
    try:
        form = schema.ElicitationSchema.model_validate(wanted)
        mode = schema.ElicitationFormSessionMode(session_id=session, requested_schema=form)
        response = await client.create_elicitation(message, mode)
    except (RequestError, ValidationError):
        return protocol.Answer(asked.id, "") if asked.form else None
    except ConnectionError:
        return protocol.Stop()
    if isinstance(response, schema.AcceptElicitationResponse):
        content = response.content or {}
        return protocol.Answer(asked.id, str(content.get(_FIELD, "")), content=content)
    if not asked.can_cancel:
        return protocol.Stop()
    declined = isinstance(response, schema.DeclineElicitationResponse)
    return protocol.Answer(asked.id, "decline" if declined else "", cancelled=True)


_Answers: TypeAlias = dict[str, tuple[schema.PermissionOption, protocol.Decide | protocol.Answer]]


def _of_call(asked: protocol.Ask) -> schema.ToolCallUpdate:
    who = f"{asked.agent or 'The agent'} {asked.title}"
    shown = "\n".join(asked.details)
    details = updates.differences(asked.changes) or ([updates.fenced(shown, whole=True)] if shown else [])
    return schema.ToolCallUpdate(
        tool_call_id=asked.call_id or asked.id,
        title=updates.sound(asked.line or who),
        kind=updates.kind_of((asked.line or "").partition(" ")[0]),
        status="pending",
        content=[updates.written(who), *details],
    )


def _answers(asked: protocol.Ask) -> _Answers:
    made: _Answers = {}

    def add(number: str, name: str, kind: schema.PermissionOptionKind, answer: protocol.Decide) -> None:
        made[number] = schema.PermissionOption(option_id=number, name=updates.sound(name), kind=kind), answer

    if "approve" in asked.choices:
        add("allow", "Allow", "allow_once", protocol.Decide(asked.id, "approve"))
        for number, (rule, label) in enumerate(asked.rules.items()):
            for scope in _SCOPES:
                always = protocol.Decide(asked.id, "approve", rule=rule, scope=scope)
                name = f"Always: {label}, {SCOPES[scope]}"
                add(f"always-{number}-{scope}", name, "allow_always", always)
    add("reject", "Reject", "reject_once", protocol.Decide(asked.id, "reject"))
    return made


def _of_question(asked: protocol.Question, plan_call: str | None) -> schema.ToolCallUpdate:
    is_plan = asked.is_plan and plan_call is not None
    title = "Plan" if asked.is_plan else f"{asked.agent or 'The agent'} asks"
    return schema.ToolCallUpdate(
        tool_call_id=plan_call if is_plan and plan_call else asked.id,
        title=updates.sound(title),
        kind="switch_mode" if asked.is_plan else "other",
        status="pending",
        content=[updates.written(asked.text if asked.is_plan else clean(asked.text))],
    )


def _choices(asked: protocol.Question) -> _Answers:
    made: _Answers = {}
    for each in asked.choices:
        kind = _PLAN_KINDS.get(each.value, "allow_once") if asked.is_plan else "allow_once"
        name = updates.sound(f"{each.label} ({each.detail})" if each.detail else each.label)
        option = schema.PermissionOption(option_id=each.value, name=name, kind=kind)
        made[each.value] = option, protocol.Answer(asked.id, each.value)
    return made
