"""Ask other models when one fails, but not about a request that is too long."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from langchain.agents.middleware import ModelFallbackMiddleware as LangChainFallback
from langgraph.errors import GraphBubbleUp

from deepagents._async import IOCall, arun, run
from deepagents.middleware._base import BaseMiddleware, Middleware, inner
from deepagents.middleware._requests import Request, Response

__all__ = ["ModelFallbackMiddleware"]


class _Escape(GraphBubbleUp):
    """Carries an error out of LangChain's loop over models, which asks the next one after any other error.

    LangChain's middleware takes no rule about which errors to ask others for, but exceptions by which
    LangGraph steers a run go through it untouched. This one is raised inside the loop and caught outside it.
    """

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


class ModelFallbackMiddleware(BaseMiddleware):
    """Ask other models by LangChain's middleware, except after errors that none of them could cure.

    Args:
        asking: LangChain's middleware, with the models to ask.
        passes: returns whether an error goes to the caller at once.
    """

    def __init__(self, asking: LangChainFallback[Any, Any], passes: Callable[[BaseException], bool]) -> None:
        super().__init__()
        self.models = asking.models
        self._asking: Middleware = asking
        self._passes = passes

    async def _around_model(self, request: Request, handler: Callable[[Request], Response]) -> Response:
        call: IOCall[Any] = IOCall(
            lambda: self._asking.wrap_model_call(request, lambda each: run(self._try(each, handler))),
            lambda: self._asking.awrap_model_call(request, lambda each: arun(self._try(each, handler))),
        )
        try:
            return await call
        except _Escape as escape:
            error = escape.error
        # Raised outside of the `except`: there it would get the escape as its context.
        raise error

    async def _try(self, request: Request, handler: Callable[[Request], Response]) -> Response:
        try:
            return await inner(handler, request)
        except Exception as error:
            if not self._passes(error):
                raise
            raise _Escape(error) from error


def passing(middleware: Middleware, passes: Callable[[BaseException], bool]) -> Middleware:
    """Return LangChain's own middleware wrapped, so that some errors pass it; any other as it is.

    A subclass decides for itself which errors it asks others for, and may have hooks, tools and state of its
    own, which would not be seen inside another middleware.
    """
    return (
        ModelFallbackMiddleware(middleware, passes) if type(middleware) is LangChainFallback else middleware
    )
