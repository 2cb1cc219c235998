"""API schemas of what helps a person to ask: statistics of past runs, and saved ways to ask."""

from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import Field

from offing.api.schemas.base import ApiModel
from offing.api.schemas.run_requests import BudgetIn, ScopeIn
from offing.core.interaction import Interaction
from offing.core.model import EngineConfig, hide_options
from offing.core.report_style import ReportStyle
from offing.services.question_presets import MAX_NAME_CHARS
from offing.storage.question_presets import QuestionPresetRow
from offing.storage.run_statistics import Quartiles, RunStatistics


class QuartilesOut(ApiModel):
    low: float = Field(description="A quarter of the runs had less.")
    median: float
    high: float = Field(description="A quarter of the runs had more.")


class RunStatisticsOut(ApiModel):
    """What the turns of ended runs of a graph took: of all of them, or of those with the same models."""

    graph: str
    models: list[str] | None = Field(
        description="The engines and models that answered the roles, sorted, such as litellm:openai/gpt-5-mini. null: "
        "any."
    )
    runs: int = Field(description="Number of runs. At most the latest 300 runs of a graph are read.")
    turns: QuartilesOut = Field(description="Turns per run.")
    seconds_per_turn: QuartilesOut = Field(description="Seconds of work per turn, without waiting.")
    tokens_per_turn: QuartilesOut
    cost_usd_per_turn: QuartilesOut = Field(description="0 also means that the price was unknown.")


class RunStatisticsList(ApiModel):
    items: list[RunStatisticsOut] = Field(description="A graph without ended runs is left out.")


class QuestionSettings(ApiModel):
    """What a question preset sets, as in a request for a run. Absent fields are not set."""

    graph: str = Field(default="agentflow", max_length=100)
    preset: str | None = Field(default=None, max_length=64, description="Preset of engines and limits. null: none.")
    engines: dict[str, EngineConfig] = Field(
        default={}, max_length=50, description="Engine config by role. Options of engines are not stored."
    )
    budget: BudgetIn = BudgetIn()
    scope: ScopeIn = ScopeIn()
    report_style: ReportStyle | None = None
    interactions: list[Interaction] = Field(default=[], max_length=len(Interaction))
    tool_policy: str | None = Field(
        default=None,
        max_length=200,
        description="Name of a stored tool policy, whose rules are read when a question is asked. Empty: the default "
        "one. null: the preset says nothing about it.",
    )


class QuestionPresetIn(ApiModel):
    """A way to ask, to be saved under a name."""

    name: str = Field(max_length=400, description=f"1 to {MAX_NAME_CHARS} characters, unique.")
    settings: QuestionSettings


class QuestionPresetChangeIn(ApiModel):
    """What to change of a question preset. A field that is absent or null stays unchanged."""

    name: str | None = Field(default=None, max_length=400)
    settings: QuestionSettings | None = None


class QuestionPresetOut(ApiModel):
    """A saved way to ask."""

    id: UUID
    name: str
    settings: QuestionSettings
    created_at: datetime
    updated_at: datetime


class QuestionPresetList(ApiModel):
    items: list[QuestionPresetOut] = Field(description="By name, at most 100.")


def serialize_run_statistics(row: RunStatistics) -> RunStatisticsOut:
    return RunStatisticsOut(
        graph=row.graph,
        models=None if row.models is None else list(row.models),
        runs=row.run_count,
        turns=_serialize_quartiles(row.turns),
        seconds_per_turn=_serialize_quartiles(row.seconds),
        tokens_per_turn=_serialize_quartiles(row.tokens),
        cost_usd_per_turn=_serialize_quartiles(row.cost_usd),
    )


def _serialize_quartiles(quartiles: Quartiles) -> QuartilesOut:
    return QuartilesOut(low=quartiles.low, median=quartiles.median, high=quartiles.high)


def dump_settings(settings: QuestionSettings) -> dict[str, Any]:
    """Return the settings as they are stored: only what the request set, and without options of engines."""
    hidden = {role: hide_options(config) for role, config in settings.engines.items()}
    stored = settings.model_dump(mode="json", exclude_unset=True)
    if hidden:
        stored["engines"] = {role: one.model_dump(mode="json", exclude_defaults=True) for role, one in hidden.items()}
    return stored


def serialize_question_preset(row: QuestionPresetRow) -> QuestionPresetOut:
    return QuestionPresetOut(
        id=row.id,
        name=row.name,
        settings=QuestionSettings.model_validate(row.settings),
        created_at=row.created_at,
        updated_at=row.updated_at,
    )
