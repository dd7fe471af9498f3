"""LangChain's warning about what may still change: it has no public name."""

from __future__ import annotations

from langchain_core._api import LangChainBetaWarning

from deepagents._deprecation import warn_caller


def warn_beta(what: str) -> None:
    """Say that something may still change, at the line of the caller."""
    warn_caller(f"{what} are in beta: their interface may still change", LangChainBetaWarning)
