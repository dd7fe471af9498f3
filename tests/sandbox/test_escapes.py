"""Commands try to escape: each attempt succeeds on a plain shell, as the same user, and is held by the sandbox."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from deepagents.backends import LocalSandbox
from tests.sandbox.attacks import ATTACKS, ONLY_WITHOUT_A_SESSION, Attack
from tests.sandbox.ground import SECRET, USER

pytestmark = [
    pytest.mark.skipif(LocalSandbox.available() is not None, reason=str(LocalSandbox.available())),
    pytest.mark.slow,
]
IS_ROOT = os.geteuid() == 0
USERS = {"root": 0, "an ordinary user": USER} if IS_ROOT else {"an ordinary user": os.geteuid()}


@cache
def outcomes() -> dict[tuple[str, str], Any]:
    """Try all attacks as each user with each backend; once, for building the ground takes longer than they do.

    The processes run side by side, but for those with a plain shell: they change the devices of this machine,
    and a sandbox of root would put those right.
    """
    results: dict[tuple[str, str], Any] = {}
    for backends in (["shell"], ["sandbox", "session"]):
        pairs = list(product(USERS, backends))
        with ThreadPoolExecutor(len(pairs)) as threads:
            results |= zip(pairs, threads.map(lambda pair: _try_all(*pair), pairs), strict=True)
    return results


def _try_all(user: str, backend: str) -> dict[str, Any]:
    skipped = ONLY_WITHOUT_A_SESSION if backend == "session" else []
    attacks = [
        each.as_json() for each in ATTACKS if each not in skipped and (user == "root" or not each.needs_root)
    ]
    ran = subprocess.run(
        [sys.executable, "-m", "tests.sandbox.ground", str(USERS[user]), backend],
        input=json.dumps(attacks), capture_output=True, text=True, timeout=290, check=False,
        cwd=Path(__file__).parents[2], env={**os.environ, "HARNESS_SECRET": SECRET},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda each: each.name)
def test_an_attempt_that_succeeds_on_a_plain_shell_is_held(user: str, attack: Attack) -> None:
    if attack.needs_root and user != "root":
        pytest.skip("only root can try this")
    kinds = ["sandbox"] if attack in ONLY_WITHOUT_A_SESSION else ["sandbox", "session"]
    free, *held = (outcomes()[user, each][attack.name] for each in ("shell", *kinds))

    assert free["succeeded"], f"proves nothing: {free['output']}"
    assert not [each for each in held if each["succeeded"] or "has ended" in each["output"]]
