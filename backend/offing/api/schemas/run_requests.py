"""Schemas of a question, and of requests that fork, cancel or steer its run."""

from datetime import UTC, datetime
from typing import Annotated, Self
from uuid import UUID

from pydantic import AfterValidator, AwareDatetime, Field, StringConstraints, model_validator

from offing.api.schemas.base import ApiModel
from offing.core.follow_up import FollowUpKind
from offing.core.interaction import Interaction
from offing.core.model import EngineConfig
from offing.core.report_style import ReportStyle
from offing.core.run import TURNS_BY_DEPTH, CancelMode, Depth
from offing.core.tool_policy import ToolPolicy
from offing.core.url import InvalidUrl
from offing.core.web_domains import MAX_DOMAINS, normalize_domains

Question = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=3, max_length=8000),
    Field(examples=["How does undici reuse connections?"]),
]

CollectionName = Annotated[str, Field(max_length=4096)]

MAX_DEADLINE = datetime(2200, 1, 1, tzinfo=UTC)


def _check_deadline(deadline: AwareDatetime) -> AwareDatetime:
    if not datetime(2020, 1, 1, tzinfo=UTC) <= deadline <= MAX_DEADLINE:
        raise ValueError("a deadline must be between 2020 and 2200")
    return deadline


Deadline = Annotated[AwareDatetime, AfterValidator(_check_deadline)]


def _check_creation_time(time: AwareDatetime) -> AwareDatetime:
    if not datetime(2000, 1, 1, tzinfo=UTC) <= time <= MAX_DEADLINE:
        raise ValueError("it must be between 2000 and 2200")
    return time


CreationTime = Annotated[AwareDatetime, AfterValidator(_check_creation_time)]


def _normalize_domains(texts: list[str]) -> list[str]:
    domains = normalize_domains(texts)
    if isinstance(domains, InvalidUrl):
        raise ValueError(domains.problem)
    return domains


Domains = Annotated[list[Annotated[str, Field(max_length=300)]], AfterValidator(_normalize_domains)]


class BudgetIn(ApiModel):
    """Limits of a run. When one is reached, the run writes a report from its evidence so far."""

    depth: Depth = Field(
        default=Depth.STANDARD,
        description="deep: breadth first, then depth on what is contested or missing, until nothing new is found.",
    )
    max_turns: int = Field(
        default=TURNS_BY_DEPTH[Depth.STANDARD],
        ge=0,
        le=2048,
        description="Maximum turns of the graph's loop. Without it: 4, 12 or 40, by the depth quick, standard or deep.",
    )
    max_tokens: int | None = Field(
        default=None, ge=0, le=10**12, description="Maximum prompt and completion tokens. null: no limit."
    )
    max_cost_usd: float | None = Field(
        default=None,
        ge=0,
        le=100_000,
        description="Maximum cost in USD. null: only the tenant's daily spending limit applies.",
    )
    max_seconds: float | None = Field(
        default=None, gt=0, le=10**8, description="Maximum seconds of work. null: no limit."
    )

    @model_validator(mode="after")
    def _derive_turns(self) -> Self:
        if "depth" in self.model_fields_set and "max_turns" not in self.model_fields_set:
            self.max_turns = TURNS_BY_DEPTH[self.depth]
        return self


class ScopeIn(ApiModel):
    """Which part of the document library a run may see, and which sources outside it may use."""

    collections: list[CollectionName] = Field(default=[], max_length=100, description="Empty: all collections.")
    sources: list[UUID] = Field(default=[], max_length=1000, description="Empty: all sources of the collections.")
    web: bool = Field(default=False, description="Whether the run may search the web and read public pages.")
    code: bool = Field(default=False, description="Whether the run may run Python in a sandbox.")
    mcp: list[Annotated[str, Field(max_length=64)]] = Field(
        default=[], max_length=20, description="Names of the operator's MCP servers whose tools the run may use."
    )
    only_domains: Domains = Field(
        default=[],
        max_length=MAX_DOMAINS,
        description="The only domains of the web that the run may use, with their subdomains. Empty: all.",
        examples=[["example.org"]],
    )
    excluded_domains: Domains = Field(
        default=[],
        max_length=MAX_DOMAINS,
        description="Domains of the web that the run may not use, with their subdomains.",
    )
    offline: bool = Field(
        default=False,
        description="Whether nothing may leave this machine. Such a run is rejected if it names the web, an MCP "
        "server, or an engine that is not on this machine.",
    )


class FollowUpIn(ApiModel):
    """How a run continues from the report of an earlier run."""

    kind: FollowUpKind = Field(
        default=FollowUpKind.AUTO,
        description="question: answer from the report and its stored evidence, without new research. edit: rewrite the "
        "report as a new version that states nothing new. research: research, and merge the findings into the report. "
        "auto: the run decides.",
    )
    run_id: UUID | None = Field(
        default=None, description="The run whose report it is about. null: the latest report of the thread."
    )


class RunIn(ApiModel):
    """A question to work on.

    Send an Idempotency-Key header so that repeating the request creates no second run.
    """

    question: Question
    graph: str = Field(default="agentflow", max_length=100, examples=["agentflow"])
    thread_id: UUID | None = Field(
        default=None,
        description="An existing thread, for a follow-up question. null: a new thread, or that of follow_up.run_id. A "
        "follow-up keeps scope, engines and tool policy of the thread's last run where it names no others.",
    )
    follow_up: FollowUpIn | None = Field(
        default=None,
        description="How the run continues from an earlier report. null: in a thread whose last run has a report, the "
        "run decides, as with the kind auto.",
    )
    budget: BudgetIn = BudgetIn()
    engines: dict[str, EngineConfig] = Field(
        default={}, description="Engine config by role. Other roles use the default of the installation."
    )
    preset: str | None = Field(
        default=None,
        max_length=64,
        description="A preset, such as fast, for the roles and the limits that the request does not name. null: the "
        "tenant's default preset if the request names no engine and is no follow-up, otherwise none.",
    )
    scope: ScopeIn = ScopeIn()
    deadline: Deadline | None = Field(
        default=None, description="Time at which the run stops collecting and writes its report."
    )
    seed: int = Field(default=0, ge=-(2**63), le=2**63 - 1)
    tool_policy: ToolPolicy | None = Field(
        default=None,
        description="Rules that decide the run's tool calls. null: in an existing thread, the tool policy of its "
        "last question; otherwise the default for the scope.",
    )
    report_style: ReportStyle | None = Field(
        default=None,
        description="The form of the report. null: in an existing thread, that of its last question; otherwise as the "
        "question needs. An empty object asks for nothing.",
    )
    interactions: list[Interaction] = Field(
        default=[],
        max_length=len(Interaction),
        description="When the run asks a person before it researches, if its graph can. clarify: what is unclear in "
        "the question. plan_review: whether the plan is right.",
    )


class ForkIn(ApiModel):
    """Where to fork a run, and the values of the fork that replace those of the run."""

    at_seq: int | None = Field(
        default=None, ge=1, description="The last step to copy. null: the last one before the run ended."
    )
    budget: BudgetIn | None = Field(
        default=None,
        description="Budget of the fork. The usage of the copied steps counts toward it. null: the budget of the run.",
    )
    engines: dict[str, EngineConfig] = Field(
        default={}, description="Engine config by role after the fork. Other roles keep theirs."
    )
    message: str = Field(
        default="", max_length=4000, description="A user message that the fork receives. Empty: no message."
    )


class CancelIn(ApiModel):
    mode: CancelMode = CancelMode.DISCARD


class UserMessageIn(ApiModel):
    text: str = Field(min_length=1, max_length=4000)
