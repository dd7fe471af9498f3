"""Messages as text, and back."""

from __future__ import annotations

import base64
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    AnyMessage,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from deepagents._async import run
from deepagents.middleware.summarization.archive import write_message
from deepagents.middleware.summarization.media import MediaFiles
from tests.middleware.archives import Uploads, parse_messages

PICTURE = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(range(256))).decode()


def written(messages: list[Any], media: MediaFiles | None = None) -> str:
    return "".join(write_message(each, media or MediaFiles("/media")) for each in messages)


def back(messages: list[Any], unsaved: bool = False) -> list[BaseMessage]:
    """Write messages down, and read them again with the files that would be saved."""
    media, files = MediaFiles("/media"), Uploads(takes=not unsaved)
    written(messages, media)
    run(media.save(cast(Any, files)))
    text = written(messages, media)
    text.encode()
    assert "\0" not in text
    return parse_messages(text, files.kept.__getitem__)


PARTS = (
    "```", "`", "~~~", "\n", "\r\n", "\r", "\0", "\ud83d", "\ude00", "\\u0000", "\\", "ü🙂", "\u2028",
    "</tag>", "### ai\n\n", "<!-- end of section 0123456789abcdef -->", "```json\n{}\n```\n\n",
    "data:,", " ", "x",
)  # fmt: skip
TEXT = st.lists(st.one_of(st.sampled_from(PARTS), st.text(max_size=5)), max_size=8).map("".join)
LEAF: st.SearchStrategy[Any] = st.one_of(
    TEXT, st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.binary(max_size=6)
)
KEYS = st.one_of(
    TEXT,
    st.sampled_from(["base64", "data", "url", "type", "format"]),
)
TREE = st.recursive(
    LEAF,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=4)),
    max_leaves=8,
)
ARGS = st.dictionaries(KEYS, TREE, max_size=4)
BLOCK: st.SearchStrategy[Any] = st.one_of(
    TEXT,
    TEXT.map(lambda text: {"type": "text", "text": text}),
    st.binary(min_size=1, max_size=9).map(
        lambda data: {"type": "image", "base64": base64.b64encode(data).decode(), "mime_type": "image/png"}
    ),
    st.sampled_from(
        [
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PICTURE}", "detail": "low"}},
            {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
            {"type": "image_url", "image_url": "data:image/svg+xml,%3Csvg%2F%3E"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PICTURE}},
            {"type": "image", "source_type": "base64", "mime_type": "image/png", "data": PICTURE},
            {"type": "input_audio", "input_audio": {"data": PICTURE, "format": "wav"}},
            {
                "type": "file",
                "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PICTURE}"},
            },
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "plain"}},
            {"type": "thinking", "thinking": "hm\n", "signature": "c2lnbmVk"},
            {"type": "image", "base64": "not base64!"},
            {"type": "tool_result", "content": [{"type": "image", "base64": PICTURE}]},
        ]
    ),
    TREE.map(lambda tree: {"type": "non_standard", "value": tree}),
)
CONTENT: st.SearchStrategy[Any] = st.one_of(TEXT, st.lists(BLOCK, max_size=4))
CALL = st.builds(lambda name, args, call_id: {"name": name, "args": args, "id": call_id}, TEXT, ARGS, TEXT)
BROKEN = st.builds(
    lambda name, args, call_id, error: {
        "name": name, "args": args, "id": call_id, "error": error, "type": "invalid_tool_call",
    },
    TEXT, TEXT, TEXT, TEXT,
)  # fmt: skip
COMMON: dict[str, Any] = {
    "content": CONTENT,
    "id": st.one_of(st.none(), TEXT),
    "name": st.one_of(st.none(), TEXT),
    "additional_kwargs": ARGS,
    "response_metadata": ARGS,
}
USAGE = st.one_of(st.none(), st.just({"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}))
MESSAGE: st.SearchStrategy[Any] = st.one_of(
    st.builds(HumanMessage, **COMMON),
    st.builds(SystemMessage, **COMMON),
    st.builds(ChatMessage, **COMMON, role=TEXT),
    st.builds(
        AIMessage,
        **COMMON,
        tool_calls=st.lists(CALL, max_size=2),
        invalid_tool_calls=st.lists(BROKEN, max_size=2),
        usage_metadata=USAGE,
    ),
    st.builds(
        ToolMessage, **COMMON, tool_call_id=TEXT, artifact=TREE, status=st.sampled_from(["success", "error"])
    ),
)


@given(st.lists(MESSAGE, max_size=3), st.booleans())
def test_what_is_written_reads_as_the_same_messages(messages: list[AnyMessage], unsaved: bool) -> None:
    assert back(messages, unsaved) == messages


def test_text_and_long_arguments_stand_there_as_they_are() -> None:
    code = "def f():\n    return '```'\n"
    call: Any = {"name": "write_file", "args": {"file_path": "/f.py", "content": code}, "id": "1"}
    text = written([AIMessage("I will <write> it & see.", tool_calls=[call])])

    assert "\nI will <write> it & see.\n" in text
    assert f"\n{code}\n````" in text
    assert '"file_path": "/f.py"' in text


def test_a_text_with_half_characters_and_nul_says_so() -> None:
    text = written([HumanMessage("a\ud800\\b\0c")])
    assert "```text-escaped content\na\\ud800\\\\b\\u0000c\n```" in text


def test_a_chunk_comes_back_as_a_chunk() -> None:
    messages = [AIMessageChunk(content="partly", id="1")]
    assert back(messages) == messages


def test_what_json_cannot_hold_is_described() -> None:
    text = written([ToolMessage("x", tool_call_id="1", artifact={"when": {1, 2}})])
    (message,) = parse_messages(text)
    assert isinstance(message, ToolMessage)
    assert message.artifact == {"when": "{1, 2}"}
