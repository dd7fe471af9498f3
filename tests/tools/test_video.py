"""read_file shows a video as evenly spaced frames, in a message of their own."""

from __future__ import annotations

import base64
import io
import sys
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from PIL import Image

from deepagents import create_deep_agent
from deepagents.backends import FilesystemBackend
from deepagents.backends.results import FileDownloadResponse
from deepagents.testing import ScriptedModel, call, calls
from deepagents.tools import file_tools
from deepagents.tools._video import (
    MAX_VIDEO_INPUT_BYTES,
    Caps,
    Frames,
    VideoExtractionError,
    extract_video_frames,
    video_dependencies_available,
)
from tests.conftest import CallMode
from tests.tools.bench import Bench, code_of
from tests.tools.films import film


def taken(content: bytes, offset: float = 0, duration: float = 100, rate: float = 0.5, **caps: Any) -> Frames:
    return extract_video_frames(
        content, offset_seconds=offset, duration_seconds=duration, sampling_rate=rate, caps=Caps(**caps)
    )


def moments(frames: Frames) -> list[str]:
    return [block["text"].removeprefix("Frame at t=") for block in frames.blocks if block["type"] == "text"]


def pictures(frames: Frames) -> list[Image.Image]:
    encoded = [block["base64"] for block in frames.blocks if block["type"] == "image"]
    return [Image.open(io.BytesIO(base64.b64decode(each))) for each in encoded]


def test_frames_are_spaced_by_the_rate_and_begin_at_the_offset() -> None:
    content = film(6)

    assert moments(taken(content)) == ["00:00:00.000", "00:00:02.000", "00:00:04.000"]
    assert moments(taken(content, offset=1, duration=3)) == ["00:00:01.000", "00:00:03.000"]
    assert taken(content).resume_at is None


def test_a_late_frame_does_not_move_the_later_ones() -> None:
    sparse = film(10, fps=1)

    assert moments(taken(sparse, rate=0.7)) == [f"00:00:{second:02}.000" for second in (0, 2, 3, 5, 6, 8, 9)]


def test_a_cap_leaves_what_was_taken_and_a_whole_second_to_go_on_from() -> None:
    content = film(6)
    one = sum(len(value) for block in taken(content, frames=1).blocks for value in block.values())

    for capped in (
        taken(content, offset=1, rate=1, frames=2),
        taken(content, offset=1, rate=1, emitted_bytes=int(one * 2.5)),
    ):
        assert (capped.count, capped.resume_at) == (2, 3)
        assert isinstance(capped.resume_at, int)


def test_going_on_always_goes_forward_and_reaches_the_end() -> None:
    content, seen, offset = film(6), list[str](), 0
    while True:
        part = taken(content, offset=offset, rate=1, frames=2)
        seen += moments(part)
        if part.resume_at is None:
            break
        assert part.resume_at > offset
        offset = part.resume_at

    assert seen == [f"00:00:0{second}.000" for second in range(6)]


def test_at_a_deadline_the_frames_taken_so_far_are_kept() -> None:
    stopped = taken(film(6), seconds=0)

    assert moments(stopped) == ["00:00:00.000"]
    assert stopped.resume_at == 2


def test_a_deadline_before_any_frame_is_an_error() -> None:
    with pytest.raises(VideoExtractionError, match="no frame was reached in 0 s"):
        taken(film(12, fps=2), offset=4, seconds=0)


def test_a_window_that_the_caps_just_fill_has_nothing_to_go_on_with() -> None:
    assert taken(film(6), duration=4, frames=2).resume_at is None


def test_large_pictures_are_made_smaller_and_huge_ones_refused() -> None:
    shrunk = pictures(taken(film(1, size=(200, 100)), long_side=100, short_side=60))[0]

    assert (shrunk.format, shrunk.size) == ("JPEG", (100, 50))
    with pytest.raises(VideoExtractionError, match="200x100 pixels, over 150"):
        taken(film(1, size=(200, 100)), side=150)


def test_a_tall_picture_has_its_long_side_upright() -> None:
    assert pictures(taken(film(1, size=(100, 200)), long_side=100, short_side=60))[0].size == (50, 100)


def test_one_frame_over_the_cap_is_an_error() -> None:
    with pytest.raises(VideoExtractionError, match="one frame alone exceeds 100 bytes"):
        taken(film(1), emitted_bytes=100)


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"offset": -1}, "offset_seconds must not be negative, got -1"),
        ({"duration": 0}, "duration_seconds must be positive, got 0"),
        ({"rate": 0}, "sampling_rate must be positive, got 0"),
        ({"offset": 50}, "No frames decoded for window"),
    ],
)
def test_a_window_without_sense_is_refused(wrong: dict[str, Any], complaint: str) -> None:
    with pytest.raises(VideoExtractionError, match=complaint):
        taken(film(1), **wrong)


def test_bytes_that_are_no_film_are_refused() -> None:
    with pytest.raises(VideoExtractionError, match="cannot be decoded"):
        taken(b"no film at all")


@pytest.mark.parametrize(
    "playlist",
    [
        "#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:6,\n{secret}\n#EXT-X-ENDLIST\n",
        "ffconcat version 1.0\nfile '{secret}'\n",
    ],
)
def test_a_playlist_opens_no_other_file(tmp_path: Path, playlist: str) -> None:
    secret = tmp_path / "secret.mp4"
    secret.write_bytes(film(1))

    with pytest.raises(VideoExtractionError, match="cannot be decoded"):
        taken(playlist.format(secret=secret).encode())


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
