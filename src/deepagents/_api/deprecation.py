"""What other packages say of their own older names with: LangChain's helpers, and one of ours."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

from deepagents._lazy import lazy

_LANGCHAINS = "langchain_core._api.deprecation"
_HOMES = {
    "LangChainDeprecationWarning": _LANGCHAINS,
    "LangChainPendingDeprecationWarning": _LANGCHAINS,
    "deprecated": _LANGCHAINS,
    "suppress_langchain_deprecation_warning": "langchain_core._api",
}

__getattr__ = lazy(__name__, _HOMES)


def warn_deprecated(
    since: str,
    *,
    message: str = "",
    name: str = "",
    alternative: str = "",
    alternative_import: str = "",
    pending: bool = False,
    obj_type: str = "",
    addendum: str = "",
    removal: str = "",
    package: str = "",
    stacklevel: int = 2,
) -> None:
    """Warn as LangChain does, at the line that `stacklevel` says; 2 is where the deprecated body was called.

    Raises:
        ValueError: for something that is only to be deprecated, but has a release that removes it.
    """
    if pending and removal:
        raise ValueError(f"what is only pending has no release that removes it, got {removal!r}")
    kind = "LangChainPendingDeprecationWarning" if pending else "LangChainDeprecationWarning"
    where = package or (name.partition(".")[0].replace("_", "-") if "." in name else "LangChain")
    when = f" was deprecated in {where} {since}" + (f" and will be removed in {removal}" if removal else "")
    used = alternative_import or alternative
    parts = (
        f"The {obj_type} `{name}`" if obj_type else f"`{name}`",
        " will be deprecated in a future version" if pending else when,
        f". Use {used} instead." if used else "",
        f" {addendum}" if addendum else "",
    )
    warnings.warn(message or "".join(parts), __getattr__(kind), stacklevel=stacklevel + 1)


def reset_deprecation_dedupe(*targets: object) -> None:
    """Let decorated functions and getters of properties warn once more; anything else stays as it is."""
    for each in targets:
        body = each.fget if isinstance(each, property) else each
        if not inspect.isfunction(body):
            continue
        kept: Any = dict(zip(body.__code__.co_freevars, body.__closure__ or (), strict=True))
        if "warned" in kept:
            kept["warned"].cell_contents = False
