"""What models cost: by the installed list, by their profiles, and nothing on this machine."""

from __future__ import annotations

import subprocess
import sys

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_openai import ChatOpenAI

from deepagents import Limits, Price, create_deep_agent
from deepagents.models.prices import find_listed_price, price_of_model
from deepagents.testing import ScriptedModel


def chat(name: str, address: str = "https://api.openai.com/v1") -> BaseChatModel:
    return ChatOpenAI(model=name, base_url=address, api_key=lambda: "none")


def test_a_known_model_has_the_price_of_the_list() -> None:
    price = price_of_model(chat("gpt-4.1"))

    assert price is not None
    assert (price.input, price.output) == (2, 8)
    assert price.of(1_000_000, 100_000) == pytest.approx(2.8)
    assert price.of(1_000_000, 0, cached=1_000_000) == pytest.approx(0.5)
    assert price.of(10, 0, cached=20) == pytest.approx(10 * 0.5 / 1e6)


def test_a_model_on_this_machine_costs_nothing() -> None:
    assert price_of_model(chat("gpt-4.1", "http://127.0.0.1:8000/v1")) == Price(0, 0)
    assert price_of_model(chat("gpt-4.1", "http://localhost:8000/v1")) == Price(0, 0)


def test_a_profile_comes_before_the_list() -> None:
    model = chat("gpt-4.1").model_copy(update={"profile": {"cost": {"input": 1, "output": 3}}})

    assert price_of_model(model) == Price(1, 3)


def test_a_model_of_another_provider_is_found_by_that_provider() -> None:
    assert find_listed_price("anthropic", "claude-sonnet-4-5") is not None
    assert find_listed_price("google_genai", "gemini-2.5-pro") is not None
    assert find_listed_price("nobody", "no-such-model") is None
    assert find_listed_price(None, None) is None


def test_money_is_limited_without_a_price_for_a_known_model() -> None:
    create_deep_agent(chat("gpt-4.1"), limits=Limits(money=1))
    with pytest.raises(ValueError, match="nothing says what model"):
        create_deep_agent(ScriptedModel("Hi."), limits=Limits(money=1))


def test_events_and_the_protocol_are_imported_without_what_takes_long() -> None:
    program = (
        "import sys, deepagents.events, deepagents_cli.protocol, deepagents_cli.commands.args\n"
        "heavy = 'pydantic', 'langchain_core', 'rich', 'genai_prices'\n"
        "sys.exit(sum(each in sys.modules for each in heavy))"
    )

    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
