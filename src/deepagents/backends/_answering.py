"""What a backend raises, as results and as abilities."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Final, ParamSpec, Protocol, TypeVar

from langgraph.errors import GraphBubbleUp

from deepagents._async import Coro
from deepagents.backends.capabilities import Capabilities
from deepagents.errors import BackendError, ErrorCode

P = ParamSpec("P")
Result_co = TypeVar("Result_co", covariant=True)
_UNTOLD: Final = Capabilities(host=True)


class ResultType(Protocol[Result_co]):
    """A type of result that can be an error."""

    def __call__(self, *, error: str, code: ErrorCode) -> Result_co: ...


def answering(result: ResultType[Result_co]) -> Callable[[Callable[P, Result_co]], Callable[P, Result_co]]:
    """Make a method return the `BackendError`s that it raises as results."""

    def decorate(method: Callable[P, Result_co]) -> Callable[P, Result_co]:
        @wraps(method)
        def answer(*args: P.args, **kwargs: P.kwargs) -> Result_co:
            try:
                return method(*args, **kwargs)
            except BackendError as error:
                return result(error=error.text, code=error.code)

        return answer

    return decorate


def answering_flow(
    result: ResultType[Result_co],
) -> Callable[[Callable[P, Coro[Result_co]]], Callable[P, Coro[Result_co]]]:
    """Make a flow return the `BackendError`s that it raises as results."""

    def decorate(flow: Callable[P, Coro[Result_co]]) -> Callable[P, Coro[Result_co]]:
        @wraps(flow)
        async def answer(*args: P.args, **kwargs: P.kwargs) -> Result_co:
            try:
                return await flow(*args, **kwargs)
            except BackendError as error:
                return result(error=error.text, code=error.code)

        return answer

    return decorate


def abilities(tell: Callable[[str], Capabilities], path: str = "/") -> Capabilities:
    """Return what a backend tells of itself; one that cannot can do nothing, and may be on this machine."""
    try:
        return tell(path)
    except Exception as error:
        if isinstance(error, GraphBubbleUp):
            raise
        return _UNTOLD
