"""Commands with named hosts, in a process of its own that runs as one user or the other."""

from __future__ import annotations

import codecs
import shutil
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from deepagents.backends import LocalSandbox
from tests.sandbox.users import main

# Servers look their own name up by this; later it may be out of reach.
codecs.lookup("idna")


class _Hello(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "6")
        self.end_headers()
        self.wfile.write(b"hello\n")

    def log_message(self, format: str, *args: object) -> None:
        pass


def named_hosts() -> dict[str, Any]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Hello)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    host = f"127.0.0.1:{server.server_address[1]}"
    top = tempfile.mkdtemp(prefix="network-", dir="/var/tmp")
    ask = (
        f"curl -sS --noproxy '' http://{host}/; curl -s -o /dev/null http://evil.example/; touch made; id -u"
    )
    try:
        plain = LocalSandbox(top, network=[host], timeout=60).execute(ask)
        with LocalSandbox(top, network=[host], timeout=60, session=True) as sandbox:
            in_session = sandbox.execute(ask)
        return {"plain": plain.output, "in a session": in_session.output, "refused": plain.refused}
    finally:
        server.shutdown()
        server.server_close()
        shutil.rmtree(top, ignore_errors=True)


if __name__ == "__main__":
    main([named_hosts])
