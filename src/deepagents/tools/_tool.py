"""Make LangChain tools of specs and messages of what they return, and find the names of any tools."""

# Annotations here are objects, not text: LangChain resolves those of a tool's functions at every call.

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from types import new_class
from typing import Any, Final, Literal, TypeAlias, cast

from langchain.tools import InjectedToolArg, ToolRuntime
from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import StructuredTool
from langchain_core.tools.base import ArgsSchema
from langgraph.types import Command
from pydantic import BaseModel, ConfigDict, Field, InstanceOf
from pydantic.fields import FieldInfo

from deepagents._async import Coro, arun, run
from deepagents._paths import CommandPaths, normalise
from deepagents._values import field, frozenclass, replace, valueclass
from deepagents.backends.capabilities import Capabilities
from deepagents.backends.filedata import looks_binary
from deepagents.backends.handle import FileCalls
from deepagents.errors import BackendError, ErrorCode, ToolFailure
from deepagents.permissions import FilesystemOperation
from deepagents.tools._command_events import CommandEvents
from deepagents.tools._missing import SAME_NAME, describe_instead
from deepagents.tools._offered import if_offered, offered_names
from deepagents.tools._versions import FileVersions

CHARACTERS_PER_TOKEN: Final = 4
_RESULT_TOKENS: Final = 20_000
_SEARCH: Final = ", or search it with grep"
READ_ON: Final = f"Read it in parts with read_file, for example with offset=0 and limit=100{_SEARCH}."
_NOT_TEXT: Final = "It holds what is not text, so read_file cannot show it in parts; a command can."

Runtime: TypeAlias = ToolRuntime[Any, Any]
Content: TypeAlias = str | list[str | dict[Any, Any]]
Answer: TypeAlias = ToolMessage | Command[Any]
_Runtime: TypeAlias = Runtime | None
"""Made once: annotations of the functions of a tool are worked out whenever an agent is built."""
Part: TypeAlias = "tuple[ToolSpec, Mapping[str, Any]]"
Effect: TypeAlias = Literal["read", "search", "write", "delete", "run"]


@valueclass
class ToolOutput:
    """The output of a tool: what the model reads, and what is left for programs.

    Args:
        content: what the model reads.
        artifact: for programs; the model does not see it.
        extra: goes into the `additional_kwargs` of the message.
        update: further state keys to update; its messages come after the result.
        extra_message: content for a message of its own, where a tool's message could not carry it.
        code: marks a failure whose `content` is already worded for the model.
    """

    content: Content
    artifact: Any = None
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])
    update: Mapping[str, Any] | None = None
    extra_message: Content | None = None
    code: ErrorCode | None = None


@frozenclass
class ToolSpec:
    """One tool: what the model reads about it, its code, and what other features need to know of it.

    A feature that treats file tools in a special way asks these facts and has no list of names of its own,
    so a new tool states them once and is treated right everywhere.

    Args:
        name: what the model calls.
        description: what the model reads.
        args: its arguments.
        run: its code; called with what the tool works with, and with the arguments.
        effect: what it does to files; `None` where it has nothing to do with them.
        path_argument: the argument that holds the path.
        offload_result: whether a large result may move to a file; `False` for one that bounds itself.
        clipped_arguments: long texts that may be cut from old calls, because the file holds them.
        summary_arguments: what a person reads of a call in one line.
        result_unit: what one line of its result is, so that a person reads "3 paths" instead of them.
        about_background: whether it is about commands in the background.
        creates_files: whether it makes a file that is not there.
        strict: whether a call with an argument that it does not take is refused: passing over `pattern=` or
            `mode="append"` would destroy what that was to spare.
        shows_delegated_work: whether its result tells of other agents' work, who may have changed any file.
        split: finds the calls of other tools, on one path each, that a call of several paths amounts to.
        instead_of: tools whose place it takes; where a person is asked about these, they are about it too.
        paths: translates the paths that the model writes into those of the backend.
        find_question: says why a person must be asked before it runs with these arguments; `""`: no need.
    """

    name: str
    description: str
    args: type[BaseModel]
    run: Callable[..., Coro[ToolOutput]]
    effect: Effect | None = None
    path_argument: str | None = None
    offload_result: bool = True
    clipped_arguments: tuple[str, ...] = ()
    summary_arguments: tuple[str, ...] = ()
    result_unit: str | None = None
    about_background: bool = False
    creates_files: bool = False
    strict: bool = False
    shows_delegated_work: bool = False
    split: Callable[[Mapping[str, Any]], Sequence[Part]] | None = None
    instead_of: tuple[str, ...] = ()
    paths: CommandPaths = CommandPaths()
    find_question: Callable[[Mapping[str, Any]], str] | None = None

    @property
    def changes_files(self) -> bool:
        """True when it writes or deletes."""
        return self.effect in ("write", "delete")

    @property
    def asks_by_default(self) -> bool:
        """True when a person is asked before it runs, where nothing else was chosen."""
        return self.changes_files or self.effect == "run"

    @property
    def needs(self) -> Literal["execute", "delete", "background"] | None:
        """The capability that a backend needs, beyond what all have."""
        if self.about_background:
            return "background"
        return "execute" if self.effect == "run" else "delete" if self.effect == "delete" else None

    def is_possible(self, can: Capabilities) -> bool:
        """Return whether a backend with these capabilities can serve it."""
        return self.needs is None or bool(getattr(can, self.needs))

    @property
    def operation(self) -> FilesystemOperation | None:
        """Which rules about paths bind it, if any."""
        if self.path_argument is None and self.split is None:
            return None
        return "write" if self.changes_files else "read"

    def parts(self, arguments: Mapping[str, Any]) -> Sequence[Part]:
        """Return the calls on one path each that a call amounts to: for most tools, itself."""
        if self.split is None:
            return [(self, arguments)]
        return [(replace(spec, paths=self.paths), given) for spec, given in self.split(arguments)]

    def paths_in(self, arguments: Mapping[str, Any]) -> list[str]:
        """Return the paths that a call names, as `path_in` does for one."""
        found = (spec.path_in(given) for spec, given in self.parts(arguments))
        return list(dict.fromkeys(path for path in found if path is not None))

    def path_in(self, arguments: Mapping[str, Any]) -> str | None:
        """Return the path that a call names, normalised; `None` where it names none, or none that can be.

        It is the backend's own, whichever form the model chose. A search without a path starts at the root.
        """
        path = arguments.get(self.path_argument) if self.path_argument else None
        if path is None and self.effect == "search":
            return "/"
        try:
            return normalise(self.paths.own(path)) if isinstance(path, str) else None
        except BackendError:
            return None

    def translate(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments of a call with the backend's own path.

        Raises:
            BackendError: `invalid_path`, for one that the backend does not have.
        """
        at = self.path_argument
        if at is None or arguments.get(at) is None:
            return arguments
        return {**arguments, at: self.paths.own(arguments[at])}


@valueclass
class ToolLimits:
    """Limits of one tool call: what it may return or take. Tokens are counted as four characters each."""

    result_tokens: int | None = _RESULT_TOKENS
    grep_matches: int | None = 1000
    execute_seconds: int = 3600

    @property
    def result_characters(self) -> int | None:
        """The most characters of a result; `None` for any number."""
        return self.result_tokens * CHARACTERS_PER_TOKEN if self.result_tokens else None

    @property
    def listing_characters(self) -> int:
        """The most characters of a list, which has a bound even where other results have none."""
        return self.result_characters or _RESULT_TOKENS * CHARACTERS_PER_TOKEN


@valueclass
class ToolContext:
    """The files, what is known of them, and the limits that hold for one call.

    `paths` translates what the model reads: every path that a tool shows goes through `paths.show`.
    """

    files: FileCalls
    versions: FileVersions
    limits: ToolLimits
    read_format: str = "numbered"
    call_id: str = ""
    paths: CommandPaths = CommandPaths()
    commands: CommandEvents = field(default_factory=CommandEvents)


class SpecTool(StructuredTool):
    """The LangChain tool of a spec, from which other features get its facts."""

    spec: InstanceOf[ToolSpec] = Field(exclude=True, repr=False)

    @property
    def tool_call_schema(self) -> ArgsSchema:
        """The schema that a model is given, shared by all tools that are alike."""
        args: Any = self.args_schema
        return _call_schema(self.name, self.description, args)

    # LangChain's own `_run` takes a `config`, for which the type hints of `func` are resolved at each call.
    def _run(self, *args: Any, **kwargs: Any) -> Any:
        assert self.func is not None
        return self.func(*args, **kwargs)

    async def _arun(self, *args: Any, **kwargs: Any) -> Any:
        assert self.coroutine is not None
        return await self.coroutine(*args, **kwargs)


# LangChain makes such a class for each tool object, with validator and schema: 0.7 ms each, for all tools of
# each new agent. This one takes its schema from its arguments, and gets a validator when one is needed.
@lru_cache(maxsize=256)
def _call_schema(name: str, description: str, args: type[BaseModel]) -> ArgsSchema:
    if any(map(_is_injected, args.model_fields.values())):
        return StructuredTool(name=name, description=description, args_schema=args).tool_call_schema
    schema = {**args.model_json_schema(), "title": name, "description": description}

    def render(cls: type[BaseModel], *given: Any, **options: Any) -> dict[str, Any]:
        usual: Any = super(made, cls)
        return usual.model_json_schema(*given, **options) if given or options else schema

    body = {
        "__doc__": description,
        "__module__": args.__module__,
        "model_config": ConfigDict(defer_build=True),
        "model_json_schema": classmethod(render),
    }
    made: type[BaseModel] = new_class(name, (args,), {}, lambda namespace: namespace.update(body))
    return made


def _is_injected(field: FieldInfo) -> bool:
    """Return whether LangGraph gives an argument to a tool, and no model does."""
    kinds = (mark if isinstance(mark, type) else type(mark) for mark in field.metadata)
    return any(issubclass(kind, InjectedToolArg) for kind in kinds)


def make_tool(spec: ToolSpec, open_context: Callable[[Any], Any], description: str | None = None) -> SpecTool:
    """Build the LangChain tool of a spec; `open_context` makes what its code works with during one call."""

    def blocking(runtime: _Runtime = None, **arguments: Any) -> Answer:
        return run(_answer(spec, open_context, runtime, arguments))

    async def awaiting(runtime: _Runtime = None, **arguments: Any) -> Answer:
        return await arun(_answer(spec, open_context, runtime, arguments))

    for made in (blocking, awaiting):
        # LangGraph looks into every annotation of a tool, each time an agent is built, for what it injects.
        made.__annotations__ = {"runtime": ToolRuntime}
    return SpecTool(
        name=spec.name,
        description=description or spec.description,
        args_schema=spec.args,
        func=blocking,
        coroutine=awaiting,
        spec=spec,
    )


async def _answer(
    spec: ToolSpec, open_context: Callable[[Any], Any], runtime: Runtime | None, arguments: dict[str, Any]
) -> Answer:
    call_id = (runtime and runtime.tool_call_id) or ""
    try:
        # Before anything is asked about the path: rules know the backend's own paths alone.
        arguments = spec.translate(arguments)
        output = await spec.run(open_context(runtime), **arguments)
    # Only these: anything else is a mistake in code and must reach the developer.
    except (ToolFailure, BackendError) as failure:
        text = failure.text
        for path in spec.paths_in(arguments):
            text = spec.paths.reword(text, path)
        if failure.code == "file_not_found":
            text = await _point_on(text, spec, arguments, open_context(runtime), runtime)
        return failure_message(spec.name, call_id, failure.code, text)
    message = ToolMessage(
        content=output.content,
        name=spec.name,
        tool_call_id=call_id,
        artifact=output.artifact,
        status="error" if output.code else "success",
        additional_kwargs={**output.extra, **({"error_code": output.code} if output.code else {})},
    )
    messages: list[BaseMessage] = [message, *(output.update or {}).get("messages", ())]
    if output.extra_message is not None:
        marks = {
            "read_file_media_result": True,
            "read_file_tool_call_id": call_id,
            "read_file_path": output.extra.get("read_file_path"),
        }
        # Some providers take pictures only in a message of the user.
        messages.append(HumanMessage(content=output.extra_message, additional_kwargs=marks))
    elif output.update is None:
        return message
    return Command(update={**(output.update or {}), "messages": messages})


async def _point_on(text: str, spec: ToolSpec, arguments: dict[str, Any], context: Any, runtime: Any) -> str:
    """Add to a failure what is there instead of the path, or how a file comes to be there."""
    paths = spec.paths_in(arguments)
    path = next((each for each in paths if len(paths) == 1 or f"'{spec.paths.show(each)}'" in text), None)
    if path is None or not isinstance(context, ToolContext):
        return text
    files = context.files
    instead = await describe_instead(files, context.paths, path)
    offered = [each for each in offered_tools(runtime) if isinstance(each, SpecTool)]
    creator = next((each.name for each in offered if each.spec.creates_files), "")
    wants_file = spec.effect in ("read", "write")
    may_write = files.rights is None or files.rights.rules.decide("write", path) != "deny"
    makes_it = f"It does not exist yet; {creator} creates it." if creator and wants_file and may_write else ""
    # Where a file of that name is, making another would most likely be a mistake.
    sentences = [instead] if instead.startswith(SAME_NAME) else [makes_it, instead]
    return " ".join([f"{text.removesuffix('.')}.", *filter(None, sentences)])


def failure_message(tool: str, call_id: str, code: ErrorCode, text: str) -> ToolMessage:
    """Return what the model reads about a failure, with the code for programs."""
    return ToolMessage(
        content=failure_text(code, text),
        name=tool,
        tool_call_id=call_id,
        status="error",
        additional_kwargs={"error_code": code},
    )


def failure_text(code: ErrorCode, text: str) -> str:
    """Phrase a failure for the model: one prefix, the sentence, the code."""
    sentence = text if text.startswith("Error") else f"Error: {text}"
    return f"{sentence} [{code}]"


def artifact_name(call_id: str, mark: str) -> str:
    """Make a file name for what a call returned: readable, and unique by its mark."""
    readable = re.sub(r"[^A-Za-z0-9_-]", "_", call_id)[:60]
    return f"{readable}-{mark}" if readable else mark


def read_on(text: str) -> str:
    """Explain how to read on in a file that holds such text."""
    how = READ_ON.replace(_SEARCH, if_offered("grep", _SEARCH))
    try:
        return _NOT_TEXT if looks_binary(text.encode()) else how
    except UnicodeEncodeError:
        return _NOT_TEXT


def tool_name(tool: Any) -> str | None:
    """Return the name of a tool, be it an object, a provider's dict or an OpenAI-style dict."""
    if not isinstance(tool, dict):
        return getattr(tool, "name", None)
    described = cast("dict[str, Any]", tool)
    inside = described.get("function")
    name = cast("dict[str, Any]", inside).get("name") if isinstance(inside, dict) else described.get("name")
    return name if isinstance(name, str) else None


def offered_tools(runtime: Any) -> Sequence[Any]:
    """Return the tools of a graph that the model was offered; all, where no middleware notes that."""
    tools, names = getattr(runtime, "tools", ()), offered_names()
    return tools if names is None else [each for each in tools if tool_name(each) in names]


def names_of_tools(*given: Iterable[Any]) -> frozenset[str]:
    """Return the names of all tools of these lists, functions by their own names."""
    names = {
        # A layer asks this at each request: most are objects, whose name costs no call of ours.
        getattr(each, "name", None) or tool_name(each) or getattr(each, "__name__", None)
        for tools in given
        for each in tools
    }
    return frozenset(filter(None, names))
