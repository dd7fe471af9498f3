from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from threading import Event as Flag
from threading import Lock, Thread
from typing import Any

import pytest
from langchain_core.exceptions import ContextOverflowError

from deepagents_local import EngineError, PromptTooLong
from deepagents_local.engine import Delta, Event, Finish, Request
from deepagents_local.llama import (
    EngineSettings,
    LlamaEngine,
    get_shared_engine,
    load_server,
    physical_cores,
)

SETTINGS = EngineSettings(Path("/nowhere.gguf"), 2_000, 1)
REQUEST = Request(turns=({"role": "user", "content": "Hi"},), grammar="g", seed=3, stop=("x",))

Chunk = Mapping[str, Any]


def said(text: str, reason: str | None = None) -> Chunk:
    return {"choices": [{"delta": {"content": text}, "finish_reason": reason}]}


USED: Chunk = {
    "choices": [],
    "usage": {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 7}},
}
WAITING: Chunk = {"choices": [{"delta": {"content": None}, "finish_reason": None}], "prompt_progress": {}}


class PretendServer:
    """Sends these chunks until told to stop; notices when two calls are in it at once."""

    def __init__(self, *chunks: Chunk) -> None:
        self.chunks = chunks
        self.payloads: list[dict[str, Any]] = []
        self.sent = 0
        self.crowded = False
        self._inside = Lock()

    def handle_chat_completions(self, payload: dict[str, Any], callback: Callable[[Chunk], bool], /) -> None:
        self.crowded = self.crowded or not self._inside.acquire(blocking=False)
        self.payloads.append(payload)
        for chunk in self.chunks:
            self.sent += 1
            if callback(chunk):
                break
        self._inside.release()


def engine_over(server: PretendServer) -> LlamaEngine:
    return LlamaEngine(SETTINGS, lambda settings, room: server)


def complete(server: PretendServer, stopped: Callable[[], bool] = lambda: False) -> list[Event]:
    events: list[Event] = []
    with closing(engine_over(server)) as engine:
        engine.complete(REQUEST, events.append, stopped)
    return events


def test_chunks_become_events() -> None:
    server = PretendServer(WAITING, said("He"), said("y", "length"), USED)

    assert complete(server) == [Delta("He"), Delta("y"), Finish("length", 9, 7, 2)]
    (payload,) = server.payloads
    assert payload["messages"] == [{"role": "user", "content": "Hi"}]
    assert (payload["grammar"], payload["seed"], payload["stop"]) == ("g", 3, ["x"])


def test_it_stops_at_the_next_chunk_even_before_the_first_word() -> None:
    server = PretendServer(WAITING, WAITING, said("never"))
    answers = iter([False, True])

    assert complete(server, lambda: next(answers)) == []
    assert server.sent == 1


def test_a_call_that_was_left_while_it_waited_never_starts() -> None:
    server = PretendServer(said("x"))

    assert complete(server, lambda: True) == []
    assert server.payloads == []


def test_callers_take_turns() -> None:
    server = PretendServer(said("a"), said("b", "stop"), USED)
    engine = engine_over(server)
    events: list[Event] = []
    threads = [Thread(target=engine.complete, args=(REQUEST, events.append, lambda: False)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    engine.close()

    assert not server.crowded
    assert events == [Delta("a"), Delta("b"), Finish("stop", 9, 7, 2)] * 8


def test_closing_ends_a_call_that_is_under_way() -> None:
    started, ended = Flag(), Flag()

    class Talker:
        def handle_chat_completions(
            self, payload: dict[str, Any], callback: Callable[[Chunk], bool], /
        ) -> None:
            while not callback(said("and ")):
                started.set()
            ended.set()

    engine = LlamaEngine(SETTINGS, lambda settings, room: Talker())
    talk = Thread(target=engine.complete, args=(REQUEST, lambda event: None, lambda: False))
    talk.start()
    assert started.wait(10)
    engine.close()
    talk.join(10)

    assert ended.is_set()


def test_its_private_directory_goes_with_it() -> None:
    rooms: list[Path] = []

    def load(settings: EngineSettings, room: str) -> PretendServer:
        rooms.append(Path(room))
        return PretendServer(USED)

    engine = LlamaEngine(SETTINGS, load)
    engine.complete(REQUEST, lambda event: None, lambda: False)
    (room,) = rooms
    assert room.stat().st_mode & 0o077 == 0
    engine.close()

    assert not room.exists()


def test_a_prompt_that_does_not_fit_is_a_context_overflow() -> None:
    too_long = {"error": {"type": "exceed_context_size_error", "n_prompt_tokens": 9000, "n_ctx": 2000}}

    with pytest.raises(PromptTooLong, match="9000 tokens, the context window holds 2000") as caught:
        complete(PretendServer(too_long))
    assert isinstance(caught.value, ContextOverflowError)


@pytest.mark.parametrize(
    ("chunk", "message"),
    [
        ({"error": {"type": "other", "message": "bad grammar"}}, "refused the request: bad grammar"),
        ({"choices": [{"strange": 1}]}, "unknown form"),
    ],
)
def test_what_goes_wrong_inside_is_an_engine_error(chunk: Chunk, message: str) -> None:
    with pytest.raises(EngineError, match=message):
        complete(PretendServer(chunk))


def test_a_refusal_of_the_library_is_an_engine_error() -> None:
    class Refusing:
        def handle_chat_completions(
            self, payload: dict[str, Any], callback: Callable[[Chunk], bool], /
        ) -> None:
            raise ValueError("no such template")

    with (
        closing(LlamaEngine(SETTINGS, lambda settings, room: Refusing())) as engine,
        pytest.raises(EngineError, match="no such template"),
    ):
        engine.complete(REQUEST, lambda event: None, lambda: False)


def test_a_missing_file_is_named() -> None:
    with pytest.raises(EngineError, match=r"no model file '/nowhere\.gguf'"):
        load_server(SETTINGS, "/nowhere")


def test_a_file_that_is_no_model_is_named(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    (tmp_path / "text.gguf").write_text("not a model")

    with pytest.raises(EngineError, match=r"text\.gguf' could not be loaded"):
        load_server(EngineSettings(tmp_path / "text.gguf", 2_000, 1), str(tmp_path))


def test_equal_settings_share_one_engine() -> None:
    found: list[LlamaEngine] = []
    threads = [Thread(target=lambda: found.append(get_shared_engine(SETTINGS))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len({id(engine) for engine in found}) == 1
    assert get_shared_engine(EngineSettings(SETTINGS.path, 4_000, 1)) is not found[0]


def test_it_uses_at_least_one_core() -> None:
    assert physical_cores() >= 1


def test_importing_it_loads_no_engine() -> None:
    code = "import sys, deepagents_local; print('xllamacpp' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "False"
