"""Check what langgraph.json says; what is misspelt would leave something open, and is refused."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Annotated, Any, Final, Literal, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from deepagents_server.errors import ServeError

Strategy = Literal["delete", "keep_latest"]
_Minutes = Annotated[float, Field(gt=0, lt=10**8)]
_BUILDING: Final = (
    "$schema", "python_version", "node_version", "api_version", "base_image", "image_distro",
    "pip_config_file", "pip_installer", "source", "dockerfile_lines", "keep_pkg_tools", "ui", "ui_config",
)  # fmt: skip
"""What LangGraph's file says about images and pages, which are not made here."""
_WITHOUT_EFFECT: Final[Mapping[str, str]] = {
    "auth.cache": "the handlers are called for each request",
    "auth.openapi": "/openapi.json describes the endpoints, and not how callers show who they are",
    "checkpointer.ttl.sweep_limit": "each sweep removes all that is too old, a few threads at a time",
    "http.logging_headers": "no header is logged",
}
"""Options of LangGraph's server that are taken and change nothing, and what is done instead."""
_log: Final = logging.getLogger("deepagents.server")

_WHY: Final = {
    "extra_forbidden": "this server knows no such key; correct it, or leave it out",
    "model_type": "this must be a JSON object",
    "missing": "this is needed",
}


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _ItemTtl(_Part):
    default_ttl: _Minutes | None = None
    refresh_on_read: bool = True
    sweep_interval_minutes: _Minutes | None = None


class _Index(_Part):
    dims: int
    embed: str
    fields: list[str] | None = None


class _Store(_Part):
    index: _Index | None = None
    ttl: _ItemTtl | None = None


class _ThreadTtl(_Part):
    default_ttl: _Minutes | None = None
    strategy: Strategy = "delete"
    sweep_interval_minutes: _Minutes | None = None
    sweep_limit: int | None = None


class _Checkpointer(_Part):
    ttl: _ThreadTtl | None = None


class _Auth(_Part):
    path: str
    disable_studio_auth: bool = False
    openapi: Any = None
    cache: Any = None


class WebhookRules(_Part):
    """Which addresses webhooks may have: `webhooks.url`."""

    allowed_domains: list[str] | None = None
    allowed_ports: list[int] | None = None
    require_https: bool = False
    disable_loopback: bool = True
    max_url_length: int | None = None


class _Webhooks(_Part):
    url: WebhookRules | None = None
    headers: dict[str, str] | None = None
    env_prefix: str | None = None


def _check_pattern(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"this is not a regular expression: {error}") from error
    return pattern


class _Cors(_Part):
    allow_origins: list[str] | None = None
    allow_origin_regex: Annotated[str, AfterValidator(_check_pattern)] | None = None
    allow_methods: list[str] | None = None
    allow_headers: list[str] | None = None
    allow_credentials: bool = False
    expose_headers: list[str] | None = None
    max_age: int = 600


class _Http(_Part):
    # The other keys are those of the parts that read them.
    model_config = ConfigDict(extra="allow")

    cors: _Cors | None = None


class _File(_Part):
    graphs: dict[str, Any] | None = None
    env: Any = None
    dependencies: list[Any] | None = None
    store: _Store | None = None
    checkpointer: _Checkpointer | None = None
    auth: _Auth | None = None
    http: _Http | None = None
    webhooks: _Webhooks | None = None


def check_file(name: str, read: Any) -> dict[str, Any]:
    """Return what a file of this name says; warn of options that have no effect.

    Raises:
        ServeError: for a key that this server does not know, or a value that is none.
    """
    if not isinstance(read, dict):
        raise ServeError(f"{name} must hold a JSON object, not {read!r:.100}.")
    given = cast(dict[str, Any], read)
    try:
        _File.model_validate({each: value for each, value in given.items() if each not in _BUILDING})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join([name, *map(str, first["loc"])])
        why = _WHY.get(first["type"], f"{first['msg']}, not {first['input']!r:.100}")
        near = (
            get_close_matches(str(first["loc"][0]), [*_File.model_fields], n=1)
            if len(first["loc"]) == 1
            else ()
        )
        raise ServeError(f"{place}: {why}{''.join(f'; is it {each!r}?' for each in near) or '.'}") from error
    for key, instead in _WITHOUT_EFFECT.items():
        if _find(given, key) is not None:
            _log.warning("%s: %s has no effect: %s", name, key, instead)
    asked, here = given.get("python_version"), "{}.{}".format(*sys.version_info)
    if asked not in (None, here):
        _log.warning("%s: python_version is %.20r, and this server runs on Python %s", name, asked, here)
    return given


def _find(given: Any, key: str) -> Any:
    for part in key.split("."):
        given = cast(dict[str, Any], given).get(part) if given else None
    return given
