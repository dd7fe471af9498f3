"""Look at directories and single paths, and note what differs from what is known of them, and whose it is.

A change belongs to the threads whose steps were under way when it was found, whoever found it. What is found
while none is under way was done by others, and only enters the index.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from sqlite3 import Connection
from threading import Lock
from typing import Any, Final, TypeAlias

from deepagents._values import field, recordclass, replace
from deepagents.backends._directory import FilesBelow
from deepagents.undo.doubts import Doubts
from deepagents.undo.ignores import GIT, Ignores
from deepagents.undo.index import (
    Bounds,
    IndexWalk,
    OutOfSight,
    TooMuch,
    Tree,
    describe_refused,
    find_still,
    is_own,
    is_unchanged,
    mode_at,
    read_all,
    size_at,
)
from deepagents.undo.states import UNKNOWN, PathReading, State, reaching, read_path
from deepagents.undo.steps import Directories, RecordedStep, find_owners, is_below, read_step, write_places
from deepagents.undo.store import Store
from deepagents.undo.tables import RULES_OF_TURNS

_BATCH: Final = 4_000_000
_TIMES: Final = 100
_COLUMNS: Final = "state, size, modified, changed, inode, mode, racy"

NOT_COVERED: Final = "what commands and tools of this thread changed is not covered: {why}"
GIT_STAYS: Final = "what git keeps for itself (commits, branches, its index) stays as it is"
GIT_IS_GONE: Final = "the .git of {top} is gone, and does not come back with the files"
IGNORED_STAYS: Final = "what git ignores is covered only where a file tool wrote it; the rest stays as it is"
HIDDEN_STAYS: Final = "what cannot be looked at stays as it is, such as {path}"
ELSEWHERE_STAYS: Final = "what commands and other tools did outside of {roots} stays as it is"

Pair: TypeAlias = tuple[PathReading | None, PathReading | None]
"""What a path holds, and what was known of it."""


@recordclass
class Changes:
    """What one transaction changes in the index: the trees in memory follow when it is written."""

    database: Connection
    doubts: Doubts
    entries: dict[str, PathReading | None] = field(default_factory=dict[str, "PathReading | None"])
    seen: list[tuple[Any, ...]] = field(default_factory=list[tuple[Any, ...]])


class Looker:
    """Keeps the index of one store true. Several agents, threads and processes may do so at once."""

    def __init__(self, store: Store, bounds: Bounds) -> None:
        self.store = store
        self.bounds = bounds
        self._trees: dict[str, Tree] = {}
        self._looking = Lock()
        self._refused: dict[str, tuple[str, float]] = {}
        """The roots that are too large, each with the sentence that says so, and when to look again."""

    def look(
        self, root: str, passed_over: frozenset[str] = frozenset(), *, once: bool = False, thread: str = ""
    ) -> str | None:
        """Find what differs from the index and record it; return in one sentence why that is not possible.

        With `once`, a root is passed over that this process has looked at. One that was too large is looked
        at again, though for a hundredth of the time at most. `thread` is about to begin a step.
        """
        if why := self.find_refusal(root, once=once):
            return why
        with self._looking:
            # Another thread may have looked meanwhile.
            if (why := self.find_refusal(root, once=once)) or (once and root in self._trees):
                return why
            begun = time.monotonic()
            try:
                bounds = replace(self.bounds, passed_over=passed_over | {str(self.store.directory)})
                self._look(self._tree(root), bounds, thread)
            except BaseException as error:
                # Rules that were read and not kept would not be found to be new by the next look.
                self._trees.pop(root, None)
                if isinstance(error, TooMuch):
                    self._refused[root] = str(error), begun + _TIMES * (time.monotonic() - begun)
                elif not isinstance(error, OutOfSight):
                    raise
                return str(error)
            self._refused.pop(root, None)
        return None

    def find_refusal(self, root: str, *, once: bool = False) -> str | None:
        """Return in one sentence why a directory is not looked at whole."""
        why, again = self._refused.get(root, (None, 0))
        return describe_refused(root) or (None if once and time.monotonic() >= again else why)

    def look_at_all(self, places: Directories, *, once: bool = False, thread: str = "") -> list[str]:
        """Look at all directories of an agent; return in a sentence each why that is not possible."""
        found = [self.look(root, places.passed_over, once=once, thread=thread) for root in places.roots]
        return [why for why in found if why]

    def look_at(self, paths: Iterable[str]) -> dict[str, State | None]:
        """Return what each of these paths holds now, with what the index knows brought up to date."""
        with self._comparing([path for path in paths if not is_own(path)]) as (changes, found):
            self._bring_up_to_date(changes, found)
            self._write(changes)
        return {path: now.state if now else None for path, (now, _) in found.items()}

    @contextmanager
    def _comparing(self, paths: Sequence[str]) -> Generator[tuple[Changes, Mapping[str, Pair]]]:
        """Read single paths in a transaction, and yield what each holds with what was known of it."""
        with reaching() as reach:
            coming = [path for path in paths if not self._is_known(reach, path)]
            self.store.make_room(sum(size_at(path, self.bounds.max_file_bytes) for path in coming))
        with self.store.write() as database, reaching() as reach:
            found: dict[str, Pair] = {}
            for path in paths:
                known = self._known(path)
                now = find_still(reach, path, known) or read_path(reach, path, self.bounds.max_file_bytes)
                self.store.keep([now] if now else [])
                found[path] = now, known
            yield Changes(database, Doubts(self.store)), found

    def _bring_up_to_date(self, changes: Changes, found: Mapping[str, Pair]) -> None:
        """Note what steps that are under way, or others, have changed so far."""
        steps = self._under_way()
        for path, (now, known) in found.items():
            is_new = known is None and not self._was_looked_at(path)
            is_still_there = now and known and known.state == UNKNOWN
            owners = find_owners(path, steps, self.store.is_alive, is_new=is_new)
            self._compare(changes, path, now, known, () if is_still_there else owners)

    def _look(self, tree: Tree, bounds: Bounds, thread: str) -> None:
        walk = self._walk(tree, bounds, thread)
        with self.store.holding_new():
            found = self._read([*walk.new, *walk.changed, *walk.gone])
            with self.store.write() as database:
                self._merge(database, walk, found)

    def _walk(self, tree: Tree, bounds: Bounds, thread: str) -> IndexWalk:
        rows = self.store.read(RULES_OF_TURNS, os.fsencode(tree.root), thread)
        earlier = {number: Ignores.load(rules) for number, rules in rows}
        walk = IndexWalk(tree, bounds, earlier=[*earlier.values()])
        try:
            walk.go()
        except TooMuch:
            if not rows:
                raise
            # As where an agent says what is to be ignored, and then installs that.
            walk = IndexWalk(tree, bounds, old_rules=walk.old_rules)
            walk.go()
            top = os.fsencode(tree.root)
            too_much = [(top, number) for number, each in earlier.items() if each != tree.ignores]
            with self.store.write() as database:
                database.executemany("DELETE FROM rules_of_turns WHERE root = ? AND rules = ?", too_much)
        return walk

    def _merge(self, database: Connection, walk: IndexWalk, found: dict[str, PathReading | None]) -> None:
        tree = walk.tree
        changes, steps = Changes(database, Doubts(self.store)), self._under_way()
        stored = self._generation(tree.root)
        if stored != tree.generation or tree.generation is None:
            # Another process, or a file tool, was faster: what it has found is not found again. Before the
            # first look is kept there is no generation to tell so.
            self._load(database, tree)
            with reaching() as reach:
                late = [path for path in found if not is_unchanged(reach, path, found[path])]
            found.update(self._read(late))
        # Nothing referred to these contents yet, so another process may have dropped them since.
        lost = [path for path, now in found.items() if now and not self.store.has(now.state)]
        found.update(self._read(lost))
        # Nobody knows who changed what before a first look.
        is_first = tree.generation is None
        for path, now in found.items():
            known = tree.entries.get(path)
            before = known.state if known else None
            if known is None and now and walk.was_hidden(path, now.state[:1] == b"d"):
                before = UNKNOWN
            if now and f"{path}/" in walk.closed:
                # It is read again, until what lies in it can be seen.
                now = PathReading(now.state, now.signature, racy=True)
            is_new = is_first and known is None
            owners = find_owners(path, steps, self.store.is_alive, is_new=is_new)
            self._compare(changes, path, now, known, owners, before)
        for top in walk.lost:
            for step in find_owners(f"{top}/{GIT}", steps, self.store.is_alive, is_new=False):
                step.add_note(database, GIT_IS_GONE.format(top=top))
        if is_first or walk.old_rules is not None:
            values = [os.fsencode(tree.root), tree.ignores.dump(), time.time()]
            database.execute(
                "INSERT INTO roots VALUES (?, 0, ?, ?) ON CONFLICT DO UPDATE SET ignores = excluded.ignores",
                values,
            )
            tree.generation = self._generation(tree.root)
        self._write(changes)
        self._go_on(database, tree.root, steps)

    def _end(
        self, database: Connection, step: RecordedStep, roots: Sequence[str], why: Sequence[str] = ()
    ) -> int:
        notes = [NOT_COVERED.format(why=each) for each in why]
        trees = [tree for root in roots if (tree := self._trees.get(root))]
        notes += [GIT_STAYS] if any(tree.has_git for tree in trees) else []
        notes += [HIDDEN_STAYS.format(path=tree.out_of_sight) for tree in trees if tree.out_of_sight]
        notes += [IGNORED_STAYS] if any(tree.has_ignored for tree in trees) else []
        notes += [ELSEWHERE_STAYS.format(roots=" and ".join(roots))]
        return step.end(database, [*step.notes(database), *notes])

    def _go_on(self, database: Connection, root: str, steps: Sequence[RecordedStep]) -> None:
        """Note that this root was seen, and end what processes that died did below it: it is recorded now."""
        for step in steps:
            step.see(database, root)
            if step.kind == "files" or self.store.is_alive(step.process):
                continue
            places = [each for each in step.places if each not in self._refused]
            left = {rest: each for each in places for rest in self._leave_out(database, each, root)}
            if not left:
                self._end(database, step, sorted(step.places))
            elif left.keys() != step.places:
                unseen = [rest for rest, each in left.items() if each in step.unseen]
                values = [write_places(left, unseen), step.number]
                database.execute("UPDATE steps SET places = ? WHERE id = ?", values)

    def _leave_out(self, database: Connection, place: str, root: str) -> list[str]:
        """List what remains of a place without what is below a root."""
        if is_below(place, root):
            return []
        if not is_below(root, place):
            return [place]
        left: list[str] = []
        while root != place:
            above, _, name = root.rpartition("/")
            below = os.fsencode(above)
            known = database.execute(
                "SELECT path FROM entries WHERE path > ? AND path < ?", [below + b"/", below + b"0"]
            )
            names = {os.fsdecode(path)[len(above) + 1 :].partition("/")[0] for (path,) in known}
            with suppress(OSError):
                names.update(os.listdir(above))  # noqa: PTH208
            left += [f"{above}/{each}" for each in sorted(names - {name}) if not is_own(each)]
            root = above
        return left

    def _tree(self, root: str) -> Tree:
        tree = self._trees.get(root)
        if tree is None or tree.generation != self._generation(root):
            tree = self._trees.setdefault(root, Tree(root))
            with self.store.write() as database:
                self._load(database, tree)
                database.execute("UPDATE roots SET used = ? WHERE path = ?", [time.time(), os.fsencode(root)])
        return tree

    def _load(self, database: Connection, tree: Tree) -> None:
        below = os.fsencode(tree.root)
        rows = database.execute(
            f"SELECT path, {_COLUMNS} FROM entries WHERE path > ? AND path < ?", [below + b"/", below + b"0"]
        )
        entries = {os.fsdecode(path): _read_row(row) for path, *row in rows}
        found = database.execute("SELECT generation, ignores FROM roots WHERE path = ?", [below]).fetchone()
        # Before a look was kept, the rules are those that the present one has read.
        tree.load(entries, found[0] if found else None, Ignores.load(found[1]) if found else tree.ignores)

    def _generation(self, root: str) -> int | None:
        rows = self.store.read("SELECT generation FROM roots WHERE path = ?", os.fsencode(root))
        return rows[0][0] if rows else None

    # -- changes

    def _read(self, paths: Iterable[str]) -> dict[str, PathReading | None]:
        """Read what these paths hold, and keep the contents; they are not returned."""
        found: dict[str, PathReading | None] = {}
        batch: list[PathReading] = []
        size = 0
        for path, each in read_all(paths, self.bounds.max_file_bytes):
            if each and each.content is not None:
                batch.append(each)
                size += len(each.content)
                if size > _BATCH:
                    self.store.keep(batch)
                    batch, size = [], 0
            found[path] = PathReading(*each[:3]) if each else None
        if batch:
            self.store.keep(batch)
        return found

    def _known(self, path: str) -> PathReading | None:
        query = f"SELECT {_COLUMNS} FROM entries WHERE path = ?"
        rows = self.store.read(query, os.fsencode(path))
        return _read_row(rows[0]) if rows else None

    def _is_known(self, reach: FilesBelow, path: str) -> bool:
        """Return whether the content of a path is kept, as far as its times tell."""
        known = self._known(path)
        return known is not None and is_unchanged(reach, path, known)

    def _was_looked_at(self, path: str) -> bool:
        """Return whether a path would be in the index if it had been there at the last look."""
        for root, tree in [*self._trees.items()]:
            if is_below(path, root) and tree.generation is not None:
                return tree.ignores.covers(path, stat.S_ISDIR(mode_at(Path(path))))
        return False

    def _compare(
        self,
        changes: Changes,
        path: str,
        now: PathReading | None,
        known: PathReading | None,
        owners: Sequence[RecordedStep],
        before: State | None = None,
    ) -> None:
        """Note what differs from the index, for each thread whose it may be."""
        was = before if known is None else known.state
        state = now.state if now else None
        entry = PathReading(*now[:3]) if now else None
        if entry != known:
            changes.entries[path] = entry
        if state == was:
            return
        for step in owners:
            shared = changes.doubts.find(step, path) or int(len(owners) > 1)
            changes.seen.append(
                (step.thread, step.number, os.fsencode(path), was, state, shared, time.time())
            )

    def _write(self, changes: Changes) -> None:
        if not changes.entries and not changes.seen:
            return
        database = changes.database
        database.executemany(
            "INSERT INTO seen(thread, step, path, before, after, shared, at) VALUES (?, ?, ?, ?, ?, ?, ?)",
            changes.seen,
        )
        database.executemany(
            "INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                (os.fsencode(path), entry.state, *entry.signature, entry.racy)
                for path, entry in changes.entries.items()
                if entry
            ),
        )
        database.executemany(
            "DELETE FROM entries WHERE path = ?",
            ((os.fsencode(path),) for path, entry in changes.entries.items() if not entry),
        )
        for path, generation in database.execute("SELECT path, generation FROM roots").fetchall():
            root = os.fsdecode(path)
            below = {each: entry for each, entry in changes.entries.items() if is_below(each, root)}
            if below:
                database.execute("UPDATE roots SET generation = generation + 1 WHERE path = ?", [path])
                self._follow(root, generation, below)

    def _follow(self, root: str, generation: int, below: Mapping[str, PathReading | None]) -> None:
        tree = self._trees.get(root)
        if tree is not None and tree.generation == generation:
            for path, entry in below.items():
                tree.put(path, entry)
            tree.generation = generation + 1

    def _under_way(self) -> list[RecordedStep]:
        """Return the steps that may change anything, those of processes that died included."""
        query = "SELECT id, thread, kind, places, process FROM steps WHERE ended IS NULL"
        return [*map(read_step, self.store.read(query))]


def _read_row(row: Sequence[Any]) -> PathReading:
    state, size, modified, changed, inode, mode, racy = row
    return PathReading(state, (size, modified, changed, inode, mode), bool(racy))
