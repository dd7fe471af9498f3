"""Random operations on every backend have the outcome that they have on a plain dict.

`EXAMPLES=5000` in the environment tries so many new random plays instead of the few fixed ones.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from langgraph.store.memory import InMemoryStore

from deepagents.backends.composite import CompositeBackend
from deepagents.backends.filesystem import FilesystemBackend
from deepagents.backends.local_shell import LocalShellBackend
from deepagents.backends.protocol import BackendProtocol
from deepagents.backends.state import StateBackend
from deepagents.backends.store import StoreBackend
from tests.backends.dict_model import Model, Play
from tests.backends.in_graph import ain_graph, in_graph
from tests.backends.naive_globs import patterns
from tests.backends.ripgrep import no_ripgrep
from tests.backends.sandboxes import rooted

MANY = int(os.environ.get("EXAMPLES", "0"))
NAMES = [
    "a", "b.txt", ".env", "with space", " lead", "it's", 'q"q', "[x]", "{y,z}", "-rf", "--", "foo..bar",
    "...", "e\u0301.md", "日本", "🙂.py", "שלום.txt", "\u202ertl", "a\u2028b", "*", "$HOME", "`id`", "p.png",
    "D.PDF", "x" * 100, "c;d|e&f", "%41", "#1", "\ufeffbom",
]  # fmt: skip
CHUNKS = [
    "needle", "a", "b", "ab", "x", "(", ".*", "\n", "\n", "\r\n", "\r\n", "\r", "\x0c", "\x85", "\u2028",
    "\x0b", "\x1c", "\t", " ", "é", "e\u0301", "🙂", "👩‍👧", "שלום", "\u202e", "\ufeff", "\x1b[31m",
    "\x7f", "\x00", "y" * 5000, "line\n" * 200,
]  # fmt: skip
BYTES = [b"\xff", b"\x00", b"\xc3", b"caf\xe9\n", b"\xed\xa0\x80", b"\xf0\x9f", b"\xfe\xff\x00a"]
EXPRESSIONS = ["n.e", "^a", "b$", "[ab]+", "é|🙂", r"\bx", "(?i)NEEDLE", r"\.\*", "^$"]
ODD_NAMES = st.text(
    st.characters(exclude_categories=("Cc", "Cs", "Cn"), exclude_characters="/\\"), min_size=1, max_size=6
).filter(lambda name: name not in (".", ".."))

Operation: TypeAlias = tuple[Any, ...]
texts = st.lists(st.sampled_from(CHUNKS), max_size=6).map("".join)
contents = texts | st.sampled_from(["\ud800", "a\udfff\n"])
raw = st.lists(st.sampled_from(CHUNKS).map(str.encode) | st.sampled_from(BYTES), max_size=4).map(b"".join)
needles = st.sampled_from([*CHUNKS, "", "éa", "a\nb", "zzz"])
windows = st.tuples(st.integers(-1, 6), st.sampled_from([-1, 0, 1, 2, 100]))


@st.composite
def operations(draw: st.DrawFn, likely: tuple[str, ...] = ()) -> list[Operation]:
    """Make a play on a handful of paths, so that operations meet each other."""
    names = draw(st.lists(st.sampled_from(NAMES) | ODD_NAMES, min_size=2, max_size=5, unique=True))
    names += likely
    name = st.sampled_from(names)
    path = st.lists(name, min_size=1, max_size=3).map(lambda parts: "/" + "/".join(parts))
    place = path | st.just("/")
    start = place | st.none()
    pattern = patterns("".join(names) + ".ab")
    some_pattern, caps = st.none() | pattern, st.none() | st.integers(1, 3)
    files = draw(st.lists(path, min_size=1, max_size=4, unique=True))
    file = st.sampled_from(files) | st.sampled_from(files) | path
    one = st.one_of(
        st.tuples(st.just("write"), file, contents),
        st.tuples(st.just("write"), file, texts, st.just(True)),
        st.tuples(st.just("upload"), file, raw),
        st.tuples(st.just("append"), file, st.one_of(contents, raw)),
        st.tuples(st.just("edit"), file, texts, contents, st.booleans()),
        st.tuples(st.just("edit"), file, st.sampled_from(CHUNKS), texts, st.booleans()),
        st.tuples(st.just("delete"), file | place),
        st.tuples(st.just("download"), file | place),
        st.builds(lambda at, window: ("read", at, *window), file | place, windows),
        st.tuples(st.just("ls"), place),
        st.tuples(st.just("glob"), pattern, start),
        st.tuples(st.just("grep"), needles, start | file, some_pattern, caps, st.just(False)),
        st.tuples(st.just("grep"), st.sampled_from(EXPRESSIONS), start, some_pattern, caps, st.just(True)),
    )  # fmt: skip
    # Most plays would otherwise look for files that nobody wrote.
    begin = draw(st.lists(st.tuples(st.just("write"), st.sampled_from(files), texts), max_size=3))
    return begin + draw(st.lists(one, min_size=4, max_size=12))


def played(operations: list[Operation], model: Model) -> Play:
    for kind, *args in operations:
        yield from getattr(model, kind)(*args)


def drive(backend: BackendProtocol, play: Play) -> None:
    answer: Any = None
    try:
        while True:
            method, args, options = play.send(answer)
            answer = getattr(backend, method)(*args, **options)
    except StopIteration:
        return


async def adrive(backend: BackendProtocol, play: Play) -> None:
    answer: Any = None
    try:
        while True:
            method, args, options = play.send(answer)
            answer = await getattr(backend, f"a{method}")(*args, **options)
    except StopIteration:
        return


class Place:
    """Where a backend works: on its own, unless said otherwise."""

    flat: tuple[str, ...] = ()
    routes: tuple[str, ...] = ()
    likely: tuple[str, ...] = ()

    @contextmanager
    def backend(self) -> Generator[BackendProtocol]:
        raise NotImplementedError

    def run(self, work: Callable[[BackendProtocol], None]) -> None:
        with self.backend() as backend:
            work(backend)

    def arun(self, work: Callable[[BackendProtocol], Awaitable[None]]) -> None:
        with self.backend() as backend:
            asyncio.run(_awaited(work, backend))


async def _awaited(work: Callable[[BackendProtocol], Awaitable[None]], backend: BackendProtocol) -> None:
    await work(backend)


class OnDisk(Place):
    @contextmanager
    def backend(self) -> Generator[BackendProtocol]:
        with TemporaryDirectory() as root:
            yield FilesystemBackend(root)


class OnDiskWithShell(Place):
    @contextmanager
    def backend(self) -> Generator[BackendProtocol]:
        with TemporaryDirectory() as root:
            yield LocalShellBackend(root)


class InStore(Place):
    flat = ("/",)

    @contextmanager
    def backend(self) -> Generator[BackendProtocol]:
        yield StoreBackend(store=InMemoryStore(), namespace=("files",))


class InSandbox(Place):
    @contextmanager
    def backend(self) -> Generator[BackendProtocol]:
        with TemporaryDirectory() as root:
            yield rooted(Path(root))


class InState(Place):
    flat = ("/",)

    @contextmanager
    def backend(self) -> Generator[BackendProtocol]:
        yield StateBackend()

    def run(self, work: Callable[[BackendProtocol], None]) -> None:
        in_graph(lambda: super(InState, self).run(work))

    def arun(self, work: Callable[[BackendProtocol], Awaitable[None]]) -> None:
        async def once() -> None:
            with self.backend() as backend:
                await work(backend)

        asyncio.run(ain_graph(once))


class Spread(InState):
    """Some files in state, some on disk, and below those some in a store."""

    flat = ("/", "/a/日本")
    routes = ("/a", "/a/日本")
    likely = ("a", "日本")

    @contextmanager
    def backend(self) -> Generator[BackendProtocol]:
        store = StoreBackend(store=InMemoryStore(), namespace=("files",))
        with TemporaryDirectory() as root:
            yield CompositeBackend(StateBackend(), {"/a/": FilesystemBackend(root), "/a/日本/": store})


class SpreadOnDisk(Spread):
    """Some files on disk, some in a store, and below those some on disk again."""

    flat = ("/a",)

    @contextmanager
    def backend(self) -> Generator[BackendProtocol]:
        store = StoreBackend(store=InMemoryStore(), namespace=("files",))
        with TemporaryDirectory() as root, TemporaryDirectory() as other:
            routes = {"/a": store, "/a/日本": FilesystemBackend(other)}
            yield CompositeBackend(FilesystemBackend(root), routes)


# So many plays of each, which are always the same; `make drills` makes a thousand others.
PLACES: dict[str, tuple[Place, int]] = {
    "disk": (OnDisk(), 12),
    "bare": (OnDisk(), 6),
    "shell": (OnDiskWithShell(), 3),
    "state": (InState(), 12),
    "store": (InStore(), 12),
    "spread": (Spread(), 8),
    "across": (SpreadOnDisk(), 8),
    "box": (InSandbox(), 3),
}


@pytest.mark.parametrize("place", PLACES)
def test_every_play_ends_as_it_does_on_a_dict(place: str, tmp_path: Path) -> None:
    where, examples = PLACES[place]
    with no_ripgrep(tmp_path) if place == "bare" else nullcontext():
        play_many(where, MANY or examples)


def play_many(where: Place, examples: int) -> None:

    @settings(
        max_examples=examples,
        derandomize=not MANY,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=(HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much),
    )
    @given(operations(where.likely), st.booleans())
    def plays(operations: list[Operation], awaited: bool) -> None:
        play = played(operations, Model(where.flat, where.routes))
        if awaited:
            where.arun(lambda backend: adrive(backend, play))
        else:
            where.run(lambda backend: drive(backend, play))

    plays()
