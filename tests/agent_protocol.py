"""A small Agent Protocol server for tests: it does what it is told, also fail, stall, lie and restart."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4


@dataclass(frozen=True, slots=True)
class Seen:
    """One request that came in."""

    method: str
    path: str
    headers: dict[str, str]
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Instead:
    """What is answered in the place of the truth."""

    status: int = 200
    body: str = ""
    hangs: bool = False
    hangs_up: bool = False
    once: bool = False


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that hang up."""


@dataclass
class AgentServer:
    """Threads and runs in memory, changed by the test; every request is kept in `seen`."""

    threads: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    runs: dict[str, list[dict[str, Any]]] = field(default_factory=dict[str, list[dict[str, Any]]])
    seen: list[Seen] = field(default_factory=list[Seen])
    instead: list[tuple[str, Instead]] = field(default_factory=list[tuple[str, Instead]])
    _http: _Http | None = None
    _port: int = 0
    _let_go: threading.Event = field(default_factory=threading.Event)
    _serving: threading.Thread | None = None

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Listen, at the same place as before."""
        self._let_go.clear()
        self._http = _Http(("127.0.0.1", self._port), _handler(self))
        self._port = self._http.server_address[1]
        self._serving = threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True)
        self._serving.start()

    def stop(self) -> None:
        """Go away, in the middle of whatever it was answering."""
        self._let_go.set()
        if self._http and self._serving:
            self._http.shutdown()
            self._http.server_close()
            self._serving.join()

    def forget(self) -> None:
        """Lose all that it knew."""
        self.threads.clear()
        self.runs.clear()

    def answers(self, asked: str, instead: Instead) -> None:
        """Answer requests whose method and path match with something else from now on."""
        self.instead.append((asked, instead))

    def tells_the_truth(self) -> None:
        """Answer as it should again."""
        self.instead.clear()

    @property
    def asked(self) -> list[str]:
        """Method and path of each request, ids left out."""
        return [f"{each.method} {re.sub(r'[0-9a-f-]{36}', '*', each.path)}" for each in self.seen]

    def only_task(self) -> str:
        """Return the id of the one thread that there is."""
        (thread_id,) = self.threads
        return thread_id

    def runs_already(self, record: Any) -> Any:
        """Run what an agent's record says that it has started."""
        self.threads[record["thread_id"]] = {"thread_id": record["thread_id"], "status": "busy"}
        self.runs[record["thread_id"]] = [
            {"run_id": record["run_id"], "thread_id": record["thread_id"], "status": record["status"]}
        ]
        return record

    def finishes(self, thread_id: str, content: Any) -> None:
        """End the newest run of a thread with an answer."""
        self.runs[thread_id][-1]["status"] = "success"
        message = {"type": "ai", "content": content}
        self.threads[thread_id] |= {"status": "idle", "values": {"messages": [message]}, "interrupts": {}}

    def fails(self, thread_id: str, message: str) -> None:
        """End the newest run of a thread with an error."""
        self.runs[thread_id][-1]["status"] = "error"
        self.threads[thread_id] |= {"status": "error", "error": {"error": "ValueError", "message": message}}

    def asks_a_person(self, thread_id: str, question: Any) -> None:
        """Let the newest run of a thread wait for a person."""
        self.runs[thread_id][-1]["status"] = "success"
        interrupts = {"node": [{"id": "question-1", "value": question}]}
        self.threads[thread_id] |= {"status": "interrupted", "values": {}, "interrupts": interrupts}

    def answer(self, seen: Seen) -> tuple[int, Any]:
        """Answer a request as a server should."""
        _, _, thread_id, *rest = [*seen.path.split("/"), ""]
        if seen.path == "/threads":
            return 200, self._new_thread(seen.body)
        if thread_id not in self.threads:
            return 404, {"detail": "Not Found"}
        return self._of_thread(seen, thread_id, [each for each in rest if each])

    def _of_thread(self, seen: Seen, thread_id: str, rest: list[str]) -> tuple[int, Any]:
        match [seen.method, *rest]:
            case ["GET"]:
                return 200, self.threads[thread_id]
            case ["POST", "runs"]:
                return 200, self._new_run(thread_id, seen.body)
            case ["GET", "runs"]:
                return 200, self.runs[thread_id][::-1]
            case ["GET", "runs", run_id] if run := self._run(thread_id, run_id):
                return 200, run
            case ["POST", "runs", run_id, "cancel"]:
                return self._cancelled(self._run(thread_id, run_id))
            case _:
                return 404, {"detail": "Not Found"}

    def _new_thread(self, body: dict[str, Any]) -> dict[str, Any]:
        thread_id: str = body.get("thread_id") or str(uuid4())
        self.threads[thread_id] = {"thread_id": thread_id, "status": "idle", "metadata": body.get("metadata")}
        self.runs[thread_id] = []
        return self.threads[thread_id]

    def _new_run(self, thread_id: str, body: dict[str, Any]) -> dict[str, Any]:
        if body.get("multitask_strategy") == "interrupt" and self.runs[thread_id]:
            self.runs[thread_id][-1]["status"] = "interrupted"
        run = {"run_id": str(uuid4()), "thread_id": thread_id, "status": "pending", "input": body["input"]}
        self.runs[thread_id].append(run)
        self.threads[thread_id]["status"] = "busy"
        return run

    def _run(self, thread_id: str, run_id: str) -> dict[str, Any] | None:
        return next((run for run in self.runs.get(thread_id, []) if run["run_id"] == run_id), None)

    def _cancelled(self, run: dict[str, Any] | None) -> tuple[int, Any]:
        if run is None or run["status"] not in ("pending", "running"):
            return 404, {"detail": "No matching runs to cancel."}
        run["status"] = "interrupted"
        self.threads[run["thread_id"]]["status"] = "idle"
        return 202, None

    def replaced(self, seen: Seen) -> Instead | None:
        """Return what is answered in the place of the truth, if anything."""
        asked = f"{seen.method} {seen.path}"
        found = next((each for each in self.instead if re.search(each[0], asked)), None)
        if found and found[1].once:
            self.instead.remove(found)
        return found[1] if found else None

    def hold(self) -> None:
        """Wait until this server goes away."""
        self._let_go.wait(60)


def _send(to: BaseHTTPRequestHandler, status: int, content: bytes) -> None:
    to.send_response(status)
    to.send_header("content-type", "application/json")
    to.send_header("content-length", str(len(content)))
    to.end_headers()
    to.wfile.write(content)


def _handler(server: AgentServer) -> type[BaseHTTPRequestHandler]:
    def take(asking: BaseHTTPRequestHandler) -> None:
        length = int(asking.headers.get("content-length") or 0)
        body = json.loads(asking.rfile.read(length) or b"{}")
        seen = Seen(asking.command, urlsplit(asking.path).path, dict(asking.headers.items()), body)
        server.seen.append(seen)
        instead = server.replaced(seen)
        if instead is None:
            status, answer = server.answer(seen)
            _send(asking, status, json.dumps(answer).encode())
        elif instead.hangs:
            server.hold()
        elif not instead.hangs_up:
            _send(asking, instead.status, instead.body.encode())

    own = {"do_GET": take, "do_POST": take, "log_message": lambda *said: None}
    return type("Handler", (BaseHTTPRequestHandler,), own)


@contextmanager
def agent_server() -> Generator[AgentServer]:
    """Run one for as long as a test needs it."""
    server = AgentServer()
    server.start()
    try:
        yield server
    finally:
        server.stop()
