"""Let a check reach the backend: one call at a time, blocking or awaiting, wherever it can work."""

from __future__ import annotations

import asyncio
import inspect
import queue
import reprlib
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from types import TracebackType
from typing import Any, Literal

import pytest

from deepagents._deprecation import warn_legacy
from deepagents._values import valueclass
from deepagents.backends._signatures import overrides
from deepagents.backends.capabilities import Capabilities
from deepagents.backends.protocol import BackendProtocol, accepts

CallMode = Literal["sync", "async"]
# Seconds; a backend that hangs should fail a check and not stop the whole suite.
_PATIENCE = 60.0
_OLDER_NAMES = {
    "bytes": "read_bytes", "text": "read_text", "wrote": "write_text",
    "listed": "list_paths", "uploaded": "upload_all", "downloaded": "download_all",
}  # fmt: skip


@valueclass
class _Request:
    method: str
    args: tuple[Any, ...]
    options: dict[str, Any]
    answer: Future[Any]

    def __enter__(self) -> _Request:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if error is not None:
            # A check makes many calls, and a trace does not say with which values. To skip is not a failure.
            if isinstance(error, Exception):
                error.add_note(f"in {self.method}{reprlib.repr(self.args)}")
            self.answer.set_exception(error)
        return error is not None


class Called:
    """A backend as the checks see it: `files.call("read", "/a.txt")` calls `read` or awaits `aread`."""

    def __init__(self) -> None:
        self._capabilities: Future[Capabilities] = Future()
        self._type: type[BackendProtocol] = BackendProtocol
        self._requests: queue.SimpleQueue[_Request | None] = queue.SimpleQueue()
        self._server: Future[None] | None = None

    def __getattr__(self, name: str) -> Any:
        """Find what goes by another name today."""
        if name not in _OLDER_NAMES:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        warn_legacy(f"Called.{name} is now Called.{_OLDER_NAMES[name]}.")
        return getattr(self, _OLDER_NAMES[name])

    def start(self, server: Future[None]) -> None:
        """Remember the work that serves the calls."""
        self._server = server

    def stop(self) -> None:
        """End the work that serves the calls."""
        self._requests.put(None)

    def call(self, method: str, *args: Any, **options: Any) -> Any:
        """Call a method of the backend; what it raises is raised here."""
        request = _Request(method, args, options, Future())
        self._requests.put(request)
        return self._await_answer(request.answer)

    def _await_answer(self, answer: Future[Any]) -> Any:
        server: tuple[Future[Any], ...] = () if self._server is None else (self._server,)
        done, _ = wait((answer, *server), _PATIENCE, FIRST_COMPLETED)
        # The backend's surroundings failed, so no answer will ever come.
        if answer not in done and self._server in done:
            raise RuntimeError("run() or arun() ended before the work was done") from self._server.exception()
        return answer.result(timeout=0)

    def serve(self, backend: BackendProtocol) -> None:
        """Answer calls, blocking."""
        self._type = type(backend)
        self._capabilities.set_result(backend.capabilities())
        while request := self._requests.get():
            with request:
                request.answer.set_result(getattr(backend, request.method)(*request.args, **request.options))

    async def aserve(self, backend: BackendProtocol) -> None:
        """Answer calls, awaiting."""
        self._type = type(backend)
        self._capabilities.set_result(backend.capabilities())
        # In a thread, so that the backend's own tasks go on between two calls.
        while request := await asyncio.to_thread(self._requests.get):
            with request:
                answer = self._start_call(backend, request)
                request.answer.set_result(await answer if inspect.isawaitable(answer) else answer)

    def _start_call(self, backend: BackendProtocol, request: _Request) -> Any:
        method = getattr(backend, f"a{request.method}", None) or getattr(backend, request.method)
        return method(*request.args, **request.options)

    def ls(self, path: str) -> Any:
        return self.call("ls", path)

    def list_paths(self, path: str, **options: Any) -> list[str]:
        """Return the paths of a directory's entries, directories with a slash at their end."""
        entries = self.call("ls", path, **options).entries or ()
        return [f"{each['path'].rstrip('/')}/" if each.get("is_dir") else each["path"] for each in entries]

    def read(self, path: str, *args: Any) -> Any:
        return self.call("read", path, *args)

    def read_text(self, path: str) -> str:
        """Return the whole text of a file; fails when it cannot be read."""
        found = self.call("read", path)
        assert found.error is None, found.error
        return found.file_data["content"]

    def write(self, path: str, content: str, **options: Any) -> Any:
        return self.call("write", path, content, **options)

    def write_text(self, path: str, content: str) -> Any:
        """Write a file; fails when it cannot be written."""
        done = self.call("write", path, content)
        assert done.error is None, done.error
        return done

    def append(self, path: str, content: str | bytes, **options: Any) -> Any:
        return self.call("append", path, content, **options)

    def edit(self, path: str, old: str, new: str, *args: Any, **options: Any) -> Any:
        return self.call("edit", path, old, new, *args, **options)

    def delete(self, path: str) -> Any:
        return self.call("delete", path)

    def glob(self, pattern: str, path: str | None = None) -> Any:
        return self.call("glob", pattern, path)

    def grep(self, pattern: str, path: str | None = None, glob: str | None = None, **options: Any) -> Any:
        return self.call("grep", pattern, path, glob, **options)

    def upload(self, *files: tuple[str, bytes]) -> Any:
        return self.call("upload_files", list(files))

    def upload_all(self, files: Mapping[str, bytes]) -> None:
        """Upload files; fails when one cannot be."""
        assert {done.path: done.error for done in self.upload(*files.items())} == dict.fromkeys(files)

    def download(self, *paths: str) -> Any:
        return self.call("download_files", list(paths))

    def read_bytes(self, path: str) -> bytes:
        """Return the bytes of a file; fails when it cannot be read."""
        return self.download_all(path)[path]

    def download_all(self, *paths: str) -> dict[str, bytes]:
        """Return the bytes of files; fails when one cannot be read."""
        found = self.download(*paths)
        assert {each.path: each.error for each in found} == dict.fromkeys(paths)
        return {each.path: each.content for each in found}

    def needs(self, capability: str) -> None:
        """Skip the check when the backend does not claim a capability."""
        if not getattr(self._await_answer(self._capabilities), capability):
            pytest.skip(f"the backend does not claim {capability!r}")

    def has(self, method: str) -> None:
        """Skip the check when the backend brings no such method, which it need not."""
        self._await_answer(self._capabilities)
        if not (overrides(self._type, method) or overrides(self._type, f"a{method}")):
            pytest.skip(f"{self._type.__name__} has no {method!r}")

    def takes(self, method: str, option: str) -> None:
        """Skip the check when a method of the backend does not name an option."""
        self._await_answer(self._capabilities)
        if not accepts(self._type, method, option):
            pytest.skip(f"{self._type.__name__}.{method} does not take {option!r}")


def list_matching_files(found: Any) -> list[str]:
    """Return in which files something was found."""
    assert found.error is None, found.error
    return sorted(match["path"] for match in found.matches)


class ContractBase:
    """Makes the backend and runs the checks where it can work."""

    def make_backend(self) -> BackendProtocol:
        """Return a new, empty backend. Override this."""
        raise NotImplementedError("override make_backend() to return a new, empty backend")

    def run(self, work: Callable[[BackendProtocol], None]) -> None:
        """Do blocking work with a backend. Override this when it needs certain surroundings."""
        work(self.make_backend())

    async def arun(self, work: Callable[[BackendProtocol], Awaitable[None]]) -> None:
        """Do awaiting work with a backend. Override this when it needs certain surroundings."""
        await work(self.make_backend())

    @pytest.fixture(params=["sync", "async"])
    def files(self, request: pytest.FixtureRequest) -> Iterator[Called]:
        """Serve one backend to one check, blocking and awaiting."""
        called = Called()
        with ThreadPoolExecutor(1) as thread:
            called.start(thread.submit(self._serve, request.param, called))
            try:
                yield called
            finally:
                called.stop()

    def _serve(self, call_mode: CallMode, called: Called) -> None:
        if call_mode == "sync":
            self.run(called.serve)
        else:
            asyncio.run(self.arun(called.aserve))
