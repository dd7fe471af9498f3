"""Answers in the older shapes: plain lines of JSON, for packages that run these programs themselves."""

import base64
import json
import os
import sys
import zlib
from contextlib import suppress

from deepagents.backends.sandbox.scripts.common import Refused, code_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    Main = Callable[[dict[str, Any]], tuple[Iterable[Any], dict[str, Any]]]

WORDS = {
    "no_match": "string_not_found",
    "ambiguous_match": "multiple_occurrences",
    "invalid_encoding": "not_a_text_file",
    "is_directory": "not_a_file",
}


def unpacked(text: str) -> str:
    """Unpack an argument."""
    return base64.b64decode(text).decode("utf-8")


def answer_read(main: "Main") -> None:
    """Print the content of a window of a file."""

    def content() -> "dict[str, Any]":
        path, kind, offset, limit = sys.argv[2:6]
        params = {
            "offset": max(int(offset), 0),
            "limit": int(limit),
            "media": kind != "text",
            "most": 500 << 10,
        }
        items, end = main(dict(params, root="/", path=unpacked(path)))
        data = b"".join(zlib.decompress(base64.b64decode(each)) for _, each in items)
        if end["kind"] == "binary":
            return {"encoding": "base64", "content": base64.b64encode(data).decode("ascii")}
        return {"encoding": "utf-8", "content": data.decode("utf-8", "replace")}

    say(content)


def answer_edit(main: "Main") -> None:
    """Print how many places were replaced; the texts come as a payload, or in two files that are removed."""

    def change() -> "dict[str, Any]":
        params = in_files() if len(sys.argv) > 3 else json.loads(unpacked(sys.stdin.read()))
        texts = {"old": params["old"], "new": params["new"]}
        asked = {"root": "/", "path": params["path"], "texts": texts, "replace_all": params["replace_all"]}
        return {"count": main(asked)[1]["count"]}

    say(change)


def in_files() -> "dict[str, Any]":
    """Take the texts out of their files."""
    old, new, target, replace_all = sys.argv[2:6]
    return {
        "path": unpacked(target), "replace_all": replace_all in ("True", "true", "1"),
        "old": content_taken(unpacked(old)), "new": content_taken(unpacked(new)),
    }  # fmt: skip


def content_taken(path: str) -> str:
    """Read a file and remove it."""
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()
    except OSError:
        raise Refused("temp_read_failed") from None
    finally:
        with suppress(OSError):
            os.unlink(path)


def answer_glob(main: "Main") -> None:
    """Print each file that was found."""

    def found() -> None:
        wanted = json.loads(zlib.decompress(base64.b64decode(sys.argv[3])).decode("utf-8"))
        asked = {"root": "/", "path": unpacked(sys.argv[2]), "glob": wanted, "seconds": 5.0, "most": 10000}
        items, end = main(asked)
        for item in items:
            show({"path": end["base"].rstrip("/") + "/" + item[0], "is_dir": False})

    say(found)


def answer_where(main: "Main") -> None:
    """Make the directories above a file, and say what stands in the way of that."""
    try:
        main({"root": "/", "path": unpacked(sys.argv[2]), "make_parents": True})
    except Refused as refused:
        sys.exit("Error: " + refused.answer["code"])
    except OSError as error:
        sys.exit("Error: " + code_of(error))


def say(work: "Callable[[], dict[str, Any] | None]") -> None:
    """Print what was done, or the word for what went wrong."""
    try:
        done = work()
    except Refused as refused:
        done = {"error": worded(refused.answer)}
    except OSError as error:
        done = {"error": worded({"code": code_of(error)})}
    if done is not None:
        show(done)


def show(record: "dict[str, Any]") -> None:
    """Print one line of JSON."""
    sys.stdout.write(json.dumps(record) + "\n")


def worded(refusal: "dict[str, Any]") -> str:
    """Find the older word."""
    if refusal["code"] == "past_end":
        return "Line offset {offset} exceeds file length ({total} lines)".format(**refusal)
    code: str = refusal["code"]
    return WORDS.get(code, code)
