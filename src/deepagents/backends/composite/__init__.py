"""Join several backends to one tree: each path is served by the backend of its longest route."""

from deepagents.backends.composite.backend import CompositeBackend, route_for_path

__all__ = ["CompositeBackend"]

_route_for_path = route_for_path
