"""Let a command reach the proxy, and through it the hosts that are named, without any other network."""

from __future__ import annotations

import socket
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from deepagents.backends.local_shell.process import Refusals
from deepagents.network import HostRules
from deepagents_sandbox.inside import PORT
from deepagents_sandbox.mounts import find_interpreter
from deepagents_sandbox.proxy import Proxy

_INSIDE: Final = Path(__file__).with_name("inside.py")
_DIRECT: Final = "localhost,127.0.0.1,::1"


def proxy_variables(port: int) -> dict[str, str]:
    """Return the variables by which programs find a proxy on their own machine."""
    proxy = f"http://127.0.0.1:{port}"
    return {
        **dict.fromkeys(
            ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"), proxy
        ),
        **dict.fromkeys(("no_proxy", "NO_PROXY"), _DIRECT),
        # Programs for Node.js look at those variables only when they are told to.
        "NODE_USE_ENV_PROXY": "1",
    }


class Bridge:
    """The proxy of one command: what starts in the sandbox before it, and what it needs there."""

    def __init__(self, rules: HostRules, refused: Refusals) -> None:
        self.env = proxy_variables(PORT)
        self._python, self.needs = find_interpreter()
        self._proxy = Proxy(rules, refused.note)
        self._outside, self._inside = socket.socketpair()

    def __enter__(self) -> Bridge:
        threading.Thread(target=self._receive, name="sandbox-bridge", daemon=True).start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._proxy.close()
        for each in (self._inside, self._outside):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    @property
    def descriptors(self) -> Sequence[int]:
        """The open file that the program inside needs."""
        return [self._inside.fileno()]

    @property
    def enter(self) -> Sequence[str]:
        """The beginning of the command line inside."""
        return [self._python, "-I", "-S", "-c", _INSIDE.read_text(), str(self._inside.fileno())]

    def _receive(self) -> None:
        with suppress(OSError):
            _, found, _, _ = socket.recv_fds(self._outside, 1, 1)
            if found:
                self._proxy.start(socket.socket(fileno=found[0]))


class Loopback:
    """The proxy of one command on a port of this machine, for a system without networks of their own.

    While the command runs, other programs of this machine can use it too, and reach no more by it.
    """

    def __init__(self, rules: HostRules, refused: Refusals) -> None:
        self._proxy = Proxy(rules, refused.note)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.env = proxy_variables(self.port)

    def __enter__(self) -> Loopback:
        self._proxy.start(self._listener)
        return self

    def __exit__(self, *raised: object) -> None:
        self._proxy.close()
        # Not every system wakes a thread that accepts when its socket is shut down.
        self._listener.close()
