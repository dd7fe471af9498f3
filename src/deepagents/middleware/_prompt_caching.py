"""The older path of the middleware in `deepagents.middleware.prompt_caching.middleware`."""

from deepagents._deprecation import legacy

__getattr__ = legacy(__name__)
