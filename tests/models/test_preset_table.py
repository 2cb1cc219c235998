"""The presets that come with Offing name models that exist, with a price and a context window."""

import pytest

from offing.models.credentials import KEY_VARIABLES
from offing.models.litellm_client import estimate_price
from offing.models.model_table import find_model_limits
from offing.models.preset_table import BUDGETS, PROVIDER_MODELS, build_presets
from offing.models.stored_provider import STORABLE_PROVIDERS


@pytest.mark.parametrize("provider", PROVIDER_MODELS)
async def test_both_models_of_a_provider_are_listed_with_price_and_window(provider: str) -> None:
    assert provider in KEY_VARIABLES
    assert provider in STORABLE_PROVIDERS
    models = PROVIDER_MODELS[provider]
    prices = [await estimate_price(f"{provider}/{model}", 1000, 1000) for model in (models.small, models.large)]
    assert None not in prices
    for model in (models.small, models.large):
        assert (find_model_limits(f"{provider}/{model}").context_tokens or 0) > 32_000
    assert (prices[0] or 0) <= (prices[1] or 0)


def test_presets_take_the_first_configured_provider_and_roles_of_any_graph() -> None:
    presets = build_presets([("work", "groq"), ("openai", "openai"), ("second", "groq")], ["ollama_chat/qwen3:8b"])
    assert presets.keys() == BUDGETS.keys()
    thorough = presets["thorough"].choose_engines(["planner", "executor"])
    assert thorough["planner"].model.startswith("openai/")
    assert thorough["planner"] != thorough["executor"]
    assert presets["local"].choose_engines(["agent"])["agent"].model == "ollama_chat/qwen3:8b"
    only_groq = build_presets([("work", "groq"), ("second", "groq")], [])
    assert only_groq.keys() == {"fast", "thorough"}
    assert only_groq["fast"].engines["all"].model.startswith("work/")
    assert build_presets([], []) == {}


def test_the_effort_of_a_preset_is_one_that_the_model_accepts() -> None:
    presets = build_presets([("work", "openai")], [])
    assert presets["fast"].engines["all"].reasoning_effort == "low"
    assert presets["thorough"].engines["all"].reasoning_effort == "high"
    assert build_presets([("work", "mistral")], [])["thorough"].engines["all"].reasoning_effort is None


def test_a_preset_names_optional_roles_itself_and_only_thorough_does() -> None:
    presets = build_presets([("openai", "openai")], ["ollama_chat/qwen3:8b"])
    optional = {name: preset.choose_engines(["planner"], ["checker"]).keys() for name, preset in presets.items()}
    assert optional == {"fast": {"planner"}, "local": {"planner"}, "thorough": {"planner", "checker"}}
