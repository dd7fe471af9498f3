"""Let each provider's own middleware mark the request, and bound the number of marks.

An agent has a stand-in for each of them, which imports the provider's package only for its models.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cached_property
from importlib import import_module
from typing import Any, ClassVar, Final

from deepagents._async import IOCall
from deepagents.middleware._base import BaseMiddleware, Middleware, inner
from deepagents.middleware._requests import Request, Response, with_messages
from deepagents.middleware.prompt_caching.marks import (
    bound_marks,
    is_from,
    with_dict_blocks,
    without_own_marks,
)

__all__ = [
    "AnthropicPromptCachingMiddleware",
    "BedrockPromptCachingMiddleware",
    "FireworksPromptCachingMiddleware",
    "PromptCachingMiddleware",
]

_MODULE: Final = "middleware.prompt_caching"
_log = logging.getLogger(__name__)


class PromptCachingMiddleware(BaseMiddleware):
    """Stands in for the caching middleware of a package, which is made when a model of that package is used.

    Args:
        marking: the provider's middleware, set up by the caller; default one as the package makes it.
    """

    package: ClassVar[str]
    """The package that the models come from, and the middleware that marks their requests."""
    kind: ClassVar[str | None] = None
    """The class that a model must derive from, where not every model of the package will do."""

    def __init__(self, marking: Middleware | None = None) -> None:
        super().__init__()
        self._given = marking

    @classmethod
    def stands_for(cls, kind: type) -> bool:
        """Return whether a class is the one of the provider's package that this stands in for."""
        return kind.__name__ == cls.__name__ and kind.__module__.partition(".")[0] == cls.package

    async def _around_model(self, request: Request, handler: Callable[[Request], Response]) -> Response:
        is_theirs = is_from(request.model, self.package, self.kind)
        marking = self._marking if is_theirs else self._given
        if marking is None:
            return await inner(handler, self._without_marks(request))
        before = with_dict_blocks(with_messages(request))

        def handle(marked: Request) -> Any:
            return handler(bound_marks(before, marked))

        call: IOCall[Any] = IOCall(
            lambda: marking.wrap_model_call(before, handle),
            lambda: marking.awrap_model_call(before, handle),
        )
        return await call

    def _without_marks(self, request: Request) -> Request:
        return request

    @cached_property
    def _marking(self) -> Middleware | None:
        return self._given or _make(f"{self.package}.{_MODULE}", type(self).__name__)


class AnthropicPromptCachingMiddleware(PromptCachingMiddleware):
    """Caches the prompts of a `ChatAnthropic`; requests to other models lose the library's marks."""

    package = "langchain_anthropic"
    kind = "ChatAnthropic"

    def _without_marks(self, request: Request) -> Request:
        return without_own_marks(request)


class BedrockPromptCachingMiddleware(PromptCachingMiddleware):
    """Caches the prompts of models of `langchain_aws`, where it is installed."""

    package = "langchain_aws"


class FireworksPromptCachingMiddleware(PromptCachingMiddleware):
    """Keeps the requests of a thread at one replica of Fireworks (`langchain_fireworks`)."""

    package = "langchain_fireworks"


STAND_INS: Final[tuple[type[PromptCachingMiddleware], ...]] = (
    AnthropicPromptCachingMiddleware,
    BedrockPromptCachingMiddleware,
    FireworksPromptCachingMiddleware,
)
"""One for each package that has a middleware of this kind."""


def _make(module: str, name: str) -> Middleware | None:
    """Make a provider's middleware; `None` where its package is missing or has none."""
    try:
        made = getattr(import_module(module), name, None)
    except ImportError as error:
        # A missing package is not an error; one that is there and cannot be imported must say why.
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        made = None
    if made is None:
        _log.debug("prompt caching is off: there is no %s.%s", module, name)
        return None
    return made(unsupported_model_behavior="ignore")
