"""Join several backends to one tree: each path is served by the backend of its longest route."""

from deepagents.backends.composite.backend import CompositeBackend

__all__ = ["CompositeBackend"]
