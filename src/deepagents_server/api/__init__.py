"""Speak the Agent Server protocol over HTTP, one module for each resource."""

from deepagents_server.api.app import create_app

__all__ = ["create_app"]
