"""Media out of state: files named by digest hold the bytes, state holds the name, requests hold both."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel

from deepagents import FilesystemMiddleware, create_deep_agent
from deepagents.backends import CompositeBackend, FilesystemBackend, StateBackend
from deepagents.backends.handle import open_backend
from deepagents.backends.protocol import FileDownloadResponse, FileUploadResponse
from deepagents.middleware.filesystem.blobs import Blobs
from deepagents.testing import ScriptedModel, call
from deepagents.tools import ToolSpec, file_tools
from deepagents.tools._tool import ToolOutput
from tests.conftest import CallMode
from tests.tools.films import film

DATA = b"\x89PNG\r\n\x1a\n" + b"\0" * 3000
DIGEST = hashlib.sha256(DATA).hexdigest()
ENCODED = base64.b64encode(DATA).decode()
PICTURE = {"type": "image", "base64": ENCODED, "mime_type": "image/png"}
NAMED = {"type": "image", "deepagents_blob": DIGEST, "mime_type": "image/png"}
THREAD: Any = {"configurable": {"thread_id": "one"}}


class Disk(FilesystemBackend):
    """Files on disk that count what is asked of them, and may fail to take or give any."""

    takes = gives = True
    uploads = downloads = 0

    def upload_files(self, files: list[tuple[str, bytes]], **options: Any) -> list[FileUploadResponse]:
        self.uploads += 1
        if not self.takes:
            return [FileUploadResponse(path, "permission_denied") for path, _ in files]
        return super().upload_files(files, **options)

    def download_files(self, paths: list[str], **options: Any) -> list[FileDownloadResponse]:
        self.downloads += 1
        if not self.gives:
            raise OSError("the disk is gone")
        return super().download_files(paths, **options)


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    """A directory with one picture."""
    (tmp_path / "a.png").write_bytes(DATA)
    return Disk(root_dir=tmp_path)


def agent_on(disk: Any, model: ScriptedModel, **options: Any) -> Any:
    files = FilesystemMiddleware(backend=disk, offload_binary_content=True)
    return create_deep_agent(model, backend=disk, middleware=[files], **options)


def looking(*blocks: Any) -> dict[str, Any]:
    return {"messages": [HumanMessage([{"type": "text", "text": "Look."}, *blocks])]}


def test_what_is_read_lies_in_a_file_and_reaches_the_model(call_mode: CallMode, disk: Disk) -> None:
    with ScriptedModel(call("read_file", file_path="/a.png"), call("ls", path="/"), "Done.") as model:
        result = call_mode.invoke(agent_on(disk, model), {"messages": "Look"})

    assert (disk.cwd / "blobs" / DIGEST).read_bytes() == DATA
    assert result["messages"][2].content == [NAMED]
    assert model.asked[1].messages[-1].content == [PICTURE | {"base64": ENCODED}]
    assert [each.content for each in model.asked[2].messages if each.type == "tool"][0] == [PICTURE]
    assert disk.downloads == 0


def test_what_a_person_sends_is_moved_once(call_mode: CallMode, disk: Disk) -> None:
    with ScriptedModel("One.", "Two.") as model:
        agent = agent_on(disk, model, checkpointer=InMemorySaver())
        result = call_mode.invoke(agent, looking(PICTURE), THREAD)
        call_mode.invoke(agent, {"messages": "More"}, THREAD)

    assert result["messages"][0].content[1] == NAMED
    assert [asked.messages[1].content[1] for asked in model.asked] == [PICTURE, PICTURE]
    assert (disk.uploads, disk.downloads) == (1, 1)
    assert [message.type for message in result["messages"]] == ["human", "ai"]


def test_frames_of_films_are_moved_as_well(disk: Disk) -> None:
    (disk.cwd / "a.mp4").write_bytes(film(1))
    with ScriptedModel(call("read_file", file_path="/a.mp4"), "Done.") as model:
        result = agent_on(disk, model).invoke({"messages": "Look"})

    assert "deepagents_blob" in result["messages"][3].content[-1]
    assert "base64" in model.asked[1].messages[-1].content[-1]


class PageSchema(BaseModel):
    """The arguments of `read_page`."""

    target: str


async def show_page(context: Any, target: str) -> ToolOutput:
    return ToolOutput([PICTURE])


class FilesAndPages(FilesystemMiddleware):
    """File tools and one more that reads."""

    def _tool_specs(self) -> Sequence[ToolSpec]:
        page = ToolSpec("read_page", "Read.", PageSchema, show_page, effect="read", path_argument="target")
        return (*file_tools(), page)


def test_what_another_tool_reads_is_moved_as_well(disk: Disk) -> None:
    files = FilesAndPages(backend=disk, offload_binary_content=True)
    with ScriptedModel(call("read_page", target="/a"), "Done.") as model:
        result = create_deep_agent(model, middleware=[files]).invoke({"messages": "Look"})

    assert result["messages"][2].content == [NAMED]
    assert model.asked[1].messages[-1].content == [PICTURE]


def test_checkpoints_hold_no_payload(disk: Disk) -> None:
    saver = InMemorySaver()
    with ScriptedModel(call("read_file", file_path="/a.png"), "Done.") as model:
        agent_on(disk, model, checkpointer=saver).invoke({"messages": "Look"}, THREAD)

    kept = repr(saver.storage) + repr(saver.blobs) + repr(saver.writes)
    assert DIGEST in kept
    assert ENCODED[:200] not in kept
    assert "_blob_payloads" not in result_keys(saver)


def result_keys(saver: InMemorySaver) -> set[str]:
    newest = saver.get_tuple(THREAD)
    assert newest is not None
    return set(newest.checkpoint["channel_values"])


@pytest.mark.parametrize("harm", ["deleted", "changed", "out of reach"])
def test_what_is_gone_becomes_a_sentence(disk: Disk, harm: str) -> None:
    saver = InMemorySaver()
    with ScriptedModel(call("read_file", file_path="/a.png"), "One.", "Two.") as model:
        agent = agent_on(disk, model, checkpointer=saver)
        agent.invoke({"messages": "Look"}, THREAD)
        blob = disk.cwd / "blobs" / DIGEST
        match harm:
            case "deleted":
                blob.unlink()
            case "changed":
                blob.write_bytes(b"something else")
            case _:
                disk.gives = False
        agent.invoke({"messages": "More"}, THREAD)

    sent = next(message for message in model.asked[2].messages if message.type == "tool")
    assert sent.text == "The content of this image from '/a.png' is gone. Call read_file again to see it."


@pytest.mark.parametrize("reference", ["../../etc/passwd", "A" * 64, 7])
def test_a_reference_that_is_no_digest_is_not_looked_up(disk: Disk, reference: Any) -> None:
    with ScriptedModel("Done.") as model:
        agent_on(disk, model).invoke(looking({"type": "image", "deepagents_blob": reference}))

    assert "is gone. Ask for it again" in model.asked[0].messages[-1].text
    assert disk.downloads == 0


def test_what_cannot_be_saved_stays_and_is_tried_once_a_run(disk: Disk) -> None:
    disk.takes = False
    with ScriptedModel(call("ls", path="/"), call("ls", path="/"), "Done.") as model:
        result = agent_on(disk, model).invoke(looking(PICTURE))

    assert result["messages"][0].content[1] == PICTURE
    assert model.asked[2].messages[1].content[1] == PICTURE
    assert disk.uploads == 1


@pytest.mark.parametrize("payload", ["not base64!", "AAA", "AA==AAAA", "A" * 2**18 + "!!!!", "A=" * 2**17])
def test_content_that_is_no_base64_is_left_alone(disk: Disk, payload: str) -> None:
    odd = {"type": "image", "base64": payload, "mime_type": "image/png"}
    with ScriptedModel("Done.") as model:
        result = agent_on(disk, model).invoke(looking(odd))

    assert result["messages"][0].content[1] == odd
    assert disk.uploads == 0


def test_it_is_off_by_default(disk: Disk) -> None:
    with ScriptedModel("Done.") as model:
        result = create_deep_agent(model, backend=disk).invoke(looking(PICTURE))

    assert result["messages"][0].content[1] == PICTURE
    assert disk.uploads == 0


def test_where_blobs_would_be_in_state_it_warns_and_does_nothing() -> None:
    with pytest.warns(UserWarning, match="offload_binary_content=True does nothing here") as warned:
        files = FilesystemMiddleware(offload_binary_content=True)
    with ScriptedModel("Done.") as model:
        result = create_deep_agent(model, middleware=[files]).invoke(looking(PICTURE))

    assert warned[0].filename == __file__
    assert result["messages"][0].content[1] == PICTURE


def test_a_factory_that_makes_a_backend_in_state_does_nothing() -> None:
    with pytest.warns(DeprecationWarning, match="factory"):
        files = FilesystemMiddleware(backend=lambda runtime: StateBackend(), offload_binary_content=True)
    with ScriptedModel("Done.") as model:
        result = create_deep_agent(model, middleware=[files]).invoke(looking(PICTURE))

    assert result["messages"][0].content[1] == PICTURE


def test_a_route_may_take_the_blobs_out_of_state(disk: Disk) -> None:
    backend = CompositeBackend(default=StateBackend(), routes={"/blobs/": disk})
    with ScriptedModel("Done.") as model:
        result = agent_on(backend, model).invoke(looking(PICTURE))

    assert result["messages"][0].content[1] == NAMED
    assert (disk.cwd / DIGEST).read_bytes() == DATA
    assert model.asked[0].messages[1].content[1] == PICTURE


@pytest.mark.parametrize("offloads", [False, True])
def test_a_thread_can_be_read_by_an_agent_that_keeps_bytes_in_state(disk: Disk, offloads: bool) -> None:
    saver = InMemorySaver()
    with ScriptedModel("One.") as model:
        agent_on(disk, model, checkpointer=saver).invoke(looking(PICTURE), THREAD)
    files = FilesystemMiddleware(backend=disk, offload_binary_content=offloads)
    with ScriptedModel("Two.") as model:
        agent = create_deep_agent(model, backend=disk, middleware=[files], checkpointer=saver)
        result = agent.invoke({"messages": "More"}, THREAD)

    assert model.asked[0].messages[1].content[1] == PICTURE
    assert result["messages"][0].content[1] == NAMED


def test_what_is_gone_is_said_by_an_agent_without_blobs_too() -> None:
    with ScriptedModel("Done.") as model:
        create_deep_agent(model).invoke(looking(NAMED))

    assert "is gone. Ask for it again" in model.asked[0].messages[-1].text


def picture(number: int, size: int = 0) -> dict[str, Any]:
    data = DATA + number.to_bytes(4, "big") + bytes(size)
    return PICTURE | {"base64": base64.b64encode(data).decode()}


def test_a_history_with_many_pictures_is_saved_a_batch_at_a_time(disk: Disk) -> None:
    history = [HumanMessage([picture(number)]) for number in range(100)]
    with ScriptedModel("Done.") as model:
        result = agent_on(disk, model).invoke({"messages": history})

    assert disk.uploads == 7
    assert disk.downloads == 0
    assert all("deepagents_blob" in message.content[0] for message in result["messages"][:-1])
    assert [each.content[0] for each in model.asked[0].messages[1:]] == [picture(n) for n in range(100)]


def test_one_picture_that_cannot_be_saved_does_not_keep_the_others_in_state(disk: Disk) -> None:
    data = base64.b64decode(picture(1)["base64"])
    (disk.cwd / "blobs" / hashlib.sha256(data).hexdigest()).mkdir(parents=True)
    with ScriptedModel("Done.") as model:
        result = agent_on(disk, model).invoke(looking(PICTURE, picture(1)))

    assert result["messages"][0].content[1:] == [NAMED, picture(1)]


def test_work_on_media_is_a_call_that_is_awaited_in_a_thread(disk: Disk) -> None:
    flow = Blobs(open_backend(disk).files(None), ["read_file"]).extract(HumanMessage([picture(1)]))
    first = flow.send(None).block()

    assert isinstance(first, dict)
    assert disk.uploads == 0
    flow.close()


@pytest.mark.parametrize("size", [200_000, 196_605 - len(DATA) - 4, 2_000_001])
def test_large_media_come_back_as_they_were(disk: Disk, size: int) -> None:
    saver = InMemorySaver()
    with ScriptedModel("One.", "Two.") as model:
        agent = agent_on(disk, model, checkpointer=saver)
        agent.invoke(looking(picture(1, size)), THREAD)
        agent.invoke({"messages": "More"}, THREAD)

    assert [asked.messages[1].content[1] for asked in model.asked] == [picture(1, size)] * 2
    assert disk.downloads == 1
