"""Abilities are claimed, never assumed."""

from __future__ import annotations

from dataclasses import replace

from deepagents.backends.capabilities import Capabilities


def test_nothing_is_claimed_by_default() -> None:
    able = Capabilities()
    assert not any([able.execute, able.delete, able.versions, able.state_files])
    assert able.artifacts_root == "/"


def test_claims_are_compared_by_what_they_say() -> None:
    assert replace(Capabilities(), delete=True) == Capabilities(delete=True) != Capabilities()
    assert len({Capabilities(), Capabilities(), Capabilities(execute=True)}) == 2
