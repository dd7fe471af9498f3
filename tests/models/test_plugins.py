"""Installed packages bring profiles by entry points, once, and one that fails harms no other."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.models.distributions import install, run

BRINGS_BOTH = """
from deepagents import HarnessProfile, ProviderProfile, register_harness_profile, register_provider_profile

def models():
    register_provider_profile("acme", ProviderProfile(init_kwargs={"speed": "high"}))
    print("models of acme")

def agents():
    register_harness_profile("acme", HarnessProfile(base_system_prompt="Acme."))
    print("agents of acme")
"""
POINTS = """
[deepagents.provider_profiles]
acme = acme_profiles:models
[deepagents.harness_profiles]
acme = acme_profiles:agents
"""
ASK = """
from deepagents import HarnessProfile, register_harness_profile
from deepagents.profiles.harness.harness_profiles import get_harness_profile, profile_for
from deepagents.profiles.provider import apply_provider_profile
from deepagents.testing import ScriptedModel
def asked(key="acme:tnt"):
    profile = profile_for(ScriptedModel(provider=key.partition(":")[0]))
    print(apply_provider_profile(key), profile.base_system_prompt)
"""


def test_a_plugin_brings_both_kinds_once_and_a_program_goes_over_them(tmp_path: Path) -> None:
    install(tmp_path, "acme-profiles", source=BRINGS_BOTH, points=POINTS)
    program = f"""{ASK}
print("-")
asked()
register_harness_profile("acme", HarnessProfile(base_system_prompt="Mine."))
asked()
"""

    said, warned = run(program, tmp_path)

    ran = ["-", "models of acme", "agents of acme"]
    assert said.splitlines() == [*ran, "{'speed': 'high'} Acme.", "{'speed': 'high'} Mine."]
    assert warned == ""


def test_plugins_on_one_key_go_by_the_names_of_their_distributions(tmp_path: Path) -> None:
    for name in ("b-later", "a-first"):
        source = (
            "from deepagents import ProviderProfile, register_provider_profile\n"
            "def go():\n"
            f"    register_provider_profile('openai', ProviderProfile({{'by': '{name}', '{name}': 1}}))\n"
        )
        module = name.replace("-", "_")
        install(tmp_path, name, source=source, points=f"[deepagents.provider_profiles]\nz = {module}:go\n")

    said, _ = run(f"{ASK}\nasked('openai:gpt-5')", tmp_path)

    assert said == "{'use_responses_api': True, 'by': 'b-later', 'a-first': 1, 'b-later': 1} None"


def test_a_plugin_that_fails_is_skipped_by_name(tmp_path: Path) -> None:
    source = "def falls(): raise OSError('no disk')\nseven = 7\n"
    points = (
        "[deepagents.harness_profiles]\n"
        "away = no_such_module:go\nfalls = broken_profiles:falls\nnumber = broken_profiles:seven\n"
    )
    install(tmp_path, "broken-profiles", source=source, points=points)
    install(tmp_path, "acme-profiles", source=BRINGS_BOTH, points=POINTS)

    said, warned = run(f"{ASK}\nasked()", tmp_path)

    assert said.splitlines()[-1] == "{'speed': 'high'} Acme."
    assert warned.count("DeepAgentsWarning") == 3
    for name, why in (
        ("away", "failed to load entry point: ModuleNotFoundError"),
        ("falls", "registration callable 'broken_profiles:falls' raised OSError('no disk')"),
        ("number", "did not resolve to a callable, but to 7"),
    ):
        assert f"'{name}' of distribution 'broken-profiles'" in warned
        assert why in warned


def test_entry_points_that_cannot_be_read_are_passed_over(tmp_path: Path) -> None:
    install(tmp_path, "torn", points="")
    torn = tmp_path / "torn-1.0.dist-info" / "entry_points.txt"

    said, warned = run(f"{ASK}\nopen({str(torn)!r}, 'wb').write(b'\\xff')\nasked()", tmp_path)

    assert said == "{} None"
    assert (
        "Failed to enumerate the entry points of ('deepagents.model_providers', 'deepagents.provider"
        in warned
    )


def test_threads_wait_until_all_plugins_have_run(tmp_path: Path) -> None:
    source = (
        "from threading import Semaphore\nfrom deepagents import HarnessProfile, register_harness_profile\n"
        "asking = Semaphore(0)\n"
        "def go():\n"
        "    for _ in range(8): asking.acquire(timeout=60)\n"
        "    register_harness_profile('acme', HarnessProfile(base_system_prompt='Acme.'))\n"
        "    print('ran')\n"
    )
    install(tmp_path, "slow", source=source, points="[deepagents.harness_profiles]\nslow = slow:go\n")
    program = f"""{ASK}
from concurrent.futures import ThreadPoolExecutor
from slow import asking
def ask(spec):
    asking.release()
    return get_harness_profile(spec)
with ThreadPoolExecutor(8) as pool:
    print(*{{found.base_system_prompt for found in pool.map(ask, ["acme:tnt"] * 8)}})
"""

    assert run(program, tmp_path)[0].splitlines() == ["ran", "Acme."]


def test_a_module_that_registers_while_it_is_imported_waits_for_no_plugin(tmp_path: Path) -> None:
    """One thread imports the module, another runs the plugins and comes to the same module."""
    gate = "from threading import Event\nimporting, running = Event(), Event()\nready = running.set\n"
    source = (
        "import deepagents, gate\n"
        "gate.importing.set()\n"
        "assert gate.running.wait(60)\n"
        "deepagents.register_harness_profile('acme', deepagents.HarnessProfile(base_system_prompt='Top.'))\n"
        "def go():\n"
        "    deepagents.register_harness_profile('acme', deepagents.HarnessProfile('Below.', 'Last.'))\n"
    )
    points = "[deepagents.harness_profiles]\na = gate:ready\nb = top_level:go\n"
    install(tmp_path, "gate", source=gate)
    install(tmp_path, "top-level", source=source, points=points)
    program = f"""{ASK}
import importlib, os, threading, gate
importing = threading.Thread(target=importlib.import_module, args=["top_level"], daemon=True)
importing.start()
assert gate.importing.wait(60)
asking = threading.Thread(target=get_harness_profile, args=["acme:tnt"], daemon=True)
asking.start()
for thread in (importing, asking): thread.join(10)
if importing.is_alive() or asking.is_alive():
    print("neither goes on", flush=True)
    os._exit(0)
found = get_harness_profile("acme:tnt")
print(found.base_system_prompt, found.system_prompt_suffix)
"""

    assert run(program, tmp_path) == ("Top. Last.", "")


def test_a_plugin_that_waits_for_a_thread_that_asks_is_gone_past_with_a_warning(tmp_path: Path) -> None:
    source = (
        "import threading\n"
        "from deepagents.models.plugins import load_plugins\n"
        "from deepagents.profiles.harness.harness_profiles import get_harness_profile\n"
        "def asks():\n"
        "    load_plugins(patience=0.1)\n"
        "    print(get_harness_profile('acme:tnt'))\n"
        "def go():\n"
        "    thread = threading.Thread(target=asks)\n"
        "    thread.start()\n"
        "    thread.join()\n"
    )
    points = "[deepagents.harness_profiles]\na = joining:go\nb = acme_profiles:agents\n"
    install(tmp_path, "acme-profiles", source=BRINGS_BOTH)
    install(tmp_path, "joining", source=source, points=points)

    said, warned = run(f"{ASK}\nasked()", tmp_path)

    assert said.splitlines() == ["None", "agents of acme", "{} Acme."]
    assert warned.count("DeepAgentsWarning") == 1
    assert "'a' of distribution 'joining' (deepagents.harness_profiles) has not come back" in warned


def test_what_a_program_registers_first_lies_over_what_plugins_bring(tmp_path: Path) -> None:
    install(tmp_path, "acme-profiles", source=BRINGS_BOTH, points=POINTS)
    program = f"""{ASK}
register_harness_profile("acme", HarnessProfile(base_system_prompt="Mine."))
asked()
"""

    assert run(program, tmp_path)[0].splitlines()[-1] == "{'speed': 'high'} Mine."


def test_importing_looks_for_no_plugin_and_no_provider(tmp_path: Path) -> None:
    install(tmp_path, "acme-profiles", source=BRINGS_BOTH, points=POINTS)
    program = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
import deepagents, deepagents.profiles, deepagents.profiles.provider
from deepagents import _models
from deepagents.testing import ScriptedModel
_models.model_matches_spec(ScriptedModel(), "acme:tnt")
heavy = ("openai", "langchain_openai", "anthropic", "langchain_anthropic", "google", "boto3", "acme_profiles")
print([name for name in heavy if name in sys.modules])
"""

    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert ended.stdout == "[]\n"
