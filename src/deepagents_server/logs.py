"""Write log lines for people or as JSON, each with the request and the run that it is about."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Final

LEVELS: Final = ("debug", "info", "warning", "error")
FORMATS: Final = ("text", "json")
_FIELDS: Final = "fields"
_about: ContextVar[Mapping[str, Any]] = ContextVar("deepagents_log", default=MappingProxyType({}))


def log_about(**fields: Any) -> None:
    """Let lines have these fields that are logged from now on by this task, and by what it begins."""
    _about.set({**_about.get(), **fields})


def with_fields(**fields: Any) -> Mapping[str, Any]:
    """Return the `extra` of one line that has further fields."""
    return {_FIELDS: fields}


@contextmanager
def logging_to_stderr(level: str, form: str, clean: Callable[[str], str]) -> Generator[None]:
    """Log to standard error until the block ends; `clean` makes text fit for a terminal."""
    root, handler = logging.getLogger(), logging.StreamHandler(sys.stderr)
    before = root.level
    handler.setFormatter(_JsonFormatter() if form == "json" else _TextFormatter(clean))
    logging.captureWarnings(capture=form == "json")
    root.addHandler(handler)
    root.setLevel(level.upper())
    try:
        yield
    finally:
        root.setLevel(before)
        root.removeHandler(handler)
        logging.captureWarnings(capture=False)


class _TextFormatter(logging.Formatter):
    def __init__(self, clean: Callable[[str], str]) -> None:
        super().__init__()
        self._clean = clean

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created).isoformat(" ", "milliseconds")
        about = "".join(f" {name}={value}" for name, value in _about.get().items() if value != "")
        return self._clean(f"{moment} {record.levelname} {record.name}: {super().format(record)}{about}")


class _JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_about.get(),
            **getattr(record, _FIELDS, {}),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        # Not orjson, which refuses text that is not UTF-8.
        return json.dumps(line, default=str)
