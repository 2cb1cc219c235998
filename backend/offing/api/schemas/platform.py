"""Schemas of what an installation offers: graphs, engines, MCP servers, tenants and sessions."""

from typing import Literal

from pydantic import Field

from offing.api.coded_texts import TEXTS, OfferTextOut
from offing.api.schemas.base import ApiModel
from offing.core.interaction import Interaction
from offing.sdk import StateView


class McpServerOut(ApiModel):
    """An MCP server that runs may name in their scope."""

    name: str
    tools: list[str] = Field(description="Names of its tools in tool calls.")


class GraphEdgeOut(ApiModel):
    source: str
    target: str
    is_conditional: bool = Field(description="Whether the graph decides in each run if it takes this edge.")


class GraphOut(ApiModel):
    name: str
    title: str
    description: str
    version: str
    roles: list[str]
    optional_roles: list[str] = Field(
        description="Roles that are asked only if the engines of a run name them. `all` leaves them out."
    )
    interactions: list[Interaction] = Field(
        default=[], description="When its runs can ask a person before they research."
    )
    diagram: str = Field(description="Mermaid diagram generated from the graph.")
    nodes: list[str] = Field(
        description="Nodes of the graph, `__start__` first. Empty: the graph cannot be built without a run."
    )
    edges: list[GraphEdgeOut]
    has_editable_plan: bool = Field(description="Whether its runs read changes of their plan.")
    texts: dict[str, OfferTextOut] = Field(default={}, description=f"{TEXTS} Fields: title, description.")
    state_view: StateView | None = Field(
        description="What the State tab shows for a run. null: the graph has no State tab."
    )


class TenantOut(ApiModel):
    name: str
    training_opt_in: bool
    max_daily_spend_usd: float | None
    spent_today_usd: float
    default_preset: str | None = Field(
        description="Preset of new questions that name neither a preset nor an engine. null: none."
    )
    default_engine: str = Field(
        description="The installation's engine for roles that no preset or request names, such as extractive."
    )


class TenantIn(ApiModel):
    """Settings to change. A field that is left out stays unchanged."""

    training_opt_in: bool = False
    max_daily_spend_usd: float | None = Field(default=None, ge=0, le=100_000, description="null: no limit.")
    default_preset: str | None = Field(
        default=None,
        min_length=1,
        max_length=64,
        description="Preset of new questions that name neither a preset nor an engine. null: none.",
    )


class SessionOut(ApiModel):
    tenant: str
    csrf_token: str | None = Field(description="Value of the X-CSRF-Token header for writes. null for API keys.")
    is_operator: bool = Field(
        default=False,
        description="Whether it may change the installation. `offing login --operator` opens such a session.",
    )


class ModelDetailsOut(ApiModel):
    """What the model table says about a model."""

    model: str
    context_tokens: int | None = Field(description="Maximum tokens of a prompt. null: unknown.")
    input_usd: float | None = Field(description="Price of a million prompt tokens in USD. null: unknown.")
    output_usd: float | None = Field(description="Price of a million completion tokens in USD. null: unknown.")


class EngineOut(ApiModel):
    name: str
    available: bool
    models: list[str]
    model_details: list[ModelDetailsOut] = Field(
        default=[], description="What is known about its models. A model without an entry is unknown."
    )
    note: str
    texts: dict[str, OfferTextOut] = Field(default={}, description=f"{TEXTS} Fields: note.")
    offered_at: str = Field(
        "", description="Address of a detected server that the operator has not accepted. Empty: none."
    )


class HealthOut(ApiModel):
    status: Literal["ok", "degraded", "down"]
    components: dict[str, str]
