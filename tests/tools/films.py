"""Small films, made on the spot."""

from __future__ import annotations

import io

import av
from PIL import Image


def film(seconds: float = 6, fps: int = 4, size: tuple[int, int] = (64, 48)) -> bytes:
    """Make a film whose picture changes from frame to frame."""
    made = io.BytesIO()
    with av.open(made, "w", format="mp4") as container:
        stream = container.add_stream("mpeg4", rate=fps)
        stream.width, stream.height = size
        stream.pix_fmt = "yuv420p"
        for number in range(int(seconds * fps)):
            picture = Image.new("RGB", size, (number % 256, 0, 0))
            for packet in stream.encode(av.VideoFrame.from_image(picture)):
                container.mux(packet)
        for packet in stream.encode():
            container.mux(packet)
    return made.getvalue()
