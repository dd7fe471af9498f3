"""Write a Seatbelt profile: what confines a command on macOS, where `sandbox-exec` enforces it.

Written from documents and not run: there was no Mac to run it on. Its text is tested, what it holds is not.

A profile allows or denies operations, by path where they are about files, and the last rule that matches an
operation decides. There are no namespaces as on Linux: a command has no network interface, no list of
processes and no `/tmp` of its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, TypeAlias

from deepagents._values import field, valueclass
from deepagents_sandbox.rules import Mode

SANDBOX_EXEC: Final = "/usr/bin/sandbox-exec"
Ways: TypeAlias = Literal["none", "all"] | int
"""The network of a command: none, all, or the port of a proxy on this machine, which is then all there is."""

# What programs need to start: libraries, tools, certificates, time zones. No home, no keychain, no `/Users`.
_SYSTEM: Final = (
    "/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/lib", "/usr/libexec", "/usr/share",
    "/System/Library", "/System/Cryptexes", "/System/iOSSupport", "/System/Volumes/Preboot/Cryptexes",
    "/Library/Apple", "/Library/Developer/CommandLineTools", "/Library/Frameworks",
    "/Applications/Xcode.app/Contents/Developer",
    "/opt/homebrew/bin", "/opt/homebrew/lib", "/opt/homebrew/opt", "/opt/homebrew/share",
    "/opt/homebrew/Cellar", "/opt/homebrew/Frameworks", "/opt/homebrew/etc/openssl@3",
    "/opt/homebrew/etc/ca-certificates",
    "/usr/local/bin", "/usr/local/lib", "/usr/local/opt", "/usr/local/share", "/usr/local/Cellar",
    "/usr/local/Frameworks", "/usr/local/etc/openssl@3", "/usr/local/etc/ca-certificates",
    "/private/etc/ssl", "/private/var/db/timezone", "/private/var/db/dyld", "/private/var/select",
)  # fmt: skip
_SYSTEM_FILES: Final = (
    "/", "/etc", "/tmp", "/var", "/private/etc/group", "/private/etc/hosts", "/private/etc/localtime",
    "/private/etc/passwd", "/private/etc/protocols", "/private/etc/resolv.conf", "/private/etc/services",
    "/private/etc/shells", "/private/var/db/xcode_select_link", "/private/var/run/resolv.conf",
    "/dev", "/dev/random", "/dev/urandom", "/dev/autofs_nowait", "/dev/dtracehelper",
)  # fmt: skip
_DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/stdin", "/dev/stdout", "/dev/stderr")
# By name, for others tell of processes of the host: `kern.procargs2` even of their environment.
_KERNEL_VALUES: Final = (
    "kern.argmax", "kern.bootargs", "kern.hostname", "kern.maxfilesperproc", "kern.maxproc", "kern.ngroups",
    "kern.osproductversion", "kern.osrelease", "kern.ostype", "kern.osvariant_status", "kern.osversion",
    "kern.secure_kernel", "kern.usrstack64", "kern.version", "sysctl.proc_cputype", "vm.loadavg",
    "security.mac.lockdown_mode_state",
)  # fmt: skip
# Users and groups by name, notifications and the log; not the keychain, not what starts programs for others.
_SERVICES: Final = (
    "com.apple.system.opendirectoryd.libinfo", "com.apple.system.opendirectoryd.membership",
    "com.apple.system.notification_center", "com.apple.system.logger", "com.apple.logd",
)  # fmt: skip
_SERVICES_FOR_HOSTS: Final = (
    "com.apple.SystemConfiguration.DNSConfiguration", "com.apple.SystemConfiguration.configd",
    "com.apple.networkd", "com.apple.trustd.agent",
)  # fmt: skip
_RESOLVER: Final = "/private/var/run/mDNSResponder"


@valueclass
class SeatbeltRules:
    """What a command may do, by paths without links: Seatbelt compares with the real path of a file.

    `given` says what there is of the files of this machine, and `modes` of paths in there what rules make of
    them. `protected` cannot be changed, nor can a directory between it and what holds it be renamed or
    removed.
    """

    root: Path
    given: Mapping[Path, Mode]
    protected: Sequence[Path] = ()
    modes: Mapping[Path, Mode] = field(default_factory=dict[Path, Mode])
    network: Ways = "none"


@valueclass
class Seatbelt:
    """The program that enforces a profile, as it is on this machine."""

    path: str = SANDBOX_EXEC


def find(path: str = SANDBOX_EXEC) -> Seatbelt | str:
    """Return the program, or one sentence: why commands cannot be confined, and what to do."""
    if os.access(path, os.X_OK):
        return Seatbelt(path)
    return f"{path} is missing, which is a part of macOS: repair the system, or run commands in a container"


def command_line(rules: SeatbeltRules, program: Sequence[str]) -> list[str]:
    """Return the command line that runs a program under a profile with these rules."""
    values = [f"-D{name}={path}" for path, name in _Names(rules).items()]
    return [SANDBOX_EXEC, *values, "-p", write_profile(rules), "--", *program]


def write_profile(rules: SeatbeltRules) -> str:
    """Return the text of the profile.

    The paths of the caller are not in it: a profile is a program, and a path may hold whatever its language
    gives a meaning to. They are parameters, which `command_line` adds.
    """
    return "\n".join(_Writer(rules, _Names(rules)).lines()) + "\n"


class _Names(dict[Path, str]):
    """A name for each path that a profile speaks of."""

    def __init__(self, rules: SeatbeltRules) -> None:
        super().__init__()
        spoken_of = [*rules.given, *rules.modes, *rules.protected]
        for path in (*spoken_of, *_above(spoken_of)):
            if "\0" in str(path):
                raise ValueError(f"a path cannot hold a NUL character, got {str(path)!r}")
            if path != Path(path.anchor):
                self.setdefault(path, f"PATH_{len(self)}")


@valueclass
class _Writer:
    rules: SeatbeltRules
    names: _Names

    def lines(self) -> Iterator[str]:
        rules = self.rules
        yield "(version 1)"
        yield "(deny default)"
        # Some systems do not count these among what the default denies.
        yield "(deny process-info* nvram* iokit-get-properties file-map-executable)"
        yield from self._processes()
        yield _rule("allow file-read* file-map-executable file-test-existence", _system_filters())
        yield _rule("allow file-write-data file-read-data file-ioctl", map(_literal, _DEVICES))
        # Programs ask of every directory above them whether it is there, and what it is.
        yield from self._rule_for("allow file-read-metadata file-test-existence", _above(rules.given))
        # The outer ones first: one to read may lie in one to write, and the other way round.
        for path, mode in sorted({**rules.given, **rules.modes}.items(), key=lambda each: len(each[0].parts)):
            may_read, may_write = mode != "hidden", mode == "writable"
            below = [f'(subpath (param "{self.names[path]}"))']
            yield _rule(f"{_word(may_read)} file-read* file-map-executable file-test-existence", below)
            yield _rule(f"{_word(may_write)} file-write*", below)
        yield from self._deny_changes()
        yield from _network(rules.network)

    def _processes(self) -> Iterator[str]:
        yield "(allow process-fork process-exec)"
        yield "(allow signal process-info* (target same-sandbox))"
        values = [f'(sysctl-name "{each}")' for each in _KERNEL_VALUES]
        yield _rule("allow sysctl-read", ['(sysctl-name-prefix "hw.")', *values])
        yield _rule("allow mach-lookup", map(_service, _SERVICES))
        yield "(allow ipc-posix-sem)"

    def _deny_changes(self) -> Iterator[str]:
        rules = self.rules
        for path in rules.protected:
            yield _rule("deny file-write*", [f'(subpath (param "{self.names[path]}"))'])
        # Else `mv .git old && mkdir -p .git/hooks` would bypass a protected directory of hooks. What was
        # given stays where it is too.
        bound = [*rules.protected, *rules.modes]
        parents = [each for each in _above(bound) if any(each.is_relative_to(one) for one in rules.given)]
        yield from self._rule_for("deny file-write-unlink", dict.fromkeys((*rules.given, *parents)))
        # No program gets the rights of its owner.
        yield "(deny file-write-setugid)"

    def _rule_for(self, head: str, paths: Iterable[Path]) -> Iterator[str]:
        filters = [f'(literal (param "{self.names[each]}"))' for each in paths if each in self.names]
        if filters:
            yield _rule(head, filters)


def _network(ways: Ways) -> Iterator[str]:
    # A rule for addresses lets no unix socket through: those have paths.
    match ways:
        case "none":
            return
        case "all":
            yield '(allow network-outbound (remote ip "*:*"))'
            yield '(allow network-bind network-inbound (local ip "*:*"))'
            yield _rule("allow network-outbound", [_literal(_RESOLVER)])
            yield _rule("allow mach-lookup", map(_service, _SERVICES_FOR_HOSTS))
            yield '(allow sysctl-read (sysctl-name-prefix "net.routetable"))'
        case port:
            if not 0 < port < 65_536:
                raise ValueError(f"the port of a proxy is between 1 and 65535, got {port}")
            yield f'(allow network-outbound (remote tcp "localhost:{port}"))'


def _above(paths: Iterable[Path]) -> dict[Path, None]:
    return dict.fromkeys(parent for path in paths for parent in reversed(path.parents))


def _word(is_allowed: bool) -> str:
    return "allow" if is_allowed else "deny"


def _system_filters() -> Iterator[str]:
    yield from (f'(subpath "{each}")' for each in (*_SYSTEM, "/dev/fd"))
    yield from map(_literal, (*_SYSTEM_FILES, *_DEVICES))


def _literal(path: str) -> str:
    return f'(literal "{path}")'


def _service(name: str) -> str:
    return f'(global-name "{name}")'


def _rule(head: str, filters: Iterable[str]) -> str:
    return "\n    ".join([f"({head}", *filters]) + ")"
