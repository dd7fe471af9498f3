"""Tell which models can be used here, and why others cannot."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import Any, Final

from deepagents._values import valueclass
from deepagents.models.local_server import find_local_servers
from deepagents.models.resolve import PROVIDER_KEYS
from deepagents_cli.project.agents import ANTHROPIC_MODELS
from deepagents_cli.text import one_line
from deepagents_local import KNOWN, find_weights

LOCAL: Final = "local"
"""The provider of models in this process."""
MODEL_ARGUMENTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "anthropic": {"max_retries": 0},
    # The bound loses a stop that comes together with a piece of the answer (python/cpython#86296).
    "openai": {"max_retries": 0} | ({"stream_chunk_timeout": None} if sys.version_info < (3, 12) else {}),
}
"""What a provider's models are made with, so that they ask once and can be stopped."""
_SECONDS: Final = 0.5
"""How long a server of this machine may take to list its models."""
_EXTRAS: Final = {"langchain_openai": "openai", "xllamacpp": "local"}


@valueclass
class ModelHere:
    """A model by the name that `--model` takes; `missing` is what it needs, if anything."""

    name: str
    detail: str
    missing: str | None = None

    @property
    def usable(self) -> bool:
        """Whether a task could be given to it now."""
        return self.missing is None


def find_models(environment: Mapping[str, str] = os.environ) -> list[ModelHere]:
    """Return what can be used first, then what is missing something; no key's value is in it."""
    found = [*_of_providers(environment), *_of_servers(), *_of_weights()]
    return sorted(found, key=lambda each: not each.usable)


def _of_providers(environment: Mapping[str, str]) -> Iterator[ModelHere]:
    for provider, (variable, _, default) in PROVIDER_KEYS.items():
        further = ANTHROPIC_MODELS.values() if provider == "anthropic" else ()
        missing = find_missing(provider, environment)
        for name in dict.fromkeys([default, *further]):
            yield ModelHere(f"{provider}:{name}", f"by the key in {variable}", missing)


def find_missing(provider: str, environment: Mapping[str, str]) -> str | None:
    """Return what a provider needs before its models can be used; `None` too for one that is not known."""
    variable, package, _ = PROVIDER_KEYS.get(provider, ("", "", ""))
    if not variable:
        return None
    return _missing_package(package) or (None if environment.get(variable) else f"set {variable}")


def _of_servers() -> Iterator[ModelHere]:
    missing = _missing_package("langchain_openai")
    for address, models in find_local_servers(_SECONDS).items():
        for name in models:
            # Whatever listens on a port may say anything.
            yield ModelHere(f"local-server:{one_line(str(name))}", f"on this machine, at {address}", missing)


def _of_weights() -> Iterator[ModelHere]:
    for model in KNOWN:
        name = f"{LOCAL}:{model.name}"
        fetch = None if find_weights(model.name) else f"deepagents models pull {name}"
        detail = f"in this process, {model.size / 1e9:.1f} GB, {model.licence}"
        yield ModelHere(name, detail, _missing_package("xllamacpp") or fetch)


def _missing_package(package: str) -> str | None:
    if find_spec(package):
        return None
    if extra := _EXTRAS.get(package):
        return f"pip install '.[{extra}]' in a checkout of deepagents"
    return f"pip install '{package.replace('_', '-')}'"
