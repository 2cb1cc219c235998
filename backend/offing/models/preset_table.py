"""The presets that come with Offing, as data: which model answers which role, and the limits of a run.

They are built from the providers that are configured. A tenant's own preset of the same name replaces one of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from offing.core.model import EngineConfig, ReasoningEffort
from offing.core.run import Depth
from offing.models.model_table import find_model_limits

ALL_ROLES = "all"
"""Stands for every role of a graph that a preset does not name."""

FAST, THOROUGH, LOCAL = "fast", "thorough", "local"

CHECKER = "checker"
"""The role that judges the claims of a report. Graphs ask it only if an engine is named for it."""

LIGHT_ROLES = ("executor", "router")
"""Roles that the small model answers in `thorough`, because they choose among few possibilities."""


@dataclass(frozen=True, slots=True)
class ProviderModels:
    """A small and a large model of a provider, by their names there."""

    small: str
    large: str


PROVIDER_MODELS: Mapping[str, ProviderModels] = {
    "openai": ProviderModels("gpt-5-mini", "gpt-5.2"),
    "anthropic": ProviderModels("claude-haiku-4-5", "claude-sonnet-4-5"),
    "gemini": ProviderModels("gemini-2.5-flash", "gemini-2.5-pro"),
    "mistral": ProviderModels("mistral-small-latest", "mistral-large-latest"),
    "deepseek": ProviderModels("deepseek-chat", "deepseek-reasoner"),
    "groq": ProviderModels("openai/gpt-oss-20b", "openai/gpt-oss-120b"),
    "together_ai": ProviderModels("openai/gpt-oss-20b", "openai/gpt-oss-120b"),
    "cohere": ProviderModels("command-r7b-12-2024", "command-a-03-2025"),
}
"""The models of presets, by litellm's name of the provider. The first one that is configured is used."""

BUDGETS: Mapping[str, Mapping[str, Any]] = {
    FAST: {"max_turns": 4, "max_cost_usd": 0.10, "max_seconds": 180.0},
    THOROUGH: {"max_turns": 40, "max_cost_usd": 5.0, "max_seconds": 3600.0, "depth": Depth.DEEP},
    LOCAL: {"max_turns": 12, "max_seconds": 3600.0},
}
"""The limits of each preset. A limit that is left out is that of the run's request."""


@dataclass(frozen=True, slots=True)
class Preset:
    """Engines for the roles of any graph, and limits of a run."""

    name: str
    engines: Mapping[str, EngineConfig]
    """Engine config by role. `all` stands for the other roles."""
    budget: Mapping[str, Any]
    """`max_turns`, `max_tokens`, `max_cost_usd`, `max_seconds` and `depth`, each only if the preset sets it."""
    is_built_in: bool = False

    def choose_engines(self, roles: Sequence[str], optional_roles: Sequence[str] = ()) -> dict[str, EngineConfig]:
        """Return the engines for the roles of a graph. Roles that the graph does not have are left out.

        `all` does not stand for optional roles.
        """
        chosen = {role: self.engines.get(role) or self.engines.get(ALL_ROLES) for role in roles}
        chosen |= {role: self.engines.get(role) for role in optional_roles}
        return {role: config for role, config in chosen.items() if config is not None}


def build_presets(providers: Sequence[tuple[str, str]], local_models: Sequence[str]) -> dict[str, Preset]:
    """Return the presets that the configured providers allow.

    `providers` are pairs of the name before a model's slash and litellm's name of the provider. `local_models` are
    models of servers of one's own, as `provider/model`.
    """
    presets: dict[str, Preset] = {}
    configured = {kind: name for name, kind in reversed(providers)}
    kind = next((one for one in PROVIDER_MODELS if one in configured), None)
    if kind is not None:
        name, models = configured[kind], PROVIDER_MODELS[kind]
        small = _choose_model(name, kind, models.small, "low")
        large = _choose_model(name, kind, models.large, "high")
        presets[FAST] = Preset(FAST, {ALL_ROLES: small}, BUDGETS[FAST], is_built_in=True)
        engines = {ALL_ROLES: large, **dict.fromkeys(LIGHT_ROLES, small), CHECKER: large}
        presets[THOROUGH] = Preset(THOROUGH, engines, BUDGETS[THOROUGH], is_built_in=True)
    if local_models:
        local = EngineConfig(engine="litellm", model=local_models[0])
        presets[LOCAL] = Preset(LOCAL, {ALL_ROLES: local}, BUDGETS[LOCAL], is_built_in=True)
    return presets


def _choose_model(name: str, kind: str, model: str, effort: ReasoningEffort) -> EngineConfig:
    """Return the engine config of a model, with the reasoning effort if the model table says that it accepts it."""
    accepted = effort in find_model_limits(f"{kind}/{model}").efforts
    return EngineConfig(engine="litellm", model=f"{name}/{model}", reasoning_effort=effort if accepted else None)
