"""Define the state of the file tools: the files, and the version of each that this agent last saw."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired

from langchain.agents import AgentState
from langchain.agents.middleware.types import PrivateStateAttr

from deepagents._state.channels import GrowingChannel, InheritedChannel, run_memory
from deepagents._state.schema import NOT_SHARED, merge_latest
from deepagents.backends.results import FileData
from deepagents.backends.state import reduce_files
from deepagents.tools._command_events import KnownCommand

Versions = Annotated[dict[str, str], GrowingChannel(merge_latest), PrivateStateAttr]
Commands = Annotated[dict[str, KnownCommand], GrowingChannel(merge_latest), PrivateStateAttr, NOT_SHARED]
Kept = Annotated[dict[str, FileData], InheritedChannel(reduce_files)]
Links = Annotated[dict[str, list[str]], PrivateStateAttr, NOT_SHARED]
Asked = Annotated[list[str] | None, PrivateStateAttr, NOT_SHARED]
Payloads = Annotated[dict[str, str], run_memory(), PrivateStateAttr, NOT_SHARED]


class FilesElsewhereState(AgentState[Any]):
    """For files that live outside the graph's state."""

    file_versions: NotRequired[Versions]
    background_commands: NotRequired[Commands]
    file_links: NotRequired[Links]
    file_calls_asked: NotRequired[Asked]
    _blob_payloads: NotRequired[Payloads]


class FilesystemState(FilesElsewhereState):
    """For files that live in the graph's state."""

    files: NotRequired[Kept]
