"""A blob service in memory that speaks enough of Azure's protocol for its SDK to keep files in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

ACCOUNT = "AccountName=devstore;AccountKey=c2VjcmV0"
HEAD = '<?xml version="1.0" encoding="utf-8"?>'
LISTING = HEAD + "<EnumerationResults><Blobs>{}</Blobs><NextMarker/></EnumerationResults>"
ENTRY = (
    "<Blob><Name>{}</Name><Properties><Last-Modified>{}</Last-Modified><Content-Length>{}</Content-Length>"
    "<BlobType>BlockBlob</BlobType></Properties></Blob>"
)
PREFIX = "<BlobPrefix><Name>{}</Name></BlobPrefix>"


class Service(ThreadingHTTPServer):
    """The server with its blobs, by name."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Requests)
        self.blobs: dict[str, bytes] = {}

    @property
    def connection_string(self) -> str:
        endpoint = f"http://127.0.0.1:{self.server_port}/devstore"
        return f"DefaultEndpointsProtocol=http;{ACCOUNT};BlobEndpoint={endpoint};"

    def listing(self, prefix: str, delimiter: str) -> str:
        """List the blobs below a prefix; a delimiter cuts deeper names."""
        found: dict[str, str] = {}
        for name in sorted(self.blobs):
            rest = name.removeprefix(prefix)
            if rest == name and prefix:
                continue
            head, cut, _ = rest.partition(delimiter) if delimiter else (rest, "", "")
            key = prefix + head + cut
            facts = (escape(key), formatdate(usegmt=True), len(self.blobs.get(name, b"")))
            found[key] = PREFIX.format(facts[0]) if cut else ENTRY.format(*facts)
        return LISTING.format("".join(found.values()))


class Requests(BaseHTTPRequestHandler):
    """One connection of a client."""

    server: Service
    protocol_version = "HTTP/1.1"

    @property
    def blob(self) -> str:
        return unquote(urlsplit(self.path).path).split("/", 3)[-1]

    def do_PUT(self) -> None:
        self.server.blobs[self.blob] = self.rfile.read(int(self.headers["Content-Length"] or 0))
        self.answer(201)

    def do_DELETE(self) -> None:
        self.answer(404 if self.server.blobs.pop(self.blob, None) is None else 202)

    def do_HEAD(self) -> None:
        held = self.server.blobs.get(self.blob)
        self.answer(404) if held is None else self.answer(200, length=len(held))

    def do_GET(self) -> None:
        asked = parse_qs(urlsplit(self.path).query)
        if "comp" in asked:
            listing = self.server.listing(asked.get("prefix", [""])[0], asked.get("delimiter", [""])[0])
            return self.answer(200, listing.encode(), kind="application/xml")
        held = self.server.blobs.get(self.blob)
        if held is None:
            return self.answer(404)
        first, last = re.findall(r"\d+", self.headers.get("x-ms-range", "0-999999999"))
        if not held:
            return self.answer(416)
        part = held[int(first) : int(last) + 1]
        return self.answer(206, part, reach=f"bytes {first}-{int(first) + len(part) - 1}/{len(held)}")

    def answer(
        self,
        status: int,
        body: bytes = b"",
        *,
        length: int | None = None,
        kind: str = "application/octet-stream",
        reach: str = "",
    ) -> None:
        self.send_response(status)
        known = {
            "Content-Length": str(len(body) if length is None else length),
            "Content-Type": kind,
            "Content-Range": reach,
            "Last-Modified": formatdate(usegmt=True),
            "ETag": '"0x1"',
            "x-ms-blob-type": "BlockBlob",
            "x-ms-error-code": {404: "BlobNotFound", 416: "InvalidRange"}.get(status, ""),
        }
        for name, value in known.items():
            if value:
                self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def blob_service() -> Iterator[Service]:
    """Serve on a free port of this machine."""
    with Service() as service:
        thread = Thread(target=service.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield service
        service.shutdown()
        thread.join()
