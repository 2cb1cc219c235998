"""Settings of a role's engine as text, and the errors of those that its model cannot have."""

import pytest

from offing.core.errors import InvalidInput
from offing.core.model import EngineConfig, parse_engine
from offing.models.engine_discovery import parse_engine_config, role_engine_configs
from offing.services.engine_configs import check_engine


def test_settings_follow_the_engine_in_any_order() -> None:
    text = "litellm:openai/o3-mini@0.2;reasoning_effort=low;max_tokens=9000;library=lessons@1"
    assert parse_engine(text) == EngineConfig(
        engine="litellm",
        model="openai/o3-mini",
        temperature=0.2,
        reasoning_effort="low",
        max_tokens=9_000,
        prompt_library="lessons@1",
    )


def test_the_window_of_a_model_of_ones_own_can_be_set_for_one_role() -> None:
    env = {"OFFING_ENGINE_FOR_GENERATOR": "litellm:ollama_chat/qwen3;context_tokens=16384;output_tokens=4096"}
    writer = role_engine_configs(env)["generator"]
    assert (writer.context_tokens, writer.output_tokens) == (16_384, 4_096)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("litellm:openai/gpt-4o;tokens=5", "there is no setting 'tokens'"),
        ("litellm:openai/gpt-4o;max_tokens=many", "max_tokens: Input should be a valid integer"),
        ("litellm:openai/gpt-4o;max_tokens=0", "max_tokens: Input should be greater than or equal to 1"),
        ("litellm:openai/o3-mini;reasoning_effort=huge", "reasoning_effort: Input should be 'none'"),
        (
            "litellm:openai/gpt-4o;max_tokens=20000",
            "max_tokens: openai/gpt-4o writes at most 16384 tokens",
        ),
        ("litellm:openai/gpt-4o;reasoning_effort=low", "openai/gpt-4o does not accept 'low'"),
        ("litellm:openai/gpt-5-mini;reasoning_effort=none", "Use one of: minimal, low, medium, high."),
        ("extractive;reasoning_effort=low", "the engine extractive does not think"),
        ("litellm:mine/m;max_tokens=8000;context_tokens=8000", "8000 leaves no room for a prompt in 8000 tokens"),
    ],
)
def test_a_setting_that_cannot_be_is_rejected_with_its_field_and_a_remedy(text: str, words: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_engine_config(text, "OFFING_ENGINE_FOR_PLANNER")
    assert caught.value.field == "OFFING_ENGINE_FOR_PLANNER"
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "litellm:openai/gpt-4o;reasoning_effort=none",
        "litellm:openai/o3-mini;reasoning_effort=high",
        "litellm:openai/mine;reasoning_effort=high",
        "litellm:openai/gpt-4o;max_tokens=20000;output_tokens=32000",
    ],
)
def test_what_a_model_may_have_is_accepted(text: str) -> None:
    check_engine("engines.planner", parse_engine_config(text, "--engine"))


def test_an_effort_is_set_in_one_place() -> None:
    twice = EngineConfig(
        engine="litellm",
        model="openai/o3-mini",
        reasoning_effort="low",
        options={"sampling": {"reasoning_effort": "high"}},
    )
    with pytest.raises(InvalidInput, match=r"engines\.planner\.options\.sampling\.reasoning_effort.*Set only one"):
        check_engine("engines.planner", twice)
