"""What a model reads of a page, what a person is asked, and what a hostile server or page cannot do."""

from __future__ import annotations

import asyncio
import gzip
import os
import socket
import sys
import time
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from ipaddress import ip_address
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from deepagents import Limits, create_deep_agent
from deepagents.errors import ConfigError
from deepagents.middleware import CodeModeMiddleware
from deepagents.testing import ScriptedModel, call
from deepagents.tools import web_fetch
from tests import programs
from tests.conftest import CallMode, NetworkRefused
from tests.tools.sites import Site, respond, serving

THREAD: Any = {"configurable": {"thread_id": "1"}}
ELSEWHERE = "https://other.test/page"
ROUTABLE = "2d00::1"
"""An address that a test may not connect to."""


@pytest.fixture
def site() -> Iterator[Site]:
    with serving() as made:
        yield made


def fetch(call_mode: CallMode, url: str, site: Site, **options: Any) -> ToolMessage:
    """Let an agent that may reach a site fetch something, and return what its model reads."""
    (answer,) = fetch_all(call_mode, [url], site, **options)["answers"]
    return answer


def fetch_all(call_mode: CallMode, urls: list[str], site: Site, **options: Any) -> dict[str, Any]:
    script = [call("web_fetch", url=url) for url in urls]
    with ScriptedModel(*script, "Done.") as model:
        agent = create_deep_agent(
            model, tools=[web_fetch([site.host], **options)], checkpointer=InMemorySaver()
        )
        result = call_mode.invoke(agent, {"messages": "Go"}, THREAD)
    return {**result, "answers": [each for each in result["messages"] if isinstance(each, ToolMessage)]}


def test_a_page_is_markdown_in_a_fence_that_calls_it_data(call_mode: CallMode, site: Site) -> None:
    url = site.place(
        "/page",
        "<html><head><title>Tea</title><style>p {}</style><script>alert(1)</script></head><body>"
        "<h1>How to make tea</h1><p>Boil <b>water</b>, see <a href='/more'>more</a>.</p>"
        "<ul><li>one</li><li>two</li></ul><table><tr><th>a</th></tr><tr><td>1</td></tr></table></body></html>",
    )
    answer = fetch(call_mode, url, site)

    lines = answer.text.splitlines()
    mark = lines[0][: lines[0].index(" ")]
    assert lines[0] == f'{mark} url="{url}">'
    assert "It is data" in lines[1]
    assert lines[3] == "Title: Tea"
    assert lines[-1] == f"</{mark[1:]}>"
    assert "# How to make tea" in lines
    assert f"Boil **water**, see [more]({site.at('/more')})." in lines
    assert "- one" in lines
    assert "| 1 |" in answer.text
    assert "alert" not in answer.text
    assert site.seen[0][1]["User-Agent"].startswith("deepagents/")


def test_a_page_does_not_know_how_its_fence_ends(call_mode: CallMode, site: Site) -> None:
    url = site.place("/page", "one", "text/plain")
    first, second = (fetch(call_mode, url, site).text.splitlines()[-1] for _ in range(2))

    assert first.startswith("</web_page_")
    assert first != second


def test_what_a_page_hides_from_people_is_not_shown_to_the_model(call_mode: CallMode, site: Site) -> None:
    url = site.place(
        "/page",
        "<p>Seen.</p><p hidden>Obey 1</p><div style='color: red; display : NONE'>Obey <p>2</p></div>"
        "<!-- Obey 3 --><template>Obey 4</template><noscript>Obey 5</noscript><p>Seen too.</p>"
        "<span style='visibility:hidden'>Obey 6</span>",
    )
    text = fetch(call_mode, url, site).text

    assert "Obey" not in text
    assert "Seen too." in text


def test_a_long_page_moves_to_a_file_with_a_preview(call_mode: CallMode, site: Site) -> None:
    lines = [f"line {number} of a long page, which says nothing else" for number in range(3000)]
    url = site.place("/long", "\n".join(lines), "text/plain")
    result = fetch_all(call_mode, [url], site)

    (path,) = result["files"]
    assert path.startswith("/large_tool_results/")
    assert f"\n{lines[2999]}\n" in result["files"][path]["content"]
    assert path in result["answers"][0].text
    assert f' url="{url}">' in result["answers"][0].text
    assert "It is data" in result["answers"][0].text
    assert lines[1500] not in result["answers"][0].text


@pytest.mark.parametrize(
    ("body", "media_type", "shown"),
    [
        (b'{"a": 1}', "application/json", '{"a": 1}'),
        (b"<feed>x</feed>", "application/atom+xml", "<feed>x</feed>"),
        (b"# Title", "text/markdown; charset=utf-8", "# Title"),
        ("größer".encode("latin-1"), "text/plain; charset=ISO-8859-1", "größer"),
        ("größer".encode("utf-16"), "text/plain", "größer"),
        ("日本".encode("shift_jis"), 'text/html; charset="shift_jis"', "日本"),
        (b"<meta charset='windows-1251'>" + "привет".encode("cp1251"), "text/html", "привет"),
        ("größer".encode(), "text/plain; charset=none-such", "größer"),
        ("größer".encode(), "text/plain; charset=base64", "größer"),
        (b"\xffbroken", "text/plain", "\ufffdbroken"),
        # No browser knows these: they make half of a pair of surrogates, or take minutes.
        (b"a +2AA- b", "text/plain; charset=utf-7", "a +2AA- b"),
        (rb"a \ud800 b", "text/plain; charset=Unicode_Escape", r"a \ud800 b"),
        (rb"<meta charset='raw_unicode_escape'>a \ud800 b", "text/html", "ud800 b"),
        (b"a-b", "text/plain; charset=punycode", "a-b"),
        (b"<!doctype html><p>a <b>b</b>", "", "a **b**"),
        (b"just text", "application/octet-stream", "just text"),
    ],
)
def test_text_is_read_as_what_it_is(site: Site, body: bytes, media_type: str, shown: str) -> None:
    if media_type:
        url = site.place("/x", body, media_type)
    else:
        site.pages["/x"] = lambda handler: respond(handler, 200, body)
        url = site.at("/x")

    assert shown in web_fetch([site.host]).invoke({"url": url}).text


@pytest.mark.parametrize(
    ("body", "media_type"),
    [(b"\x89PNG\r\n\x1a\n\0", "image/png"), (b"\x7fELF\0\0", "application/octet-stream")],
)
def test_what_is_not_a_page_is_named_and_not_read(site: Site, body: bytes, media_type: str) -> None:
    answer = web_fetch([site.host]).invoke({"url": site.place("/x", body, media_type)})

    assert answer.additional_kwargs["error_code"] == "not_supported"
    assert media_type in answer.text


def test_a_page_waits_for_others_no_longer_than_the_time_of_a_page(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, gate, slow = (tmp_path / name for name in ("begun", "gate", "python"))
    os.mkfifo(begun)
    os.mkfifo(gate)
    slow.write_text(f"#!/bin/sh\nprintf x > {begun}\nread x < {gate}\nexit 1\n")
    slow.chmod(0o755)
    # The programs that turn pages into text wait here, as hostile pages make them do.
    monkeypatch.setattr(sys, "executable", str(slow))
    url = site.place("/x", "hello", "text/plain")
    fetch = web_fetch([site.host], timeout=2)
    with (
        begun.open("r+b", buffering=0) as marks,
        gate.open("r+b", buffering=0) as opened,
        ThreadPoolExecutor(4) as pool,
    ):
        others = [pool.submit(fetch.invoke, {"url": url}) for _ in range(4)]
        assert b"".join(marks.read(1) for _ in others) == b"xxxx"
        late = fetch.invoke({"url": url})
        opened.write(b"\n" * 4)
        codes = [each.result().additional_kwargs["error_code"] for each in others]

    assert late.text.endswith("waited 2 seconds for other pages to become text. [timeout]")
    assert codes == ["tool_failed"] * 4


TOP = "Ro" + "ot"
"""What a PDF calls the object at its top; the home of an administrator is written in the same way."""


def make_pdf(pages: int, title: str = "") -> bytes:
    """Make a PDF with a line on each page."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>"]
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(pages))
    objects.append(f"<< /Type /Pages /Kids [{kids}] /Count {pages} >>")
    objects.append("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
    for number in range(pages):
        text = f"BT /F1 12 Tf 72 700 Td (This is page {number + 1}) Tj ET"
        resources = "<< /Font << /F1 3 0 R >> >>"
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources {resources} "
            f"/Contents {5 + 2 * number} 0 R >>"
        )
        objects.append(f"<< /Length {len(text)} >>\nstream\n{text}\nendstream")
    objects.append(f"<< /Title ({title}) >>")
    made, places = b"%PDF-1.4\n", list[int]()
    for number, each in enumerate(objects, 1):
        places.append(len(made))
        made += f"{number} 0 obj\n{each}\nendobj\n".encode()
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    trailer = f"trailer << /Size {len(objects) + 1} /{TOP} 1 0 R /Info {len(objects)} 0 R >>"
    end = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}{trailer}\nstartxref\n{len(made)}\n%%EOF"
    return made + end.encode()


def test_a_pdf_is_read_page_by_page(call_mode: CallMode, site: Site) -> None:
    text = fetch(call_mode, site.place("/a.pdf", make_pdf(3, "Tea"), "application/pdf"), site).text

    assert "Title: Tea" in text
    assert "## Page 2 of 3\n\nThis is page 2" in text


def test_a_pdf_of_many_pages_says_how_many_were_read(site: Site) -> None:
    text = web_fetch([site.host]).invoke({"url": site.place("/a", make_pdf(220), "application/pdf")}).text

    assert "This is page 200\n" in text
    assert "This is page 201" not in text
    assert "[The PDF has 220 pages; the first 200 were read.]" in text


def deflated_bomb() -> bytes:
    """Make a PDF of a few kilobytes, one page of which unpacks to a gigabyte."""
    packer = zlib.compressobj(1)
    packed = b"".join(packer.compress(b" " * 2**20) for _ in range(1024)) + packer.flush()
    # Packed again, as the format allows.
    twice = zlib.compress(packed)
    stream = b"<< /Length %d /Filter [/FlateDecode /FlateDecode] >>\nstream\n" % len(twice)
    return (
        b"%PDF-1.4\n1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\n"
        b"2 0 obj\n<< /Type /Pages /Kids [3 0 R] /Count 1 >>\nendobj\n"
        b"3 0 obj\n<< /Type /Page /Parent 2 0 R /Contents 4 0 R >>\nendobj\n4 0 obj\n"
        + stream + twice + b"\nendstream\nendobj\ntrailer << /%s 1 0 R /Size 5 >>\n%%%%EOF" % TOP.encode()
    )  # fmt: skip


HOSTILE = {
    "nested": b"<div>" * 100_000 + b"deep" + b"</div>" * 100_000 + b"<p>after</p>",
    "never closed": b"<b><i>" * 100_000 + b"deep",
    "closed wrongly": b"<i><b>" * 50_000 + b"</a>" * 50_000,
    "lists": b"<ul><li>" * 50_000,
    "tables": b"<table><tr><td>" * 20_000,
    "a table that is wide": b"<table>" + b"<tr><td rowspan=1000000 colspan=1000000>x</td></tr>" * 500,
    "quotes": b"<blockquote>" * 50_000,
    "less-than": b"<" * 1_000_000,
    "comments": b"<!--" * 2_000_000,
    "attributes": b"<p " + b" ".join(b"a%d=x" % number for number in range(10_000)) + b">x",
    "entities": b"&lt;" * 2_000_000,
    "a large page": b"<p>Hello <b>world</b>, <a href='/x'>link</a>.</p>\n" * 40_000,
    "no text": bytes(range(256)) * 1000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_page_costs_seconds_and_harms_nothing(site: Site, name: str) -> None:
    url, began = site.place("/x", HOSTILE[name]), time.monotonic()
    answer = web_fetch([site.host]).invoke({"url": url})

    assert time.monotonic() - began < 60
    assert answer.status == "success" or answer.additional_kwargs["error_code"] in ("timeout", "tool_failed")
    size = len(answer.text)
    assert size < 2_100_000


def test_what_is_nested_too_deeply_is_left_out_and_the_rest_says_so(site: Site) -> None:
    text = web_fetch([site.host]).invoke({"url": site.place("/x", HOSTILE["nested"])}).text

    assert "after" in text
    assert "[Parts that are nested very deeply were left out.]" in text


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"bomb", marks=pytest.mark.slow),
        b"%PDF-1.4\n" + b"<<" * 1_000_000,
        b"%PDF-1.4\n" + b"[" * 2_000_000,
        b"%PDF-1.4\ntrailer << /" + TOP.encode() + b" 1 0 R >>\n"
        b"1 0 obj << /Type /Catalog /Pages 1 0 R /Kids [1 0 R] /Count 99999999 >>",
        b"%PDF-",
        make_pdf(2)[:-40],
        make_pdf(2).replace(b"/Count 2", b"/Count 99999999"),
    ],
    ids=["bomb", "dictionaries", "lists", "loop", "empty", "torn", "count"],
)
def test_a_hostile_pdf_costs_seconds_and_harms_nothing(site: Site, body: bytes) -> None:
    # Made here, since it takes a while.
    body = deflated_bomb() if body == b"bomb" else body
    url, began = site.place("/x", body, "application/pdf"), time.monotonic()
    answer = web_fetch([site.host]).invoke({"url": url})

    assert time.monotonic() - began < 60
    assert answer.status == "success" or answer.additional_kwargs["error_code"] in ("timeout", "tool_failed")
    size = len(answer.text)
    assert size < 2_100_000


def test_what_is_packed_is_unpacked_up_to_the_limit(call_mode: CallMode, site: Site) -> None:
    plain = site.place(
        "/plain", gzip.compress(b"one ") + gzip.compress(b"two"), "text/plain", content_encoding="gzip"
    )
    bomb = site.place("/bomb", gzip.compress(b"x" * 60_000_000, 1), "text/plain", content_encoding="gzip")
    torn = site.place("/torn", gzip.compress(b"x" * 100_000)[:-20], "text/plain", content_encoding="gzip")
    other = site.place("/other", b"x", "text/plain", content_encoding="br")
    texts = [each.text[-9000:] for each in fetch_all(call_mode, [plain, bomb, torn, other], site)["answers"]]

    assert "\none two\n" in texts[0]
    assert "[The page is longer: its first 10.5 MB were read.]" in texts[1]
    assert texts[2].endswith("it ended before its end. [remote_failed]")
    assert texts[3].endswith("answered in the coding br. [remote_failed]")


BLOCK = 65_536
"""So much is read at a time."""


@pytest.mark.parametrize("over", [0, 1])
def test_packed_parts_are_all_read_wherever_one_ends(site: Site, over: int) -> None:
    # What is packed without being compressed is longer by always the same.
    frame = len(gzip.compress(b"a" * 60_000, 0)) - 60_000
    parts = [gzip.compress(b"a" * (BLOCK - frame - over), 0), gzip.compress(b" and the last", 0)]
    assert len(parts[0]) == BLOCK - over
    url = site.place("/x", b"".join(parts), "text/plain", content_encoding="gzip")

    assert "aaa and the last\n" in web_fetch([site.host]).invoke({"url": url}).text


def test_of_a_long_page_the_first_part_is_read_and_said(site: Site) -> None:
    fetch = web_fetch([site.host], max_bytes=1000)
    text = fetch.invoke({"url": site.place("/x", "a" * 5000, "text/plain")}).text
    pdf = fetch.invoke({"url": site.place("/p", make_pdf(9), "application/pdf")})

    assert text.count("a" * 1000) == 1
    assert "[The page is longer: its first 1.0 kB were read.]" in text
    assert pdf.additional_kwargs["error_code"] == "too_large"


def drip(handler: BaseHTTPRequestHandler) -> None:
    """Answer a byte now and then."""
    try:
        for each in b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nX: " + b"a" * 1000:
            handler.wfile.write(bytes([each]))
            time.sleep(0.05)
    except OSError:
        pass


def drip_body(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("content-type", "text/plain")
    handler.end_headers()
    try:
        while True:
            handler.wfile.write(b"a")
            time.sleep(0.05)
    except OSError:
        pass


def answer_again_and_again(handler: BaseHTTPRequestHandler) -> None:
    try:
        while True:
            handler.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            time.sleep(0.01)
    except OSError:
        pass


@pytest.mark.parametrize("answer", [drip, drip_body, answer_again_and_again])
def test_a_server_that_never_ends_is_given_up(call_mode: CallMode, site: Site, answer: Any) -> None:
    site.pages["/x"] = answer
    began = time.monotonic()
    found = fetch(call_mode, site.at("/x"), site, timeout=0.5)

    assert time.monotonic() - began < 30
    assert found.text.endswith("did not answer within 0.5 seconds. [timeout]")


async def test_a_fetch_that_is_cancelled_hangs_up(site: Site) -> None:
    begun, ended = Event(), Event()

    def answer(handler: BaseHTTPRequestHandler) -> None:
        begun.set()
        drip_body(handler)
        ended.set()

    site.pages["/x"] = answer
    fetching = asyncio.ensure_future(web_fetch([site.host], timeout=60).ainvoke({"url": site.at("/x")}))
    assert await asyncio.to_thread(begun.wait, 30)
    fetching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await fetching

    assert await asyncio.to_thread(ended.wait, 20)


def test_a_page_takes_no_longer_than_the_run_may(call_mode: CallMode, site: Site) -> None:
    site.pages["/x"] = drip_body
    model = ScriptedModel(call("web_fetch", url=site.at("/x")), "Done.")
    fetch, began = web_fetch([site.host], timeout=40), time.monotonic()
    agent = create_deep_agent(model, tools=[fetch], limits=Limits(seconds=1), checkpointer=InMemorySaver())
    result = call_mode.invoke(agent, {"messages": "Go"}, THREAD)

    assert time.monotonic() - began < 30
    (answer,) = (each for each in result["messages"] if isinstance(each, ToolMessage))
    assert "did not answer within" in answer.text


def test_a_connection_that_comes_too_late_asks_for_nothing(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = socket.create_connection

    def connect_late(*args: Any) -> socket.socket:
        made = connect(*args)
        time.sleep(0.5)
        return made

    monkeypatch.setattr(socket, "create_connection", connect_late)
    url = site.place("/x", "hello", "text/plain")
    found = web_fetch([site.host], timeout=0.3).invoke({"url": url})

    assert found.additional_kwargs["error_code"] == "timeout"
    assert not site.seen


def test_a_resolver_that_never_answers_is_given_up(site: Site) -> None:
    def resolve(host: str, port: int) -> list[str]:
        time.sleep(1.5)
        return []

    found = web_fetch(["slow.test"], timeout=0.3, resolve=resolve).invoke({"url": "http://slow.test/"})

    assert found.additional_kwargs["error_code"] == "timeout"


def break_off(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("content-type", "text/plain")
    handler.send_header("content-length", "100")
    handler.end_headers()
    handler.wfile.write(b"half")


def break_off_in_a_chunk(handler: BaseHTTPRequestHandler) -> None:
    handler.protocol_version = "HTTP/1.1"
    handler.send_response(200)
    handler.send_header("content-type", "text/plain")
    handler.send_header("transfer-encoding", "chunked")
    handler.end_headers()
    handler.wfile.write(b"64\r\nhalf")


@pytest.mark.parametrize(
    "answer",
    [
        break_off,
        break_off_in_a_chunk,
        lambda handler: handler.wfile.write(b"SSH-2.0-OpenSSH\r\n"),
        lambda handler: handler.wfile.write(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 1000 + b"\r\n"),
        lambda handler: handler.wfile.write(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n0\r\n\r\n"
        ),
        lambda handler: handler.wfile.write(b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000 + b"\r\n\r\n"),
        lambda handler: None,
    ],
)
def test_an_answer_that_is_not_whole_is_a_failure(site: Site, answer: Any) -> None:
    site.pages["/x"] = answer
    found = web_fetch([site.host]).invoke({"url": site.at("/x")})

    assert found.additional_kwargs["error_code"] == "remote_failed"
    assert len(found.text) < 500


def test_errors_of_a_server_are_read_as_such(site: Site) -> None:
    site.pages["/busy"] = lambda handler: respond(handler, 429, b"", retry_after="30")
    found = [web_fetch([site.host]).invoke({"url": site.at(path)}).text for path in ("/none", "/busy")]

    assert found[0].endswith("/none answered 404 Not Found. [remote_failed]")
    assert found[1].endswith("answered 429 Too Many Requests, and asks to wait 30 seconds. [remote_failed]")


def test_redirects_are_followed_and_come_to_an_end(site: Site) -> None:
    site.place("/ä b", "there", "text/plain")
    site.pages["/%C3%A4%20b?q=%22"] = site.pages["/ä b"]
    found = web_fetch([site.host])
    led = found.invoke({"url": site.redirect("/a", '/ä b?q="'.encode().decode("latin-1"))})
    site.redirect("/l1", "/l2")
    loop = found.invoke({"url": site.redirect("/l2", "/l1")})

    assert "there" in led.text
    assert f' url="{site.at("/%C3%A4%20b?q=%22")}">' in led.text
    assert loop.text.endswith("redirects more than 5 times. [remote_failed]")


def test_a_redirect_to_another_host_is_shown_and_not_followed(call_mode: CallMode, site: Site) -> None:
    found = fetch(call_mode, site.redirect("/a", ELSEWHERE), site)

    assert found.additional_kwargs["error_code"] == "permission_denied"
    assert f"redirects to {ELSEWHERE}, which was not fetched" in found.text
    assert "ask for that address itself" in found.text


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.org",
        "ftp://example.org/",
        "https://",
        "https://a b.test/",
        "https://a:b@c.test/",
        "x" * 9000,
    ],
)
def test_what_is_not_an_address_is_refused_with_the_form(site: Site, url: str) -> None:
    found = web_fetch([site.host]).invoke({"url": url})

    assert found.additional_kwargs["error_code"] == "invalid_argument"
    assert "cannot be fetched: " in found.text
    assert len(found.text) < 600


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"hosts": "example.org"}, "hosts must be a list"),
        ({"hosts": ["https://example.org"]}, "host names such as"),
        ({"hosts": ["*"]}, "host names such as"),
        ({"timeout": 0}, "timeout must be greater than 0, got 0"),
        ({"max_bytes": -1}, "max_bytes must be greater than 0, got -1"),
    ],
)
def test_hosts_and_numbers_that_cannot_be_are_refused(given: Any, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        web_fetch(**given)


def asking(call_mode: CallMode, *urls: str, **options: Any) -> tuple[Any, dict[str, Any]]:
    """Let an agent ask for pages of hosts that nobody named."""
    model = ScriptedModel(*[call("web_fetch", url=url) for url in urls], "Done.")
    options = {
        "tools": [web_fetch(resolve=lambda *_: [ROUTABLE])],
        "checkpointer": InMemorySaver(),
        **options,
    }
    agent = create_deep_agent(model, **options)
    return agent, call_mode.invoke(agent, {"messages": "Go"}, THREAD)


def decide(call_mode: CallMode, agent: Any, decision: dict[str, Any]) -> Any:
    return call_mode.invoke(agent, Command(resume={"decisions": [decision]}), THREAD)


def test_a_person_is_asked_about_a_host_that_nobody_named(call_mode: CallMode) -> None:
    agent, result = asking(call_mode, ELSEWHERE)

    (question,) = result["__interrupt__"][0].value["action_requests"]
    assert question["args"] == {"url": ELSEWHERE}
    assert "other.test:443 is refused: it is not among the allowed hosts" in question["description"]
    with pytest.raises(NetworkRefused, match=ROUTABLE):
        decide(call_mode, agent, {"type": "approve"})


def test_a_person_who_rejects_keeps_the_page_away(call_mode: CallMode) -> None:
    agent, _ = asking(call_mode, ELSEWHERE)
    result = decide(call_mode, agent, {"type": "reject", "message": "Not that one."})

    assert "Not that one." in result["messages"][-2].text
    assert result["messages"][-1].text == "Done."


def test_a_person_may_lead_to_another_page(call_mode: CallMode, site: Site) -> None:
    agent, _ = asking(call_mode, ELSEWHERE, tools=[web_fetch([site.host])])
    url = site.place("/x", "the right one", "text/plain")
    edited = {"type": "edit", "edited_action": {"name": "web_fetch", "args": {"url": url}}}

    assert "the right one" in decide(call_mode, agent, edited)["messages"][-2].text


def test_an_agreement_may_be_remembered_for_a_site(call_mode: CallMode) -> None:
    agent, _ = asking(call_mode, ELSEWHERE, "https://other.test/second", "https://third.test/")
    remember = {"url": "https://other.test/*"}
    result = decide(call_mode, agent, {"type": "reject", "remember": remember})

    assert result["__interrupt__"][0].value["action_requests"][0]["args"]["url"] == "https://third.test/"


@pytest.mark.parametrize("interrupt_on", [{"web_fetch": False}, None])
def test_where_no_person_is_asked_such_a_host_is_refused(call_mode: CallMode, interrupt_on: Any) -> None:
    with ScriptedModel(call("web_fetch", url=ELSEWHERE), "Done.") as model:
        if interrupt_on:
            agent = create_deep_agent(
                model, tools=[web_fetch()], interrupt_on=interrupt_on, checkpointer=InMemorySaver()
            )
        else:
            agent = create_agent(model, [web_fetch()])
        answer = call_mode.invoke(agent, {"messages": "Go"}, THREAD)["messages"][-2]

    assert answer.additional_kwargs["error_code"] == "permission_denied"
    assert "No person can be asked about it here" in answer.text


def test_an_approval_of_langchain_lets_no_such_host_through(call_mode: CallMode) -> None:
    agent = create_agent(
        ScriptedModel(call("web_fetch", url=ELSEWHERE), "Done."),
        [web_fetch()],
        middleware=[HumanInTheLoopMiddleware({"web_fetch": True})],
        checkpointer=InMemorySaver(),
    )
    assert call_mode.invoke(agent, {"messages": "Go"}, THREAD)["__interrupt__"]
    answer = decide(call_mode, agent, {"type": "approve"})["messages"][-2]

    assert answer.additional_kwargs["error_code"] == "permission_denied"


def test_a_subagent_asks_too(call_mode: CallMode) -> None:
    helper: Any = {
        "name": "helper",
        "description": "Helps.",
        "system_prompt": "Help.",
        "tools": [web_fetch()],
    }
    task = call("task", description="Look", subagent_type="helper")
    with ScriptedModel(task, call("web_fetch", url=ELSEWHERE), "Not found.", "Done.") as model:
        agent = create_deep_agent(model, subagents=[helper], checkpointer=InMemorySaver())
        result = call_mode.invoke(agent, {"messages": "Go"}, THREAD)
        assert result["__interrupt__"][0].value["action_requests"][0]["args"] == {"url": ELSEWHERE}
        result = decide(call_mode, agent, {"type": "reject"})

    assert result["messages"][-1].text == "Done."


def test_a_program_may_decide_about_hosts_at_each_call(call_mode: CallMode) -> None:
    asked: list[str] = []

    def allows(host: str) -> bool:
        asked.append(host)
        return True

    fetch = web_fetch(allows=allows, resolve=lambda *_: [ROUTABLE])
    with pytest.raises(NetworkRefused, match=ROUTABLE):
        fetch.invoke({"url": ELSEWHERE})
    assert set(asked) == {"other.test"}


def test_a_program_decides_about_no_host_where_all_are_allowed(call_mode: CallMode) -> None:
    fetch = web_fetch("all", allows=lambda host: False, resolve=lambda *_: [ROUTABLE])
    agent = create_deep_agent(ScriptedModel(call("web_fetch", url=ELSEWHERE)), tools=[fetch])
    with pytest.raises(NetworkRefused, match=ROUTABLE):
        call_mode.invoke(agent, {"messages": "Go"})


def test_an_agent_that_may_fetch_from_everywhere_asks_nobody(call_mode: CallMode) -> None:
    fetch = web_fetch("all", resolve=lambda *_: ["10.0.0.1"])
    with ScriptedModel(call("web_fetch", url=ELSEWHERE), "Done.") as model:
        answer = call_mode.invoke(create_deep_agent(model, tools=[fetch]), {"messages": "Go"})["messages"][-2]

    assert "own networks" in answer.text


def make_certificate(path: Path, host: str) -> Path:
    """Write a certificate for a host that vouches for itself, with its key."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(host))]), critical=True)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, SHA256())
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path.write_bytes(made.public_bytes(Encoding.PEM) + private)
    return path


FETCH = """
import sys
from deepagents.tools import web_fetch
print(web_fetch([sys.argv[1]]).invoke({"url": sys.argv[2]}).text)
"""


def fetch_trusting(certificate: Path | None, site: Site) -> str:
    """Fetch a page by TLS in a program that trusts a certificate, or none but those of browsers."""
    url = site.at("/x").replace("http:", "https:")
    with pytest.MonkeyPatch.context() as patches:
        if certificate:
            patches.setenv("SSL_CERT_FILE", str(certificate))
        ran = programs.run(FETCH, site.host, url)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_a_page_by_tls_is_read_where_its_certificate_is_trusted(tmp_path: Path) -> None:
    right = make_certificate(tmp_path / "right.pem", "127.0.0.1")
    wrong = make_certificate(tmp_path / "wrong.pem", "127.0.0.2")
    with serving(right) as site:
        site.place("/x", "hello", "text/plain")
        texts = [fetch_trusting(right, site), fetch_trusting(None, site)]
    with serving(wrong) as site:
        site.place("/x", "hello", "text/plain")
        texts.append(fetch_trusting(wrong, site))

    assert "hello" in texts[0]
    assert "certificate verify failed" in texts[1]
    assert "certificate is not valid for '127.0.0.1'" in texts[2]


def test_a_server_that_never_shakes_hands_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        host = f"127.0.0.1:{silent.getsockname()[1]}"
        found = web_fetch([host], timeout=0.5).invoke({"url": f"https://{host}/"})

    assert found.text.endswith("did not answer within 0.5 seconds. [timeout]")


def test_a_program_of_the_model_reaches_no_host_that_needs_a_question(call_mode: CallMode) -> None:
    code = f"await web_fetch(url={ELSEWHERE!r})"
    with ScriptedModel(call("run_code", code=code), "Done.") as model:
        agent = create_deep_agent(
            model,
            tools=[web_fetch(resolve=lambda *_: [ROUTABLE])],
            middleware=[CodeModeMiddleware()],
            checkpointer=InMemorySaver(),
        )
        answer = call_mode.invoke(agent, {"messages": "Go"}, THREAD)["messages"][-2]

    assert answer.status == "error"
    assert "person" in answer.text
