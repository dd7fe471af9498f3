"""Run checks while the model goes on, and show it at its next step what is new."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from math import ceil
from re import sub
from typing import Annotated, Any, Final, NotRequired, Self, cast
from uuid import uuid4

from langchain.agents import AgentState
from langchain.agents.middleware import hook_config
from langchain.agents.middleware.types import PrivateStateAttr, ToolCallRequest
from langchain_core.messages import HumanMessage, ToolMessage

from deepagents._state.runtime import write_channel, writes_undone_on_failure
from deepagents._state.schema import NOT_SHARED
from deepagents.backends.guard import CallRights
from deepagents.backends.handle import BACKEND_SECONDS, BackendHandle, FileCalls, open_backend
from deepagents.backends.protocol import BACKEND_TYPES
from deepagents.errors import ConfigError, ToolFailure
from deepagents.middleware._base import BaseMiddleware, inner
from deepagents.middleware._history import ends_at_limit
from deepagents.middleware._requests import Request, Response, ToolResult, with_changes
from deepagents.middleware.edit_checks.commands import GRACE, EditCheck
from deepagents.middleware.edit_checks.turn import News, Turn
from deepagents.permissions import Rules
from deepagents.tools import ToolSpec
from deepagents.tools._tool import SpecTool
from deepagents.tools._versions import FileVersions

_SOURCE: Final = "edit_checks"
_TURN: Final = "edit_checks_turn"
_MOST_TURNS: Final = 256
_MOST_SENT_BACK: Final = 2
_MOST_LOOKED_AT: Final = 50
_TIMED_OUT, _NOT_FOUND = 124, 127


class EditCheckState(AgentState[Any]):
    """Names the turn; what is known in it stays in this process, and is found out anew elsewhere."""

    edit_checks_turn: NotRequired[Annotated[str, PrivateStateAttr, NOT_SHARED]]


class EditCheckMiddleware(BaseMiddleware):
    """Check files after the agent changed them, and show the model at its next step which complaints are new.

    The checks run with the rights of the agent's own commands, while the model goes on: once when a turn
    begins, to know what was there before, and after each step that changed files. A check that fails, takes
    too long or prints too much is named once, and is off until the next turn.

    Args:
        checks: by name, a command or an `EditCheck`.
        backend: where the commands run, which find the files at the same paths as commands of the agent; in
            `create_deep_agent` by default the agent's own.
        patience: seconds that the end of a turn waits for checks that still run. Where they find something
            new, the model goes on, at most twice.
        warn: gets a sentence for people why a check is off.

    Raises:
        ConfigError: for no checks, a check that cannot be, and a negative `patience`.
    """

    state_schema: type[Any] = EditCheckState

    def __init__(
        self,
        checks: Mapping[str, str | EditCheck],
        *,
        backend: BACKEND_TYPES | None = None,
        patience: float = 0,
        warn: Callable[[str], None] | None = None,
    ) -> None:
        super().__init__()
        if not checks:
            raise ConfigError("checks is empty; name a command, as in {'ruff': 'ruff check'}")
        if patience < 0:
            raise ConfigError(f"patience must not be negative, got {patience!r}")
        self.checks = {
            name: EditCheck(each) if isinstance(each, str) else each for name, each in checks.items()
        }
        self.patience = patience
        self.tools = []
        self._given_warn = warn
        self._warned: set[str] = set()
        self._turns: OrderedDict[str, Turn] = OrderedDict()
        self._rules = Rules()
        self._agent = self._shell = None if backend is None else open_backend(backend, BACKEND_SECONDS)
        self._require_commands()

    def in_agent(self, backend: BACKEND_TYPES, rules: Rules) -> Self:
        """Return a copy for an agent with a backend and rules.

        Raises:
            ConfigError: for a backend that runs no commands.
        """
        clone = copy(self)
        clone.connect(backend, rules)
        return clone

    def connect(self, backend: BACKEND_TYPES, rules: Rules) -> None:
        """Work for an agent with a backend and rules.

        Raises:
            ConfigError: for a backend that runs no commands.
        """
        self._rules = rules
        self._agent = open_backend(backend, BACKEND_SECONDS)
        self._shell = self._shell or self._agent
        self._require_commands()

    def _require_commands(self) -> None:
        shell = self._shell
        if shell is None or shell.is_factory or shell.capabilities().execute:
            return
        raise ConfigError(
            "EditCheckMiddleware runs commands, and this backend runs none; use one such as LocalSandbox"
        )

    def _files(self, runtime: Any) -> FileCalls:
        """Return the files of the agent, which may be on another backend than the commands."""
        return self._open(self._agent, runtime)

    def _commands(self, runtime: Any) -> FileCalls:
        return self._open(self._shell, runtime)

    def _open(self, handle: BackendHandle | None, runtime: Any) -> FileCalls:
        if handle is None:
            raise ConfigError("EditCheckMiddleware needs backend= outside of create_deep_agent")
        return handle.files(runtime, CallRights(self._rules) if self._rules.given else None)

    def _shown(self, runtime: Any) -> Callable[[str], str]:
        """Return what names a file of the agent as commands do."""
        return self._files(runtime).capabilities().command_paths.show

    def _warn(self, sentence: str) -> None:
        # At each turn it would be the same, but for the number of a process.
        known = sub(r"\d+", "", sentence)
        if self._given_warn and known not in self._warned:
            self._warned.add(known)
            self._given_warn(sentence)

    def _find_turn(self, state: Any) -> Turn | None:
        """Return the turn of a state, whose beginning another process may have seen; `None` before any."""
        name = cast("Mapping[str, Any]", state).get(_TURN)
        return None if name is None else self._turns.get(name) or self._open_turn(name)

    def _open_turn(self, name: str) -> Turn:
        turn = self._turns[name] = Turn(self.checks, self._warn)
        while len(self._turns) > _MOST_TURNS:
            self._turns.popitem(last=False)[1].stop()
        return turn

    def _close_turn(self, state: Mapping[str, Any]) -> None:
        if turn := self._turns.pop(state.get(_TURN, ""), None):
            turn.stop()

    async def _before_agent(self, state: Mapping[str, Any], runtime: Any) -> dict[str, Any] | None:
        """Begin a turn: look at what is there while the model thinks for the first time."""
        self._close_turn(state)
        name = str(uuid4())
        await self._open_turn(name).start(self._commands(runtime))
        return {_TURN: name}

    async def _around_model(self, request: Request, handler: Callable[[Request], Response]) -> Response:
        turn = self._find_turn(request.state)
        if turn is None:
            return await inner(handler, request)
        await turn.settle()
        news = turn.find_news(self._shown(request.runtime))
        await turn.start(self._commands(request.runtime))
        if news is None:
            return await inner(handler, request)
        message = _make_message(news, request.runtime)
        # If the call fails, the message is taken back, and a resumed run shows it.
        with writes_undone_on_failure():
            write_channel("messages", [message])
            response = await inner(handler, with_changes(request, messages=[*request.messages, message]))
        news.keep()
        return response

    async def _around_tool(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolResult]
    ) -> ToolResult:
        turn, spec = self._find_turn(request.state), _spec_of(request.tool)
        if turn is None or spec is None or not _may_change(spec):
            return await inner(handler, request)
        torn, happened = await turn.begin_change(), False
        try:
            result = await inner(handler, request)
            if not (isinstance(result, ToolMessage) and result.status == "error"):
                arguments, runtime = request.tool_call["args"], cast(Any, request).runtime
                happened = await self._note(turn, spec, arguments, self._files(runtime))
                if spec.changes_files and isinstance(result, ToolMessage):
                    result = await self._format(turn, spec, arguments, runtime, result)
        finally:
            turn.end_change(torn, happened=happened)
        return result

    async def _note(self, turn: Turn, spec: ToolSpec, arguments: Mapping[str, Any], files: FileCalls) -> bool:
        """Note what a call changed; return whether it changed anything, as far as that is cheap to know."""
        if spec.changes_files:
            turn.files |= {path: FileVersions().recall(path) for path in spec.paths_in(arguments)}
            return True
        if spec.shows_delegated_work:
            turn.delegated = True
            return True
        can = files.capabilities()
        # A command may change any file. Those on which the agent works are looked at, where that is cheap.
        if not (can.host or can.in_process):
            return False
        known = list(turn.files)[-_MOST_LOOKED_AT:]
        now = {path: await _version(files, path) for path in known}
        changed = any(now[path] != turn.files[path] for path in known)
        turn.files |= now
        return changed

    async def _format(
        self, turn: Turn, spec: ToolSpec, arguments: Mapping[str, Any], runtime: Any, result: ToolMessage
    ) -> ToolMessage:
        """Format the files that a call wrote, before anything reads them."""
        parts = spec.parts(arguments)
        written = [path for part, given in parts if part.effect == "write" and (path := part.path_in(given))]
        root = self._files(runtime).capabilities().working_directory
        for name, check in self.checks.items():
            paths = [path for path in written if check.formats and check.covers(path, root)]
            if paths and name not in turn.off:
                changed = await self._run_formatter(turn, name, paths, runtime)
                shown = ", ".join(map(self._shown(runtime), changed))
                line = f"[{name} then formatted {shown}: its lines may differ from what you wrote]"
                result = _with_line(result, line) if changed else result
        return result

    async def _run_formatter(self, turn: Turn, name: str, paths: Sequence[str], runtime: Any) -> list[str]:
        """Run a formatter; return the files that it changed, whose new versions the agent may build on."""
        files, check = self._files(runtime), self.checks[name]
        before = {path: await _version(files, path) for path in paths}
        script, limit = check.script(map(self._shown(runtime), paths)), check.time_limit
        try:
            done = await self._commands(runtime).execute(script, ceil(limit), limit + GRACE)
        except ToolFailure as failure:
            turn.switch_off(name, failure.text)
            return []
        if done.response.exit_code == _NOT_FOUND:
            turn.switch_off(name, "there is no such program", is_news=False)
        elif done.response.exit_code == _TIMED_OUT:
            turn.switch_off(name, f"it took longer than {limit:g} seconds")
        now = {path: await _version(files, path) for path in paths}
        changed = [path for path in paths if now[path] != before[path]]
        for path in changed:
            # What somebody else changed before that, the agent has not seen.
            if FileVersions().recall(path) == before[path]:
                FileVersions().remember(path, now[path])
        turn.files |= now
        return changed

    @hook_config(can_jump_to=["model"])
    async def _after_agent(self, state: Mapping[str, Any], runtime: Any) -> dict[str, Any] | None:
        """End a turn, unless the checks of its last change have found something that the model can mend."""
        turn, messages = self._find_turn(state), state["messages"]
        if turn and turn.has_changes and turn.sent_back < _MOST_SENT_BACK and not ends_at_limit(messages):
            await turn.settle(self.patience)
            news = turn.find_news(self._shown(runtime))
            if news and news.summary:
                turn.sent_back += 1
                news.keep()
                return {"messages": [_make_message(news, runtime)], "jump_to": "model"}
        self._close_turn(state)
        return None


def _spec_of(tool: Any) -> ToolSpec | None:
    return tool.spec if isinstance(tool, SpecTool) else None


def _may_change(spec: ToolSpec) -> bool:
    runs = spec.effect == "run" and not spec.about_background
    return spec.changes_files or spec.shows_delegated_work or runs


def _make_message(news: News, runtime: Any) -> HumanMessage:
    if news.summary:
        runtime.stream_writer({"type": _SOURCE, "new": news.summary})
    return HumanMessage(news.text, id=str(uuid4()), additional_kwargs={"lc_source": _SOURCE})


def _with_line(result: ToolMessage, line: str) -> ToolMessage:
    if not isinstance(result.content, str):
        return result
    return result.model_copy(update={"content": f"{result.content}\n{line}"})


async def _version(files: FileCalls, path: str) -> str | None:
    try:
        return (await files.read(path, 0, 1)).version
    except ToolFailure:
        return None
