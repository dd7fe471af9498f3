"""Work at random, of agents and of others, and a plain model in memory of what is there after going back."""

from __future__ import annotations

import json
import os
import random
import shutil
import time
from dataclasses import dataclass, field
from itertools import pairwise
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage
from langgraph.checkpoint.sqlite import SqliteSaver

from deepagents import create_deep_agent
from deepagents.backends import LocalShellBackend
from deepagents.testing import Asked, ScriptedModel, calls
from deepagents.undo import FileHistory
from tests.programs import FORKING
from tests.undo.workshop import read_tree

Held = tuple[str, int, bytes]
Tree = dict[str, Held]
NAMES = ("a", "b", "c", "d", "d/x", "d/y", "e", "e/f", "e/f/z")
PATIENCE = 120.0


def answer(asked: Asked) -> AIMessage | str:
    """Make the calls that the last message of a person lists, turn by turn."""
    messages = asked.messages
    last = max(at for at, each in enumerate(messages) if each.type == "human" and each.text.startswith("{"))
    turns = json.loads(messages[last].text)["turns"]
    done = sum(each.type == "ai" for each in messages[last + 1 :])
    return calls(*turns[done]) if done < len(turns) else "Done."


class Child:
    """A process with an agent, which may be killed at any moment."""

    def __init__(self, place: Path) -> None:
        self._ours, theirs = FORKING.Pipe()
        self._process = FORKING.Process(target=_live, args=(place, theirs))
        self._process.start()
        theirs.close()

    def ask(self, *wanted: Any, deadly: float | None = None) -> Any:
        """Let it do something; `None` where it was killed after so many seconds, before it was done."""
        self._ours.send(wanted)
        if deadly is not None and not self._ours.poll(deadly):
            self.close()
            return None
        assert self._ours.poll(PATIENCE), f"{wanted} takes too long"
        failed, answered = self._ours.recv()
        assert not failed, answered
        return answered

    def close(self) -> None:
        self._process.kill()
        self._process.join()
        self._ours.close()


def _live(place: Path, pipe: Connection) -> None:
    history = FileHistory(place / "history")
    with SqliteSaver.from_conn_string(str(place / "threads.db")) as saver:
        backend = LocalShellBackend(place / "project")
        agent: Any = create_deep_agent(
            ScriptedModel(always=answer, remembers=False),
            backend=backend, checkpointer=saver, file_history=history,
        )  # fmt: skip
        while True:
            try:
                wanted = pipe.recv()
            except EOFError:
                return
            try:
                pipe.send((False, _do(agent, history, *wanted)))
            except Exception as error:  # noqa: BLE001
                pipe.send((True, repr(error)))


def _do(agent: Any, history: FileHistory, what: str, thread: str, *about: Any) -> Any:
    config: Any = {"configurable": {"thread_id": thread}}
    if what == "run":
        turns, checkpoint = about
        if checkpoint:
            config["configurable"]["checkpoint_id"] = checkpoint
        agent.invoke({"messages": json.dumps({"turns": turns})}, config, durability="sync")
        config["configurable"].pop("checkpoint_id", None)
    if what == "rewind":
        checkpoint, files, conversation = about
        config["configurable"]["checkpoint_id"] = checkpoint
        plan = history.plan(agent, config)
        history.rewind(agent, plan, files=files, conversation=conversation)
        named = [str(each.path) for each in (*plan.conflicts, *plan.not_kept)]
        config["configurable"].pop("checkpoint_id")
        return (*_stand(agent, config), named)
    if what == "look":
        history.recover(agent, config)
    return _stand(agent, config)


def _stand(agent: Any, config: Any) -> tuple[str, list[str]]:
    state = agent.get_state(config)
    messages = [each.text for each in state.values.get("messages", ()) if each.type == "human"]
    return state.config["configurable"].get("checkpoint_id", ""), messages


@dataclass
class Point:
    """A checkpoint to go back to: what was said by then, and how many changes there were."""

    checkpoint: str
    said: list[str]
    changes: int


@dataclass
class Model:
    """What ought to be there: the tree, who changed which path when, and the points of each thread."""

    tree: Tree
    log: list[tuple[str, str, Held | None, Held | None]] = field(default_factory=list)
    points: dict[str, list[Point]] = field(default_factory=dict)
    stands: dict[str, Point] = field(default_factory=dict)

    def see(self, now: Tree, whose: str) -> None:
        """Note that somebody has changed the tree to this one."""
        for path in sorted({*self.tree, *now}):
            if self.tree.get(path) != now.get(path):
                self.log.append((whose, path, self.tree.get(path), now.get(path)))
        self.tree = now

    def find_moves(self, thread: str, point: Point) -> dict[str, Held | None]:
        """Return what each path gets that a thread alone has changed since a point."""
        own: dict[str, list[tuple[Held | None, Held | None]]] = {}
        for whose, path, before, after in self.log[point.changes :]:
            if whose == thread:
                own.setdefault(path, []).append((before, after))
        return {
            path: seen[0][0]
            for path, seen in own.items()
            if all(one[1] == two[0] for one, two in pairwise(seen)) and seen[-1][1] == self.tree.get(path)
        }

    def go_back(self, thread: str, point: Point) -> Tree:
        """Return the tree as it ought to be once a thread's changes since a point are taken back."""
        wanted, moves = dict(self.tree), self.find_moves(thread, point)
        for path in sorted(moves, reverse=True):
            if not goes_away(wanted.get(path), moves[path]):
                continue
            if any(each.startswith(f"{path}/") for each in wanted):
                moves.pop(path)
            else:
                wanted.pop(path)
        for path in sorted(moves):
            above = path.rpartition("/")[0]
            target = moves[path]
            if target and (not above or wanted.get(above, ("",))[0] == "directory"):
                wanted[path] = target
        return wanted


def is_near(one: str, other: str) -> bool:
    """Return whether one path is the other, or lies below it."""
    return f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")


def goes_away(held: Held | None, target: Held | None) -> bool:
    """Return whether something has to be removed first: a rename replaces only files and links."""
    if held is None:
        return False
    return target is None or (held[0] == "directory") != (target[0] == "directory")


def wait_for_commands(root: Path) -> None:
    """Wait until no process works in a directory any more; only Linux tells."""
    until = time.monotonic() + PATIENCE
    while any(_works_in(each) == str(root) for each in Path("/proc").glob("[0-9]*/cwd")):
        assert time.monotonic() < until, "a command does not end"
        time.sleep(0.01)


def _works_in(link: Path) -> str:
    try:
        return os.readlink(link)  # noqa: PTH115
    except OSError:
        return ""


class Sequence:
    """One random sequence, by its seed."""

    def __init__(self, seed: int, place: Path, kind: str) -> None:
        self.random = random.Random(seed)
        self.place = place
        self.root = place / "project"
        self.root.mkdir(parents=True)
        self._prepare(kind)
        self.git = {path: read_tree(path) for path in self.root.rglob(".git")}
        self.model = Model(self.read())
        self.child = Child(place)
        self.kills = 0
        self.conflicts = 0
        self.is_cut_off = False

    def _prepare(self, kind: str) -> None:
        (self.root / "d").mkdir()
        (self.root / "d" / "x").write_text("x0\n")
        (self.root / "a").write_text("a0\n")
        tops = {"plain": [], "repository": [self.root], "nested": [self.root, self.root / "d"]}[kind]
        for top in tops:
            (top / ".git" / "refs").mkdir(parents=True)
            (top / ".git" / "HEAD").write_text("ref: refs/heads/main\n")

    def read(self) -> Tree:
        return read_tree(self.root, passes=lambda name: name == ".git")

    def go(self, steps: int) -> None:
        """Do so many things, and compare after each."""
        for _ in range(steps):
            what = self.random.choices(
                [self.work, self.others, self.back, self.fork, self.renew], [40, 15, 30, 8, 7]
            )[0]
            what()
        self.child.close()
        # An agent may remove a repository with its directory, and that git's own does not come back.
        assert all(read_tree(path) == held for path, held in self.git.items() if path.exists())
        # A file tool that was killed may leave its file, which the next one sweeps; undo leaves nothing.
        assert not [path for path in self.root.rglob(".deepagents-*") if path.is_dir()]

    # -- what happens

    def work(self, checkpoint: str = "", thread: str | None = None) -> None:
        """Let an agent work for a message, perhaps until its process is killed."""
        thread = thread or self.random.choice("112")
        self._remember_start(thread)
        turns = [self._turn() for _ in range(self.random.randint(1, 2))]
        deadly = self.random.uniform(0, 0.6) if self.random.random() < 0.2 else None
        stands = self.child.ask("run", thread, turns, checkpoint, deadly=deadly)
        is_whole = stands is not None
        if stands is None:
            self.kills += 1
            self.is_cut_off = True
            self.child = Child(self.place)
            # Commands of a process that died end with it, but perhaps a moment later.
            time.sleep(0.1)
            stands = self.child.ask("look", thread)
        self.model.see(self.read(), thread)
        self._stand(thread, *stands, is_whole=is_whole)

    def fork(self) -> None:
        """Let an agent go on from an earlier checkpoint, with the files as they are."""
        thread = self.random.choice("12")
        if points := [each for each in self.model.points.get(thread, ()) if each.checkpoint]:
            self.work(self.random.choice(points).checkpoint, thread)

    def others(self) -> None:
        """Let a person change something."""
        self._change(self.random.choice(NAMES), f"person {self.random.random()}\n")
        self.model.see(self.read(), "person")

    def renew(self) -> None:
        """Go on in another process."""
        self.child.close()
        self.child = Child(self.place)

    def back(self) -> None:
        """Go back, or forth, perhaps until the process is killed."""
        thread = self.random.choice("12")
        points = self.model.points.get(thread)
        if not points:
            return
        point = self.random.choice(points)
        files, conversation = self.random.choice([(True, True), (True, True), (True, False), (False, True)])
        old, stood = self.model.tree, self.model.stands[thread]
        new = self.model.go_back(thread, point) if files else old
        said = point.said if conversation else stood.said
        deadly = self.random.uniform(0, 0.15) if self.random.random() < 0.3 else None
        done = self.child.ask("rewind", thread, point.checkpoint, files, conversation, deadly=deadly)
        if done is None:
            self.kills += 1
            self.child = Child(self.place)
            checkpoint, now_said = self.child.ask("look", thread)
            tree = self.read()
            is_new = tree == new and now_said == said
            is_old = tree == old and now_said == stood.said
            assert is_new or is_old or self._only_named(tree, new, None), self._tell(tree, new, old)
            self.model.see(tree, thread)
            self._stand(thread, checkpoint, now_said, moved=tree != old or checkpoint != stood.checkpoint)
            return
        checkpoint, now_said, named = done
        tree = self.read()
        self.conflicts += len(named)
        assert now_said == said, (now_said, said)
        assert tree == new or self._only_named(tree, new, named), self._tell(tree, new, old)
        self.model.see(tree, thread)
        # Where there was nothing to do, the checkpoint has the files that it had.
        self._stand(thread, checkpoint, now_said, moved=tree != old or checkpoint != stood.checkpoint)

    # -- what is there

    def _only_named(self, tree: Tree, wanted: Tree, named: list[str] | None) -> bool:
        """Return whether each difference lies at a path that the plan named, and others have been at work."""
        different = [path for path in {*tree, *wanted} if tree.get(path) != wanted.get(path)]
        if named is None:
            # What a step did just before it was cut off may be of others.
            return self.is_cut_off or len({whose for whose, *_ in self.model.log}) > 1
        places = [str(Path(each).relative_to(self.root)) for each in named]
        return all(
            any(path == each or path.startswith(f"{each}/") or each.startswith(f"{path}/") for each in places)
            for path in different
        )

    def _tell(self, tree: Tree, new: Tree, old: Tree) -> str:
        rows = [
            f"{path}: is {tree.get(path)}, new {new.get(path)}, old {old.get(path)}"
            for path in sorted({*tree, *new, *old})
            if tree.get(path) != new.get(path)
        ]
        return "\n".join(["", *rows, "log:", *map(str, self.model.log[-12:])])

    def _remember_start(self, thread: str) -> None:
        self.model.points.setdefault(thread, [])

    def _stand(
        self, thread: str, checkpoint: str, said: list[str], *, moved: bool = True, is_whole: bool = True
    ) -> None:
        if not checkpoint:
            return
        point = Point(checkpoint, said, len(self.model.log))
        stood = self.model.stands.get(thread)
        if stood and stood.checkpoint == checkpoint and not moved:
            return
        self.model.stands[thread] = point
        points = self.model.points.setdefault(thread, [])
        # The checkpoint of a step that was cut off has the files of before it, which are not known here.
        points[:] = [each for each in points if each.checkpoint != checkpoint or not is_whole]
        if is_whole:
            points.append(point)

    # -- random things

    def _turn(self) -> list[tuple[str, dict[str, Any]]]:
        """Make the calls of one turn: a few of files, a command, or subagents that work at the same time."""
        kind = self.random.choice(["files", "command", "command", "subagents"])
        if kind == "files":
            names = self.random.sample(NAMES, self.random.randint(1, 2))
            return [self._file_call(name) for name in names]
        if kind == "command":
            return [("execute", {"command": self._command()})]
        tasks = [json.dumps({"turns": [[self._file_call(self.random.choice(NAMES[:3]))]]})]
        tasks.append(json.dumps({"turns": [[("execute", {"command": self._command()})]]}))
        return [("task", {"description": each, "subagent_type": "general-purpose"}) for each in tasks]

    def _file_call(self, name: str) -> tuple[str, dict[str, Any]]:
        if self.random.random() < 0.25:
            return "delete", {"file_path": f"/{name}"}
        return "write_file", {"file_path": f"/{name}", "content": f"tool {self.random.random()}\n"}

    def _command(self) -> str:
        one, two = self.random.sample(NAMES, 2)
        text = f"command {self.random.random()}"
        return self.random.choice(
            [
                f"echo {text} > {one}",
                f"rm -rf {one}; echo {text} > {two}",
                f"rm -rf {one}; mkdir -p {one}/n; echo {text} > {one}/n/m",
                f"mv {one} {two}",
                f"rm -rf {one}; ln -s {two} {one}",
                f"chmod 600 {one}; chmod 750 d",
                f"cp -p {one} {two}; touch -d 2001-01-01 {two}",
                f"mkdir -p {one}; echo {text} >> {one}/log",
                f"echo {text} > {one} & sleep 0.02; wait; echo {text} > {two}",
            ]
        )

    def _change(self, name: str, text: str) -> None:
        path = self.root / name
        try:
            if self.random.random() < 0.3:
                if path.is_dir() and not path.is_symlink():
                    if not any(each.name == ".git" for each in path.rglob(".git")):
                        shutil.rmtree(path)
                else:
                    path.unlink()
            else:
                path.write_text(text)
        except OSError:
            (self.root / f"p{self.random.randint(0, 3)}").write_text(text)
