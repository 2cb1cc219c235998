"""How the limits of a role's engine are resolved when a run is submitted."""

from typing import Any

import pytest

from offing.core.model import EngineConfig, engine_to_digest_json, engine_to_json
from offing.models.model_limits import (
    RoleLimits,
    clear_resolved_limits,
    get_completion_limit,
    resolve_model_limits,
)
from offing.sdk import DEFAULT_ANSWER_TOKENS, REPORT_ANSWER_TOKENS

WRITER = RoleLimits(REPORT_ANSWER_TOKENS)
PLANNER = RoleLimits(DEFAULT_ANSWER_TOKENS)


def litellm(model: str, **fields: Any) -> EngineConfig:
    return EngineConfig(engine="litellm", model=model, **fields)


@pytest.mark.parametrize(
    ("model", "limits", "answer"),
    [
        ("openai/gpt-4o", WRITER, 16_384),
        ("openai/gpt-4o", PLANNER, 4_096),
        ("deepseek/deepseek-chat", WRITER, 8_192),  # the model's own output limit
        ("openai/gpt-4", WRITER, 2_048),  # a quarter of its window of 8,192
        ("ollama_chat/llama3.1", WRITER, 4_096),  # its output limit is unknown
        ("openai/no-such-model", PLANNER, 4_096),
    ],
)
def test_an_answer_is_limited_by_the_model_and_by_what_the_role_needs(
    model: str, limits: RoleLimits, answer: int
) -> None:
    assert resolve_model_limits(litellm(model), limits).answer_tokens == answer


def test_the_window_and_the_output_limit_are_pinned_with_the_answer() -> None:
    pinned = resolve_model_limits(litellm("openai/gpt-4o"), WRITER)
    assert (pinned.context_tokens, pinned.output_tokens) == (128_000, 16_384)


def test_settings_take_precedence_over_the_table() -> None:
    pinned = resolve_model_limits(litellm("ollama_chat/qwen3", context_tokens=8_192), WRITER)
    assert (pinned.context_tokens, pinned.answer_tokens) == (8_192, 2_048)
    assert resolve_model_limits(litellm("openai/gpt-4o", max_tokens=9_000), PLANNER).answer_tokens == 9_000


def test_limits_that_a_run_has_pinned_are_kept() -> None:
    pinned = litellm("openai/gpt-4o", context_tokens=1_000, output_tokens=500, answer_tokens=250, thinking_tokens=0)
    assert resolve_model_limits(pinned, WRITER) == pinned


def test_a_child_run_resolves_the_limits_for_its_own_role() -> None:
    lead = resolve_model_limits(litellm("openai/gpt-4o"), PLANNER)
    assert resolve_model_limits(clear_resolved_limits(lead), WRITER).answer_tokens == 16_384


def test_a_policy_keeps_its_default_and_other_engines_have_no_limits() -> None:
    policy = resolve_model_limits(EngineConfig(engine="policy", model="small@1"), WRITER)
    assert (policy.max_tokens, policy.context_tokens, get_completion_limit(policy)) == (2_048, None, 2_048)
    for engine in ("extractive", "rules", "scripted"):
        assert resolve_model_limits(EngineConfig(engine=engine), WRITER) == EngineConfig(engine=engine)


def test_a_run_of_an_earlier_version_sends_the_same_limit_as_before() -> None:
    stored: dict[str, Any] = {
        "engine": "litellm",
        "model": "openai/o3",
        "max_tokens": 2048,
        "options": {},
        "api_base": "",
    }
    assert get_completion_limit(EngineConfig.model_validate(stored)) == 2_048


def test_an_unchanged_request_has_the_same_digest_as_in_earlier_versions() -> None:
    fields: dict[str, Any] = {
        "engine": "extractive", "model": "", "prompt_format": "", "temperature": None, "max_tokens": 2048,
        "timeout_seconds": 120.0, "api_base": "", "options": {}, "prompt_library": "",
    }  # fmt: skip
    assert engine_to_digest_json(EngineConfig()) == fields
    assert engine_to_json(EngineConfig()) == fields | {"max_tokens": None, "timeout_seconds": None}
