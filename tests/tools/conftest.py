"""The bench that every tool is tried on."""

from tests.tools.bench import bench

__all__ = ["bench"]
