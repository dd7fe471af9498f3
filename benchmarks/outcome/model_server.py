"""The model's own process: answers all arms over a Unix socket, and counts what each attempt uses.

`python -m benchmarks.outcome.model_server SOCKET SETTINGS`, with the settings as JSON.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingUnixStreamServer
from typing import Any, Protocol

from langchain.chat_models import init_chat_model
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, BaseMessage, message_to_dict, messages_from_dict
from langchain_core.messages.ai import InputTokenDetails, UsageMetadata

from benchmarks.outcome.adapter import Tools, read_reply, write_grammar, write_turns
from deepagents_local import DEFAULT_MODEL, PromptTooLong, need_weights
from deepagents_local.engine import Delta, Engine, Event, Finish, Request
from deepagents_local.llama import EngineSettings, get_shared_engine, physical_cores

LOCAL, SCRIPTED = "local", "scripted"
READY = "ready"


@dataclass(frozen=True)
class Settings:
    """What is the same for all arms."""

    model: str
    temperature: float
    turns: int
    window: int
    answer: int


class Model(Protocol):
    """Answers a conversation."""

    def about(self) -> dict[str, Any]:
        """Say which provider's it is, its name, and its profile."""
        ...

    def reply(self, messages: list[BaseMessage], tools: Tools, asked: Mapping[str, Any]) -> AIMessage:
        """Answer, with a call of a tool or without."""
        ...


class Adapted:
    """A model that writes text, behind the adapter."""

    def __init__(self, name: str, engine: Engine, settings: Settings) -> None:
        self._name = name
        self._engine = engine
        self._settings = settings

    def about(self) -> dict[str, Any]:
        """Say which it is. No harness has a profile for its provider."""
        room = self._settings.window - self._settings.answer
        profile = {"max_input_tokens": room, "max_output_tokens": self._settings.answer, "tool_calling": True}
        profile |= dict.fromkeys(("image_inputs", "audio_inputs", "video_inputs", "pdf_inputs"), False)
        return {"provider": "outcome", "name": self._name, "profile": profile}

    def reply(self, messages: list[BaseMessage], tools: Tools, asked: Mapping[str, Any]) -> AIMessage:
        """Answer, with a call of a tool or without."""
        request = Request(
            turns=write_turns(messages, tools),
            grammar=write_grammar(tools),
            max_tokens=self._settings.answer,
            temperature=self._settings.temperature,
            seed=asked["seed"],
        )
        events: list[Event] = []
        try:
            self._engine.complete(request, events.append, lambda: False)
        except PromptTooLong as error:
            raise ContextOverflowError(str(error)) from error
        answer = read_reply("".join(event.text for event in events if isinstance(event, Delta)))
        finish = next(event for event in events if isinstance(event, Finish))
        # As providers do: one that reached the most tokens of an answer says so.
        answer.response_metadata["finish_reason"] = finish.reason
        answer.usage_metadata = UsageMetadata(
            input_tokens=finish.prompt_tokens,
            output_tokens=finish.completion_tokens,
            total_tokens=finish.prompt_tokens + finish.completion_tokens,
            input_token_details=InputTokenDetails(cache_read=finish.cached_tokens),
        )
        return answer


class Named:
    """A model of a provider, by the protocol of that provider."""

    def __init__(self, settings: Settings) -> None:
        self._name = settings.model
        self._model = init_chat_model(
            settings.model, temperature=settings.temperature, max_tokens=settings.answer
        )

    def about(self) -> dict[str, Any]:
        """Say which it is: harnesses may have a profile for it."""
        provider, _, name = self._name.rpartition(":")
        return {"provider": provider, "name": name, "profile": self._model.profile}

    def reply(self, messages: list[BaseMessage], tools: Tools, asked: Mapping[str, Any]) -> AIMessage:
        """Answer, with a call of a tool or without."""
        chosen = {"tool_choice": asked["tool_choice"]} if asked.get("tool_choice") else {}
        return (
            self._model.bind_tools(tools, **chosen).invoke(messages)
            if tools
            else self._model.invoke(messages)
        )


class Scripted:
    """An engine without weights: `{ATTEMPT: [TEXT, ...]}` from a file."""

    def __init__(self, path: Path) -> None:
        self._texts: dict[str, list[str]] = json.loads(path.read_text())

    def complete(self, request: Request, emit: Any, stopped: Any) -> None:
        """Write the next text of the first script whose key stands in the request."""
        told = "\n".join(turn["content"] for turn in request.turns)
        done = sum(turn["role"] == "assistant" for turn in request.turns)
        texts = next(texts for key, texts in self._texts.items() if key in told)
        emit(Delta(texts[min(done, len(texts) - 1)]))
        emit(Finish("stop", len(told) // 4, 0, 10))


def make_model(settings: Settings) -> Model:
    """Make the model by its name: `local`, `scripted:FILE`, or `provider:name`."""
    kind, _, detail = settings.model.partition(":")
    if kind == SCRIPTED:
        return Adapted(kind, Scripted(Path(detail)), settings)
    if kind != LOCAL:
        return Named(settings)
    name = detail or DEFAULT_MODEL
    engine = get_shared_engine(EngineSettings(need_weights(name), settings.window, physical_cores()))
    return Adapted(name, engine, settings)


@dataclass
class Used:
    """What one attempt has used, and what was said last."""

    turns: int = 0
    input: int = 0
    output: int = 0
    cached: int = 0
    said: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def add(self, messages: list[dict[str, Any]], answer: AIMessage) -> None:
        """Count one call."""
        usage = answer.usage_metadata or UsageMetadata(input_tokens=0, output_tokens=0, total_tokens=0)
        self.input += usage["input_tokens"]
        self.output += usage["output_tokens"]
        self.cached += usage.get("input_token_details", {}).get("cache_read", 0)
        self.said = [*messages, message_to_dict(answer)]


class Desk:
    """Answers requests: about the model, about what an attempt has used, and conversations."""

    def __init__(self, model: Model, turns: int) -> None:
        self._model = model
        self._turns = turns
        self._used: dict[str, Used] = {}
        self._lock = threading.Lock()

    def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Answer one request."""
        if asked.get("about"):
            return self._model.about()
        if attempt := asked.get("used"):
            return asdict(self._used.pop(attempt, Used()))
        with self._lock:
            used = self._used.setdefault(asked["attempt"], Used())
            used.turns += 1
        if used.turns > self._turns:
            used.turns = self._turns
            return {"failed": "turns", "why": f"{self._turns} calls of the model are the most"}
        return self._reply(asked, used)

    def _reply(self, asked: dict[str, Any], used: Used) -> dict[str, Any]:
        try:
            answer = self._model.reply(messages_from_dict(asked["messages"]), asked["tools"], asked)
        except ContextOverflowError as error:
            return {"failed": "context", "why": str(error)}
        except Exception as error:  # noqa: BLE001 - Whatever a provider raises ends the attempt, not this process.
            return {"failed": "model", "why": f"{type(error).__name__}: {error}"}
        used.add(asked["messages"], answer)
        return {"message": message_to_dict(answer)}


def serve(path: str, settings: Settings) -> None:
    """Answer until this process is ended."""
    desk = Desk(make_model(settings), settings.turns)

    class Line(StreamRequestHandler):
        def handle(self) -> None:
            answer = desk.answer(json.loads(self.rfile.readline()))
            # An attempt whose time is over does not wait for its answer.
            with suppress(BrokenPipeError):
                self.wfile.write(json.dumps(answer, default=str).encode() + b"\n")

    with ThreadingUnixStreamServer(path, Line) as server:
        server.daemon_threads = True
        print(READY, flush=True)
        server.serve_forever()


if __name__ == "__main__":
    serve(sys.argv[1], Settings(**json.loads(sys.argv[2])))
