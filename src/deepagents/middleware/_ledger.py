"""What an agent and all below it have spent: counted live over the tree, and saved with each agent.

An account is open for as long as a run lasts, and for each call of a model or a tool there is one below it.
What a call spent is written to its agent's channel when the call is done, so that a run that is taken up
again, by this process or another, goes on counting where it was, and counts nothing twice.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import Any, Final, Self, cast

from langgraph.channels.binop import BinaryOperatorAggregate

from deepagents._channels import running_channel, step_under_way, write_channel
from deepagents._deadline import due_in
from deepagents._flow import Call as IO
from deepagents._flow import Flow
from deepagents.limits import COUNTED, Kind
from deepagents.middleware._accounts import SECONDS, TOLD, Account, Spent

CHANNEL: Final = "_limits_spent"
_ANEW: Final = "anew"
_CURRENT: ContextVar[Account | None] = ContextVar("deepagents_account", default=None)


def merge_spent(known: Spent, write: Spent) -> Spent:
    """Add what was spent; time is told as a whole, and so is what the model was told of."""
    if write.get(_ANEW):
        return {}
    merged = {**known}
    for key, value in write.items():
        if key == SECONDS:
            merged[key] = max(merged.get(key, 0.0), value)
        elif key == TOLD:
            merged[key] = sorted({*merged.get(key, ()), *value})
        else:
            merged[key] = merged.get(key, 0) + value
    return merged


class SpentChannel(BinaryOperatorAggregate[Spent]):
    """What an agent has spent, saved as numbers; while it runs, its open account stands beside them."""

    def __init__(self, typ: Any, operator: Any) -> None:
        super().__init__(typ, operator)
        self._account: Account | None = None
        self.seed: Account | None = None
        self._opening = Lock()

    @property
    def account(self) -> Account | None:
        """The account that is open, if one is."""
        return self._account

    def from_checkpoint(self, checkpoint: Any) -> Self:
        """Return a channel with what was saved; below another account, that counts there from now on."""
        channel = super().from_checkpoint(checkpoint)
        above, saved = _CURRENT.get(), cast(Any, channel).value
        if above is not None and saved:
            channel.seed = Account(above)
            channel.seed.at_least(saved)
        return channel

    def opened(self, make: Callable[[], Account], *, anew: bool = False) -> Account:
        """Return the account of this run, made on first use, with no less in it than was saved."""
        with self._opening:
            if self._account is None or anew:
                if self.seed is not None:
                    self.seed.void()
                    self.seed = None
                self._account = make()
            account = self._account
        if not anew:
            account.at_least(cast(Any, self).value)
        return account


def spent_channel() -> SpentChannel:
    """Make the channel that holds what an agent has spent."""
    return SpentChannel(dict, merge_spent)


def current() -> Account | None:
    """Return the account that what runs here counts for."""
    return _CURRENT.get()


@contextmanager
def counting_for(call: Account) -> Generator[None]:
    """Let what runs meanwhile count for this account, and know how long it may take."""
    token = _CURRENT.set(call)
    try:
        with due_in(call.seconds_left()):
            yield
    finally:
        _CURRENT.reset(token)


def channel_here() -> SpentChannel | None:
    """Return the running graph's channel of what was spent, if it has one."""
    found = running_channel(CHANNEL)
    return found if isinstance(found, SpentChannel) else None


def catch_up(agent: Account) -> Flow[None]:
    """Count what calls of this step spent that were done before the run was taken up again."""
    found = step_under_way()
    if found is None:
        return
    saver, place = found
    saved = yield from IO(lambda: saver.get_tuple(place), lambda: saver.aget_tuple(place))
    writes = saved.pending_writes or () if saved else ()
    done = [cast("Spent", value) for _, key, value in writes if key == CHANNEL]
    for kind in COUNTED:
        if kind != SECONDS:
            agent.add(kind, sum(each.get(kind, 0) for each in done))


def settle(agent: Account, call: Account | None, told: list[Kind] | None = None) -> None:
    """Save what a call spent with the agent that made it."""
    write_channel(CHANNEL, agent.due(call, told or []))


def anew() -> dict[str, Any]:
    """Return the write with which a budget begins."""
    return {_ANEW: True}
