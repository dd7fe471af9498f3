"""Run llama.cpp inside this process."""

from __future__ import annotations

import atexit
import importlib
import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

from deepagents._values import valueclass
from deepagents_local.engine import Delta, Event, Finish, Request
from deepagents_local.errors import EngineError, PromptTooLong

PROMPT_BATCH = 128
"""Prompt tokens evaluated at a stretch: a stopped call ends within one batch."""

PROMPT_CACHE_MIB = 512
SECONDS_TO_CLOSE = 10.0
SPIN = "GOMP_SPINCOUNT"

Chunk = Mapping[str, Any]


class Server(Protocol):
    """The part of the library that is used."""

    def handle_chat_completions(
        self, payload: dict[str, Any], callback: Callable[[Chunk], bool], /
    ) -> object:
        """Complete a chat, calling back for each chunk until the answer is to stop."""
        ...


@valueclass
class EngineSettings:
    """What one loaded model is: calls with equal settings share it."""

    path: Path
    n_ctx: int
    n_threads: int


_opening = Lock()


@cache
def _engine(settings: EngineSettings) -> LlamaEngine:
    engine = LlamaEngine(settings)
    atexit.register(engine.close)
    return engine


def get_shared_engine(settings: EngineSettings) -> LlamaEngine:
    """The one engine of this process for these settings."""
    with _opening:
        return _engine(settings)


class LlamaEngine:
    """One loaded model. Callers take turns; the prompt that was evaluated last stays for the next turn."""

    def __init__(
        self, settings: EngineSettings, load: Callable[[EngineSettings, str], Server] | None = None
    ) -> None:
        self._settings = settings
        self._load = load or load_server
        self._turn = Lock()
        self._closing = False
        self._server: Server | None = None
        self._room = ""

    def complete(self, request: Request, emit: Callable[[Event], None], stopped: Callable[[], bool]) -> None:
        """Complete the chat, handing over each event, until done or `stopped()`."""

        def over() -> bool:
            return self._closing or stopped()

        with self._turn:
            if over():
                return
            reply = _Reply(emit, over)
            try:
                self._open().handle_chat_completions(_payload(request), reply.take)
            except (ValueError, RuntimeError) as error:
                raise EngineError(f"The engine refused the request: {error}") from error
            reply.check()

    def close(self) -> None:
        """End a call that is under way and let the model go."""
        self._closing = True
        if self._turn.acquire(timeout=SECONDS_TO_CLOSE):
            self._server = None
            self._turn.release()
        if self._room:
            shutil.rmtree(self._room, ignore_errors=True)

    def _open(self) -> Server:
        if self._server is None:
            self._room = self._room or tempfile.mkdtemp(prefix="deepagents-")
            self._server = self._load(self._settings, self._room)
        return self._server


class _Reply:
    """Turns the engine's chunks into events; its answer to each chunk is whether to stop."""

    def __init__(self, emit: Callable[[Event], None], over: Callable[[], bool]) -> None:
        self._emit = emit
        self._over = over
        self._reason = ""
        self._error: Exception | None = None

    def take(self, chunk: Chunk) -> bool:
        try:
            self._read(chunk)
        except (EngineError, RuntimeError) as error:
            self._error = error
        except (KeyError, TypeError, AttributeError) as error:
            self._error = EngineError(f"The engine answered in an unknown form: {chunk!r}")
            self._error.__cause__ = error
        return self._error is not None or self._over()

    def check(self) -> None:
        if self._error is not None:
            raise self._error

    def _read(self, chunk: Chunk) -> None:
        if problem := chunk.get("error"):
            raise _failure(problem)
        for choice in chunk.get("choices", ()):
            self._reason = choice.get("finish_reason") or self._reason
            if text := choice["delta"].get("content"):
                self._emit(Delta(text))
        if usage := chunk.get("usage"):
            cached = usage.get("prompt_tokens_details", {}).get("cached_tokens", 0)
            self._emit(
                Finish(self._reason or "stop", usage["prompt_tokens"], cached, usage["completion_tokens"])
            )


def _failure(problem: Mapping[str, Any]) -> EngineError:
    if problem.get("type") == "exceed_context_size_error":
        return PromptTooLong(
            f"The prompt has {problem.get('n_prompt_tokens')} tokens, the context window holds "
            f"{problem.get('n_ctx')}. Raise n_ctx or shorten the conversation."
        )
    return EngineError(f"The engine refused the request: {problem.get('message')}")


def _payload(request: Request) -> dict[str, Any]:
    payload: dict[str, Any] = {
        "messages": [dict(turn) for turn in request.turns],
        "max_tokens": request.max_tokens,
        "temperature": request.temperature,
        "stop": list(request.stop),
        "stream": True,
        "stream_options": {"include_usage": True},
        "return_progress": True,
        "cache_prompt": True,
    }
    if request.grammar is not None:
        payload["grammar"] = request.grammar
    if request.seed is not None:
        payload["seed"] = request.seed
    return payload


def load_server(settings: EngineSettings, room: str) -> Server:
    """Load the model; `room` is a private directory for the socket that the library insists on."""
    if not settings.path.is_file():
        raise EngineError(f"There is no model file {str(settings.path)!r}.")
    library = _library()
    try:
        return library.Server(_params(library, settings, room))
    except RuntimeError as error:
        raise EngineError(
            f"{str(settings.path)!r} could not be loaded: it is not a GGUF model that llama.cpp knows, "
            f"or there is too little memory for it."
        ) from error


def need_engine() -> None:
    """Check that the engine is installed.

    Raises:
        EngineError: naming the extra that brings it.
    """
    if find_spec("xllamacpp") is None:
        raise EngineError(
            "The local model needs an extra: pip install '.[local]' in a checkout of deepagents"
        )


def _library() -> Any:
    need_engine()
    with _short_spins():
        return importlib.import_module("xllamacpp")


@contextmanager
def _short_spins() -> Generator[None]:
    """Let threads that wait for each other give way soon: on a busy machine this halves the time.

    The variable counts only while the library is loaded; what the user has set stays.
    """
    if SPIN in os.environ:
        yield
        return
    os.environ[SPIN] = "1000"
    try:
        yield
    finally:
        del os.environ[SPIN]


def _params(library: Any, settings: EngineSettings, room: str) -> Any:
    params = library.CommonParams()
    params.model.path = str(settings.path)
    params.n_ctx = settings.n_ctx
    params.n_parallel = 1
    params.n_batch = params.n_ubatch = PROMPT_BATCH
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = settings.n_threads
    params.cache_ram_mib = PROMPT_CACHE_MIB
    params.no_extra_bufts = True
    params.warmup = False
    params.fit_params = False
    params.verbosity = -1
    _close_doors(params, room)
    return params


def _close_doors(params: Any, room: str) -> None:
    """The library always listens; let it be where only this process can ask."""
    params.ui = False
    params.endpoint_slots = False
    params.n_threads_http = 1
    params.api_keys = [secrets.token_urlsafe(32)]
    if sys.platform != "win32":
        params.hostnames = [str(Path(room) / "llama.sock")]


def physical_cores() -> int:
    """Cores that this process may use, two threads of one core counted once."""
    allowed = _find_allowed_cpus()
    siblings = {
        _text(Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")) or str(cpu)
        for cpu in allowed
    }
    return max(1, len(siblings))


def _find_allowed_cpus() -> set[int]:
    if sys.platform == "linux":
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
