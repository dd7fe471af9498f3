"""Build the system call filter of a sandbox: a classic BPF program, as the kernel reads it.

Everything is allowed but what is listed here. The numbers are those of Linux (asm/unistd_64.h for x86-64,
asm-generic/unistd.h for arm64); the shape of the program is that of seccomp(2).
"""

from __future__ import annotations

import errno
import platform
import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, TypeAlias

Instruction: TypeAlias = tuple[int, int, int, int]

_LOAD, _MASK, _EQUAL, _ANY_BIT, _AT_LEAST, _RETURN = 0x20, 0x54, 0x15, 0x45, 0x35, 0x06
_ALLOW: Final = 0x7FFF0000
_ERRNO: Final = 0x00050000
_KILL: Final = 0x80000000
_AT_NUMBER, _AT_ARCHITECTURE, _AT_ARGUMENTS = 0, 4, 16

# Calls that a program in a sandbox has no business with: they reach other processes, the kernel's own
# settings, new namespaces and mounts, or large and young parts of the kernel.
_DENIED: Final = {
    # name: (x86-64, arm64); None where the architecture has no such call
    "acct": (163, 89), "add_key": (248, 217), "adjtimex": (159, 171), "bpf": (321, 280), "chroot": (161, 51),
    "clock_adjtime": (305, 266), "clock_settime": (227, 112), "delete_module": (176, 106),
    "fanotify_init": (300, 262), "finit_module": (313, 273), "fsconfig": (431, 431), "fsmount": (432, 432),
    "fsopen": (430, 430), "fspick": (433, 433), "init_module": (175, 105), "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427), "io_uring_setup": (425, 425), "ioperm": (173, None), "iopl": (172, None),
    "kcmp": (312, 272), "kexec_file_load": (320, 294), "kexec_load": (246, 104), "keyctl": (250, 219),
    "lookup_dcookie": (212, 18), "memfd_secret": (447, 447), "modify_ldt": (154, None), "mount": (165, 40),
    "mount_setattr": (442, 442), "move_mount": (429, 429), "move_pages": (279, 239),
    "name_to_handle_at": (303, 264), "nfsservctl": (180, 42), "open_by_handle_at": (304, 265),
    "open_tree": (428, 428), "open_tree_attr": (467, 467), "perf_event_open": (298, 241),
    "pidfd_getfd": (438, 438),
    "pivot_root": (155, 41), "process_madvise": (440, 440), "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271), "ptrace": (101, 117), "quotactl": (179, 60), "quotactl_fd": (443, 443),
    "reboot": (169, 142), "request_key": (249, 218), "setns": (308, 268), "settimeofday": (164, 170),
    "swapoff": (168, 225), "swapon": (167, 224), "sysfs": (139, None), "syslog": (103, 116),
    "umount2": (166, 39), "unshare": (272, 97), "uselib": (134, None), "userfaultfd": (323, 282),
    "ustat": (136, None), "vhangup": (153, 58),
}  # fmt: skip
_NUMBERS: Final = {
    "chmod": (90, None), "clone": (56, 220), "clone3": (435, 435), "creat": (85, None),
    "fallocate": (285, 47), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452),
    "fcntl": (72, 25), "ioctl": (16, 29), "memfd_create": (319, 279), "mknod": (133, None),
    "mknodat": (259, 33), "open": (2, None),
    "openat": (257, 56), "openat2": (437, 437), "personality": (135, 92), "shmget": (29, 194),
    "socket": (41, 198), "socketpair": (53, 199),
}  # fmt: skip
_ARCHITECTURES: Final = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
# x86-64 programs can make calls by the numbers of its 32-bit sibling, with this bit set.
_X32: Final = 0x40000000

_NEW_NAMESPACES: Final = (
    0x7E020080  # CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET, NEWTIME
)
_SET_ID_BITS: Final = 0o6000
_CREATES: Final = 0o100 | 0o20000000  # O_CREAT, __O_TMPFILE: without them there is no mode to look at
_MODES: Final = {"chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2, "creat": 1, "mknod": 1, "mknodat": 2}
"""Which argument holds a mode."""
_TERMINAL_INJECTION: Final = (0x5412, 0x541C, 0x5423)  # TIOCSTI, TIOCLINUX, TIOCSETD
_F_SETLEASE: Final = 1024
_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK = 1, 2, 10, 16
_NETLINK_ROUTE: Final = 0
_SOCK_DGRAM, _SOCK_TYPES = 2, 0xF
_IP_ONLY: Final = (_AF_INET, _AF_INET6, _AF_NETLINK)
# Linux and its variant without address randomization, which debuggers use; 0xFFFFFFFF only asks.
_PERSONALITIES: Final = (0, 0x0040000, 0xFFFFFFFF)


def is_supported() -> bool:
    """Return whether there is a filter for this machine's architecture."""
    return platform.machine() in _ARCHITECTURES


@lru_cache(maxsize=4)
def build_filter(*, no_shared_memory: bool) -> bytes:
    """Build the filter for this machine.

    `no_shared_memory` refuses what no watchdog sees: System V segments, which outlive a process, and files
    in memory, which a mapping or a socket can hold.

    Raises:
        KeyError: for an architecture that has no filter; ask `is_supported` first.
    """
    column, architecture = _ARCHITECTURES[platform.machine()]
    code = _check_architecture(architecture, has_sibling=column == 0)

    def deny(name: str, error: int = errno.EPERM, test: Sequence[Instruction] = ()) -> None:
        number = (_DENIED.get(name) or _NUMBERS[name])[column]
        if number is not None:
            # A test overwrites the number, which the next rules compare again.
            body = [*test, _fail(error), *([(_LOAD, 0, 0, _AT_NUMBER)] if test else [])]
            code.extend([(_EQUAL, 0, len(body), number), *body])

    for name in _DENIED:
        deny(name)
    # The arguments of these are behind a pointer; programs fall back to the older calls only on ENOSYS.
    deny("clone3", errno.ENOSYS)
    deny("openat2", errno.ENOSYS)
    deny("clone", test=_has_bits((0, _NEW_NAMESPACES)))
    # A set-uid file that a sandbox of root makes would be one on the host.
    for name, mode in _MODES.items():
        deny(name, test=_has_bits((mode, _SET_ID_BITS)))
    for name, flags in (("open", 1), ("openat", 2)):
        deny(name, test=_has_bits((flags, _CREATES), (flags + 1, _SET_ID_BITS)))
    # What a program types into a terminal is run by the shell that owns it, outside.
    deny("ioctl", test=_is_one_of(1, _TERMINAL_INJECTION))
    # A lease makes everybody else who opens the file wait for its holder, the host's programs too.
    deny("fcntl", test=_is_one_of(1, (_F_SETLEASE,)))
    # No unix sockets: those of the host that lie in a given directory would be reachable by name.
    deny("socket", errno.EAFNOSUPPORT, test=_is_none_of(0, _IP_ONLY))
    # Addresses and routes only: by other kinds of messages the kernel tells of all sockets of the host.
    deny("socket", errno.EPROTONOSUPPORT, test=_OTHER_NETLINK)
    # A pair for datagrams is not a closed pair: each of them can send to a socket of the host by name.
    deny("socketpair", errno.EAFNOSUPPORT, test=_is_none_of(0, (_AF_UNIX,)))
    deny("socketpair", errno.EPROTONOSUPPORT, test=_DATAGRAMS)
    deny("personality", test=_is_none_of(0, _PERSONALITIES))
    # Programs then write what they would reserve, so that a limit on disk sees it in time.
    deny("fallocate", errno.EOPNOTSUPP)
    if no_shared_memory:
        deny("shmget")
        deny("memfd_create", errno.ENOSYS)
    code.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *each) for each in code)


def _check_architecture(architecture: int, *, has_sibling: bool) -> list[Instruction]:
    code: list[Instruction] = [
        (_LOAD, 0, 0, _AT_ARCHITECTURE),
        (_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _AT_NUMBER),
    ]
    return [*code, (_AT_LEAST, 0, 1, _X32), _fail(errno.ENOSYS)] if has_sibling else code


def _fail(error: int) -> Instruction:
    return (_RETURN, 0, 0, _ERRNO | error)


# Each test goes on with the instruction right behind it when it holds, and else skips that one.

_OTHER_NETLINK: Final = (
    (_LOAD, 0, 0, _AT_ARGUMENTS),
    (_EQUAL, 0, 3, _AF_NETLINK),
    (_LOAD, 0, 0, _AT_ARGUMENTS + 8 * 2),
    (_EQUAL, 1, 0, _NETLINK_ROUTE),
)
_DATAGRAMS: Final = (
    (_LOAD, 0, 0, _AT_ARGUMENTS + 8),
    (_MASK, 0, 0, _SOCK_TYPES),
    (_EQUAL, 0, 1, _SOCK_DGRAM),
)


def _has_bits(*wanted: tuple[int, int]) -> list[Instruction]:
    test: list[Instruction] = []
    for left, (argument, bits) in zip(range(len(wanted) - 1, -1, -1), wanted, strict=True):
        test += [(_LOAD, 0, 0, _AT_ARGUMENTS + 8 * argument), (_ANY_BIT, 0, 2 * left + 1, bits)]
    return test


def _is_one_of(argument: int, values: Sequence[int]) -> list[Instruction]:
    left = len(values)
    test = [(_EQUAL, left - at - 1, 1 if at == left - 1 else 0, value) for at, value in enumerate(values)]
    return [(_LOAD, 0, 0, _AT_ARGUMENTS + 8 * argument), *test]


def _is_none_of(argument: int, values: Sequence[int]) -> list[Instruction]:
    left = len(values)
    test = [(_EQUAL, left - at, 0, value) for at, value in enumerate(values)]
    return [(_LOAD, 0, 0, _AT_ARGUMENTS + 8 * argument), *test]
