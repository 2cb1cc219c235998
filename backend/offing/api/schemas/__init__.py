"""API schemas under /api/v1. The types of the web UI are generated from these."""

from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints, model_validator

from offing.api.coded_texts import (
    TEXTS,
    OfferTextOut,
    PositionTextOut,
    ProblemTextOut,
    RejectionTextOut,
    RunTextOut,
    StepTextOut,
)
from offing.core.follow_up import FollowUpKind, KindChooser
from offing.core.interaction import Interaction
from offing.core.model import EngineConfig
from offing.core.report_changes import ChangeKind
from offing.core.report_editor import ReportEditor
from offing.core.report_style import ReportStyle
from offing.core.run import TURNS_BY_DEPTH, CancelMode, Depth, RunStatus, StopReason
from offing.core.step import StepKind
from offing.core.step_codes import StepSummaryCode
from offing.core.tool_policy import ToolPolicy
from offing.core.url import InvalidUrl
from offing.core.web_domains import MAX_DOMAINS, normalize_domains
from offing.sdk import StateView
from offing.services.run_search import MatchLocation

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


class ApiModel(BaseModel):
    model_config = ConfigDict(extra="forbid")

    @classmethod
    def from_typed_values(cls, **values: Any) -> Self:
        """Return a model of these values without validation. Every field must be given, with a value of its type.

        It takes an eighth of the time of `model_construct`, which looks for defaults and aliases.
        """
        model = cls.__new__(cls)
        object.__setattr__(model, "__dict__", values)
        object.__setattr__(model, "__pydantic_fields_set__", set(values))
        object.__setattr__(model, "__pydantic_extra__", None)
        object.__setattr__(model, "__pydantic_private__", None)
        return model


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


class FollowUpOut(ApiModel):
    kind: FollowUpKind = Field(description="The kind that was requested. The report has the one that was chosen.")
    run_id: UUID = Field(description="The run whose report it is about.")
    version: int = Field(description="Version of that report.")


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


class Page(ApiModel):
    next: str | None = Field(description="Cursor for the next page. null: this is the last page.")


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


class StepSummaryOut(ApiModel):
    """What a step says, so that a client can say it in the reader's language."""

    code: StepSummaryCode
    parameters: dict[str, bool | int | str | list[int] | list[str]] = Field(
        description="What the text of the code names. Each code has its own."
    )


class StepOut(ApiModel):
    """A step as shown in a timeline. Event streams carry these."""

    run_id: UUID
    seq: int
    kind: StepKind
    label: str
    title: str
    detail: str
    summary: StepSummaryOut | None = Field(
        description="What title and detail say in English. null: they are the words of a person, a model or a graph, "
        "and no code stands for them."
    )
    title_text: StepTextOut | None = Field(
        default=None, description="What the title of a step without a summary says. null: no code stands for it."
    )
    detail_texts: list[StepTextOut] = Field(
        default=[],
        description="What the parts of the detail of a step without a summary say. Empty: no code stands for any.",
    )
    ok: bool
    ms: int | None
    tokens: int
    turn: int
    at: datetime


class StepDetail(StepOut):
    payload: dict[str, Any]


class StepPage(Page):
    items: list[StepOut]


class FullStepPage(Page):
    items: list[StepDetail]


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


class CitationOut(ApiModel):
    number: int
    text_id: UUID | None = Field(description="null: the source has been erased.")
    source_id: UUID
    title: str
    start: int = Field(description="First code point of the span in the stored text.")
    end: int = Field(description="Code point after the span.")
    quote: str
    verified: bool = Field(description="Whether the quote is in the stored text. This is checked for each response.")
    source: str = Field(description="Short id of the source in the report's list of sources, such as S1.")
    position: str = Field(description="Where in the source it is, in words: section, lines. Empty: unknown.")
    position_texts: list[PositionTextOut] = Field(description="What the parts of the position say. Empty: unknown.")


class CitedSourceOut(ApiModel):
    """A source that a report cites."""

    id: str = Field(description="S1, S2 and so on, in the order in which the report first cites the sources.")
    source_id: UUID
    title: str
    name: str = Field(description="Path in its folder, name of the file, or address of the web page. Empty: unknown.")
    site: str = Field(description="Host of a web page. Empty: the source is no web page.")
    author: str = Field(description="Empty: unknown.")
    published: str = Field(description="Date of the document: YYYY, YYYY-MM or YYYY-MM-DD. Empty: unknown.")
    retrieved_at: datetime | None = Field(description="When the cited text was retrieved or added. null: unknown.")
    description: str = Field(description="What is known about the source besides its title, in words.")
    citations: list[int] = Field(description="Numbers of its citations.")


JudgedVerdict = Literal["supported", "partly", "contradicted", "not_found"]
Verdict = Literal[JudgedVerdict, "conclusion"]


class JudgmentOut(ApiModel):
    """What the checker said of a sentence. A verdict `contradicted` has words that were found in the passage."""

    verdict: JudgedVerdict
    reason: str
    passage: int | None = Field(description="Number of the citation whose passage was judged.")
    contradiction: int | None = Field(description="Number of the citation with the words that contradict.")


class SentenceOut(ApiModel):
    id: str
    text: str
    citations: list[int]
    supported: bool
    rejected: list[str]
    rejected_texts: list[RejectionTextOut | None] = Field(
        description="What each text of `rejected` says, in their order. null: no code stands for it."
    )
    passages: list[int] = Field(
        description="Numbers of citations that name a passage and quote no words of it. They support nothing."
    )
    unsupported_values: list[str] = Field(
        description="Numbers, dates and names of the sentence that are in none of its quotes and in no calculation."
    )
    verdict: Verdict | None = Field(
        description="Whether the cited passages support the sentence: the worse of the verdicts of rules and checker. "
        "`conclusion`: it cites nothing, says that it is a conclusion, and follows from supported sentences. "
        "Null: it cites nothing and is no conclusion."
    )
    rule_verdict: Verdict | None = Field(
        description="The verdict of the rules. Null: the sentence cites nothing and is no conclusion."
    )
    judgment: JudgmentOut | None = Field(description="The verdict of the checker. Null: it judged none.")
    follows_from: list[str] = Field(
        description="Ids of the supported sentences that a conclusion follows from. Empty: it is no conclusion."
    )
    reasons: list[str] = Field(
        description="Why the sentence is marked, or what a conclusion follows from, in words. Empty: it is supported."
    )
    edited: bool = Field(description="Whether a person wrote the sentence, or changed its text or citations.")
    layout: Literal["statement", "paragraph", "continued", "item", "header", "row"] = Field(
        description="Place in the section: alone, in a paragraph, a list or a table. A row has its cells between |.",
    )


class RevisionOut(ApiModel):
    problems_before: int = Field(description="Sentences of the first draft that would be marked.")
    problems_after: int = Field(description="The same for the draft that became the report.")
    skipped: str = Field(description="Why the corrections were not made or not used. Empty: they were used.")


class SentenceChangeOut(ApiModel):
    kind: ChangeKind
    text: str = Field(description="Text in the new version. Of a removed sentence: in the version before.")
    before: str = Field(
        description="Text of a changed sentence in the version before. If it equals text, only its sources differ."
    )


class SectionChangeOut(ApiModel):
    kind: ChangeKind
    heading: str = Field(description="Heading in the new version. Of a removed section: in the version before.")
    before: str = Field(description="Heading in the version before, if it was different. Empty: it is the same.")
    sentences: list[SentenceChangeOut] = Field(description="Its sentences that are not the same.")


class ReportChangesOut(ApiModel):
    """Differences from the version before, found by comparison."""

    answer: list[SentenceChangeOut] = Field(description="Change of the short answer. Empty: it is the same.")
    sections: list[SectionChangeOut] = Field(description="Sections that are not the same.")
    kept_sections: int = Field(description="Number of sections that are the same.")
    title_before: str = Field(description="Title of the version before, if it was different. Empty: it is the same.")


class FollowUpOutcomeOut(ApiModel):
    """What a report has to do with the earlier report that it follows."""

    kind: FollowUpKind = Field(description="The kind that was chosen, never auto.")
    chosen_by: KindChooser
    run_id: UUID = Field(description="The run of the earlier report.")
    version: int = Field(description="Version of the earlier report.")
    changes: ReportChangesOut | None = Field(description="null: the report answers a question and replaces nothing.")
    deleted_sources: list[str] = Field(
        description="Titles of documents that the earlier report cites and that were deleted since."
    )
    unchanged_because: str = Field(
        description="Why the earlier report could not be changed as requested. Empty: it could."
    )


class VersionOfOut(ApiModel):
    """The version of an earlier report that a follow-up made."""

    run_id: UUID = Field(description="The run of the earlier report.")
    version: int
    latest_version: int = Field(description="The newest version of that report.")


class ClaimCheckOut(ApiModel):
    """How the checker judged the sentences that cite something."""

    claims: int = Field(description="Sentences that it was to judge.")
    judgments: int = Field(description="Sentences that it judged.")
    checked_by: str = Field(description="Model of the checker. Empty: it gave no answer.")
    groups: int = Field(description="Calls. Conflicts are looked for among the passages of one call.")
    failure: str = Field(description="Why it did not judge all of them. Empty: it did.")
    unverified: int = Field(description="Contradictions and conflicts in words that no passage contains; not listed.")


class ConflictOut(ApiModel):
    """Passages of two sources that disagree on the same matter."""

    matter: str = Field(description="What they disagree about, in words of the checker. Empty: rules found it.")
    found_by: Literal["checker", "rules"]
    citations: list[int] = Field(description="Numbers of the two citations whose quotes disagree.")


class SectionOut(ApiModel):
    heading: str
    sentences: list[SentenceOut]


class ReportOut(ApiModel):
    run_id: UUID
    version: int
    status: Literal["complete", "partial"]
    reason: StopReason
    title: str
    answer: SentenceOut | None
    sections: list[SectionOut]
    citations: list[CitationOut]
    sources: list[CitedSourceOut] = Field(description="The cited sources, each once.")
    limitations: str
    author: str
    revision: RevisionOut | None = Field(
        description="The draft went back to its writer because of sentences without support. Null: it did not."
    )
    follow_up: FollowUpOutcomeOut | None = Field(
        default=None, description="The earlier report that this one follows, with the changes. null: it follows none."
    )
    check: ClaimCheckOut | None = Field(description="The work of the checker. Null: the run has none.")
    judged_by: str = Field(description="Who gave the verdicts, in words. Empty: no sentence cites anything.")
    conflicts: list[ConflictOut] = Field(description="Where quotes of different sources disagree.")
    conflict_search: str = Field(
        description="Who looked for conflicts between sources, in words. Empty: no sentence cites anything."
    )
    texts: dict[str, RunTextOut] = Field(default={}, description=f"{TEXTS} Fields: author, judged_by, conflict_search.")
    edited_by: str | None = Field(
        description="The person who saved this version, or engine and model of the follow-up that made it. "
        "null: the run wrote it."
    )
    editor: ReportEditor | None = Field(description="What kind of editor that is. null: the run wrote it.")
    follow_up_run_id: UUID | None = Field(description="The follow-up that made this version. null: none did.")
    note: str = Field(description="What the person noted, or the text of the follow-up. Empty: nothing.")
    base_version: int | None = Field(description="The version that was edited or restored. null: the run wrote it.")
    latest_version: int = Field(description="The newest version of the report.")
    version_of: VersionOfOut | None = Field(
        description="The version of an earlier report that this follow-up made with its edit. null: it made none."
    )
    created_at: datetime


class ThreadOut(ApiModel):
    id: UUID
    title: str
    created_at: datetime
    runs: list[RunOut]


class ThreadPage(Page):
    items: list[ThreadOut]


class SourceOut(ApiModel):
    id: UUID
    collection: str
    name: str
    title: str
    media_type: str
    size_bytes: int
    char_count: int = Field(description="Code points of the extracted text.")
    text_id: UUID
    snapshot: str = Field(description="SHA-256 of the stored bytes, in hex.")
    added_at: datetime


class SourcePage(Page):
    items: list[SourceOut]
    total: int


class UploadedFileOut(ApiModel):
    """The outcome of one uploaded file."""

    name: str
    outcome: Literal["added", "unchanged", "replaced", "rejected", "failed"] = Field(
        description="`failed`: the file was not stored, but sending it again can succeed."
    )
    source: SourceOut | None
    problem: str = Field(default="", description="Why the file was rejected or failed, and what to do.")


class UploadResultOut(ApiModel):
    files: list[UploadedFileOut]


class SearchHitOut(ApiModel):
    text_id: UUID
    source_id: UUID
    title: str
    heading: str
    start: int
    end: int
    text: str
    marks: list[MarkOut] = Field(description="The searched words in the text, in order. Empty: only its meaning fits.")
    score: float


class SearchHitPage(ApiModel):
    items: list[SearchHitOut]
    notices: list[str] = Field(
        default_factory=list[str], description="What the search could not do. Empty if it did everything."
    )


class VectorCoverageOut(ApiModel):
    """How many texts have vectors of the embedding model. The others are found by their words alone."""

    model: str = Field(description="The model with everything that makes vectors comparable.")
    dimensions: int | None = Field(description="Null: there are no vectors yet.")
    filled_count: int = Field(description="Number of texts with vectors.")
    rejected_count: int = Field(description="Number of texts with passages that the model rejects.")


class LibraryStatusOut(ApiModel):
    text_count: int = Field(description="Number of texts that a search can find.")
    embedding: VectorCoverageOut | None = Field(description="Null: no embedding model is set up.")
    reranks: bool = Field(description="Whether a reranker is set up.")


class PassageOut(ApiModel):
    """A span of a text with the text around it."""

    text_id: UUID
    source_id: UUID
    title: str
    name: str
    start: int
    end: int
    before: str
    text: str
    after: str
    snapshot: str
    char_count: int = Field(description="Code points of the whole text.")


class ErasureOut(ApiModel):
    sources: int
    snapshots: int
    passages: int
    steps: int = Field(description="Steps of runs from which copies of the text were removed.")


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


class Problem(BaseModel):
    """RFC 9457 problem details. `field` and `remedy` say what to change."""

    type: str
    title: str
    status: int
    detail: str
    field: str | None = None
    remedy: str | None = None
    texts: dict[str, ProblemTextOut] = Field(default={}, description=f"{TEXTS} Fields: detail, remedy.")
