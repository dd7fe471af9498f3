"""Find what a directory and a person bring to an agent: instructions, skills, and facts about the place."""

from __future__ import annotations

import errno
import json
import os
import platform
import re
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from secrets import token_hex
from shlex import quote
from typing import Any, Final, cast

from deepagents._values import valueclass
from deepagents.backends._directory import open_directory

_INSTRUCTIONS: Final = ("AGENTS.md", "CLAUDE.md")
_FOLDERS: Final = (".claude", ".deepagents")
"""Where skills and the like lie, below a home and below a project; what lies in the later one wins."""
_LONGEST_HEAD: Final = 4_096
_LONGEST_INSTRUCTIONS: Final = 1 << 18
"""Bytes; all of it is in each request."""

_MANIFEST: Final = ".claude-plugin/plugin.json"
_PLUGIN_NAME: Final = re.compile(r"\w[\w-]{0,63}")
_PLUGIN_ROOT: Final = "${CLAUDE_PLUGIN_ROOT}"
_PLAIN: Final = re.compile(r"[\w./+@-]+")
_MOST_PLUGINS: Final = 100
_LONGEST_MANIFEST: Final = 1 << 16
"""Bytes."""
_NOT_USED: Final = ("agents", "commands", "hooks", "lspServers", "mcpServers", "outputStyles", "skills")
"""Keys of a manifest by which Claude Code finds parts of a plugin elsewhere than in its folders."""


@valueclass
class Plugin:
    """A folder that brings commands, agents, skills and hooks, and the place where it was put."""

    name: str
    path: Path
    place: Path

    def fill(self, text: str) -> str:
        """Return a text with the path of the plugin where the text asks for it.

        Raises:
            ValueError: where a shell would read more than a path.
        """
        if _PLUGIN_ROOT in text and not _PLAIN.fullmatch(str(self.path)):
            raise ValueError(f"the path {str(self.path)!r} is not a plain word for a shell; move the plugin")
        return text.replace(_PLUGIN_ROOT, str(self.path))


@valueclass
class Folder:
    """A folder of files of one kind, the place to which it belongs, and the plugin that brings it, if any."""

    path: Path
    place: Path
    plugin: Plugin | None = None


@valueclass
class Project:
    """A directory that an agent works on, in its repository, for a person with a home.

    Nothing here runs a program: a repository can name programs that `git` itself would run.
    """

    directory: Path
    home: Path

    @property
    def root(self) -> Path:
        """The directory of the repository, or this one where there is none."""
        above = (self.directory, *self.directory.parents)
        return next((each for each in above if self._is_repository(each)), self.directory)

    def _is_repository(self, place: Path) -> bool:
        if not _is((place / ".git").exists):
            return False
        # As git does it: others may put one into a directory above that all may write to, such as /tmp.
        trusted = {0, self.directory.stat().st_uid, getattr(os, "geteuid", int)()}
        return place == self.directory or (place / ".git").lstat().st_uid in trusted

    def places(self) -> list[Path]:
        """Return the directories whose files the project brings; what lies below the home is the person's."""
        places = dict.fromkeys([self.root, self.directory])
        return [each for each in places if each.resolve() != self.home.resolve()]

    def memory(self) -> list[Path]:
        """Return the files with instructions that are there: of the person, the repository, the directory."""
        found: list[Path] = []
        for place, path in self._instructions():
            # Often one of the two is a link to the other. A link that leads elsewhere could show the
            # model any file of this person.
            usable = _is(path.is_file) and _stays_in(path, place) and not _is_too_long(path)
            if usable and not any(map(path.samefile, found)):
                found.append(path)
        return found

    def problems(self) -> list[str]:
        """Return a sentence for each file of instructions and each folder that is there and not used."""
        found = [
            f"{path} is not read: it has more than {_LONGEST_INSTRUCTIONS:,} bytes, too many for each "
            "request; move a part to another file, and name that in it"
            for _, path in self._instructions()
            if _is_too_long(path)
        ]
        kinds = (*_FOLDERS, f"{_FOLDERS[-1]}/plugins")
        folders = (place / kind for place in self._all_places() for kind in kinds)
        found += [
            f"{each} is not used, since you may not look into it: ls -ld {quote(str(each))}"
            for each in folders
            if _is(each.is_dir) and not _is_readable(each)
        ]
        return list(dict.fromkeys(found))

    def describe_home(self) -> Iterator[str]:
        """Say so where the agent works on the home of a person, or on what holds it."""
        home, directory = self.home.resolve(), self.directory.resolve()
        if home.is_relative_to(directory):
            what = "is" if home == directory else "holds"
            yield (
                f"{directory} {what} your home directory, and the agent works on all of it; name the "
                "directory of a project with --dir"
            )

    def _instructions(self) -> Iterator[tuple[Path, Path]]:
        for place in (*(self.home / each for each in _FOLDERS), self.root, self.directory):
            yield from ((place, place / name) for name in _INSTRUCTIONS)

    def skills(self) -> list[Path]:
        """Return the directories of skills that are there; a skill of a later one replaces an earlier one."""
        return [each.path for each in self.folders("skills")]

    def find_skills(self) -> dict[str, tuple[Path, Folder]]:
        """Return the skills by name, the file and the folder of each; a later one replaces an earlier one."""
        return {
            each.parent.name: (each, folder)
            for folder in self.folders("skills")
            for each in sorted(folder.path.glob("*/SKILL.md"))
        }

    def folders(self, kind: str) -> list[Folder]:
        """Return the folders of a kind that are there: of the person, the repository, the directory.

        In each of these, those of plugins come first.
        """
        plugins, _ = self.plugins()
        found: list[Folder] = []
        for place in self._all_places():
            found += [Folder(each.path / kind, place, each) for each in plugins if each.place == place]
            found += [Folder(place / folder / kind, place) for folder in _FOLDERS]
        return [each for each in found if _is(each.path.is_dir) and _stays_in(each.path, each.place)]

    def plugins(self) -> tuple[list[Plugin], list[str]]:
        """Return the plugins of the person, the repository and the directory, and what is wrong with them."""
        found: list[Plugin] = []
        notices: list[str] = []
        for place in self._all_places():
            top = place / _FOLDERS[-1] / "plugins"
            readable = _is(top.is_dir) and _is_readable(top) and _stays_in(top, place)
            listed = islice(top.iterdir(), _MOST_PLUGINS) if readable else ()
            for path in sorted(each for each in listed if each.is_dir()):
                try:
                    found.append(_read_plugin(path, place, notices))
                # No folder of somebody else keeps the program from starting.
                except (OSError, ValueError, RecursionError) as error:
                    notices.append(f"the plugin {path} is not used: {error}")
        return found, notices

    def _all_places(self) -> list[Path]:
        return [*dict.fromkeys([self.home, self.root, self.directory])]

    def describe(self) -> str:
        """Describe for the model where it is, and when."""
        facts = {
            "Working directory": _printable(self.directory),
            "Git repository": self._describe_repository(),
            "System": f"{platform.system()} {platform.release()} ({platform.machine()})",
            "Today": time.strftime("%A, %Y-%m-%d"),
        }
        lines = [f"{name}: {fact}" for name, fact in facts.items()]
        return "\n".join(["<environment>", *lines, "</environment>"])

    def _describe_repository(self) -> str:
        if not _is((self.root / ".git").exists):
            return "none"
        branch = self.branch()
        where = [] if branch is None else [f"branch {branch}" if branch else "no branch"]
        return ", ".join([_printable(self.root), *where])

    # Not how many files have changed: only git knows that, and a repository can name programs for git to run
    # (filters of attributes too, which no option turns off), so it runs in a sandbox, for conversations.
    def branch(self) -> str | None:
        """Return the branch, `""` on none; a worktree and a submodule have a file that names its place."""
        place = self.root / ".git"
        try:
            if place.is_file():
                place = self.root / _head_of(place).partition("gitdir:")[2].strip()
            kind, colon, name = _head_of(place / "HEAD").partition("ref: refs/heads/")
        except (OSError, UnicodeDecodeError):
            return None
        if not colon:
            return ""
        return name if not kind and name.isprintable() else None


def _read_plugin(path: Path, place: Path, notices: list[str]) -> Plugin:
    """Read what a plugin says of itself; what it says and is not used goes to the notices."""
    manifest = _read_manifest(path, place)
    name = manifest.get("name", path.name)
    if not isinstance(name, str) or not _PLUGIN_NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not a name for it; write letters, digits, '-' and '_'")
    if unused := [each for each in _NOT_USED if each in manifest]:
        notices.append(
            f"the plugin {path}: {', '.join(unused)} in {_MANIFEST} is not used; its folders commands, "
            "agents, skills and hooks are"
        )
    if (path / ".mcp.json").exists():
        notices.append(f"the plugin {path}: its MCP servers (.mcp.json) are not used")
    return Plugin(name, path, place)


def _read_manifest(path: Path, place: Path) -> dict[str, Any]:
    if not _stays_in(path, place):
        raise OSError("it is a link that leads elsewhere")
    try:
        manifest: Any = json.loads(read_text(path / _MANIFEST, place, _LONGEST_MANIFEST))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise OSError(f"{_MANIFEST}: {error.strerror or error}") from error
    except ValueError as error:
        raise ValueError(f"{_MANIFEST} is not JSON: {error}") from error
    if not isinstance(manifest, dict):
        raise ValueError(f"{_MANIFEST} holds no object in braces")
    return cast("dict[str, Any]", manifest)


def read_text(path: Path, place: Path, most: int) -> str:
    """Read a text that a project brings, if it lies in its place and is no longer than so many bytes.

    Raises:
        OSError, ValueError: saying why it is not read.
    """
    return read_bytes(path, place, most).decode("utf-8")


def read_bytes(path: Path, place: Path, most: int) -> bytes:
    """Read a file that a project brings, if it lies in its place and is no longer than so many bytes.

    Raises:
        OSError, ValueError: saying why it is not read.
    """
    return read_resolved(path.resolve(), place.resolve(), most)


def read_resolved(real: Path, top: Path, most: int) -> bytes:
    """Read a file below a directory, both with their links resolved; one that has appeared since is refused.

    Raises:
        OSError: saying why it is not read.
    """
    if not real.is_relative_to(top):
        raise OSError("it is a link that leads elsewhere")
    with ExitStack() as held:
        here = held.enter_context(open_directory(top))
        for name in real.relative_to(top).parts[:-1]:
            here = here.child(name)
            held.callback(here.close)
        file = held.enter_context(os.fdopen(here.open(real.name), "rb"))
        # A pipe in its place would never end.
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError("it is not a file")
        if len(content := file.read(most + 1)) > most:
            raise OSError(f"it is longer than {most:,} bytes")
    return content


def write_whole(path: Path, content: bytes, mode: int | None = None) -> None:
    """Write a file that is the old one or the new one at each moment, with this mode or that of the old one.

    Raises:
        OSError: where it cannot be written.
    """
    if mode is None and path.exists():
        mode = stat.S_IMODE(path.stat().st_mode)
    temporary = path.with_name(f".{path.name}-{token_hex(4)}")
    try:
        with temporary.open("xb") as file:
            if mode is not None:
                temporary.chmod(mode)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            written = os.fstat(file.fileno())
            if sys.platform == "win32":
                # An open file cannot be renamed there. Elsewhere it keeps its number from being given anew.
                file.close()
            temporary.replace(path)
            # A command that watches the directory can put a file of its own in the place of a temporary one.
            if not os.path.samestat(path.lstat(), written):
                raise OSError(errno.EBUSY, "another program put its own file there")
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _printable(path: Path) -> str:
    # A directory that came with a download may have any name, also one of several lines.
    return str(path) if str(path).isprintable() else repr(str(path))


def _head_of(path: Path) -> str:
    # A pipe in its place would never end.
    if not path.is_file():
        raise FileNotFoundError(path)
    with path.open(encoding="utf-8") as file:
        return file.read(_LONGEST_HEAD).strip()


def _is(asked: Callable[[], bool]) -> bool:
    # What this user may not look into is not there for the agent either.
    try:
        return asked()
    except OSError:
        return False


def _is_readable(folder: Path) -> bool:
    return os.access(folder, os.R_OK | os.X_OK)


def _is_too_long(path: Path) -> bool:
    return _is(path.is_file) and path.stat().st_size > _LONGEST_INSTRUCTIONS


def _stays_in(path: Path, place: Path) -> bool:
    return path.resolve().is_relative_to(place.resolve())
