"""Say what to run after a change, run it in the background, and read how it ended."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil, inf
from shlex import quote
from typing import Final

from deepagents._async import BackgroundCode, run, start_thread
from deepagents._globs import InvalidGlobPatternError, compile_glob
from deepagents._text import escape_controls, split_lines, truncate
from deepagents._values import frozenclass, valueclass
from deepagents.backends.handle import FileCalls
from deepagents.errors import ConfigError, ToolFailure
from deepagents.middleware.edit_checks.complaints import Complaint, read_complaints

FILES: Final = "{files}"
GRACE: Final = 5.0
"""Seconds beyond the time of a command in which a backend may still answer."""
_SECONDS, _FORMAT_SECONDS = 60.0, 5.0
_MOST_PRINTED: Final = 90_000
"""Bytes: what more is, backends leave out, and lists with holes cannot be compared."""
_NOT_FOUND: Final = 127
_BROKEN: Final = 124
"""From here on exit codes stand for what ended too late, could not start, or was killed by a signal."""
_LONGEST: Final = 200
_SCRIPT: Final = """\
PATH="$PWD/.venv/bin:$PWD/node_modules/.bin:$PATH" NO_COLOR=1
export PATH NO_COLOR
exec 5>&1
code=$( { { (
%s
) 4>&- 5>&- </dev/null; echo "$?" >&4; } 2>&1 | head -c %d >&5; } 4>&1 )
exit "$code"
"""


@frozenclass
class EditCheck:
    """A command that checks files, or formats them.

    Args:
        command: a line for the shell, run where commands of the agent start. Programs in `.venv/bin` and
            `node_modules/.bin` there go before others of the same name.
        files: patterns, as of `glob`: without a change of such a file it does not run. By default any change
            counts.
        formats: whether it changes the files that `{files}` in the command stands for.
        seconds: how long it may take; by default 60, and 5 where it formats.

    Raises:
        ConfigError: for an empty command, a wrong pattern, seconds that are not positive, and where `formats`
            and `{files}` do not go together.
    """

    command: str
    files: Sequence[str] = ()
    formats: bool = False
    seconds: float | None = None

    def __post_init__(self) -> None:
        if not self.command.strip():
            raise ConfigError(f"a check needs a command, got {self.command!r}")
        if self.seconds is not None and not 0 < self.seconds < inf:
            raise ConfigError(f"seconds of {self.command!r} must be positive, got {self.seconds!r}")
        if isinstance(self.files, str):
            raise ConfigError(f"files of {self.command!r} must be a list; write [{self.files!r}]")
        if self.formats and FILES not in self.command:
            raise ConfigError(f"{self.command!r} formats, so {FILES} must stand for the files to change")
        if not self.formats and FILES in self.command:
            raise ConfigError(
                f"{self.command!r} has {FILES}, which only a formatter has: a check is compared with the one "
                "before the changes, so it looks at all files; leave it out, or add formats=True"
            )
        for each in self.files:
            try:
                compile_glob(each)
            except InvalidGlobPatternError as error:
                raise ConfigError(f"files of {self.command!r}: {error}") from error

    @property
    def time_limit(self) -> float:
        """How many seconds it may take."""
        return self.seconds or (_FORMAT_SECONDS if self.formats else _SECONDS)

    def covers(self, path: str, root: str | None) -> bool:
        """Return whether a change of a file concerns it; patterns start at the root."""
        below = path.removeprefix(f"{root.rstrip('/')}/") if root else path
        return not self.files or any(compile_glob(each)(below.lstrip("/")) for each in self.files)

    def script(self, paths: Iterable[str] = ()) -> str:
        """Return the lines for the shell, with what it prints bounded; a flood ends the program."""
        command = self.command.replace(FILES, " ".join(map(quote, paths)))
        return _SCRIPT % (command, _MOST_PRINTED)


@valueclass
class Outcome:
    """What a run found, or the problem that kept it from looking."""

    complaints: Sequence[Complaint] = ()
    problem: str | None = None
    is_missing: bool = False


def read_outcome(exit_code: int, output: str, *, is_cut: bool) -> Outcome:
    """Read how a check ended: exit codes differ, so one that complains of something has done its work."""
    last = next((each for each in reversed(split_lines(output)) if each.strip()), "")
    detail = truncate(escape_controls(last.strip()), _LONGEST)
    if is_cut or len(output.encode()) >= _MOST_PRINTED:
        return Outcome(problem=f"it printed more than {_MOST_PRINTED:,} bytes")
    if exit_code == _NOT_FOUND:
        return Outcome(problem=detail, is_missing=True)
    complaints = read_complaints(output)
    if not 0 <= exit_code < _BROKEN or (exit_code and not complaints):
        return Outcome(problem=f"it ended with exit code {exit_code}: {detail}")
    return Outcome(complaints)


class CheckRun:
    """One run of a check in the background, begun after so many changes; no step waits for it."""

    def __init__(self, files: FileCalls, check: EditCheck, changes: int) -> None:
        self.changes = changes
        self._files, self._check = files, check
        self._id = ""
        self._code = BackgroundCode()
        self._outcome: Outcome | None = None

    async def start(self) -> None:
        """Start the command.

        Raises:
            ToolFailure: where the backend does not run it.
        """
        if self._files.capabilities().background:
            # It can be ended at any moment, and ends with this process.
            self._id = await self._files.start_command(self._check.script(), ceil(self._check.time_limit))
        else:
            await self._code.start(self._execute)

    async def _execute(self) -> None:
        limit = self._check.time_limit
        # Without an end it would be waited for: one that is cancelled is over too.
        outcome = Outcome(problem="it was cancelled")
        try:
            ended = (await self._files.execute(self._check.script(), ceil(limit), limit + GRACE)).response
            outcome = read_outcome(ended.exit_code or 0, ended.output, is_cut=ended.truncated)
        except ToolFailure as failure:
            outcome = Outcome(problem=failure.text)
        finally:
            self._outcome = outcome

    async def look(self, wait: float = 0) -> Outcome | None:
        """Return how it ended, `None` while it runs; wait so many seconds for that."""
        if not self._id:
            if wait and self._outcome is None:
                await self._code.wait(wait)
            return self._outcome
        try:
            status = await self._files.poll_command(self._id, 0, wait)
        except ToolFailure as failure:
            return Outcome(problem=failure.text)
        if status.exit_code is None:
            return None
        return read_outcome(status.exit_code, status.output, is_cut=status.left_out > 0)

    def drop(self) -> None:
        """End the command, without waiting for that: it may resist for a second."""
        if self._id:
            start_thread(lambda: run(self._files.stop_command(self._id)))
        else:
            self._code.drop()
