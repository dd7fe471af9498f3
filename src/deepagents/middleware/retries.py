"""Ask the same model again when its failure may pass, and say what is waited for."""

from __future__ import annotations

from collections.abc import Callable

from langgraph.errors import GraphBubbleUp

from deepagents._async import sleep
from deepagents._state.runtime import emit
from deepagents.middleware._base import BaseMiddleware, inner
from deepagents.middleware._requests import Request, Response
from deepagents.models.endings import break_of
from deepagents.models.failures import LONGEST_WAIT, choose_wait, describe_failure, may_pass

__all__ = ["ModelRetryMiddleware"]


class ModelRetryMiddleware(BaseMiddleware):
    """Ask the model again after a failure that may pass, and after an answer that stopped before its end.

    It waits as long as the provider asks for, up to five minutes, else 1, 2, 4 seconds and so on, up to 30.
    Each wait is an event, and the last failure reaches the caller.
    """

    def __init__(self, max_retries: int) -> None:
        super().__init__()
        self.max_retries = max_retries

    async def _around_model(self, request: Request, handler: Callable[[Request], Response]) -> Response:
        for retry in range(self.max_retries):
            try:
                response = await inner(handler, request)
            except GraphBubbleUp:
                raise
            except Exception as error:
                seconds = choose_wait(error, retry)
                if seconds > LONGEST_WAIT or not may_pass(error):
                    raise
                reason = describe_failure(error)
            else:
                if "no_end" not in map(break_of, response.result):
                    return response
                seconds, reason = choose_wait(None, retry), "the answer broke off"
                emit("model_failed", error="BrokenAnswer")
            emit("model_retry", reason=reason, seconds=seconds, retry=retry + 1, retries=self.max_retries)
            await sleep(seconds)
        return await inner(handler, request)
