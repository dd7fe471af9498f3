"""Keep rules of "always": which calls a person lets through from now on, exactly or by how they begin.

A rule is a remembered decision of the library, about what a call does rather than about one tool. For people
and settings it is one line of text, which is its key: `command: git status`, `commands: git log`,
`edit: /x/a.py`, `edits: /x/src`, `delete: /x/a.py`, `read: /x/.env`, `host: example.org`,
`fetch: example.org`, `tool: mcp__tickets__find`, `tools: mcp__tickets__*`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Final, Literal, NamedTuple, TypeAlias

from deepagents._values import valueclass
from deepagents.decisions import RememberedDecision
from deepagents.mcp.names import PREFIX, may_name_tool, tool_name
from deepagents_cli.values import SCOPES, Scope

Action: TypeAlias = Literal["command", "edit", "delete", "read", "host", "fetch", "tool"]
Rule: TypeAlias = RememberedDecision

_KINDS: Final[Mapping[str, tuple[Action, bool]]] = {
    "command": ("command", False),
    "commands": ("command", True),
    "edit": ("edit", False),
    "edits": ("edit", True),
    "delete": ("delete", False),
    "read": ("read", False),
    "host": ("host", False),
    "fetch": ("fetch", False),
    "tool": ("tool", False),
    "tools": ("tool", True),
}
"""With which word a rule begins: what it lets through, and whether its value is a pattern."""

_RUNS_OTHERS: Final = frozenset({
    ".", "alias", "ash", "awk", "bash", "builtin", "bunx", "busybox", "bwrap", "case", "chroot", "command",
    "coproc", "csh", "dash", "deno", "do", "doas", "ed", "elif", "else", "emacs", "env", "eval", "ex", "exec",
    "expect", "export", "fish", "flock", "for", "function", "gawk", "gdb", "if", "ionice", "ipython", "java",
    "julia", "ksh", "lua", "mawk", "mksh", "nawk", "nice", "node", "nodejs", "nohup", "npx", "nsenter", "nu",
    "nvim", "osascript", "parallel", "perl", "php", "pkexec", "pwsh", "pypy", "python", "rbash", "rscript",
    "ruby", "script", "sed", "select", "setarch", "setpriv", "setsid", "sh", "socat", "source", "ssh",
    "start-stop-daemon", "stdbuf", "strace", "su", "sudo", "systemd-run", "taskset", "tclsh", "then", "time",
    "timeout", "trap", "ts-node", "tsx", "unshare", "until", "uvx", "vi", "vim", "watch", "while", "xargs",
    "xterm", "zsh",
})  # fmt: skip
"""Programs and words of the shell that run what their arguments say: how a command begins tells nothing.

No such list is complete, so rules about how commands begin hold in the sandbox alone.
"""
_VERSION: Final = re.compile(r"-?\d[\d.]*$")
_HAS_VERBS: Final = frozenset({
    "apt", "brew", "bun", "cargo", "conda", "docker", "gh", "git", "go", "gradle", "helm", "hg", "kubectl",
    "make", "mvn", "npm", "pdm", "pip", "pipx", "pnpm", "podman", "poetry", "rustup", "svn",
    "systemctl", "terraform", "uv", "yarn",
})  # fmt: skip
"""Programs of which the second word says what they do."""
_RUNS_VERBS: Final = frozenset({"exec", "run", "x", "dlx", "foreach", "bisect", "filter-branch", "tool"})
"""Second words that run whatever follows."""
_STEERS: Final = (
    "--checkpoint-action", "--command", "--compress-program", "--config", "--config-env", "--exec",
    "--exec-path", "--ext-diff", "--extcmd", "--git-dir", "--open-files-in-pager", "--output", "--pager",
    "--pre", "--receive-pack", "--rsh", "--separate-git-dir", "--template", "--textconv", "--to-command",
    "--upload-pack", "--use-compress-program", "--work-tree",
)  # fmt: skip
"""Options by which a harmless program runs another or writes a file; programs take them abbreviated too."""
_SHORT_STEERS: Final = {"curl": "KOTo", "git": "COcoux", "make": "CEIf", "sort": "o", "tar": "FI"}
_FIND_ACTS: Final = ("-exec", "-ok", "-delete", "-fprint", "-fls")
ALL_TOOLS: Final = f"{PREFIX}*"
READ_RESOURCE: Final = "read_mcp_resource"
"""The tool by which a model names to a server what it wants to read."""
_HOST: Final = re.compile(r"[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})+")
# What stands for itself in a shell. Look-alikes, other spaces and expansions are none of it.
# It never steps back (`+`), as otherwise a long word would take for ever.
_PLAIN: Final = re.compile(r"""(?:[A-Za-z0-9_./:,@%+=~^ -]|'[^']*+'|"[^"$`\\!]*+")*+""")


def make_rule(kind: str, value: str) -> Rule:
    """Make the rule that begins with this word."""
    action, is_pattern = _KINDS[kind]
    exact, patterns = ({}, {action: value}) if is_pattern else ({action: value}, {})
    return RememberedDecision(f"{kind}: {value}", action, "approve", exact, patterns)


def read_rule(text: str) -> Rule:
    """Read the text of a rule.

    Raises:
        ValueError: for what is not one, with the forms there are.
    """
    kind, _, value = text.partition(":")
    value = value.strip()
    if kind not in _KINDS or not value or not value.isprintable():
        forms = ", ".join(f"'{each}: ...'" for each in _KINDS)
        raise ValueError(f"{text!r} is not a rule; write one of {forms}")
    if kind in ("edit", "edits", "delete", "read") and not value.startswith("/"):
        raise ValueError(f"{text!r}: the path of a rule begins with /")
    if kind == "commands" and _check_prefix(value.split(" ")) is None:
        raise ValueError(
            f"{text!r}: what this begins with can run anything; add its verb, or give the whole command"
        )
    if kind in ("host", "fetch") and not is_host(value):
        raise ValueError(f"{text!r}: write one host, such as example.org")
    if kind in ("tool", "tools") and not is_of_server(value):
        raise ValueError(f"{text!r}: write tools of an MCP server, such as {PREFIX}tickets__*")
    return make_rule(kind, value)


def is_relative(rule: Rule) -> bool:
    """Return whether a rule names files from a directory, such as `./build.sh`: others elsewhere."""
    return rule.name == "command" and re.search(r"(?:^|[\s=:'\"])(?![/\s])[^\s]*/", rule.key) is not None


def is_of_server(tool: str) -> bool:
    """Return whether a tool is one of an MCP server, or reads what one has."""
    return tool.startswith(PREFIX) or tool == READ_RESOURCE


def is_host(text: str) -> bool:
    """Return whether a rule can name this host; one without a dot is of this machine's own network."""
    return _HOST.fullmatch(text) is not None


@valueclass
class Permission:
    """A call that needs no question, as "always" recorded it: everywhere, or below a directory."""

    rule: str
    directory: Path | None = None


class Remembered(NamedTuple):
    """A rule that holds in a conversation, and as what it is kept; `None` for one of this session alone."""

    rule: Rule
    kept: Permission | None = None

    def describe_scope(self, directory: Path) -> str:
        """Say how long it holds."""
        if self.kept is None:
            return "this session"
        if self.kept.directory is None:
            return SCOPES["everywhere"]
        return SCOPES["directory"] if self.kept.directory == directory else f"in {self.kept.directory}"


def remember(
    rule: Rule, scope: Scope, directory: Path, *, confined: bool, brought: Iterable[str] = ()
) -> Remembered:
    """Return a rule as it is to be kept for a scope; `brought` are the servers that are not the person's."""
    # Without the sandbox a command can do anything, so a rule about it is not kept for later.
    if scope == "session" or not (confined or rule.name != "command"):
        return Remembered(rule)
    here = scope == "directory" or is_relative(rule) or _is_about(rule, brought)
    return Remembered(rule, Permission(rule.key, directory if here else None))


def rules_in(
    kept: Iterable[Permission], directory: Path, *, confined: bool = True, brought: Collection[str] = ()
) -> list[Remembered]:
    """Return the kept rules that hold in a directory; what is not a rule lets nothing through.

    Those about commands hold in the sandbox alone (`confined`). Those about files of a directory, and about
    servers that are `brought` there, hold there: elsewhere, something else may have the same name.
    """
    found: list[Remembered] = []
    for each in kept:
        if each.directory is None or directory.is_relative_to(each.directory):
            with suppress(ValueError):
                rule = read_rule(each.rule)
                holds = each.directory == directory or not (is_relative(rule) or _is_about(rule, brought))
                found += [Remembered(rule, each)] if holds and (confined or rule.name != "command") else []
    return found


def covers(rules: Iterable[Rule], action: Action, value: str, *, exactly: bool = False) -> bool:
    """Return whether a rule lets an action through: this command, or what is done to this path or host.

    With `exactly`, only a rule that is about nothing else does.
    """
    return any(
        rule.covers(action, {action: value}, _is_like) for rule in rules if not (exactly and rule.patterns)
    )


def _is_about(rule: Rule, servers: Iterable[str]) -> bool:
    """Return whether a rule may be about a tool of one of these servers."""
    value = rule.key.partition(":")[2].strip()
    return rule.name == "tool" and any(may_name_tool(value, each) for each in servers)


def _is_like(action: str, pattern: str, value: str) -> bool:
    if action == "tool":
        return fnmatchcase(value, pattern)
    if action == "command":
        return _begins(split_plain(value) or [], pattern)
    return PurePosixPath(value).is_relative_to(pattern)


def offers_for_command(command: str, *, exactly: bool) -> dict[str, str]:
    """Return the rules that could let a command through from now on, with what each means."""
    if not command.isprintable() or command != command.strip() or not command:
        return {}
    offers = {f"command: {command}": f"`{command}`, just so"}
    words = None if exactly else split_plain(command)
    prefix = _prefix_of(words) if words else None
    if prefix and words and _begins(words, prefix):
        offers[f"commands: {prefix}"] = f"commands that begin with `{prefix}`"
    return offers


def offers_for_tool(name: str, servers: Collection[str]) -> dict[str, str]:
    """Return the rules that could let a tool of a server through from now on, with what each means."""
    offers = {f"tool: {name}": f"`{name}`, with any arguments"}
    for server in servers:
        pattern = f"{PREFIX}{server}__*"
        # Where another name could be meant too, a person would agree to more than is said.
        is_plain = tool_name(server, "x") == f"{pattern[:-1]}x"
        if (
            is_plain
            and fnmatchcase(name, pattern)
            and sum(may_name_tool(pattern, each) for each in servers) == 1
        ):
            offers[f"tools: {pattern}"] = f"all tools of the MCP server `{server}`"
    return offers


def program_of(command: str) -> str | None:
    """Return the program that a plain command names without a directory, or `None`."""
    words = split_plain(command) or ()
    program = next((each for each in words if "=" not in each), None)
    # What has a path may be made by a call before this one.
    return None if program is None or "/" in program or program.startswith("~") else program


def split_plain(command: str) -> list[str] | None:
    """Split a command into words as a shell would; `None` where a shell would do more than that.

    No operators, redirections, substitutions, variables, patterns, braces, comments, escapes or lines, and
    nothing outside of quotes that is not ASCII.
    """
    return shlex.split(command) if command.isprintable() and _PLAIN.fullmatch(command) else None


def _begins(words: Sequence[str], prefix: str) -> bool:
    wanted = prefix.split(" ")
    if _check_prefix(wanted) is None or list(words[: len(wanted)]) != wanted:
        return False
    return not any(_steers(words[0], each) for each in words[len(wanted) :])


def _check_prefix(words: Sequence[str]) -> Sequence[str] | None:
    """Return the words of a prefix, if they say what a command does."""
    program = _VERSION.sub("", words[0].rpartition("/")[2]).casefold()
    if program in _RUNS_OTHERS or "=" in words[0] or not program:
        return None
    if program in _HAS_VERBS and (
        len(words) < 2 or words[1].startswith("-") or (words[1] in _RUNS_VERBS and len(words) < 3)
    ):
        return None
    return words


def _prefix_of(words: Sequence[str]) -> str | None:
    taken = 1
    if words[0] in _HAS_VERBS:
        taken = 3 if len(words) > 2 and words[1] in _RUNS_VERBS else 2
    prefix = words[:taken]
    plain = all(each and " " not in each and each.isascii() for each in prefix)
    return " ".join(prefix) if plain and _check_prefix(prefix) is not None else None


def _steers(program: str, word: str) -> bool:
    """Return whether a word could make a program run another one, or write where it would not."""
    if word.startswith(_FIND_ACTS):
        return True
    name, is_set, _ = word.partition("=")
    if name.startswith("--"):
        return len(name) > 2 and any(each.startswith(name) for each in _STEERS)
    if name.startswith("-"):
        return any(each in _SHORT_STEERS.get(program, "") for each in name[1:])
    # A variable of make may be its shell.
    return program == "make" and bool(is_set)
