"""Commands that other packages format and run in a sandbox themselves, and words for what comes of them."""

from __future__ import annotations

import base64
import json
from functools import cache
from typing import Any, Final

from deepagents._globs import checked_glob
from deepagents.backends.sandbox.codec import Operation, line_of, packed, sources

_FIELDS: Final[dict[str, tuple[Operation, str]]] = {
    "READ_COMMAND_TEMPLATE": ("read", "{path_b64} {file_type} {offset} {limit}"),
    "EDIT_COMMAND_TEMPLATE": (
        "edit",
        "<<'__DEEPAGENTS_EDIT_EOF__'\n{payload_b64}\n__DEEPAGENTS_EDIT_EOF__\n",
    ),
    "EDIT_TMPFILE_TEMPLATE": ("edit", "{old_path_b64} {new_path_b64} {target_b64} {replace_all}"),
    "GLOB_COMMAND_TEMPLATE": ("glob", "{path_b64} {wanted}"),
    "WRITE_CHECK_TEMPLATE": ("where", "{path_b64} 2>&1"),
}


class _GlobTemplate(str):
    """Reads the pattern when it is formatted, so that there is one dialect of patterns everywhere."""

    def format(self, *given: object, **keys: object) -> str:
        pattern = base64.b64decode(str(keys["pattern_b64"])).decode()
        return super().format(*given, **keys, wanted=packed(json.dumps(checked_glob(pattern).compiled())))


@cache
def _template(name: str) -> str:
    operation, fields = _FIELDS[name]
    program = f"{sources(operation, 'older')}\nanswer_{operation}(main)\n"
    kind = _GlobTemplate if operation == "glob" else str
    return kind(line_of(packed(program), fields))


def __getattr__(name: str) -> Any:
    if name not in _FIELDS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _template(name)
