"""Find guarded files: what git and other programs outside obey, and what looks like a secret.

The names of secrets are those that the ignore files of github.com/github/gitignore, the default rules of
gitleaks and trufflehog, and the manuals of ssh, gnupg, git, npm, pip, docker, kubectl and the clouds give.
A name only looks like one: a secret in a file of another name is not known.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice, takewhile
from pathlib import Path, PurePath
from typing import Final, Literal, TypeAlias

from deepagents._values import valueclass
from deepagents.permissions import FilesystemOperation, FilesystemPermission, Rules
from deepagents_cli.approval.rules import Action
from deepagents_sandbox.backend import PROTECTED
from deepagents_sandbox.obeyed import find_obeyed

Kind: TypeAlias = Literal["git", "programs", "secrets"]
OwnRules: TypeAlias = tuple[FilesystemPermission, ...]

_OPEN: Final = (
    ".env.{example,sample,template,dist,defaults,schema}",
    "{example,sample,template}.env",
    "*.pub",
)
"""Names that look like secrets and are made to be shown."""
_SHOWN: Final = (".ssh/{known_hosts,config,authorized_keys}",)
"""Names that look like secrets, and hold none; but programs obey what they say."""
_SECRETS: Final = (
    # Variables of programs.
    "{.env,.env.*,*.env,.envrc,.dev.vars,.renviron}",
    # Private keys, and stores of keys and passwords.
    "{*.pem,*.key,*.p8,*.p12,*.pfx,*.pkcs12,*.ppk,*.jks,*.keystore,*.kdb,*.kdbx,*.agekey,*.ovpn}",
    "{id_rsa,id_dsa,id_ecdsa,id_ed25519,id_xmss}*",
    "*_{rsa,dsa,ecdsa,ed25519}",
    "{.ssh,.gnupg,.password-store}/**",
    "{secring.*,key3.db,key4.db,logins.json,wallet.dat,*.keychain,*.keychain-db}",
    # Logins of tools.
    "{.netrc,_netrc,.authinfo,.authinfo.gpg,.git-credentials,.npmrc,.pypirc,.pgpass,pgpass.conf}",
    "{.my.cnf,.mylogin.cnf,.htpasswd,.dockercfg,.s3cfg,.boto,.databrickscfg,.sentryclirc,.msmtprc}",
    "{.terraformrc,*.tfrc.json,*.tfstate,*.tfstate.backup,*.tfvars,*.tfvars.json,rclone.conf}",
    "{.vault-token,.vault_pass*,vault_pass.txt,kubeconfig,*.kubeconfig,auth.json,sftp-config.json}",
    "{.docker/config.json,.kube/config,.config/gh/hosts.yml,.m2/settings.xml,settings-security.xml}",
    "{.aws,.azure,gcloud,.oci}/**",
    "{client_secret*,service-account*,service_account*,*-firebase-adminsdk-*}.json",
    "{application_default_credentials,accesstokens}.json",
    # What says itself that it is one.
    "{credentials,.credentials,secrets,secret,.secrets,.secret,token,tokens,.token,.tokens}",
    "{credentials,.credentials,secrets,secret,token,tokens}.{json,yml,yaml,toml,ini,xml,csv,db,txt,conf}",
    "{*.token,.*_history}",
)  # fmt: skip
_DEPENDENCIES: Final = ("node_modules", "site-packages", "dist-packages")
"""Packages of others, with test keys and certificates for all: no secrets of this person, and huge trees."""
_TOGETHER: Final = 11
"""Lines of names that make one pattern, which has a longest length."""
_GIT: Final = (".git", ".git/**", "head")
"""Without a `HEAD`, no directory is a repository."""
_PROGRAMS: Final = (
    "{.vscode,.idea,.zed,.devcontainer}",
    "{.vscode,.idea,.zed,.devcontainer}/**",
    "{.mcp.json,.devcontainer.json,*.code-workspace}",
    ".claude/{settings.json,settings.local.json}",
    ".cursor/{mcp.json,hooks.json,environment.json}",
    "{.deepagents/settings.toml,.codex/config.toml,.gemini/settings.json}",
)
"""What editors and agents on the host run or obey as soon as they open the directory."""
_READS_GIT: Final = frozenset({
    "blame", "cat-file", "check-ignore", "count-objects", "describe", "diff", "for-each-ref", "grep",
    "help", "log", "ls-files", "ls-tree", "merge-base", "name-rev", "rev-list", "rev-parse", "shortlog",
    "show", "show-ref", "status", "version", "whatchanged",
})  # fmt: skip
_URL: Final = re.compile(r"\b(https?|ssh|git|ftp)://|\bgit@[\w.-]+:")
_PROGRAM_PLACES: Final = (
    "/bin", "/dev", "/etc", "/lib", "/lib64", "/proc", "/sbin", "/tmp/home", "/usr",
)  # fmt: skip
"""What a command finds of the system, at least in part."""
_SETS_GIT: Final = frozenset({"branch", "config", "lfs", "remote", "sparse-checkout", "submodule"})
"""Verbs that write the configuration of a repository."""
_TRACKS: Final = frozenset({"-t", "-u", "--set-upstream", "--track"})
"""Options by which other verbs write it too."""
_CONFIGURATION: Final = (".git/config", ".git/config.worktree")
_MOST_LOOKED_AT: Final = 20_000
_MOST_WORDS: Final = 64
"""Words behind `git` that are looked at."""
_WORD: Final = re.compile(r"[^\s\"'`;|&<>()={}$,\[\]\\]+")
_WORD_OF_GIT: Final = re.compile(r"[;|&]+|[^\s\"'`;|&<>(){}$,\[\]\\]+")


def _anywhere(names: Sequence[str]) -> list[str]:
    """Return patterns for names at any depth, in any case: not every disk tells `.git` from `.GIT`."""
    in_any_case = [re.sub("[a-z]", lambda each: f"[{each[0]}{each[0].upper()}]", name) for name in names]
    # A few patterns of many names each are far faster than many patterns.
    together = [in_any_case[at : at + _TOGETHER] for at in range(0, len(names), _TOGETHER)]
    return [f"/**/{{{','.join(each)}}}" if len(each) > 1 else f"/**/{each[0]}" for each in together]


_CHANGES_GIT: Final = FilesystemPermission(["write"], _anywhere(_GIT), "interrupt")
_CHANGES_PROGRAMS: Final = FilesystemPermission(["write"], _anywhere(_PROGRAMS), "interrupt")
_USES_SECRETS: Final = FilesystemPermission(["read", "write"], _anywhere(_SECRETS), "interrupt")
_FREE: Final = (
    FilesystemPermission(["read"], _anywhere(_GIT)),
    FilesystemPermission(["read", "write"], _anywhere([f"{each}/**" for each in _DEPENDENCIES])),
    FilesystemPermission(["read", "write"], _anywhere(_OPEN)),
    FilesystemPermission(["read"], _anywhere(_SHOWN)),
)


@valueclass
class OwnFiles:
    """Where this program keeps the settings that it obeys, and its conversations, for the owner of a home.

    `run` are files that it runs outside of the sandbox.
    """

    home: Path
    settings: Path
    state: Path
    run: Sequence[Path] = ()

    def rules(self, places: Sequence[Path], top: Path = Path("/")) -> OwnRules:
        """Return the rules about these files, and about all that programs obey in a home in these places.

        Paths are named from `top` on, and those that lie elsewhere are left out.
        """
        home = self.home.resolve()
        obeyed = [(home / ".deepagents", "/"), (home / ".claude", "/")]
        files = [each for path in (self.settings, *self.run) for each in (path.absolute(), path.resolve())]
        obeyed += [(each, "") for each in dict.fromkeys(files)]
        if any(home.is_relative_to(each) for each in places):
            obeyed.append((home, "/{.*,Library}/"))
            # Many keep what such a name stands for elsewhere, and link to it.
            obeyed += [(each.resolve(), "/") for each in home.glob(".*") if each.is_symlink()]
        kept, artifacts = [(self.state.resolve(), "/")], [(home / ".deepagents/artifacts", "/")]
        return (
            *_make_rule(["read", "write"], kept, "deny", top),
            *_make_rule(["write"], artifacts, "allow", top),
            *_make_rule(["write"], obeyed, "interrupt", top),
        )


def _make_rule(
    operations: list[FilesystemOperation],
    named: Iterable[tuple[Path, str]],
    mode: Literal["allow", "deny", "interrupt"],
    top: Path,
) -> Iterator[FilesystemPermission]:
    """Yield the rule about paths and what stands behind them, where some of them lie below the top."""
    below = [(path.relative_to(top), rest) for path, rest in named if path.is_relative_to(top)]
    if patterns := tuple(f"/{_escape(path)}{rest}" for path, rest in below):
        yield FilesystemPermission(tuple(operations), patterns, mode)


def _escape(path: PurePath) -> str:
    """Return the pattern that a path alone matches."""
    return re.sub(r"[][*?{}\\,!~]", r"\\\g<0>", "/".join(path.parts))


def file_rules(own: OwnRules = ()) -> tuple[FilesystemPermission, ...]:
    """Return what the file tools ask about."""
    return (*own, _CHANGES_GIT, _CHANGES_PROGRAMS, *_FREE, _USES_SECRETS)


@lru_cache(maxsize=16)
def _compile(own: OwnRules) -> Rules:
    return Rules(file_rules(own))


def is_kept_from_tools(path: str, own: OwnRules) -> bool:
    """Return whether no tool may touch a path, whatever a person answers."""
    return _compile(own).decide("write", path) == "deny"


def kind_of(path: str, *, writes: bool, own: OwnRules = ()) -> Kind | None:
    """Return why a path is guarded, if it is."""
    found = _compile(own).match("write" if writes else "read", path)
    if found is None or found.mode == "allow":
        return None
    if found.pattern in _CHANGES_GIT.paths:
        return "git"
    return "secrets" if found.pattern in _USES_SECRETS.paths else "programs"


def kinds_at(
    named: Iterable[str], paths: Iterable[str], action: Action, places: Sequence[Path], own: OwnRules
) -> frozenset[Kind]:
    """Return why what is done at a path is guarded: as the agent names it, and as this machine does."""
    writes = action != "read"
    kinds: list[Kind | None] = [kind_of(each, writes=writes, own=own) for each in (*named, *paths)]
    if writes:
        kinds.extend(_kind_obeyed(each, places) for each in paths)
    if action == "delete":
        kinds.extend(_kind_below(each, own) for each in paths)
    return frozenset[Kind](each for each in kinds if each is not None)


def _kind_obeyed(path: str, places: Sequence[Path]) -> Kind | None:
    """Return why a change is guarded by what is there: what git obeys, the environment of this program."""
    for place in places:
        for each in find_obeyed(place, PROTECTED).paths.keys() - PROTECTED:
            obeyed = place / each
            if Path(path).is_relative_to(obeyed) or obeyed.is_relative_to(path):
                return "programs" if obeyed in map(Path, (sys.prefix, sys.base_prefix)) else "git"
    return None


def _kind_below(directory: str, own: OwnRules) -> Kind | None:
    """Return why something in a directory is guarded; what is too large to look through may hold anything."""
    count = 0
    for place, folders, files in os.walk(directory):
        for name in (*folders, *files):
            count += 1
            if kind := kind_of(f"{place}/{name}", writes=True, own=own):
                return kind
        if count > _MOST_LOOKED_AT:
            return "secrets"
    return None


@lru_cache(maxsize=16)
def command_rules(
    granted: frozenset[Kind], own: OwnRules = (), *, read_only_in: tuple[str, ...] = ()
) -> Rules:
    """Return the rules for a command to which these kinds were granted; the rest is not there for it.

    With `read_only_in`, it changes nothing in these directories.
    """
    git = [] if "git" in granted else [_CHANGES_GIT]
    # A checkout that a person agreed to brings all files of its branch.
    programs = [] if granted & {"git", "programs"} else [_CHANGES_PROGRAMS]
    secrets = [] if "secrets" in granted else [_USES_SECRETS]
    closed = [f"/{_escape(Path(each).relative_to('/'))}/" for each in read_only_in]
    first = [FilesystemPermission(["write"], closed, "deny")] if closed else []
    # A whole tree that no rule speaks of is not looked through at each command, so these come first.
    freed, *others = (_FREE[1], _FREE[0], *_FREE[2:])
    return Rules([*first, *own, freed, *git, *programs, *others, *secrets])


def needs_of(command: str, within: Collection[str] = ()) -> frozenset[Kind]:
    """Return what a command names of what is guarded; what it does not name, it does not get.

    With `within`, the directories that are all it reaches, paths elsewhere do not count.
    """
    found: set[Kind] = set()
    for path, behind in _find_named(command, within):
        if kind_of(path, writes=False) == "secrets":
            found.add("secrets")
        kind = kind_of(path, writes=True)
        # As a word, origin/HEAD is a commit and no file.
        is_commit = path.endswith("/HEAD") and "/.git/" not in path
        if kind not in (None, "secrets") and not is_commit:
            found.add(kind)
        if behind and behind[0] not in _READS_GIT:
            found.add("git")
    return frozenset({*found, "programs"} if find_protected(command, within) else found)


def find_protected(command: str, within: Collection[str] = ()) -> frozenset[str]:
    """Return which protected paths of the sandbox a command names, or git with a verb that writes them."""
    found: set[str] = set()
    for path, behind in _find_named(command, within):
        folded = f"{path.rstrip('/')}/".casefold()
        # What names the whole of `.git` names all in it.
        found.update(
            each
            for each in PROTECTED
            if f"/{each}/" in folded or (folded.endswith("/.git/") and each.startswith(".git/"))
        )
        if behind and (behind[0] in _SETS_GIT or (behind[0] not in _READS_GIT and _TRACKS & {*behind})):
            found.update(_CONFIGURATION)
        if behind and behind[0] == "lfs":
            found.add(".git/hooks")
    return frozenset(found)


def paths_outside(command: str, within: Collection[str]) -> list[str]:
    """Return what a command names that is on this machine, and in none of the directories that it reaches."""
    found: dict[str, None] = {}
    for match in islice(_WORD.finditer(command), _MOST_WORDS):
        path = Path.home() / match[0][2:] if match[0].startswith("~/") else Path(match[0])
        reached = any(path.is_relative_to(each) for each in (*_PROGRAM_PLACES, *within))
        if path.is_absolute() and path.parent != path and not reached and _exists(path):
            found[match[0]] = None
    return [*found]


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    # A word that is not a name, or one in a place that this user may not look into.
    except (OSError, ValueError):
        return False


def names_url(command: str) -> bool:
    """Return whether a command names an address on the network."""
    return _URL.search(command) is not None


def _find_named(command: str, within: Collection[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield each path that a command names; where that is git, with its verb and what follows."""
    for match in _WORD.finditer(command):
        word = match[0]
        path = f"/{word.lstrip('/')}"
        if word.startswith("/") and within and not any(path.startswith(f"{each}/") for each in within):
            path = f"/{path.rpartition('/')[2]}" if path.endswith("/git") else "/"
        elif "." not in word and "/" not in word and word != "git":
            # A plain word such as "token" is hardly ever a file; as one it is written ./token.
            continue
        yield path, _verb_and_rest(command, match.end()) if path.endswith("/git") else []


def _verb_and_rest(command: str, start: int) -> list[str]:
    """Return what stands behind `git` in its call, from its verb on; `help` where there is none."""
    found = (each[0] for each in islice(_WORD_OF_GIT.finditer(command, start), _MOST_WORDS))
    words = iter([*takewhile(lambda each: each[0] not in ";|&", found)])
    for word in words:
        if word in ("-C", "-c"):
            next(words, None)
        elif not word.startswith("-"):
            return [word, *words]
    return ["help"]
