"""Adapt backends of other people, once, when they are opened.

A backend of ours performs operations. One of somebody else has public methods, of any generation and with
any signatures; and a subclass of ours may have written some anew. Only what is here knows of that.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from deepagents.backends._signatures import appends, is_written_anew
from deepagents.backends.capabilities import Capabilities
from deepagents.backends.foreign.enforcement import Enforcement, enforces
from deepagents.backends.foreign.methods import call_method
from deepagents.backends.foreign.whole import append_whole, edit_at_once
from deepagents.backends.operations import (
    COMMAND_METHODS,
    METHODS,
    CapturedExecute,
    Edit,
    Execute,
    Operation,
    OperationBackend,
    Perform,
    Resolve,
    TransferBackend,
)
from deepagents.backends.protocol import BackendProtocol
from deepagents.backends.results import ExecuteOffloadResult


def find_foreign(backend: BackendProtocol, *, is_tree: bool = False) -> frozenset[str]:
    """Return the methods that are to be called, because a backend does not perform what they do.

    A tree performs commands and finds where paths lead too, but where a subclass has written that anew.
    """
    kind = type(backend)
    if not isinstance(backend, OperationBackend):
        return frozenset((*METHODS, *COMMAND_METHODS))
    called = [each for each in METHODS if not _is_made(backend, each)]
    if is_tree:
        called += [each for each in (*COMMAND_METHODS, Resolve.method) if is_written_anew(kind, each)]
    else:
        called += [each for each in COMMAND_METHODS if hasattr(kind, each)]
    return frozenset(called)


def _is_made(backend: BackendProtocol, method: str) -> bool:
    """Return whether both forms of a method are those that only make an operation of its arguments."""
    return all(
        each not in vars(backend) and getattr(type(backend), each, None) is getattr(TransferBackend, each)
        for each in (method, f"a{method}")
    )


def adapt(
    backend: BackendProtocol,
    methods: frozenset[str],
    can: Capabilities,
    following: Perform,
    check: Callable[[Perform], Perform],
) -> Perform:
    """Make what performs some operations by methods of a backend, and lets it perform the others.

    `check` makes what performs operations raise `BackendError`, whatever goes wrong.
    """
    kind = type(backend)
    performing = check(divert(methods, partial(call_method, backend, can), following))
    if Edit.method in methods:
        performing = partial(edit_at_once, following=performing)
    if not appends(kind):
        performing = partial(append_whole, following=performing)
    # A layer that is not needed is not there: files in memory take microseconds, layers too.
    if not all(enforces(kind, each) for each in METHODS):
        performing = partial(Enforcement(backend, can.in_process).enforce, following=performing)
    return performing


def divert(methods: frozenset[str], called: Perform, following: Perform) -> Perform:
    """Make what performs the operations of some methods in another way."""

    async def perform(op: Operation) -> Any:
        if op.method in methods:
            return await called(op)
        if isinstance(op, CapturedExecute) and Execute.method in methods:
            # The inherited method would run the command past the class's own `execute`.
            plain = Execute(
                op.command, op.timeout, op.left,
                allowed=op.allowed, seconds=op.seconds, on_output=op.on_output,
            )  # fmt: skip
            return ExecuteOffloadResult(False, await called(plain))
        return await following(op)

    return perform
