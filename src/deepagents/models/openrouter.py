"""Arguments for models over OpenRouter: check the package's version, add attribution, leave out Azure."""

from __future__ import annotations

import os
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from packaging.version import InvalidVersion, Version

from deepagents._deprecation import warn_caller

_PACKAGE: Final = "langchain-openrouter"
_OLDEST: Final = "0.2.0"
_TITLE: Final = "Deep Agents"
_ALLOW_AZURE: Final = "DEEPAGENTS_OPENROUTER_ALLOW_AZURE"
_YES: Final = ("1", "true", "yes", "on")


def check_openrouter_version(spec: str) -> None:
    """Refuse a `langchain-openrouter` that is too old; one that is missing is left to who imports it.

    Raises:
        ImportError: naming the version that is needed.
    """
    try:
        installed = version(_PACKAGE)
    except PackageNotFoundError:
        return
    try:
        new_enough = Version(installed) >= Version(_OLDEST)
    except InvalidVersion:
        warn_caller(
            f"{_PACKAGE} has version {installed!r}, which tells nothing; {_OLDEST} or newer is needed"
        )
        return
    if not new_enough:
        raise ImportError(
            f"{spec!r} needs {_PACKAGE}>={_OLDEST}, installed is {installed}: pip install -U {_PACKAGE}"
        )


def openrouter_kwargs() -> dict[str, object]:
    """Return what a model is made with, as the environment stands now."""
    made: dict[str, object] = {}
    if "OPENROUTER_APP_TITLE" not in os.environ:
        made["app_title"] = _TITLE
    if os.environ.get(_ALLOW_AZURE, "").strip().lower() not in _YES:
        made["openrouter_provider"] = {"ignore": ["azure"]}
    return made
