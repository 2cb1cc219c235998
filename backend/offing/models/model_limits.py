"""Resolves the token limits of a role's engine when a run is submitted.

The resolved limits are stored with the run, so a run that continues after an upgrade keeps them.
"""

from dataclasses import dataclass

from offing.core.model import EngineConfig
from offing.models.model_table import find_model_limits
from offing.sdk.role import DEFAULT_ANSWER_TOKENS

POLICY_MAX_TOKENS = 2_048
"""Completion tokens of a policy whose engine config sets no `max_tokens`."""
UNLISTED_ANSWER_TOKENS = 4_096
"""Maximum answer of a model whose output limit is unknown."""
CONTEXT_PER_ANSWER = 4
"""An answer gets at most this fraction of the context window: a quarter."""


@dataclass(frozen=True, slots=True)
class RoleLimits:
    """What a role needs from its engine."""

    answer_tokens: int = DEFAULT_ANSWER_TOKENS
    """Completion tokens that an answer may need, without thinking."""


def resolve_model_limits(engine_config: EngineConfig, role_limits: RoleLimits) -> EngineConfig:
    """Return the engine config with the limits in force for a role.

    Settings of the engine config take precedence over the model table, and the table over defaults. Limits
    that are already resolved are kept. Only `litellm` and `policy` have limits.
    """
    if engine_config.engine == "policy":
        return engine_config.model_copy(update={"max_tokens": engine_config.max_tokens or POLICY_MAX_TOKENS})
    if engine_config.engine != "litellm":
        return engine_config
    listed = find_model_limits(engine_config.model)
    context = engine_config.context_tokens or listed.context_tokens
    output = engine_config.output_tokens or listed.output_tokens
    answer = engine_config.answer_tokens or engine_config.max_tokens
    return engine_config.model_copy(
        update={
            "context_tokens": context,
            "output_tokens": output,
            "answer_tokens": answer or _choose_answer_tokens(role_limits.answer_tokens, output, context),
        }
    )


def _choose_answer_tokens(needed: int, output_tokens: int | None, context_tokens: int | None) -> int:
    answer = min(needed, UNLISTED_ANSWER_TOKENS if output_tokens is None else output_tokens)
    return answer if context_tokens is None else max(1, min(answer, context_tokens // CONTEXT_PER_ANSWER))


def get_completion_limit(engine_config: EngineConfig) -> int:
    """Return the maximum completion tokens of one attempt, including thinking."""
    if engine_config.engine == "policy":
        return engine_config.max_tokens or POLICY_MAX_TOKENS
    answer = engine_config.answer_tokens or engine_config.max_tokens or UNLISTED_ANSWER_TOKENS
    limit = answer + (engine_config.thinking_tokens or 0)
    return limit if engine_config.output_tokens is None else min(limit, engine_config.output_tokens)


def clear_resolved_limits(engine_config: EngineConfig) -> EngineConfig:
    """Return the engine config with the limits of its model, but without those of its role.

    They are resolved again for another role.
    """
    return engine_config.model_copy(update={"answer_tokens": None, "thinking_tokens": None})
