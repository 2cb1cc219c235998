"""API schemas of providers and presets, and their serializers. No response contains a key."""

from dataclasses import asdict
from datetime import datetime
from typing import Any, Literal

from pydantic import Field, SecretStr

from offing.api.schemas.base import ApiModel
from offing.core.model import EngineConfig
from offing.core.run import Depth
from offing.models.call_limits import MAX_CONCURRENT_CALLS
from offing.models.preset_table import Preset
from offing.models.provider_kinds import ProviderKind
from offing.models.provider_models import MAX_LISTED_MODELS, ModelList, search_models
from offing.services.presets import MAX_PRESET_ROLES
from offing.storage.providers import ProviderRow


class ProviderIn(ApiModel):
    """A provider to store under the name in the path."""

    provider: str = Field(
        default="",
        max_length=64,
        description="litellm's name of the provider, such as hosted_vllm. Empty: the name in the path.",
    )
    api_base: str = Field(
        default="",
        max_length=2000,
        description="Address that the key is sent to; the operator must have accepted it. Empty: the provider's own.",
    )
    key: SecretStr | None = Field(
        default=None, description="The API key. It is never returned. null: keep the stored key. Empty: remove it."
    )
    max_concurrent_calls: int | None = Field(
        default=None,
        ge=1,
        le=MAX_CONCURRENT_CALLS,
        description="Maximum number of calls of your tenant at the same time. Others wait. null: no limit.",
    )


class CapabilityOut(ApiModel):
    name: str
    outcome: Literal["works", "fails", "unknown", "not tested"]
    detail: str
    cause: str = Field(
        default="", description="Kind of failure of the call, such as authentication_failed. Empty: it did not fail."
    )


class ProviderKindOut(ApiModel):
    """A provider that can be stored, and what it needs."""

    name: str = Field(description="litellm's name of the provider.")
    title: str
    key_page: str = Field(description="Page on which its users create keys. Empty: none.")
    suggested_models: list[str] = Field(description="Models of the built-in presets, the small one first.")
    is_server: bool = Field(description="It is a server of your own, whose key is optional.")
    needs_address: bool = Field(description="It has no address of its own.")
    default_address: str = Field(description="Address of a server of your own, unless one is stored. Empty: its own.")
    environment_key: bool = Field(description="The environment has a key, so none has to be stored.")


class ProviderModelOut(ApiModel):
    """A model of a provider, with what is known about it. null: unknown."""

    name: str = Field(description="Its name at the provider.")
    context_tokens: int | None = Field(description="Maximum tokens of a prompt.")
    input_usd_per_million: float | None = Field(description="Price of one million prompt tokens in USD.")
    output_usd_per_million: float | None = Field(description="Price of one million completion tokens in USD.")
    calls_tools: bool | None
    follows_schema: bool | None = Field(description="It answers with JSON of a given schema.")
    reads_images: bool | None
    reasons: bool | None = Field(description="It can think before it answers.")


class ProviderModelListOut(ApiModel):
    """The models of a provider by name, at most 500."""

    items: list[ProviderModelOut]
    total: int = Field(description="Number of models that match, which may exceed the number of items.")
    source: Literal["server", "table"] = Field(
        description="server: the provider's own list. table: litellm's list, which may differ from your account's."
    )
    problem: str = Field(description="Why the provider's server did not list its models. Empty: none.")


class ProviderTestOut(ApiModel):
    """What a model of a provider can do, and what the test cost."""

    model: str
    tested_at: datetime
    seconds: float
    cost_usd: float
    priced: bool = Field(description="false: the price is unknown, and `cost_usd` is too low.")
    tokens: int
    capabilities: list[CapabilityOut]


class ProviderOut(ApiModel):
    """A stored provider."""

    name: str = Field(description="What precedes the slash in the name of a model.")
    provider: str = Field(description="litellm's name of the provider.")
    api_base: str = Field(description="Empty: the provider's own address.")
    max_concurrent_calls: int | None = Field(description="Maximum number of calls at the same time. null: no limit.")
    key_set: bool
    key_set_at: datetime | None = Field(description="null: no key is set.")
    created_at: datetime
    updated_at: datetime
    last_test: ProviderTestOut | None = Field(description="null: it was not tested since its last change.")


class ProviderTestIn(ApiModel):
    """Which model to test."""

    model: str = Field(min_length=1, max_length=300, description="Name of the model at the provider.")
    max_cost_usd: float = Field(default=0.05, ge=0, le=1, description="Maximum cost of the test in USD.")


class PresetBudgetIn(ApiModel):
    """Limits of a run with the preset. A limit that is null is that of the run."""

    max_turns: int | None = Field(default=None, ge=0, le=2048)
    max_tokens: int | None = Field(default=None, ge=0, le=10**12)
    max_cost_usd: float | None = Field(default=None, ge=0, le=100_000)
    max_seconds: float | None = Field(default=None, gt=0, le=10**8)
    depth: Depth | None = Field(default=None, description="How a run uses its turns.")


class PresetIn(ApiModel):
    """Engines for the roles of any graph, and limits of a run."""

    engines: dict[str, EngineConfig] = Field(
        max_length=MAX_PRESET_ROLES, description="Engine config by role. `all` stands for the other roles."
    )
    budget: PresetBudgetIn = PresetBudgetIn()


class PresetOut(ApiModel):
    """A preset that runs can name."""

    name: str
    engines: dict[str, EngineConfig]
    budget: PresetBudgetIn
    built_in: bool = Field(description="It was built from the configured providers.")


def serialize_provider(row: ProviderRow) -> ProviderOut:
    return ProviderOut(
        name=row.name,
        provider=row.litellm_provider,
        api_base=row.api_base,
        max_concurrent_calls=row.max_concurrent_calls,
        key_set=row.key_id is not None,
        key_set_at=row.key_set_at,
        created_at=row.created_at,
        updated_at=row.updated_at,
        last_test=ProviderTestOut.model_validate(row.last_test) if row.last_test else None,
    )


def serialize_provider_kind(kind: ProviderKind) -> ProviderKindOut:
    return ProviderKindOut.model_validate({**asdict(kind), "suggested_models": list(kind.suggested_models)})


def serialize_models(listed: ModelList, search: str) -> ProviderModelListOut:
    matches = search_models(listed.models, search)
    items = [ProviderModelOut.model_validate(asdict(model)) for model in matches[:MAX_LISTED_MODELS]]
    return ProviderModelListOut.model_validate(
        {"items": items, "total": len(matches), "source": listed.source, "problem": listed.problem}
    )


def build_preset(name: str, body: PresetIn) -> Preset:
    budget: dict[str, Any] = body.budget.model_dump(exclude_none=True)
    return Preset(name, body.engines, budget)


def serialize_preset(preset: Preset) -> PresetOut:
    budget = PresetBudgetIn.model_validate(preset.budget)
    return PresetOut(name=preset.name, engines=dict(preset.engines), budget=budget, built_in=preset.is_built_in)
