"""Resolves the token limits of a role's engine when a run is submitted.

The resolved limits are stored with the run, so a run that continues after an upgrade keeps them.
"""

from dataclasses import dataclass
from typing import Any

from offing.core.model import EngineConfig
from offing.models.model_table import find_model_limits
from offing.sdk.role import DEFAULT_ANSWER_TOKENS

POLICY_MAX_TOKENS = 2_048
"""Completion tokens of a policy whose engine config sets no `max_tokens`."""
UNLISTED_ANSWER_TOKENS = 4_096
"""Maximum answer of a model whose output limit is unknown."""
CONTEXT_PER_ANSWER = 4
"""An answer gets at most a quarter of the context window, and with its thinking at most half of it."""
THINKING_TOKENS = {"none": 0, "minimal": 1_024, "low": 4_096, "medium": 8_192, "high": 16_384}
"""Completion tokens for thinking in addition to the answer, by reasoning effort.

They are an upper limit of each attempt, not a target: tokens that are not used cost nothing.
"""
DEFAULT_EFFORT = "medium"
"""Effort for which a listed reasoning model gets room if none is set. Providers have different defaults."""

MIN_TIMEOUT_SECONDS = 120.0
"""Time limit of a short completion."""
MIN_TOKENS_PER_SECOND = 40
"""Speed that a model is expected to have at least. It determines the time limit of a long completion."""


@dataclass(frozen=True, slots=True)
class RoleLimits:
    """What a role needs from its engine."""

    answer_tokens: int = DEFAULT_ANSWER_TOKENS
    """Completion tokens that an answer may need, without thinking."""


@dataclass(frozen=True, slots=True)
class LimitProblem:
    """A setting of an engine config that its model cannot have."""

    field: str
    problem: str
    remedy: str


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
    limits: dict[str, Any] = {
        "context_tokens": engine_config.context_tokens or listed.context_tokens,
        "output_tokens": engine_config.output_tokens or listed.output_tokens,
    }
    return _resolve_completion(engine_config.model_copy(update=limits), role_limits)


def _resolve_completion(engine_config: EngineConfig, role_limits: RoleLimits) -> EngineConfig:
    """Divide the completion between the answer and thinking. Settings are never reduced."""
    most = _most_completion_tokens(engine_config)
    thinking, answer = engine_config.thinking_tokens, engine_config.answer_tokens or engine_config.max_tokens
    if thinking is None:
        by_effort = _choose_thinking_tokens(engine_config)
        thinking = by_effort if most is None else min(by_effort, most // 2 if answer is None else max(0, most - answer))
    if answer is None:
        answer = _choose_answer_tokens(engine_config, role_limits.answer_tokens)
        answer = answer if most is None else max(1, min(answer, most - thinking))
    return engine_config.model_copy(update={"answer_tokens": answer, "thinking_tokens": thinking})


def _most_completion_tokens(engine_config: EngineConfig) -> int | None:
    context = engine_config.context_tokens
    known = [engine_config.output_tokens, None if context is None else 2 * context // CONTEXT_PER_ANSWER]
    return min((limit for limit in known if limit is not None), default=None)


def _choose_answer_tokens(engine_config: EngineConfig, needed: int) -> int:
    output, context = engine_config.output_tokens, engine_config.context_tokens
    answer = min(needed, UNLISTED_ANSWER_TOKENS if output is None else output)
    return answer if context is None else min(answer, context // CONTEXT_PER_ANSWER)


def _choose_thinking_tokens(engine_config: EngineConfig) -> int:
    effort = find_effort(engine_config)
    if effort is None:
        effort = DEFAULT_EFFORT if find_model_limits(engine_config.model).supports_reasoning else "none"
    return THINKING_TOKENS.get(effort, THINKING_TOKENS["high"])


def find_effort(engine_config: EngineConfig) -> str | None:
    """Return the reasoning effort of an engine config, also from its sampling options. `None` means unset."""
    sampling: Any = engine_config.options.get("sampling")
    unchecked: Any = sampling.get("reasoning_effort") if isinstance(sampling, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return engine_config.reasoning_effort or (unchecked if isinstance(unchecked, str) else None)


def find_limit_problem(engine_config: EngineConfig) -> LimitProblem | None:
    """Return the first setting that contradicts what is known about the model. `None` means that there is none."""
    listed, effort = find_model_limits(engine_config.model), engine_config.reasoning_effort
    model, output = engine_config.model, engine_config.output_tokens or listed.output_tokens
    if engine_config.engine != "litellm":
        return None if effort is None else LimitProblem(
            "reasoning_effort", f"the engine {engine_config.engine} does not think", "Leave it out."
        )  # fmt: skip
    if effort is not None and listed.is_listed and not listed.accepts_effort(effort):
        remedy = f"Use one of: {', '.join(listed.efforts)}." if listed.supports_reasoning else "Leave it out."
        return LimitProblem("reasoning_effort", f"{model} does not accept {effort!r}, according to litellm", remedy)
    if effort is not None and find_effort(engine_config.model_copy(update={"reasoning_effort": None})):
        return LimitProblem(
            "options.sampling.reasoning_effort", "reasoning_effort is set, too", "Set only one of them."
        )
    if engine_config.max_tokens is not None and output is not None and engine_config.max_tokens > output:
        remedy = f"Use at most {output}, or set output_tokens if the model can write more."
        return LimitProblem("max_tokens", f"{model} writes at most {output} tokens", remedy)
    return _find_window_problem(engine_config)


def _find_window_problem(engine_config: EngineConfig) -> LimitProblem | None:
    listed, limit = find_model_limits(engine_config.model), engine_config.max_tokens
    context = engine_config.context_tokens or listed.context_tokens
    if limit is None or context is None or limit < context:
        return None
    remedy = "Use less, so that the prompt fits, or set context_tokens if the window is larger."
    return LimitProblem("max_tokens", f"{limit} leaves no room for a prompt in {context} tokens", remedy)


def get_completion_limit(engine_config: EngineConfig) -> int:
    """Return the maximum completion tokens of one attempt, including thinking."""
    if engine_config.engine == "policy":
        return engine_config.max_tokens or POLICY_MAX_TOKENS
    answer = engine_config.answer_tokens or engine_config.max_tokens or UNLISTED_ANSWER_TOKENS
    limit = answer + (engine_config.thinking_tokens or 0)
    return limit if engine_config.output_tokens is None else min(limit, engine_config.output_tokens)


def get_timeout_seconds(engine_config: EngineConfig, completion_tokens: int) -> float:
    """Return the time limit of an attempt with this maximum number of completion tokens."""
    return engine_config.timeout_seconds or max(MIN_TIMEOUT_SECONDS, completion_tokens / MIN_TOKENS_PER_SECOND)


def clear_resolved_limits(engine_config: EngineConfig) -> EngineConfig:
    """Return the engine config with the limits of its model, but without those of its role.

    They are resolved again for another role.
    """
    fallbacks = engine_config.fallbacks and tuple(clear_resolved_limits(one) for one in engine_config.fallbacks)
    return engine_config.model_copy(update={"answer_tokens": None, "thinking_tokens": None, "fallbacks": fallbacks})
