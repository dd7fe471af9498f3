"""The older path of the middleware in `deepagents.middleware.prompt_caching`."""

from deepagents._compat import legacy

__getattr__ = legacy(__name__)
