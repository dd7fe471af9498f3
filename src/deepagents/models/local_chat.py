"""A chat model on a server of this machine, which is asked to count the tokens of what it streams."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any, Final

from langchain_core.outputs import ChatGenerationChunk
from langchain_openai import ChatOpenAI
from openai import APIStatusError

_OPTION: Final = "stream_options"


class ChatLocalServer(ChatOpenAI):
    """Asks for the tokens that a stream takes, which LangChain does of OpenAI alone.

    A server that refuses the option is asked without it from then on.
    """

    stream_usage: bool | None = True

    def _stream(self, *args: Any, **options: Any) -> Iterator[ChatGenerationChunk]:
        try:
            yield from super()._stream(*args, **options)
        except APIStatusError as error:
            self._leave_out_option(error)
            yield from super()._stream(*args, **options)

    async def _astream(self, *args: Any, **options: Any) -> AsyncIterator[ChatGenerationChunk]:
        try:
            async for chunk in super()._astream(*args, **options):
                yield chunk
        except APIStatusError as error:
            self._leave_out_option(error)
            async for chunk in super()._astream(*args, **options):
                yield chunk

    def _leave_out_option(self, error: APIStatusError) -> None:
        # The status comes before the first piece, so that nothing is said twice.
        if not self.stream_usage or _OPTION not in f"{error} {error.body}":
            raise error
        self.stream_usage = False
