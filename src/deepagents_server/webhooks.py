"""Post to another server, and never to one that only this machine should reach."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from ipaddress import ip_address
from typing import Any, Final

import httpx

from deepagents._values import valueclass
from deepagents.network import is_inner, is_loopback
from deepagents_server.config_file import WebhookRules
from deepagents_server.errors import ApiError, ServeError

_SECONDS: Final = 10.0
_LONGEST: Final = 2048
_VARIABLE: Final = re.compile(r"\$\{\{\s*env\.(\w+)\s*\}\}")
_log: Final = logging.getLogger("deepagents.server")


async def _resolve(host: str, port: int) -> list[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(each[4][0]) for each in found]


@valueclass
class Webhooks:
    """Where webhooks may go: `webhooks` of langgraph.json, with its `url` and `headers`."""

    headers: Mapping[str, str]
    rules: WebhookRules
    resolve: Callable[[str, int], Awaitable[Sequence[str]]] = _resolve
    """Finds the addresses of a host and port."""

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Webhooks:
        """Read the configuration.

        Raises:
            ServeError: for a header with a variable that is not there, or may not leave.
        """
        prefix = str(given.get("env_prefix") or "LG_WEBHOOK_")
        headers: Mapping[str, str] = given.get("headers") or {}
        return cls(
            {name: _VARIABLE.sub(partial(_read, prefix), text) for name, text in headers.items()},
            WebhookRules.model_validate(given.get("url") or {}),
        )

    def check(self, address: str) -> httpx.URL:
        """Refuse an address that no webhook may have, as far as that can be seen from its text.

        Raises:
            ApiError: with what is wrong about it.
        """
        try:
            url = httpx.URL(address)
            # As who looks it up does: no label may be empty or too long.
            url.host.encode("idna")
        except (httpx.InvalidURL, UnicodeError) as error:
            raise ApiError(422, "webhook: this is not an address.") from error
        whole = url.scheme in ("http", "https") and url.host and _port(url) < 65536
        if not whole or len(address) > (self.rules.max_url_length or _LONGEST):
            raise ApiError(422, "webhook: give a whole address, http:// or https://, that is not too long.")
        if url.userinfo:
            raise ApiError(422, "webhook: leave name and password out of the address.")
        if self.rules.require_https and url.scheme != "https":
            raise ApiError(422, "webhook: this server allows https:// only.")
        if self.rules.allowed_domains and not self._is_named(url.host):
            raise ApiError(422, f"webhook: this server does not call {url.host!r}.")
        if self.rules.allowed_ports and _port(url) not in self.rules.allowed_ports:
            raise ApiError(422, f"webhook: this server does not call port {_port(url)}.")
        name = url.host.lower().rstrip(".")
        literal = "127.0.0.1" if name == "localhost" else _as_address(name)
        if literal:
            self._check_address(url.host, literal)
        return url

    def _is_named(self, host: str) -> bool:
        """Tell whether a host is in the list; `*.example.org` names all below."""
        name = host.lower().rstrip(".")
        return any(
            name.endswith(domain[1:].lower()) if domain.startswith("*.") else name == domain.lower()
            for domain in self.rules.allowed_domains or ()
        )

    def _check_address(self, host: str, address: str) -> None:
        if is_loopback(address) and not self.rules.disable_loopback:
            return
        # Who names a host in the configuration may have it in his own network.
        if is_inner(address) and not self._is_named(host):
            raise ApiError(422, f"webhook: {host!r} is in a network that this server does not call.")

    async def post(self, address: str, body: bytes) -> bool:
        """Post to a webhook; `False` if it may hear of it another time. Redirects are not followed.

        Raises:
            ApiError: if this address may not be called.
        """
        try:
            async with asyncio.timeout(_SECONDS):
                return await self._post(address, body) < 500
        except (httpx.HTTPError, OSError) as error:
            _log.warning("A webhook was not delivered: %s", type(error).__name__)
            return False

    async def _post(self, address: str, body: bytes) -> int:
        url = self.check(address)
        found = await self.resolve(url.host, _port(url))
        for each in found:
            self._check_address(url.host, each)
        # To the address that was checked: asked again, the name could lead elsewhere.
        pinned = url.copy_with(host=found[0])
        headers = {**self.headers, "content-type": "application/json", "host": url.netloc.decode()}
        async with httpx.AsyncClient(timeout=_SECONDS, trust_env=False, follow_redirects=False) as client:
            request = client.build_request("POST", pinned, content=body, headers=headers)
            request.extensions["sni_hostname"] = url.host
            answered = await client.send(request, stream=True)
            await answered.aclose()
        return answered.status_code


def _read(prefix: str, found: re.Match[str]) -> str:
    """Return the value of a variable that a header names."""
    name = found[1]
    if not name.startswith(prefix):
        raise ServeError(
            f"webhooks.headers: {name!r} may not leave; name variables that begin with {prefix}."
        )
    if name not in os.environ:
        raise ServeError(f"webhooks.headers: {name!r} is not set.")
    return os.environ[name]


def _port(url: httpx.URL) -> int:
    return url.port or (443 if url.scheme == "https" else 80)


def _as_address(host: str) -> str | None:
    """Return the address that a host is; `None` for a name."""
    try:
        return str(ip_address(host.strip("[]")))
    except ValueError:
        pass
    try:
        # Forms such as 127.1, 0x7f000001 or 2130706433, which resolvers take for addresses.
        return socket.inet_ntoa(socket.inet_aton(host))
    except OSError:
        return None
