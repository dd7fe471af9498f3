"""Define what can go wrong with a model that runs on this machine."""

from __future__ import annotations

from langchain_core.exceptions import ContextOverflowError

from deepagents.errors import HarnessError, UnknownModel


class WeightsMissing(UnknownModel):
    """The weights of a model are not on this machine."""


class WeightsError(HarnessError):
    """Weights could not be fetched, or are not what they should be."""


class EngineError(HarnessError):
    """The engine could not be started or could not answer."""


class PromptTooLong(EngineError, ContextOverflowError):
    """The prompt does not fit into the context window."""
