"""ModelFallbackMiddleware: when a model fails, others are asked, but not about a request that is too long."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from langchain.agents.middleware import ModelFallbackMiddleware as Asking
from langgraph.errors import GraphBubbleUp

from deepagents._async import IOCall, arun, run
from deepagents.middleware._base import BaseMiddleware, Middleware, Request, Response, inner

__all__ = ["ModelFallbackMiddleware"]


class _Passed(GraphBubbleUp):
    """Carries an error out of LangChain's loop over models, which asks the next one after any other error.

    LangChain's middleware takes no rule about which errors to ask others for, but what LangGraph steers a run
    by goes through it untouched. This is raised below it and caught above it, so nobody else ever sees one.
    """

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


class ModelFallbackMiddleware(BaseMiddleware):
    """Ask other models by LangChain's middleware; what is none of theirs to cure passes it at once.

    Args:
        asking: LangChain's middleware, with the models to ask.
        passes: tells the errors that another model is not asked for.
    """

    def __init__(self, asking: Asking[Any, Any], passes: Callable[[BaseException], bool]) -> None:
        super().__init__()
        self.models = asking.models
        self._asking: Middleware = asking
        self._passes = passes

    async def _around_model(self, request: Request, handler: Callable[[Request], Response]) -> Response:
        call: IOCall[Any] = IOCall(
            lambda: self._asking.wrap_model_call(request, lambda each: run(self._tried(each, handler))),
            lambda: self._asking.awrap_model_call(request, lambda each: arun(self._tried(each, handler))),
        )
        try:
            return await call
        except _Passed as passed:
            refusal = passed.error
        raise refusal

    async def _tried(self, request: Request, handler: Callable[[Request], Response]) -> Response:
        try:
            return await inner(handler, request)
        except Exception as error:
            if not self._passes(error):
                raise
            raise _Passed(error) from error


def passing(middleware: Middleware, passes: Callable[[BaseException], bool]) -> Middleware:
    """Return LangChain's own middleware with what passes it; any other as it is.

    A subclass decides for itself which errors it asks others for, and may have hooks, tools and state of its
    own, which would not be seen inside another middleware.
    """
    return ModelFallbackMiddleware(middleware, passes) if type(middleware) is Asking else middleware
