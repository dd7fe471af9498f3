"""Find a model server on this machine that speaks the OpenAI protocol, by asking the usual ports."""

from __future__ import annotations

import json
import os
import ssl
from collections.abc import AsyncIterator, Iterator
from functools import cache
from http.client import HTTPException
from importlib.util import find_spec
from typing import Any, Final, cast
from urllib.request import Request, urlopen

from langchain_core.exceptions import ModelError
from langchain_core.language_models import BaseChatModel
from langchain_core.outputs import ChatGenerationChunk

from deepagents.errors import UnknownModel

USUAL: Final = {
    "Ollama": "http://127.0.0.1:11434/v1",
    "LM Studio": "http://127.0.0.1:1234/v1",
    "llama.cpp": "http://127.0.0.1:8080/v1",
    "vLLM": "http://127.0.0.1:8000/v1",
}
ADDRESS_VARIABLE: Final = "DEEPAGENTS_LOCAL_SERVER"
_SECONDS: Final = 2.0
_REASONING: Final = ("reasoning_content", "reasoning")
"""The fields in which servers send what a model thinks; the second is that of Ollama and newer vLLM."""


def chat_local_server(name: str, **arguments: Any) -> BaseChatModel:
    """Make a chat model on the first local server that has this model; no name takes its first.

    Args:
        name: of a model on the server.
        arguments: for the chat model, over what a local server is spoken to with.

    Raises:
        UnknownModel: when no server answers, none has the model, or langchain-openai is missing.
    """
    servers = find_local_servers()
    if not servers:
        raise UnknownModel(
            f"No local model server answers at {', '.join(_addresses())}. Start one, or give its address "
            f"in {ADDRESS_VARIABLE}."
        )
    for address, models in servers.items():
        if name in models or (not name and models):
            return _chat(address, name or models[0], arguments)
    offered = "; ".join(f"{address} has {', '.join(models) or 'none'}" for address, models in servers.items())
    raise UnknownModel(f"No local server has a model {name!r}: {offered}.")


def find_local_servers(seconds: float = _SECONDS) -> dict[str, list[str]]:
    """Return the names of the models on each server of this machine that answers in so many seconds."""
    found = {address: _models_at(address, seconds) for address in _addresses()}
    return {address: models for address, models in found.items() if models is not None}


def _addresses() -> list[str]:
    given = os.environ.get(ADDRESS_VARIABLE)
    return [given.rstrip("/")] if given else list(USUAL.values())


def _models_at(address: str, seconds: float) -> list[str] | None:
    try:
        request = Request(f"{address}/models", headers={"Accept": "application/json"})
        with urlopen(request, timeout=seconds) as answer:
            return [entry["id"] for entry in json.load(answer)["data"]]
    except (OSError, HTTPException, ValueError, KeyError, TypeError):
        return None


def _chat(address: str, model: str, arguments: dict[str, Any]) -> BaseChatModel:
    if find_spec("langchain_openai") is None:
        raise UnknownModel(
            "A local server needs langchain-openai: pip install '.[openai]' in a checkout of deepagents."
        )
    usual: dict[str, Any] = {
        "base_url": address,
        "api_key": lambda: "none",
        "use_responses_api": False,
        # A server here may read a prompt for minutes. On Python 3.11 the bound also loses a cancellation that
        # comes together with a piece (python/cpython#86296).
        "stream_chunk_timeout": None,
    }
    if address.startswith("http://"):
        usual |= _clients_without_certificates()
    settings: dict[str, Any] = {**usual, **arguments, "model": model}
    return _chat_class()(**settings)


def _clients_without_certificates() -> dict[str, Any]:
    """Make clients that trust no certificate: none is needed, and to load all takes 40 ms of CPU for each."""
    from openai import DefaultAsyncHttpxClient, DefaultHttpxClient

    trusts_none = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return {
        "http_client": DefaultHttpxClient(verify=trusts_none),
        "http_async_client": DefaultAsyncHttpxClient(verify=trusts_none),
    }


class _CountsStreams(BaseChatModel):
    """Asks for the tokens that a stream takes, which LangChain asks of OpenAI alone.

    A server that refuses the option is asked without it from then on.
    """

    stream_usage: bool | None = True

    def _stream(self, *args: Any, **options: Any) -> Iterator[ChatGenerationChunk]:
        try:
            yield from super()._stream(*args, **options)
        except ModelError as error:
            self._leave_option_out(error)
            yield from super()._stream(*args, **options)

    async def _astream(self, *args: Any, **options: Any) -> AsyncIterator[ChatGenerationChunk]:
        try:
            async for chunk in super()._astream(*args, **options):
                yield chunk
        except ModelError as error:
            self._leave_option_out(error)
            async for chunk in super()._astream(*args, **options):
                yield chunk

    def _leave_option_out(self, error: ModelError) -> None:
        # A refusal comes before the first piece, so that nothing is said twice.
        if not self.stream_usage or "stream_options" not in str(error):
            raise error
        self.stream_usage = False


@cache
def _chat_class() -> type[BaseChatModel]:
    from langchain_openai import ChatOpenAI

    class ChatLocalServer(_CountsStreams, ChatOpenAI):
        """A model on a server of this machine."""

        # LangChain's class leaves out what is not of OpenAI, and says to do this for other servers.
        def _convert_chunk_to_generation_chunk(
            self, chunk: dict[str, Any], default_chunk_class: type, base_generation_info: Any
        ) -> ChatGenerationChunk | None:
            above = super()._convert_chunk_to_generation_chunk  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
            made = cast("Any", above)(chunk, default_chunk_class, base_generation_info)
            choices: list[dict[str, Any]] = chunk.get("choices") or []
            delta: dict[str, Any] = (choices[0].get("delta") if choices else None) or {}
            thought = next(filter(None, map(delta.get, _REASONING)), None)
            if made and thought:
                made.message.additional_kwargs[_REASONING[0]] = str(thought)
            return made

    return ChatLocalServer
