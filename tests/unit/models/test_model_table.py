"""The limits of models, as litellm's list on disk states them."""

import subprocess
import sys

import pytest

from offing.models.model_table import UNKNOWN_LIMITS, ModelLimits, find_model_limits


def test_a_listed_model_has_its_window_its_output_limit_and_its_capabilities() -> None:
    assert find_model_limits("openai/gpt-4o") == ModelLimits(128_000, 16_384, False, True)
    assert find_model_limits("gemini/gemini-2.5-pro") == ModelLimits(1_048_576, 65_536, True, True)


@pytest.mark.parametrize(
    "model",
    [
        "anthropic/claude-sonnet-4-5",
        "groq/openai/gpt-oss-120b",
        "azure/gpt-4o",
        "bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
        "vertex_ai/gemini-2.5-pro",
    ],
)
def test_a_model_is_found_with_and_without_its_provider_in_the_list(model: str) -> None:
    assert find_model_limits(model).is_listed
    assert find_model_limits(model).output_tokens


@pytest.mark.parametrize("model", ["openai/no-such-model", "gpt-4o", "", "mistral/gpt-4o", "sample_spec"])
def test_nothing_is_known_about_a_model_that_is_not_listed_for_its_provider(model: str) -> None:
    assert find_model_limits(model) == UNKNOWN_LIMITS


def test_the_list_says_nothing_about_a_server_of_ones_own_which_may_have_a_smaller_window() -> None:
    assert find_model_limits("ollama/llama3") == UNKNOWN_LIMITS


def test_the_limits_are_read_without_importing_litellm() -> None:
    program = (
        "import sys; from offing.models.model_table import find_model_limits as f; "
        "assert f('openai/gpt-4o').output_tokens; assert 'litellm' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
