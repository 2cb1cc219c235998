"""Schemas of runs and threads: their state, usage, files, drafts and ratings."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from offing.api.coded_texts import TEXTS, RunTextOut
from offing.api.schemas.base import ApiModel, Page
from offing.api.schemas.run_requests import BudgetIn, ScopeIn
from offing.core.follow_up import FollowUpKind
from offing.core.interaction import Interaction
from offing.core.model import EngineConfig
from offing.core.report_style import ReportStyle
from offing.core.run import RunStatus, StopReason
from offing.services.run_search import MatchLocation


class FollowUpOut(ApiModel):
    kind: FollowUpKind = Field(description="The kind that was requested. The report has the one that was chosen.")
    run_id: UUID = Field(description="The run whose report it is about.")
    version: int = Field(description="Version of that report.")


class UsageOut(ApiModel):
    turns: int
    tokens: int
    cost_usd: float
    seconds: float


class TokenDetailsOut(ApiModel):
    """Tokens of a run's role calls. Calls that failed and child runs are not included."""

    prompt_tokens: int
    completion_tokens: int
    cached_prompt_tokens: int = Field(
        description="Part of prompt_tokens that providers read from their caches. 0 also means unknown."
    )
    reasoning_tokens: int = Field(
        description="Part of completion_tokens that models thought before they answered. 0 also means unknown."
    )


class MarkOut(ApiModel):
    """A part of a text that is marked."""

    start: int = Field(description="First code point.")
    end: int = Field(description="Code point after the last one.")


class RunMatchOut(ApiModel):
    """Where a run matches a search best: the text with the most of the searched words."""

    location: MatchLocation
    excerpt: str = Field(description="The text around the first match, as one line.")
    marks: list[MarkOut] = Field(default=[], description="The searched words in the excerpt, in order.")
    question_marks: list[MarkOut] = Field(default=[], description="The searched words in the question, in order.")
    title_marks: list[MarkOut] = Field(default=[], description="The searched words in the given title, in order.")


class RunOut(ApiModel):
    """A run as shown in a list."""

    id: UUID
    thread_id: UUID
    question: str
    graph: str
    graph_version: str
    status: RunStatus
    stop_reason: StopReason | None
    waiting_for: str | None = Field(description="What a waiting or paused run waits for.")
    waiting_since: datetime | None = Field(
        description="When a queued, waiting or paused run began to wait. null: the run is not waiting."
    )
    error: str | None
    texts: dict[str, RunTextOut] = Field(default={}, description=f"{TEXTS} Fields: waiting_for, error.")
    engines: dict[str, EngineConfig]
    scope: ScopeIn = Field(
        description="What the run may see and use. A follow-up question without a scope gets the scope of its thread."
    )
    budget: BudgetIn
    usage: UsageOut
    deadline: datetime | None
    last_seq: int
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    title: str | None = Field(
        default=None, description="The title that a person gave it, else that of its latest report. null: neither."
    )
    given_title: str = Field(default="", description="The title that a person gave it. Empty: none.")
    tags: list[str] = Field(default=[], description="In the order in which a person gave them.")
    pinned_at: datetime | None = Field(default=None, description="null: it is not pinned.")
    archived_at: datetime | None = Field(default=None, description="null: it is not archived.")
    match: RunMatchOut | None = Field(
        default=None, description="Where it matches the search `q` best. null: nothing was searched."
    )
    thread_runs: int = Field(default=1, description="Number of runs of its thread. At most 100 are counted.")
    pending_input_requests: int = Field(default=0, description="Number of input requests that wait for a person.")
    interrupted: bool = Field(
        default=False,
        description="Whether it ended at an interrupt or a breakpoint of its graph, and no run of its thread followed.",
    )
    forked_from_id: UUID | None = Field(
        default=None, description="The run that this run was forked from. null: it is not a fork."
    )
    forked_at_seq: int | None = Field(
        default=None,
        description="Seq of the last step that was copied from the original run. `usage` includes the copied steps. "
        "null: it is not a fork.",
    )
    report_style: ReportStyle | None = Field(
        default=None, description="What is asked of the form of the report. null: nothing."
    )
    follow_up: FollowUpOut | None = Field(
        default=None, description="The earlier report that the run is about. null: there is none."
    )
    interactions: list[Interaction] = Field(
        default=[], description="When the run asks a person before it researches. Empty: never."
    )
    protocol: Literal["langgraph"] | None = Field(
        default=None, description="The protocol of the client that made the run. null: this API."
    )
    minimap: str | None = Field(
        default=None,
        description="Letters of its steps as in `step_marks`: of each step, or of 600 steps at equal distances. null: "
        "it was not asked for with `minimap`.",
    )


class RunFileOut(ApiModel):
    """A file that the code of a run has written."""

    name: str = Field(description="Path of the file in the working directory of the code.")
    sha256: str = Field(description="SHA-256 of the file, in hex. The file is fetched by it.")
    size_bytes: int
    media_type: str = Field(description="Media type, detected from the content.")
    is_image: bool = Field(description="Whether the file is an image that a web page can display.")


class RunFileList(ApiModel):
    items: list[RunFileOut]


class LiveStatusOut(ApiModel):
    """What a run does at this moment. It is not durable and is null when nothing is known."""

    current_action: str = Field(examples=["search_library: connection pooling"])
    since: datetime
    worker_heartbeat_at: datetime | None = None


class AnswerDraftOut(ApiModel):
    """Text of an answer while a model writes it. It is not durable: the step of the answer replaces it."""

    run_id: UUID
    call_id: str = Field(description="Identifies the role call in its run.", examples=["3/planner/0/9f86d081884c"])
    attempt: int = Field(ge=1, description="Number of the attempt. Another number replaces the text so far.")
    role: str = Field(examples=["planner"])
    label: str = Field(examples=["plan"])
    is_unverified: bool = Field(
        description="The text may become part of a report, and its claims are checked only when it is complete."
    )
    offset: int = Field(ge=0, description="Number of Unicode code points of the draft before `text`.")
    text: str


class AnswerDraftList(ApiModel):
    items: list[AnswerDraftOut]


class RunDetail(RunOut):
    live: LiveStatusOut | None = None
    step_marks: str = Field(
        description="One letter per step, in order. p plan, s search, r read, c calculate, m memory, v verify, w "
        "report, f failed, h human, answer or resumed, n other."
    )
    token_details: TokenDetailsOut | None = Field(default=None, description="null: not part of a live update.")


class RunPage(Page):
    items: list[RunOut]
    pinned: list[RunOut] = Field(
        default=[], description="The pinned runs that stand first, if `pinned_first` asked for them. First page only."
    )
    has_more_pinned: bool = Field(default=False, description="Whether more runs are pinned than `pinned` has.")
    unindexed_runs: int = Field(
        default=0,
        description="Number of runs that the search `q` may have missed, because their words are still to be indexed: "
        "for some time after an upgrade. At most 10000 are counted.",
    )


class RunCountsOut(ApiModel):
    """Numbers of runs that are not archived, and of archived ones. 100 means 100 or more."""

    waiting_for_person: int = Field(description="Runs that wait for a person: at an input request or an interrupt.")
    active: int = Field(description="Runs that are queued, running, waiting or paused.")
    failed: int
    pinned: int
    archived: int


class RunChangeIn(ApiModel):
    """What to change of a run. A field that is absent or null stays unchanged."""

    title: str | None = Field(
        default=None, max_length=1000, description="At most 200 characters. Empty: the title of its report again."
    )
    tags: list[Annotated[str, Field(max_length=1000)]] | None = Field(
        default=None,
        max_length=100,
        description="All tags that the run has afterwards: at most 20, of at most 50 characters each.",
    )
    pinned: bool | None = None
    archived: bool | None = Field(default=None, description="true: lists leave the run out unless they ask for it.")


class RunDeletionOut(ApiModel):
    """What a deletion has deleted and kept."""

    run_ids: list[UUID] = Field(description="The run, and the later runs of its thread if they were included.")
    child_runs: int = Field(description="Number of runs that these runs had started.")
    kept_fork_ids: list[UUID] = Field(description="Forks of the deleted runs. They stay with the steps they copied.")


class ThreadOut(ApiModel):
    id: UUID
    title: str
    created_at: datetime
    runs: list[RunOut]


class ThreadPage(Page):
    items: list[ThreadOut]


class RatingIn(ApiModel):
    """A person's rating of a report or of one of its sentences. A new rating supersedes the previous one."""

    sentence_id: str | None = Field(
        default=None, max_length=40, description="Sentence id. null: the whole report.", examples=["s3"]
    )
    value: float | None = Field(default=None, ge=-1, le=1, description="-1 wrong, 0 neutral, 1 good.")
    correction: str = Field(default="", max_length=4000)
    version: int | None = Field(
        default=None, ge=1, le=2**31 - 1, description="The rated version of the report. null: the latest."
    )


class RatingOut(ApiModel):
    id: UUID
    run_id: UUID
    report_version: int
    sentence_id: str | None
    scorer: str
    version: int
    value: float | None
    correction: str
    created_at: datetime


class TagPage(Page):
    """Tags that runs have."""

    items: list[str]
