"""The shapes on the wire under /api/v1. The page's types are generated from these."""

from datetime import UTC, datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints

from offing.core.model import EngineChoice
from offing.core.policy import Policy
from offing.core.run import CancelMode, RunStatus, StopReason
from offing.core.step import StepKind

Question = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=3, max_length=8000),
    Field(examples=["How does undici reuse connections?"]),
]

CollectionName = Annotated[str, Field(max_length=4096)]

FAR = datetime(2200, 1, 1, tzinfo=UTC)


def _within_reach(deadline: AwareDatetime) -> AwareDatetime:
    if not datetime(2020, 1, 1, tzinfo=UTC) <= deadline <= FAR:
        raise ValueError("a deadline lies between 2020 and 2200")
    return deadline


Deadline = Annotated[AwareDatetime, AfterValidator(_within_reach)]


class Wire(BaseModel):
    model_config = ConfigDict(extra="forbid")


class BudgetIn(Wire):
    """Limits on a run; whichever is reached first makes it write what it has."""

    turns: int = Field(default=12, ge=0, le=2048, description="Turns of the graph's loop.")
    tokens: int | None = Field(
        default=None, ge=0, le=10**12, description="Prompt and completion tokens. null: no limit."
    )
    usd: float | None = Field(default=None, ge=0, le=100_000, description="Money. null: only the tenant's daily cap.")
    seconds: float | None = Field(default=None, gt=0, le=10**8, description="Seconds of work. null: no limit.")


class ScopeIn(Wire):
    """What of the library the run may see, and whether it may leave it."""

    collections: list[CollectionName] = Field(default=[], max_length=100, description="Empty: all of it.")
    sources: list[UUID] = Field(default=[], max_length=1000, description="Empty: all sources of the collections.")
    web: bool = Field(default=False, description="Whether the run may search the web and read public pages.")
    code: bool = Field(default=False, description="Whether the run may run Python in a sandbox.")
    mcp: list[Annotated[str, Field(max_length=64)]] = Field(
        default=[], max_length=20, description="MCP servers of the operator's whose tools the run may use, by name."
    )


class RunIn(Wire):
    """A question to work on. Send an Idempotency-Key header to make a repeat of the request harmless."""

    question: Question
    graph: str = Field(default="agentflow", max_length=100, examples=["agentflow"])
    thread_id: UUID | None = Field(default=None, description="An earlier thread, for a follow-up. null: a new one.")
    budget: BudgetIn = BudgetIn()
    engines: dict[str, EngineChoice] = Field(
        default={}, description="Engine by role; roles left out use the installation's default."
    )
    scope: ScopeIn = ScopeIn()
    deadline: Deadline | None = Field(default=None, description="The run writes what it has at this time.")
    seed: int = Field(default=0, ge=-(2**63), le=2**63 - 1)
    tool_policy: Policy | None = Field(
        default=None,
        description="What its tools may do, rule by rule. null: in a thread, what was given with its last question; "
        "else the default for its scope.",
    )


class SpentOut(Wire):
    turns: int
    tokens: int
    usd: float
    seconds: float


class RunOut(Wire):
    """A run as a list shows it."""

    id: UUID
    thread_id: UUID
    question: str
    graph: str
    graph_version: str
    status: RunStatus
    stop_reason: StopReason | None
    waiting_for: str | None = Field(description="What a waiting or paused run waits for.")
    waiting_since: datetime | None = Field(
        description="When a queued, waiting or paused run began to wait. null: it does not wait."
    )
    error: str | None
    engines: dict[str, EngineChoice]
    scope: ScopeIn = Field(description="What it may see and use. A follow-up that names nothing gets the same.")
    budget: BudgetIn
    spent: SpentOut
    deadline: datetime | None
    last_seq: int
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    title: str | None = Field(default=None, description="Title of its latest report.")
    questions: int = Field(default=0, description="That wait for a person.")
    forked_from: UUID | None = Field(default=None, description="The run that it is a fork of.")
    forked_at: int | None = Field(
        default=None, description="Of a fork: its last step that was made in the other run. `spent` counts those, too."
    )


class FileOut(Wire):
    """A file that the code of a run has written."""

    name: str = Field(description="Its path in the folder in which the code ran.")
    sha256: str = Field(description="Of its bytes, in hex; what it is fetched by.")
    bytes: int
    kind: str = Field(description="Media type, told by the bytes.")
    picture: bool = Field(description="Whether a page may draw it.")


class FileList(Wire):
    items: list[FileOut]


class LiveOut(Wire):
    """What a run does at this moment. Not durable: gone when nothing is known."""

    doing: str = Field(examples=["search_library: connection pooling"])
    since: datetime
    worker_seen: datetime | None = None


class RunDetail(RunOut):
    live: LiveOut | None = None
    marks: str = Field(
        description="The horizon: one letter a step in order. p plan, s search, r read, c calculate, m memory, "
        "v verify, w report, f failed, h human, answer or resumed, n other."
    )


class Page(Wire):
    next: str | None = Field(description="Cursor for the next page. null: this was the last.")


class RunPage(Page):
    items: list[RunOut]


class StepOut(Wire):
    """A step as a timeline shows it. The event stream carries these."""

    run_id: UUID
    seq: int
    kind: StepKind
    label: str
    title: str
    detail: str
    ok: bool
    ms: int | None
    tokens: int
    turn: int
    at: datetime


class StepDetail(StepOut):
    payload: dict[str, Any]


class StepPage(Page):
    items: list[StepOut]


class WholeStepPage(Page):
    items: list[StepDetail]


class ForkIn(Wire):
    """Where to fork a run, and what the fork has in place of what that run has."""

    at: int | None = Field(
        default=None, ge=1, description="The last step that is kept. null: the last one before the run's end."
    )
    budget: BudgetIn | None = Field(
        default=None, description="What the kept steps have used counts with it. null: that of the run."
    )
    engines: dict[str, EngineChoice] = Field(
        default={}, description="Engine by role from then on; roles left out keep theirs."
    )
    message: str = Field(
        default="", max_length=4000, description="What the fork is told as a person's message. Empty: nothing."
    )


class CancelIn(Wire):
    mode: CancelMode = CancelMode.DISCARD


class MessageIn(Wire):
    text: str = Field(min_length=1, max_length=4000)


class CitationOut(Wire):
    number: int
    artefact_id: UUID | None = Field(description="null: the source was erased.")
    source_id: UUID
    title: str
    start: int = Field(description="First code point of the span in the stored text.")
    end: int = Field(description="Code point after the span.")
    quote: str
    verified: bool = Field(description="The quote was found again in the stored text just now.")


class SentenceOut(Wire):
    id: str
    text: str
    citations: list[int]
    supported: bool
    rejected: list[str]


class SectionOut(Wire):
    heading: str
    sentences: list[SentenceOut]


class ReportOut(Wire):
    run_id: UUID
    version: int
    status: Literal["complete", "partial"]
    reason: StopReason
    title: str
    answer: SentenceOut | None
    sections: list[SectionOut]
    citations: list[CitationOut]
    limits: str
    written_by: str
    created_at: datetime


class ThreadOut(Wire):
    id: UUID
    title: str
    created_at: datetime
    runs: list[RunOut]


class ThreadPage(Page):
    items: list[ThreadOut]


class SourceOut(Wire):
    id: UUID
    collection: str
    name: str
    title: str
    media_type: str
    bytes: int
    length: int = Field(description="Code points of the extracted text.")
    artefact_id: UUID
    snapshot: str = Field(description="SHA-256 of the stored bytes, in hex.")
    added_at: datetime


class SourcePage(Page):
    items: list[SourceOut]
    total: int


class CollectionOut(Wire):
    name: str = Field(description="Empty: sources that were uploaded one by one.")
    count: int


class UploadedOut(Wire):
    """What became of one uploaded file."""

    name: str
    outcome: Literal["added", "unchanged", "replaced", "refused", "failed"] = Field(
        description="`failed`: it was not stored this time, and sending it again can help."
    )
    source: SourceOut | None
    problem: str = Field(default="", description="Why it was refused or failed, and what to do.")


class UploadOut(Wire):
    files: list[UploadedOut]


class HitOut(Wire):
    artefact_id: UUID
    source_id: UUID
    title: str
    heading: str
    start: int
    end: int
    text: str
    score: float


class HitPage(Wire):
    items: list[HitOut]


class PassageOut(Wire):
    """A span with the text around it."""

    artefact_id: UUID
    source_id: UUID
    title: str
    name: str
    start: int
    end: int
    before: str
    text: str
    after: str
    snapshot: str


class ErasedOut(Wire):
    sources: int
    snapshots: int
    passages: int
    steps: int = Field(description="Steps of runs whose copies of the text were removed.")


class McpServerOut(Wire):
    """An MCP server that runs may name in their scope."""

    name: str
    tools: list[str] = Field(description="Names under which its tools are called.")


class GraphOut(Wire):
    name: str
    title: str
    description: str
    version: str
    roles: list[str]
    diagram: str = Field(description="Mermaid text drawn from the graph itself.")


class RatingIn(Wire):
    """A person's opinion of a report or of one of its sentences. A new one supersedes the one before."""

    claim: str | None = Field(
        default=None, max_length=40, description="Sentence id. null: the whole report.", examples=["s3"]
    )
    value: float | None = Field(default=None, ge=-1, le=1, description="-1 wrong, 0 neutral, 1 good.")
    correction: str = Field(default="", max_length=4000)


class RatingOut(Wire):
    id: UUID
    run_id: UUID
    report_version: int
    claim: str | None
    scorer: str
    version: int
    value: float | None
    correction: str
    created_at: datetime


class TenantOut(Wire):
    name: str
    training_opt_in: bool
    daily_spend_usd: float | None
    spent_today_usd: float


class TenantIn(Wire):
    """What to change; a field that is left out stays as it is."""

    training_opt_in: bool = False
    daily_spend_usd: float | None = Field(default=None, ge=0, le=100_000, description="null: no cap.")


class SessionOut(Wire):
    tenant: str
    csrf_token: str | None = Field(description="To send as X-CSRF-Token on writes. null for API keys.")


class EngineOut(Wire):
    name: str
    available: bool
    models: list[str]
    note: str
    offered_at: str = Field("", description="Where a server answers that the operator has not accepted. Empty: none.")


class HealthOut(Wire):
    status: Literal["ok", "degraded", "down"]
    parts: dict[str, str]


class Problem(BaseModel):
    """RFC 9457 problem details. `field` and `remedy` say what to change."""

    type: str
    title: str
    status: int
    detail: str
    field: str | None = None
    remedy: str | None = None
