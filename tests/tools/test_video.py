"""Frames out of a film: evenly spaced, bounded, and told where to go on."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from deepagents.tools._video import Caps, Frames, VideoExtractionError, extract_video_frames
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
