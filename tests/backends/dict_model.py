"""Files as a plain dict, and what every backend must answer about them: small, slow and obviously right."""

from __future__ import annotations

import base64
import re
from collections.abc import Generator, Sequence
from typing import Any

from deepagents.testing.contract.reading import whole_lines
from tests.backends.naive_globs import Pattern

Asked = tuple[str, tuple[Any, ...], dict[str, Any]]
Play = Generator[Asked, Any, None]
NOT_THERE = ("file_not_found", "not_a_directory")
HEAD = 8192
ACCENT = "\u0301".encode()


def split_lines(text: str) -> list[tuple[str, str]]:
    """Cut a text into lines and their ends, character by character."""
    lines: list[tuple[str, str]] = []
    line, at = "", 0
    while at < len(text):
        end = "\r\n" if text.startswith("\r\n", at) else text[at] if text[at] in "\r\n" else ""
        if end:
            lines.append((line, end))
            line = ""
        else:
            line += text[at]
        at += len(end) or 1
    return [*lines, (line, "")] if line else lines


def text_of(path: str, data: bytes) -> str | None:
    """Decode what reads as text; media and bytes that are not text are none."""
    if path.lower().endswith((".png", ".pdf")) or b"\0" in data[:HEAD]:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def replaced(text: str, old: str, new: str) -> tuple[str, int]:
    """Replace `old` wherever it stands; a `\\n` in it stands for any line end, which is kept."""
    if "\r" in old and old in text:
        return text.replace(old, new), text.count(old)
    ends = {end for _, end in split_lines(text)} - {""}
    only = ends.pop() if len(ends) == 1 else None
    if not ends and only is None:
        return text.replace(old, new), text.count(old)
    parts: list[str] = []
    count = at = 0
    while at < len(text):
        stop, first_end = _match(text, at, _lf(old))
        if stop is None:
            parts.append(text[at])
            at += 1
            continue
        end = only or first_end
        parts.append(_lf(new).replace("\n", end) if end else new)
        count, at = count + 1, stop
    return "".join(parts), count


def _lf(text: str) -> str:
    return "".join(line + ("\n" if end else "") for line, end in split_lines(text))


def _match(text: str, at: int, old: str) -> tuple[int | None, str]:
    first_end = ""
    for char in old:
        if char != "\n":
            if at >= len(text) or text[at] != char:
                return None, ""
            at += 1
            continue
        end = "\r\n" if text.startswith("\r\n", at) else text[at : at + 1]
        if end not in ("\r\n", "\n", "\r"):
            return None, ""
        first_end = first_end or end
        at += len(end)
    return at, first_end


def parents(path: str) -> list[str]:
    """Name the directories above a file, the root last."""
    names = path.split("/")[1:-1]
    return ["/" + "/".join(names[:count]) for count in range(len(names), 0, -1)] + ["/"]


class Model:
    """Plays operations against a backend: yields each call, takes its answer, and checks it.

    Below the `flat` directories a directory is no more than what paths imply, and a path may be a file and a
    directory, so such plays are left out. `routes` always are directories and cannot be deleted.
    """

    def __init__(self, flat: Sequence[str] = (), routes: Sequence[str] = ()) -> None:
        self._flat = flat
        self._routes = routes
        self.files: dict[str, bytes] = {}
        self._kept: set[str] = {"/", *routes, *(above for route in routes for above in parents(route))}
        self._seen: dict[str, tuple[str, bytes | None]] = {}

    def _directories(self) -> set[str]:
        return self._kept | {above for path in self.files for above in parents(path)}

    def _is_flat(self, path: str) -> bool:
        """Tell whether the backend that serves a path is one without directories."""
        places = [
            each for each in ("/", *self._flat, *self._routes) if path in (each, "/") or each in parents(path)
        ]
        return max(places, key=len) in self._flat

    def _is_held(self, path: str) -> bool:
        return path == "/" or any(path == route or path in parents(route) for route in self._routes)

    def _is_unsettled(self, path: str) -> bool:
        return self._is_flat(path) and self._in_the_way(path) and not self._is_held(path)

    def _in_the_way(self, path: str) -> bool:
        return path in self._directories() or any(above in self.files for above in parents(path))

    def _put(self, path: str, data: bytes, version: str | None = None) -> None:
        self.files[path] = data
        self._kept.update(above for above in parents(path) if not self._is_flat(above))
        if version:
            self._seen[path] = (version, data)

    def write(self, path: str, content: str, guarded: bool = False) -> Play:
        if self._is_unsettled(path):
            return
        version, since = self._seen.get(path, (None, None)) if guarded else (None, None)
        options = {"expected_version": version} if version else {}
        done = yield "write", (path, content), options
        if not _encodes(content):
            assert done.code, done
        elif self._in_the_way(path):
            assert done.code in ("is_directory", "not_a_directory", "invalid_path"), done
        elif version and since != self.files.get(path):
            assert done.code == "stale_version", done
        elif version and done.code == "stale_version":
            self._seen.pop(path)
        else:
            assert (done.error, done.code, done.path) == (None, None, path), done
            self._put(path, self._with_old_ends(path, content).encode(), done.version)

    def _with_old_ends(self, path: str, content: str) -> str:
        old = text_of(path, self.files.get(path, b""))
        ends = {end for _, end in split_lines(old or "")} - {""}
        return content.replace("\n", "\r\n") if ends == {"\r\n"} and "\r" not in content else content

    def append(self, path: str, content: str | bytes) -> Play:
        if self._is_unsettled(path):
            return
        done = yield "append", (path, content), {}
        if isinstance(content, str) and not _encodes(content):
            assert done.code, done
        elif self._in_the_way(path):
            assert done.code in ("is_directory", "not_a_directory", "invalid_path"), done
        else:
            assert (done.error, done.code, done.path) == (None, None, path), done
            added = content.encode() if isinstance(content, str) else content
            self._put(path, self.files.get(path, b"") + added, done.version)

    def edit(self, path: str, old: str, new: str, every: bool) -> Play:
        done = yield "edit", (path, old, new, every), {}
        before = text_of(path, self.files.get(path, b""))
        if path not in self.files:
            wanted = ("is_directory",) if path in self._directories() else NOT_THERE
            assert done.code in wanted or not old or not _encodes(new), done
            return
        if before is None or not _encodes(new):
            assert done.code == "invalid_encoding" or (done.code == "invalid_argument" and not old), done
            return
        after, count = replaced(before, old, new) if old else ("", 0)
        if not old or not count or (count > 1 and not every):
            code = "invalid_argument" if not old else "ambiguous_match" if count else "no_match"
            assert done.code == code, done
            return
        assert (done.error, done.code, done.path, done.occurrences) == (None, None, path, count), done
        self._put(path, after.encode(), done.version)

    def delete(self, path: str) -> Play:
        done = yield "delete", (path,), {}
        below = path.rstrip("/") + "/"
        gone = [each for each in self.files if each == path or each.startswith(below)]
        if self._is_held(path):
            assert done.code == "invalid_path", done
        elif gone or path in self._directories():
            assert (done.error, done.code, done.path) == (None, None, path), done
            self.files = {each: data for each, data in self.files.items() if each not in gone}
            self._kept = {each for each in self._kept if each != path and not each.startswith(below)}
        else:
            assert done.code in NOT_THERE, done

    def upload(self, path: str, content: bytes) -> Play:
        if self._is_unsettled(path):
            return
        (done,) = yield "upload_files", ([(path, content)],), {}
        assert done.path == path
        if self._in_the_way(path):
            assert done.error in ("is_directory", "invalid_path"), done
        else:
            assert done.error is None, done
            self._put(path, content)

    def download(self, path: str) -> Play:
        (done,) = yield "download_files", ([path],), {}
        if path in self.files:
            assert (done.error, done.content) == (None, self.files[path]), done
        elif path in self._directories():
            assert (done.error, done.content) == ("is_directory", None), done
        else:
            assert done.error in ("file_not_found", "invalid_path"), done

    def read(self, path: str, offset: int, limit: int) -> Play:
        done = yield "read", (path, offset, limit), {}
        if path not in self.files:
            wanted = ("is_directory",) if path in self._directories() else NOT_THERE
            assert done.code in wanted, done
            return
        data = self.files[path]
        text = text_of(path, data)
        if done.version:
            self._seen[path] = (done.version, data)
        if text is None:
            assert done.file_data["encoding"] == "base64", done
            assert base64.b64decode(done.file_data["content"]) == data
            assert (done.error, done.start_line, done.next_offset) == (None, None, None)
            return
        self._check_page(done, text, max(offset, 0), limit)

    def _check_page(self, done: Any, text: str, offset: int, limit: int) -> None:
        lines = [line + ("\n" if end else "") for line, end in split_lines(text)]
        page = lines[offset : offset + max(limit, 0)]
        if not text.strip():
            expected = (text, None, None, None, False)
        elif limit <= 0:
            expected = ("", None, None, None, True)
        elif not page:
            assert done.code == "invalid_argument", done
            return
        else:
            end = offset + len(page)
            expected = ("".join(page), offset + 1, end, end if end < len(lines) else None, False)
        assert done.error is None, done
        assert done.file_data.get("encoding", "utf-8") == "utf-8"
        window = (done.start_line, done.end_line, done.next_offset, done.no_lines_requested)
        content = whole_lines(done) if done.start_line else done.file_data["content"]
        assert (content, *window) == expected
        assert done.total_lines in (len(lines) if done.start_line else None, None)

    def ls(self, path: str) -> Play:
        done = yield "ls", (path,), {}
        if path in self.files:
            assert done.code == "not_a_directory", done
        elif path not in self._directories():
            assert done.entries == [] or done.code in NOT_THERE, done
        else:
            base = path.rstrip("/") + "/"
            here = [(each, False, len(data)) for each, data in self.files.items()]
            here += [(each + "/", True, 0) for each in self._directories() - {"/"}]
            inside = [each for each in here if re.fullmatch(re.escape(base) + "[^/]+/?", each[0])]
            assert done.error is None, done
            # Sandboxes list directories without the slash.
            plain = [(name.rstrip("/"), is_directory, size) for name, is_directory, size in inside]
            shown = [(e["path"], e["is_dir"], e["size"]) for e in done.entries]
            assert shown in (sorted(inside), sorted(plain))

    def glob(self, pattern: Pattern, path: str | None) -> Play:
        done = yield "glob", (pattern.shown, path), {}
        if done.code == "invalid_pattern" or pattern.is_refused():
            assert (done.code, done.matches) == ("invalid_pattern", None), (pattern.shown, done)
            assert ".." in pattern.shown
            return
        base = (path or "/").rstrip("/") + "/"
        inside = [each for each in self.files if each.startswith(base)]
        expected = sorted(each for each in inside if pattern.matches(each[len(base) :]))
        assert (done.error, done.truncated) == (None, False), done
        assert sorted(each["path"] for each in done.matches) == expected, pattern.shown

    def grep(
        self, needle: str, path: str | None, pattern: Pattern | None, cap: int | None, regex: bool
    ) -> Play:
        # Whether an accent of its own belongs to the word before it, engines of expressions see differently.
        if regex and needle == r"\bx" and any(ACCENT in data for data in self.files.values()):
            return
        shown = pattern.shown if pattern else None
        done = yield "grep", (needle, path, shown), {"max_count": cap, "regex": regex}
        if pattern and (done.code == "invalid_pattern" or pattern.is_refused()):
            assert done.code == "invalid_pattern", (shown, done)
            assert ".." in pattern.shown
            return
        expected = [
            (each, number, line)
            for each in sorted(self.files)
            if self._is_searched(each, path or "/", pattern) and b"\0" not in self.files[each][:HEAD]
            for number, (line, _) in enumerate(split_lines(self.files[each].decode(errors="replace")), 1)
            if (re.search(needle, line) if regex else needle in line)
        ]
        most = len(expected) if cap is None else cap
        assert done.error is None, done
        assert [(e["path"], e["line"], e["text"]) for e in done.matches] == expected[:most]
        assert done.truncated == (most < len(expected))

    def _is_searched(self, each: str, path: str, pattern: Pattern | None) -> bool:
        base = path.rstrip("/") + "/"
        if each != path and not each.startswith(base):
            return False
        return pattern is None or pattern.matches(
            each.rpartition("/")[2] if each == path else each[len(base) :]
        )


def _encodes(text: str) -> bool:
    return not any("\ud800" <= char <= "\udfff" for char in text)
