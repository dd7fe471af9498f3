from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from deepagents_server.config import load_config
from deepagents_server.errors import ServeError
from deepagents_server.graphs import load_graphs


def test_one_agent_is_named_by_its_file(tmp_path: Path) -> None:
    config = load_config("agent.py:helper", tmp_path)

    assert config.graphs == {"helper": "agent.py:helper"}


def test_a_file_names_graphs_variables_and_directories(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "shared_by_graphs.py").write_text("ANSWER = 42\n")
    (tmp_path / "two.py").write_text("from shared_by_graphs import ANSWER\ndef make(): ...\n")
    (tmp_path / ".env").write_text("# keys\nexport COLOUR='dark red'\nSIZE = 3\n")
    graphs = {"two": {"path": "./two.py:make", "description": "Counts to two."}}
    given = {"graphs": graphs, "env": ".env", "dependencies": [".", "./lib"]}
    (tmp_path / "langgraph.json").write_text(json.dumps(given))

    config = load_config(None, tmp_path)

    assert config.env == {"COLOUR": "dark red", "SIZE": "3"}
    assert config.descriptions == {"two": "Counts to two."}
    assert callable(load_graphs(config)["two"])


def test_what_only_builds_an_image_changes_nothing(tmp_path: Path) -> None:
    built = {"$schema": "x", "python_version": "3.12", "dockerfile_lines": ["RUN x"], "image_distro": "wolfi"}
    (tmp_path / "langgraph.json").write_text(json.dumps({"graphs": {"a": "./x.py:y"}, **built}))

    assert load_config(None, tmp_path).graphs == {"a": "./x.py:y"}


def test_an_option_without_effect_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    given = {
        "graphs": {"a": "./x.py:y"},
        "auth": {"path": "./a.py:auth", "cache": {"cache_keys": ["authorization"]}, "openapi": {}},
        "checkpointer": {"ttl": {"sweep_limit": 5}},
        "http": {"logging_headers": {"includes": ["request-id"]}},
        "store": None,
        "python_version": "3.99",
    }
    (tmp_path / "langgraph.json").write_text(json.dumps(given))

    load_config(None, tmp_path)

    named = [record.getMessage().split(" has no effect: ")[0] for record in caplog.records]
    keys = ["auth.cache", "auth.openapi", "checkpointer.ttl.sweep_limit", "http.logging_headers"]
    assert named[:-1] == [f"langgraph.json: {key}" for key in keys]
    assert named[-1].startswith("langgraph.json: python_version is '3.99', and this server runs on Python 3.")


def test_a_file_called_like_a_module_of_python_hides_it_from_nobody(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("def agent(): ...\n")

    assert load_graphs(load_config("./json.py:agent", tmp_path))["agent"].__module__ == "served_json"
    assert json.loads("1") == 1


@pytest.mark.parametrize(
    ("target", "text", "message"),
    [
        (None, "{", "cannot be read as JSON"),
        (None, "[]", "must hold a JSON object"),
        (None, "{}", "names no graphs"),
        (None, '{"graphs": {"a/b": "x.py:y"}}', "not a name of a graph"),
        (None, '{"graphs": {"a": "x.py"}}', "must be given as"),
        ("gone.json", "{}", "There is no 'gone.json'"),
        ("gone.py:agent", "{}", "there is no file gone.py"),
        ("broken.py:agent", "{}", "ZeroDivisionError"),
        ("empty.py:agent", "{}", "has no 'agent'"),
        ("five.py:agent", "{}", "'five.py:agent' is int; name a compiled graph"),
    ],
)
def test_what_cannot_be_served_is_named(tmp_path: Path, target: str | None, text: str, message: str) -> None:
    (tmp_path / "langgraph.json").write_text(text)
    (tmp_path / "broken.py").write_text("1 / 0\n")
    (tmp_path / "empty.py").write_text("")
    (tmp_path / "five.py").write_text("agent = 5\n")

    with pytest.raises(ServeError, match=message):
        load_graphs(load_config(target, tmp_path))


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("auht", {}, "langgraph.json.auht: this server knows no such key.*; is it 'auth'"),
        ("encryption", {"path": "./e.py:e"}, "encryption: this server knows no such key"),
        ("checkpointer", {"path": "./c.py:c"}, "checkpointer.path: this server knows no such key"),
        ("checkpointer", {"ttl": {"default_ttl": True}}, "default_ttl: .*number, not True"),
        ("checkpointer", {"ttl": {"strategy": "keep"}}, "'delete' or 'keep_latest', not 'keep'"),
        ("store", {"ttl": 5}, "store.ttl: this must be a JSON object"),
        ("auth", {"paht": "./a.py:auth"}, "auth.path: this is needed"),
        ("auth", {"disable_studio_auth": True}, "auth.path: this is needed"),
        ("webhooks", {"url": {"allowed_domain": []}}, "url.allowed_domain: this server knows"),
        ("webhooks", {"url": {"allowed_domains": "x.example"}}, "allowed_domains: .*list, not 'x.example'"),
        ("webhooks", {"url": {"require_https": "false"}}, "require_https: .*boolean, not 'false'"),
        ("webhooks", {"headers": {"x-number": 5}}, "headers.x-number: .*string, not 5"),
        ("http", {"cors": {"allow_orgins": ["*"]}}, "cors.allow_orgins: this server knows no such key"),
        ("http", {"cors": {"allow_origins": "https://*.example"}}, "allow_origins: .*list"),
        ("http", {"cors": {"allow_origin_regex": "("}}, "allow_origin_regex: .*regular expression"),
    ],
)
def test_a_slip_in_a_file_leaves_nothing_open(tmp_path: Path, key: str, value: Any, message: str) -> None:
    given = {"graphs": {"a": "./x.py:y"}, key: value}
    (tmp_path / "langgraph.json").write_text(json.dumps(given))

    with pytest.raises(ServeError, match=message):
        load_config(None, tmp_path)
