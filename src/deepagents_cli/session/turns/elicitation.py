"""Ask a person what a server wants to know: in a form, else one question after the other."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from deepagents._values import valueclass
from deepagents_cli.protocol import Choice
from deepagents_cli.session.agent.schema import refuse
from deepagents_cli.values import as_list, as_table

ELICITATION: Final = "mcp_elicitation"
"""The kind of question of a server."""
Ask: TypeAlias = Callable[..., Awaitable[Any]]
"""Asks a person, for one of the choices, a text or a form; raises `NotAnswered` where they cancel."""

_DECLINE: Final = Choice("decline", "Decline", "the server reads that you do not want to")
_ANSWER: Final = Choice("accept", "Answer", "you are asked for each part, and then it is sent")
_AGREE: Final = Choice("accept", "Agree", "the server reads that you agree")
_OPENED: Final = Choice("accept", "Agree", "open the address in a browser yourself; nothing here opens it")
_MOST_CHOICES: Final = 9
"""More are listed, and one of them is typed."""


class NotAnswered(Exception):
    """Ends a form without answers; the text is what the server reads: `decline` or `cancel`."""


async def answer_server(asked: Mapping[str, Any], ask: Ask, *, has_forms: bool = False) -> dict[str, Any]:
    """Ask all that a server asks at one time; return the answers as the call that waits takes them.

    What gets no answer is cancelled.
    """
    responses: dict[str, Any] = {}
    for request in asked["requests"]:
        head = f"{request['message']}\n(for a call of {asked['tool_name']})"
        try:
            responses[request["key"]] = await _answer(request, head, ask, has_forms)
        except NotAnswered as how:
            responses[request["key"]] = {"action": str(how)}
    return {"responses": responses}


async def _answer(request: Mapping[str, Any], head: str, ask: Ask, has_forms: bool) -> dict[str, Any]:
    if request["mode"] == "url":
        await _choose(f"{head}\nIt asks you to open: {request['url']}", [_OPENED], ask)
        return {"action": "accept"}
    form = request["requested_schema"]
    if (fields := _fields_of(form)) and has_forms:
        filled = await ask(head, (), form)
        problem = None if filled is None else _find_problem(filled, form)
        if filled is not None and problem is None:
            return {"action": "accept", "content": filled}
        head += f"\nWhat was filled in does not fit: {problem}" if problem else ""
    if not fields or not fields[0].is_choice:
        wanted = f"\nIt wants to know: {', '.join(each.title for each in fields)}" if fields else ""
        await _choose(f"{head}{wanted}", [_ANSWER if fields else _AGREE], ask)
        head = ""
    content: dict[str, Any] = {}
    for each in fields:
        value = await each.ask(head, ask)
        head = ""
        if value is not None:
            content[each.name] = value
    return {"action": "accept", "content": content}


async def _choose(text: str, choices: Sequence[Choice], ask: Ask) -> str:
    """Return the value of the choice that was taken.

    Raises:
        NotAnswered: where none was.
    """
    given = await ask(text, [*choices, _DECLINE])
    if given not in [each.value for each in choices]:
        raise NotAnswered("decline" if given == _DECLINE.value else "cancel")
    return given


@valueclass
class _Field:
    """One value that a server wants; `options` are the values that it may have, with a label each."""

    name: str
    schema: Mapping[str, Any]
    required: bool
    options: Sequence[tuple[Any, str]]

    @property
    def title(self) -> str:
        return str(self.schema.get("title") or self.name)

    @property
    def is_choice(self) -> bool:
        """Whether one of its options is picked; of several, and of many, they are typed."""
        return 0 < len(self.options) <= _MOST_CHOICES and self.schema.get("type") != "array"

    async def ask(self, head: str, ask: Ask) -> Any:
        """Return the value, or `None` where it was left out; what does not fit is asked for again."""
        about = str(self.schema.get("description") or "")
        text = "\n".join(filter(None, [head, ": ".join(filter(None, [self.title, about]))]))
        if self.is_choice:
            choices = [Choice(str(number), label) for number, (_, label) in enumerate(self.options)]
            return self.options[int(await _choose(text, choices, ask))][0]
        text = "\n".join([text, *self._describe()])
        problem = ""
        while True:
            given = (await ask(f"{text}{problem}", ())).strip()
            if not given and (not self.required or "default" in self.schema):
                return self.schema.get("default")
            try:
                return self._read(given)
            except ValueError as error:
                problem = f"\n{error}. Once more:"

    def _describe(self) -> list[str]:
        listed = [f"  {value}{f' ({label})' if label != str(value) else ''}" for value, label in self.options]
        kind = self.schema.get("type")
        words = {"integer": "a whole number", "number": "a number", "array": "with commas between"}
        facts = [words[kind]] if isinstance(kind, str) and kind in words else []
        facts += [f"{self.schema['default']} if empty"] if "default" in self.schema else []
        facts += ["may be empty"] if not self.required and "default" not in self.schema else []
        return [*listed, *([f"({', '.join(facts)})"] if facts else [])]

    def _read(self, given: str) -> Any:
        """Return the value that a text stands for.

        Raises:
            ValueError: saying why it does not fit.
        """
        if not given:
            raise ValueError("It is needed")
        kind = self.schema.get("type")
        if kind in ("integer", "number"):
            try:
                value: Any = int(given) if kind == "integer" else float(given)
            except ValueError:
                raise ValueError(
                    f"{given!r} is not {'a whole' if kind == 'integer' else 'a'} number"
                ) from None
        else:
            value = [each.strip() for each in given.split(",")] if kind == "array" else given
        if problem := _find_problem(value, self.schema):
            raise ValueError(problem)
        return value


def _find_problem(value: Any, schema: Mapping[str, Any]) -> str | None:
    import jsonschema_rs

    try:
        error = next(
            iter(jsonschema_rs.validator_for(dict(schema), retriever=refuse).iter_errors(value)), None
        )
    # A schema that is none bounds nothing; the server looks at the answer too.
    except (ValueError, jsonschema_rs.ValidationError):
        return None
    return error.message if error else None


def _fields_of(schema: object) -> list[_Field]:
    given = as_table(schema)
    needed = as_list(given.get("required"))
    properties = {name: as_table(each) for name, each in as_table(given.get("properties")).items()}
    return [_Field(name, each, name in needed, _options_of(each)) for name, each in properties.items()]


def _options_of(schema: Mapping[str, Any]) -> list[tuple[Any, str]]:
    """Return the values that a field may have, in the forms of all revisions of the protocol."""
    if schema.get("type") == "boolean":
        return [(True, "Yes"), (False, "No")]
    inner = as_table(schema.get("items")) if schema.get("type") == "array" else schema
    if titled := as_list(inner.get("oneOf") or inner.get("anyOf")):
        rows = map(as_table, titled)
        return [(each["const"], str(each.get("title") or each["const"])) for each in rows if "const" in each]
    listed, names = as_list(inner.get("enum")), as_list(inner.get("enumNames"))
    labels = names if len(names) == len(listed) else listed
    return [
        (value, label if isinstance(label, str) else json.dumps(label))
        for value, label in zip(listed, labels, strict=True)
    ]
