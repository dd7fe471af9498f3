"""Take a thread back to before a message of the person, and forth again: conversation, files, or both."""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal, TypeAlias

from langchain_core.runnables import RunnableConfig
from langgraph.graph import END

from deepagents.undo import FileHistory, Plan, PlanOutdated, RewindResult, UndoError
from deepagents_cli.diffs import name_in
from deepagents_cli.errors import CommandError
from deepagents_cli.session.conversation.own_commands import read_past
from deepagents_cli.session.conversation.points import Point, find_points
from deepagents_cli.session.display.file_diffs import count_changes, show_diff
from deepagents_cli.session.display.lines import count_of
from deepagents_cli.session.threads.driver import OWN_COMMAND, Driver, messages_in
from deepagents_cli.session.threads.record import Rewind
from deepagents_cli.session.turns.inbox import Inbox
from deepagents_cli.session.workplace.workplace import Workplace
from deepagents_cli.text import one_line

What: TypeAlias = Literal["both", "conversation", "files"]
_MOST_COUNTED: Final = 50
"""Messages, the last ones, whose changes are counted for a list."""
_MOST_NAMED: Final = 20
_LONGEST: Final = 40
"""Characters of a message in a list: of 80 columns, the rest is for when, and what was changed."""
_WHY_NOT_KEPT: Final = {
    "too_large": "too large to be kept",
    "special": "no ordinary file",
    "dropped": "its record is too old, and was dropped",
    "before_undo": "it was not covered before",
}


class Undo:
    """Goes back and forth in one thread, whose agent is idle."""

    def __init__(self, place: Workplace, driver: Driver, inbox: Inbox) -> None:
        self._place = place
        self._driver = driver
        self._inbox = inbox
        self._thread: str = driver.config.get("configurable", {})["thread_id"]
        self._shown: tuple[str, Plan] | None = None

    @property
    def _history(self) -> FileHistory:
        if self._place.history is None:
            raise CommandError(
                "undo is turned off in your settings (undo = false), so nothing is kept to go back to"
            )
        return self._place.history

    def note_shown(self, order: str, plan: Plan) -> None:
        """Note the plan that the person sees, and the order by which it is carried out."""
        self._shown = order, plan

    def take_shown(self, order: str) -> Plan | None:
        """Return the plan that was shown last, once, if it was shown for this order."""
        shown, self._shown = self._shown, None
        return shown[1] if shown and shown[0] == order else None

    async def points(self) -> list[Point]:
        """Return the messages that one can go back to, the first first.

        Raises:
            CommandError: where there is none.
        """
        messages = messages_in(await self._driver.read())
        found = await find_points(self._place.saver, self._thread, messages)
        if not found:
            raise CommandError("no message of yours in this session is there to go back to")
        return found

    async def find(self, number: str) -> Point:
        """Return the message with this number, which a person has typed.

        Raises:
            CommandError: where there is none.
        """
        return _find(await self.points(), number)

    async def count(self, points: Sequence[Point]) -> list[str]:
        """Say of each message how many files and lines changed until the next one."""
        ends = [*(each.before for each in points[1:]), None]
        skipped = max(len(points) - _MOST_COUNTED, 0)
        counts = ["not counted"] * skipped
        for point, end in [*zip(points, ends, strict=True)][skipped:]:
            changes = await self._history.achanges(self._driver.agent, point.before, end)
            counts.append(await to_thread(count_changes, changes))
        return counts

    async def diff(self, number: str) -> list[str]:
        """Return what was changed since the first message, or from one with a number until the next."""
        points = await self.points()
        chosen = _find(points, number) if number else points[0]
        later = [each for each in points if each.number > chosen.number]
        end = later[0].before if number and later else None
        changes = await self._history.achanges(self._driver.agent, chosen.before, end)
        return await to_thread(show_diff, changes, str(self._place.directory))

    async def plan(self, point: Point) -> Plan:
        """Find out what going back to before a message would do."""
        return await self._history.aplan(self._driver.agent, point.before)

    async def go_back(self, point: Point, plan: Plan, what: What) -> list[str]:
        """Carry out a plan for the files, the conversation or both; say what was done."""
        driver = self._driver
        earlier = messages_in(await driver.read())[: point.number - 1]
        done = await self._carry_out(plan, what, point.number)
        # What the person's own commands have printed went to the agent together with that message.
        known = {each.id for each in messages_in(await driver.read())}
        gone = [each for each in earlier if each.id not in known and read_past(each) is not None]
        await self._inbox.put_again(gone, OWN_COMMAND)
        return self._describe(done, f"Back to before message {point.number}")

    async def _carry_out(
        self, plan: Plan, what: What, message: int, *, is_forth: bool = False
    ) -> RewindResult:
        """Carry out a plan, and keep that, so that it can be taken back."""
        moves = what != "files" and plan.target.moves
        begun = Rewind(plan.rewind, plan.target.head, moves, message)
        # Kept first: once the new checkpoint is there it has happened, even if this process dies.
        self._place.record.begin_rewind(self._thread, begun, is_forth=is_forth)
        await self._place.record.flush()
        try:
            files, conversation = what != "conversation", what != "files"
            done = await self._history.arewind(
                self._driver.agent, plan, files=files, conversation=conversation
            )
        except PlanOutdated:
            # Nothing has happened, though the thread may have gone on.
            await self._end(begun, is_forth=is_forth, happened=False)
            raise
        except UndoError:
            await self.settle()
            raise
        await self._end(begun, is_forth=is_forth, happened=bool(done.rewind))
        return done

    async def settle(self) -> None:
        """Find out whether a going back that was begun, and cut off by a kill, has happened; end it."""
        found = await self._place.record.begun_rewind(self._thread)
        if found is None or self._place.history is None:
            return
        begun, is_forth = found
        with suppress(UndoError):
            await self._place.history.arecover(self._driver.agent, self._driver.config)
            if begun.moved:
                now = (await self._driver.read()).config["configurable"]["checkpoint_id"]
                happened = now != begun.checkpoint
            else:
                happened = bool((await self.plan_forth(begun)).items)
            await self._end(begun, is_forth=is_forth, happened=happened)

    async def _end(self, begun: Rewind, *, is_forth: bool, happened: bool) -> None:
        driver, record = self._driver, self._place.record
        if not happened:
            record.remove_rewind(begun)
        else:
            if begun.moved and not is_forth and (await driver.read()).next:
                # What was under way then is not to go on.
                await driver.agent.aupdate_state(driver.config, None, as_node=END)
            record.end_rewind(begun)
        await record.flush()

    async def last_rewind(self) -> Rewind:
        """Return the last going back that was not taken back.

        Raises:
            CommandError: where there is none.
        """
        last = await self._place.record.last_rewind(self._thread)
        if last is None:
            raise CommandError("this session did not go back, so there is nothing to take back")
        return last

    async def plan_forth(self, rewind: Rewind) -> Plan:
        """Find out what it would do to take a going back back."""
        config: RunnableConfig = {
            "configurable": {"thread_id": self._thread, "checkpoint_id": rewind.checkpoint}
        }
        result = RewindResult(config, config, rewind=rewind.rewind, moved=rewind.moved)
        return await self._history.aplan(self._driver.agent, result)

    async def go_forth(self, rewind: Rewind, plan: Plan) -> list[str]:
        """Take a going back back; say what was done."""
        messages = messages_in(await self._driver.read())
        record = self._place.record
        # Messages came since, which would be lost.
        keeps = plan.target.moves and len(messages) >= rewind.message
        if keeps:
            done = await self._carry_out(plan, "both", rewind.message, is_forth=True)
        else:
            done = await self._history.arewind(self._driver.agent, plan)
        record.remove_rewind(rewind)
        await record.flush()
        how = f"Forth again, to where you went back to before message {rewind.message}"
        more = ["/redo brings back what was said since."] if keeps else []
        return [*self._describe(done, how), *more]

    def _describe(self, done: RewindResult, how: str) -> list[str]:
        """Say what was done, a sentence each."""
        directory = self._place.directory
        if done.rewind:
            files = [count_of(len(done.changed), "file")] if done.changed else []
            sentences = [f"{how}: {' and '.join([*(['the conversation'] if done.moved else []), *files])}."]
        else:
            sentences = ["Nothing is different there, so nothing has changed."]
        if done.kept:
            sentences.append(f"Stays as it was: {_name_all(done.kept, directory)}.")
        if done.failed:
            changed = [f"Changed: {_name_all(done.changed, directory)}."] if done.changed else []
            failed = f"Could not be changed: {_name_all(done.failed, directory)}"
            sentences += [*changed, f"{failed}; to try again, go forth and back once more."]
        return sentences


def _find(points: Sequence[Point], number: str) -> Point:
    found = next((each for each in points if str(each.number) == number), None)
    if found is None:
        known = ", ".join(str(each.number) for each in points[-_MOST_NAMED:])
        raise CommandError(f"{number!r} is not the number of a message of yours; these are {known}")
    return found


def quote(point: Point) -> str:
    """Name a message by its number, its time and its beginning."""
    return f"{point.number}, of {point.at:%Y-%m-%d %H:%M}: {short(point)}"


def short(point: Point) -> str:
    """Return the beginning of a message."""
    text = one_line(point.text)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def describe_plan(plan: Plan, what: What, directory: Path) -> list[str]:
    """Say what a plan would do to the files, a line of Markdown each."""
    if what == "conversation":
        return ["- The files stay as they are."]
    groups: dict[str, list[Path]] = {}
    for each in plan.restored:
        groups.setdefault("Gets back what it held", []).append(each.path)
    for each in plan.removed:
        groups.setdefault("Goes away, since it was made later", []).append(each.path)
    for each in (*plan.conflicts, *plan.not_kept):
        why = _WHY_NOT_KEPT.get(each.reason, each.reason)
        groups.setdefault(f"Stays as it is ({one_line(why)})", []).append(each.path)
    lines = [f"- {how}: {_name_all(paths, directory)}" for how, paths in groups.items()]
    return [*(lines or ["- No file changes."]), *(f"- Besides, {one_line(each)}." for each in plan.uncovered)]


def _name_all(paths: Sequence[Path], directory: Path) -> str:
    names = [f"`{one_line(name_in(str(each), str(directory)))}`" for each in paths[:_MOST_NAMED]]
    more = [f"{len(paths) - _MOST_NAMED:,} more"] if len(paths) > _MOST_NAMED else []
    return ", ".join([*names, *more])
