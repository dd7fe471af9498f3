from __future__ import annotations

import json
import re
import shlex
from html import unescape
from itertools import pairwise
from pathlib import Path

import httpx
import pytest

from tests.server.serving import serving
from tests.server.test_runs import last


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_a_page_asks_nobody_else_for_anything(url: str, path: str) -> None:
    shown = httpx.get(f"{url}{path}")

    assert "default-src 'none'" in shown.headers["content-security-policy"]
    assert set(re.findall(r"https?://[^/<\s]+", shown.text)) <= {url}
    assert not re.search(r"<script|(?:href|src)=\W?(?:\w+:)?//", shown.text)


def test_the_first_page_shows_the_agents_and_how_to_ask_one(url: str) -> None:
    shown = httpx.get(url).text
    (line,) = re.findall("<pre>(.*?)</pre>", shown, re.DOTALL)

    assert "<code>outer</code>" in shown
    assert f"<code>{url}/v1</code>" in shown
    words = shlex.split(unescape(line).replace("\\\n", ""))
    options = dict(pairwise(words))
    asked = {**json.loads(options["-d"]), "assistant_id": "echo"}
    sent = dict([options["-H"].split(": ")])
    assert last(httpx.post(options["-s"], json=asked, headers=sent, timeout=60).json()) == "Echo: Hello"


def test_what_is_not_served_is_no_address_for_clients(tmp_path: Path) -> None:
    with serving(tmp_path, slots=0, http={"disable_openai": True}) as url:
        shown = httpx.get(url).text

    assert f"<code>{url}/mcp</code>" in shown
    assert f"<code>{url}/v1</code>" not in shown


def test_a_text_is_no_part_of_the_page(tmp_path: Path) -> None:
    torn = "<script>alert(1)</script>"
    with serving(tmp_path, slots=0, descriptions={"echo": torn}, bounds={"allow_anyone": True}) as url:
        shown = httpx.get(url, headers={"host": "a&lt;b"}).text

    assert "&lt;script&gt;alert(1)" in shown
    assert "<script>" not in shown
    assert "http://a&amp;lt;b/runs/wait" in shown
    assert "a&lt;b" not in shown


def test_the_endpoints_are_shown_with_all_that_they_take(url: str) -> None:
    shown = httpx.get(f"{url}/docs").text
    described = httpx.get(f"{url}/openapi.json").json()

    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            name = re.escape(f"<b>{method.upper()}</b>{path}</span>")
            (found,) = re.findall(f"{name}(.*?)</details>", shown)
            taken = {each["name"] for each in operation.get("parameters", ())}
            for content in operation.get("requestBody", {}).get("content", {}).values():
                named = content["schema"].get("$ref", "").rsplit("/", 1)[-1]
                schema = described["components"]["schemas"].get(named, content["schema"])
                taken |= schema.get("properties", {"body": None}).keys()
            assert set(re.findall("<tr><td><code>(.*?)</code>", found)) == taken
    assert "<code>assistant_id</code><td>string, required" in shown
    assert "<code>enqueue</code>, <code>steer</code>" in shown
