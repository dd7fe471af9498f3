"""Which harness profile belongs to a model: by `provider:model`, else by `provider`."""

from __future__ import annotations

from functools import cache

from langchain_core.language_models import BaseChatModel

from deepagents.errors import ProfileError
from deepagents.models.traits import model_identifier, model_provider
from deepagents.profiles.harness.builtin.small_local import SMALL_LOCAL
from deepagents.profiles.harness.profile import HarnessProfile


@cache
def _registry() -> dict[str, HarnessProfile]:
    return {"local": SMALL_LOCAL}


def register_harness_profile(key: str, profile: HarnessProfile) -> None:
    """Use a profile for `provider` or `provider:model`, instead of the one registered before.

    Raises:
        ProfileError: for a key with an empty half or outer whitespace.
    """
    provider, colon, model = key.partition(":")
    if key != key.strip() or not provider or (colon and not model):
        raise ProfileError(
            f"a profile key must be non-empty, 'provider' or 'provider:model', without outer whitespace; "
            f"got {key!r}"
        )
    _registry()[key] = profile


def profile_for(model: BaseChatModel) -> HarnessProfile:
    """Return the profile that fits a model best; an empty one when none does."""
    provider = model_provider(model)
    if provider is None:
        return HarnessProfile()
    registered = _registry()
    exact = registered.get(f"{provider}:{model_identifier(model)}")
    return exact or registered.get(provider) or HarnessProfile()
