"""Decide which host may be reached, by its name and by every address that the name has, and connect to it.

What connects asks here, and connects to the address that was checked: the proxy of a sandbox, the tools for
the web, and the webhooks of a server.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import monotonic
from typing import Final, TypeAlias

from deepagents._values import dataclass, frozenclass
from deepagents.errors import ConfigError

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve: TypeAlias = Callable[[str, int], Sequence[str]]
"""Returns the addresses of a name."""

PORTS: Final = (80, 443)
_LABEL: Final = r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?"
_LONGEST_NAME: Final = 253
_NAME: Final = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_ENDS_IN_NUMBER: Final = re.compile(r"(^|\.)(\d+|0x[0-9a-f]*)$")
# Addresses of this machine, of its networks and of its provider: what the machine may reach and strangers may
# not (IANA's special-purpose registries; Azure's and Alibaba's metadata services lie outside of them or in
# 100.64/10). Networks kept for documents are nobody's, and test networks put the internet there.
_INNER: Final = tuple(
    map(
        ipaddress.IPv4Network,
        (
            "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "168.63.129.16/32", "169.254.0.0/16",
            "172.16.0.0/12", "192.0.0.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15",
            "224.0.0.0/4", "240.0.0.0/4",
        ),
    )
)  # fmt: skip
_UNICAST: Final = ipaddress.IPv6Network("2000::/3")
"""What is not in here is local, or holds an address of version 4, which a router may lead anywhere."""
# Tunnels (Teredo and 6to4), which nothing public is reached by, and what is kept for documents and trials.
_INNER_UNICAST: Final = tuple(
    map(ipaddress.IPv6Network, ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"))
)
# Addresses of version 6 that stand for the one of version 4 in their last 32 bits: mapped ones, and those
# that a resolver makes in a network without version 4.
_STANDING: Final = tuple(map(ipaddress.IPv6Network, ("::ffff:0:0/96", "64:ff9b::/96")))
_OF_DOCUMENTS: Final = ("192.0.2.1", "2001:db8::1")
"""Addresses that no machine has."""
_SECONDS_TO_CONNECT: Final = 20.0


class RefusedHostError(Exception):
    """A host may not be reached; the text names the rule."""


@frozenclass
class HostRule:
    """One host that may be reached: a name, all names below one, or an address, and the ports."""

    host: str
    ports: tuple[int, ...]

    @classmethod
    def parse(cls, text: str) -> HostRule:
        """Read `example.org`, `*.example.org`, `192.0.2.1`, `[2001:db8::1]`, each with `:port` or without.

        Raises:
            ConfigError: for anything else.
        """
        host, port = split_authority(text, 0)
        is_known = _address(host) is not None or _NAME.fullmatch(host.removeprefix("*."))
        if not is_known or port is None or host == "*":
            raise ConfigError(
                "network must hold host names such as 'example.org' or '*.example.org', with ':port' or "
                f"without; got {text!r}"
            )
        return cls(host, (port,) if port else PORTS)

    def matches(self, host: str, port: int) -> bool:
        """Return whether a host is meant by this rule."""
        if port not in self.ports:
            return False
        return host.endswith(self.host[1:]) if self.host.startswith("*.") else host == self.host


def resolve(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a name, as this machine resolves it."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(each[4][0]) for each in found]


# With `frozenclass`, the reference would list the default of `resolve` as a method.
@dataclass(frozen=True, slots=True)
class HostRules:
    """All hosts that may be reached; `is_further` decides about names that no rule names, at `PORTS`."""

    rules: tuple[HostRule, ...]
    resolve: Resolve = resolve
    is_further: Callable[[str], bool] = lambda _host: False

    def find_addresses(self, host: str, port: int) -> Sequence[str]:
        """Return the addresses to connect to: those that were checked, or a name could change in between.

        Raises:
            RefusedHostError: when no rule allows the host, or any of its addresses is an inner one.
            OSError: when it has no address.
        """
        if refusal := self.find_refusal(host, port):
            raise RefusedHostError(refusal)
        address = _address(host)
        # An address that is named is meant, wherever it leads.
        if address is not None:
            return [str(address)]
        found = list(self.resolve(host, port))
        if any(is_inner(each) or _is_own(each) for each in found):
            raise RefusedHostError(
                f"{host}:{port} is refused: its name leads to an address of this machine's own networks"
            )
        if not found:
            raise OSError(f"{host} has no address")
        return found

    def connect(self, host: str, port: int, seconds: float = _SECONDS_TO_CONNECT) -> socket.socket:
        """Connect to the first address of a host that answers, of those that were checked.

        Raises:
            RefusedHostError: when no rule allows the host, or any of its addresses is an inner one.
            OSError: when it has no address, or none answers in so many seconds.
        """
        found, due = self.find_addresses(host, port), monotonic() + seconds
        # Many names have an address of version 6, which few networks have.
        for left, address in zip(range(len(found), 1, -1), found, strict=False):
            with suppress(OSError):
                return socket.create_connection((address, port), max((due - monotonic()) / left, 0.01))
        return socket.create_connection((found[-1], port), max(due - monotonic(), 0.01))

    def find_refusal(self, host: str, port: int) -> str | None:
        """Say why a host may not be reached, as far as its name tells; `None` where it may."""
        address = _address(host)
        if address is None and not _is_name(host):
            reason = "this is not a host name"
        elif any(rule.matches(host, port) for rule in self.rules):
            return None
        else:
            reason = self._describe_refusal(host, port, is_address=address is not None)
        return reason and f"{host[:_LONGEST_NAME]}:{port} is refused: {reason}"

    def _describe_refusal(self, host: str, port: int, *, is_address: bool) -> str | None:
        """Say why what no rule names may not be reached; `None` where it may."""
        same = [rule for rule in self.rules if any(rule.matches(host, each) for each in rule.ports)]
        if same:
            return f"only the ports {_join(same[0].ports)} of it are allowed"
        if is_address:
            return "addresses are allowed only where they are named"
        if port in PORTS and self.is_further(host):
            return None
        return f"it is not among the allowed hosts ({_join([rule.host for rule in self.rules]) or 'none'})"


def is_inner(text: str) -> bool:
    """Return whether an address is this machine's, of its own networks, or its provider's; or none at all."""
    address = _address(text)
    if isinstance(address, ipaddress.IPv6Address):
        if any(address in network for network in _STANDING):
            address = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        else:
            inner = (address in network for network in _INNER_UNICAST)
            return address.scope_id is not None or address not in _UNICAST or any(inner)
    return address is None or any(address in network for network in _INNER)


def is_loopback(text: str) -> bool:
    """Return whether an address leads to this machine by its own inner way, also as one of version 6."""
    address = _address(text)
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return address is not None and (mapped or address).is_loopback


def _is_own(text: str) -> bool:
    """Return whether this machine itself has an address, which may be one of the whole internet."""
    # A machine can be set to let programs take any address, and then that tells nothing.
    return _can_take(text) and not any(map(_can_take, _OF_DOCUMENTS))


def _can_take(text: str) -> bool:
    family = socket.AF_INET6 if ":" in text else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as taken:
            taken.bind((text, 0))
    except OSError:
        return False
    return True


def _is_name(text: str) -> bool:
    # A resolver takes names that end in a number for addresses: `2130706433`, `0177.1`, `0x7f.1`.
    return len(text) <= _LONGEST_NAME and bool(_NAME.fullmatch(text)) and not _ENDS_IN_NUMBER.search(text)


def _address(text: str) -> Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def split_authority(text: str, default: int) -> tuple[str, int | None]:
    """Split `host:port` or `[address]:port`, in lower case, without a dot at the end; `None`: no port."""
    match = re.fullmatch(r"(?:\[([0-9A-Fa-f:.]+)\]|([^:\[\]]+|[0-9A-Fa-f:]{3,}?))(?::(\d{1,5}))?", text)
    if match is None:
        return text.lower(), None
    host = (match[1] or match[2]).lower().removesuffix(".")
    port = int(match[3]) if match[3] else default
    return host, port if port <= 65_535 else None


def _join(values: Sequence[object]) -> str:
    return ", ".join(map(str, values))
