"""A film is read as frames in a message of their own, which stands behind all results of its turn."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from deepagents import create_deep_agent
from deepagents.backends import FilesystemBackend
from deepagents.backends.results import FileDownloadResponse
from deepagents.testing import ScriptedModel, call, calls
from deepagents.tools import file_tools
from deepagents.tools._video import MAX_VIDEO_INPUT_BYTES, video_dependencies_available
from tests.conftest import CallMode
from tests.tools.bench import Bench, code_of
from tests.tools.films import film


def watched(bench: Bench, *script: Any) -> list[Any]:
    """Run a script and return the messages that were sent after it."""
    seen: list[Any] = []

    def last(asked: Any) -> Any:
        seen.extend(asked.messages)
        return call("ls", path="/")

    bench.run(*script, last)
    return seen


def test_frames_follow_the_result(bench: Bench) -> None:
    bench.place_bytes("/clip.mp4", film(3))
    said, frames = watched(bench, call("read_file", file_path="/clip.mp4"))[-2:]

    assert said.text == "2 frames of '/clip.mp4', in the next message."
    assert said.additional_kwargs == {"read_file_path": "/clip.mp4", "read_file_frame_count": 2}
    assert isinstance(frames, HumanMessage)
    assert frames.additional_kwargs["read_file_media_result"] is True
    assert frames.additional_kwargs["read_file_tool_call_id"] == said.tool_call_id
    assert [block["type"] for block in frames.content if isinstance(block, dict)] == [
        "text", "text", "image", "text", "image",
    ]  # fmt: skip
    assert "Reading first 100s of '/clip.mp4' at 0.5 fps. The whole video has 3s." in frames.text


def test_offset_and_limit_are_seconds(bench: Bench) -> None:
    bench.place_bytes("/clip.mp4", film(6))
    said, frames = watched(bench, call("read_file", file_path="/clip.mp4", offset=3, limit=1))[-2:]

    assert said.text.startswith("1 frame of")
    assert "Reading [3.000s, 4.000s) of '/clip.mp4'" in frames.text
    assert "t=00:00:03.000" in frames.text


def test_a_long_film_says_where_to_go_on(bench: Bench) -> None:
    bench.place_bytes("/long.mp4", film(140, fps=1))
    said = bench.use("read_file", file_path="/long.mp4", limit=500)

    assert said.text.startswith("64 frames")
    assert said.text.endswith("call read_file again with offset=128.")


@pytest.mark.parametrize(
    ("content", "arguments", "code", "why"),
    [
        (film(1), {"limit": 0}, "invalid_argument", "limit must be positive"),
        (film(1), {"offset": 60}, "invalid_encoding", "No frames decoded for window"),
        (b"\0\xff", {}, "invalid_encoding", "cannot be decoded"),
    ],
)
def test_what_cannot_be_seen_is_an_error_that_ends_with_the_window(
    bench: Bench, content: bytes, arguments: dict[str, Any], code: str, why: str
) -> None:
    bench.place_bytes("/clip.mp4", content)
    refused = bench.use("read_file", file_path="/clip.mp4", **arguments)

    assert code_of(refused) == code
    assert why in refused.text
    assert "'/clip.mp4' at 0.5 fps." in refused.text


def test_a_film_that_is_not_there_is_an_error_with_a_code(bench: Bench) -> None:
    assert code_of(bench.use("read_file", file_path="/none.mp4")) == "file_not_found"


class Disk(FilesystemBackend):
    """Files on disk that count how often one is loaded."""

    loads = 0

    def download_files(self, paths: list[str], **options: Any) -> list[FileDownloadResponse]:
        self.loads += 1
        return super().download_files(paths, **options)


@pytest.mark.parametrize(
    ("over", "code", "loads"), [(1, "too_large", 0), (-MAX_VIDEO_INPUT_BYTES + 9, "invalid_encoding", 1)]
)
def test_a_film_that_is_too_large_is_not_even_loaded(
    call_mode: CallMode, tmp_path: Path, over: int, code: str, loads: int
) -> None:
    disk = Disk(root_dir=tmp_path)
    with (tmp_path / "long.mp4").open("wb") as file:
        file.truncate(MAX_VIDEO_INPUT_BYTES + over)
    with ScriptedModel(call("read_file", file_path="/long.mp4"), "Done.") as model:
        result = call_mode.invoke(create_deep_agent(model, backend=disk), {"messages": "Watch"})

    assert code_of(result["messages"][2]) == code
    assert disk.loads == loads


def test_frames_stand_behind_the_results_of_their_turn(bench: Bench) -> None:
    bench.place_bytes("/clip.mp4", film(1))
    turn = calls(("read_file", {"file_path": "/clip.mp4"}), ("ls", {"path": "/"}))
    seen = watched(bench, turn, call("ls", path="/"))

    assert [message.type for message in seen[2:]] == ["ai", "tool", "tool", "human", "ai", "tool"]


def test_the_model_is_told_how_a_film_is_read(call_mode: CallMode) -> None:
    with ScriptedModel("Hello.") as model:
        call_mode.invoke(create_deep_agent(model), {"messages": "Hi"})

    read = next(each for each in model.asked[0].tools if each["function"]["name"] == "read_file")
    assert "offset and limit count seconds" in read["function"]["description"]


def test_without_the_extra_a_film_is_one_block(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "av", None)
    video_dependencies_available.cache_clear()
    try:
        bench.place_bytes("/clip.mp4", film(1))
        read = bench.use("read_file", file_path="/clip.mp4")
        described = file_tools()[1].description
    finally:
        video_dependencies_available.cache_clear()

    assert [(block["type"], block["mime_type"]) for block in read.content if isinstance(block, dict)] == [
        ("video", "video/mp4")
    ]
    assert "seconds" not in described
