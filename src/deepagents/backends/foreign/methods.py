"""Perform operations by the public methods of a backend, in the form and with the options that each has."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from math import ceil
from typing import Any, Final

from deepagents._async import IOCall, in_thread
from deepagents.backends._signatures import MethodFacts, execute_accepts_timeout, method_facts
from deepagents.backends.capabilities import Capabilities
from deepagents.backends.foreign.answers import as_current_result
from deepagents.backends.operations import Execute, Grep, Operation, StartCommand
from deepagents.backends.protocol import BackendProtocol, lacks
from deepagents.errors import BackendError

_USUAL_TIMEOUT: Final = 120
"""Seconds that backends give a command for which no other time was asked."""


async def call_method(backend: BackendProtocol, can: Capabilities, op: Operation) -> Any:
    """Perform an operation by calling its method: return an answer of today, or raise whatever that raises.

    `can` is what the backend can do at its root, and so everywhere below.
    """
    facts = method_facts(type(backend), op.method)
    answer = await _start(backend, can, facts, _as_taken(backend, can, facts, op))
    return as_current_result(backend, op, answer)


async def _start(backend: BackendProtocol, can: Capabilities, facts: MethodFacts, op: Operation) -> Any:
    """Call a method in the form that the driver of this code wants, and that the newest class has."""
    given = _arguments_of(op, facts.options)

    def block() -> Any:
        if facts.blocking is None:
            raise lacks(backend, op.method)
        return facts.blocking.call(getattr(backend, op.method), *given)

    if awaiting := facts.awaiting:
        return await IOCall(block, lambda: awaiting.call(getattr(backend, f"a{op.method}"), *given))
    # What answers from memory needs no thread, unless the method is newer than that claim: it may wait for
    # anything. A search may take seconds too, and would stop an event loop.
    if can.in_process and facts.is_described and not isinstance(op, Grep):
        return block()
    return await in_thread(block)


def _as_taken(backend: BackendProtocol, can: Capabilities, facts: MethodFacts, op: Operation) -> Operation:
    """Return an operation that asks for nothing that this backend could not do.

    Raises:
        BackendError: `not_supported`, where leaving it out would do something else than what was asked.
    """
    kind = type(backend)
    if isinstance(op, Grep) and op.regex and "regex" not in facts.options:
        # Searched literally, an expression would seem to match nothing.
        raise BackendError("not_supported", "This backend finds literal text only; leave regex out.")
    is_ruled = isinstance(op, Execute | StartCommand) and op.allowed and can.ruled
    if is_ruled and "allowed" not in facts.options:
        # It repeats what another backend says of itself, whose rules would be lost on the way.
        raise BackendError(
            "not_supported",
            f"{kind.__name__}.{op.method} takes no `allowed`, so commands would go past the rules. Use the "
            "file tools.",
        )
    return _limit(op, execute_accepts_timeout(kind)) if isinstance(op, Execute) else op


def _limit(op: Execute, takes_timeout: bool) -> Execute:
    """Let a command end within the time that is left."""
    if not takes_timeout:
        if op.timeout is None:
            return op
        raise BackendError(
            "not_supported", "This backend does not support per-command timeout; leave it out."
        )
    if op.left is None:
        return op
    left = max(ceil(op.left), 1)
    # The backend's own default ends the command sooner, so it is not asked for more.
    if op.timeout is None and left >= _USUAL_TIMEOUT:
        return op
    return replace(op, timeout=min(op.timeout or left, left))


def _arguments_of(op: Operation, taken: Collection[str]) -> tuple[list[Any], dict[str, Any]]:
    """Return what the method of an operation is given by position and by name.

    Of the options, those that are `taken` and say more than their default.
    """
    keywords = {each: getattr(op, each) for each in op.by_name}
    for each in op.optional:
        value = getattr(op, each)
        if each in taken and value != op.__dataclass_fields__[each].default:
            keywords[each] = value
    return [getattr(op, each) for each in op.by_position], keywords
