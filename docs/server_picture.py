"""Draws docs/concepts/server.png: the first page of a server, in Chromium."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import httpx

ROOT: Final = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from deepagents_server.config import load_config  # noqa: E402
from tests.server.serving import GRAPHS, serving  # noqa: E402

PICTURE: Final = ROOT / "docs" / "concepts" / "server.png"
ADDRESS: Final = "http://localhost:2024"
BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome")
SIZE: Final = "940,740"


def read_page(place: Path) -> str:
    """Return the page of the example, as `make serve` shows it."""
    config = load_config(None, ROOT / "examples" / "serve")
    # Another agent under its name: this one needs no model.
    graphs = dict.fromkeys(config.graphs, GRAPHS["deep"])
    with serving(place, slots=0, graphs=graphs, descriptions=config.descriptions) as url:
        return httpx.get(url).text.replace(url, ADDRESS)


def main(arguments: list[str]) -> int:
    """Draw the picture, if there is a browser."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--picture", type=Path, default=PICTURE, help="the file that the picture goes to")
    picture = parser.parse_args(arguments).picture
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        sys.stderr.write(f"{picture.name} stays as it is: none of {', '.join(BROWSERS)} is installed.\n")
        return 0
    with tempfile.TemporaryDirectory() as place:
        page = Path(place, "page.html")
        page.write_text(read_page(Path(place)))
        command = [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        options = [f"--user-data-dir={place}/browser", f"--window-size={SIZE}", f"--screenshot={picture}"]
        subprocess.run([*command, *options, page.as_uri()], check=True, capture_output=True, timeout=120)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
