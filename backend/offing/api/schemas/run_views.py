"""API schemas of the views of one run: its plan, sources, usage, nodes, and a search in its steps."""

from typing import Any
from uuid import UUID

from pydantic import Field

from offing.api.schemas.base import ApiModel, Page
from offing.core.plan_outline import MAX_PLAN_ITEM_CHARS, MAX_PLAN_ITEMS, PlanItem
from offing.core.run_sources import RunSource, SourceState
from offing.services.plan_outlines import ChangeState, ItemState, OutlineChange, OutlineItem, RunPlan
from offing.services.run_views import MatchPage, SourceList, UsageBreakdown
from offing.storage.run_usage import NodeUsage


class PlanItemIn(ApiModel):
    text: str = Field(min_length=1, max_length=MAX_PLAN_ITEM_CHARS, examples=["What does a fork copy?"])
    must_answer: bool = Field(
        default=False, description="Whether the run is to continue while this part is open, within its budget."
    )


class PlanIn(ApiModel):
    """A plan that replaces the one of a run. Items that are left out are removed."""

    items: list[PlanItemIn] = Field(min_length=1, max_length=MAX_PLAN_ITEMS)
    version: int = Field(ge=0, description="`version` of the plan that is replaced.")

    def list_items(self) -> list[PlanItem]:
        return [PlanItem(item.text, item.must_answer) for item in self.items]


class PlanItemOut(ApiModel):
    """A part of the question."""

    text: str
    must_answer: bool
    state: ItemState = Field(description="The latest verification of it. open: not covered, or not verified yet.")
    missing: str = Field(description="What is still missing. Empty: nothing, or not verified yet.")


class PlanChangeOut(ApiModel):
    """The latest change of the plan by a person."""

    seq: int = Field(description="Step that records the change.")
    state: ChangeState = Field(
        description="queued: the graph has not read it yet. delivered: the graph has read it. used: a step was planned "
        "with it. too_late: the run ended before the graph read it."
    )
    consumed_seq: int = Field(description="Step with which the graph has read it. 0: not yet.")
    used_seq: int = Field(description="The first plan that was made with it. 0: not yet.")


class PlanOut(ApiModel):
    """The parts of the question that a run works on."""

    supports_changes: bool = Field(description="Whether the graph of the run reads changes of its plan.")
    version: int = Field(description="Step that set these items; a change names it. 0: there is no plan yet.")
    items: list[PlanItemOut]
    change: PlanChangeOut | None = Field(description="null: nobody has changed the plan.")


class StepMatchOut(ApiModel):
    seq: int
    excerpt: str = Field(
        description="Text of the step around the match. Empty: its title contains the text, or no text was given."
    )


class StepMatchPage(Page):
    items: list[StepMatchOut]
    total: int | None = Field(description="Number of all matches. null: this is not the first page.")


class NodeUsageOut(ApiModel):
    """What a node of the graph has recorded. Nodes that made no call are left out."""

    node: str = Field(description="Empty: steps whose node is unknown, because it was started with LangGraph's Send.")
    visits: int = Field(description="Number of supersteps in which the node recorded a call.")
    steps: int
    ms: int = Field(description="Duration of its calls in milliseconds.")
    tokens: int
    cost_usd: float
    last_seq: int = Field(description="The last step that it recorded.")
    roles: list[str] = Field(description="Roles that it has called.")


class NodeUsageList(ApiModel):
    items: list[NodeUsageOut] = Field(description="In the order in which they first recorded a call.")


class RoleUsageOut(ApiModel):
    """Role calls of one role with one model, including those whose answer was rejected."""

    role: str
    engine: str
    model: str
    calls: int
    rejected: int = Field(description="Calls whose answer was rejected.")
    prompt_tokens: int
    cached_prompt_tokens: int
    completion_tokens: int
    reasoning_tokens: int
    cost_usd: float
    is_priced: bool = Field(description="false: the price of the model is unknown, so the cost is too low.")
    ms: int = Field(description="Duration of the calls in milliseconds.")


class UsagePointOut(ApiModel):
    """Usage of role calls up to the end of a turn."""

    turn: int = Field(description="0: before the first turn.")
    tokens: int
    cost_usd: float


class UsageBreakdownOut(ApiModel):
    """Usage of a run's own role calls. Child runs and calls without any answer are not included."""

    roles: list[RoleUsageOut] = Field(description="By role and model, the most expensive first.")
    points: list[UsagePointOut] = Field(description="In the order of turns, at most 200, evenly spread.")


class SpanOut(ApiModel):
    text_id: UUID
    start: int
    end: int


class RunSourceOut(ApiModel):
    key: str = Field(description="Id in the library, or the address of a page that was not read.")
    source_id: UUID | None = Field(description="null: the source is not in the library.")
    title: str
    name: str = Field(description="Path of the document, or address of the page. Empty: unknown.")
    state: SourceState = Field(
        description="cited: by the latest report. read: the run read on in it. found: a search returned it. rejected: "
        "a judge discarded all its passages. blocked: the tool policy denied the call. failed: it could not be read."
    )
    reason: str = Field(description="Why it was rejected, blocked or not read. Empty for other states.")
    step_seqs: list[int] = Field(description="Steps that met it, oldest first, at most 50.")
    step_count: int
    spans: list[SpanOut] = Field(description="Passages of it that the run received, at most 12.")
    span_count: int


class RunSourceList(ApiModel):
    items: list[RunSourceOut] = Field(description="In the order in which the run first met them, at most 1,000.")
    total: int
    is_complete: bool = Field(description="false: only the sources of the latest 5,000 tool results were read.")


def serialize_plan(plan: RunPlan) -> PlanOut:
    return PlanOut(
        supports_changes=plan.supports_changes,
        version=plan.version,
        items=[_serialize_item(item) for item in plan.items],
        change=plan.change and _serialize_change(plan.change),
    )


def _serialize_item(item: OutlineItem) -> PlanItemOut:
    return PlanItemOut(text=item.text, must_answer=item.must_answer, state=item.state, missing=item.missing)


def _serialize_change(change: OutlineChange) -> PlanChangeOut:
    return PlanChangeOut(seq=change.seq, state=change.state, consumed_seq=change.consumed_seq, used_seq=change.used_seq)


def serialize_matches(page: MatchPage) -> StepMatchPage:
    return StepMatchPage(
        items=[StepMatchOut(seq=match.seq, excerpt=match.excerpt) for match in page.matches],
        total=page.total,
        next=None if page.next_seq is None else str(page.next_seq),
    )


def serialize_node(node: NodeUsage) -> NodeUsageOut:
    return NodeUsageOut(
        node=node.node,
        visits=node.visits,
        steps=node.steps,
        ms=node.ms,
        tokens=node.tokens,
        cost_usd=float(node.cost_usd),
        last_seq=node.last_seq,
        roles=sorted(node.roles),
    )


def serialize_usage(usage: UsageBreakdown) -> UsageBreakdownOut:
    return UsageBreakdownOut(
        roles=[
            RoleUsageOut(
                role=one.role,
                engine=one.engine,
                model=one.model,
                calls=one.calls,
                rejected=one.rejected,
                prompt_tokens=one.prompt_tokens,
                cached_prompt_tokens=one.cached_prompt_tokens,
                completion_tokens=one.completion_tokens,
                reasoning_tokens=one.reasoning_tokens,
                cost_usd=float(one.cost_usd),
                is_priced=one.is_priced,
                ms=one.ms,
            )
            for one in usage.roles
        ],
        points=[UsagePointOut(turn=p.turn, tokens=p.tokens, cost_usd=float(p.cost_usd)) for p in usage.points],
    )


def serialize_sources(listed: SourceList) -> RunSourceList:
    return RunSourceList(
        items=[_serialize_source(source) for source in listed.sources],
        total=listed.total,
        is_complete=listed.is_complete,
    )


def _serialize_source(source: RunSource) -> RunSourceOut:
    return RunSourceOut(
        key=source.key,
        source_id=source.source_id,
        title=source.title,
        name=source.name,
        state=source.state,
        reason=source.reason,
        step_seqs=list(source.step_seqs),
        step_count=source.step_count,
        spans=[SpanOut(text_id=span.text_id, start=span.start, end=span.end) for span in source.spans],
        span_count=source.span_count,
    )


EXAMPLES: dict[str, dict[str, Any]] = {
    "PlanIn": {"items": [{"text": "How does a Pool reuse connections?", "must_answer": True}], "version": 3},
    "PlanOut": {
        "supports_changes": True,
        "version": 9,
        "items": [
            {
                "text": "How does a Pool reuse connections?",
                "must_answer": True,
                "state": "partly",
                "missing": "When a connection is closed.",
            }
        ],
        "change": {"seq": 9, "state": "used", "consumed_seq": 13, "used_seq": 14},
    },
    "StepMatchPage": {"items": [{"seq": 6, "excerpt": "A Pool keeps several Client"}], "total": 1, "next": None},
    "NodeUsageList": {
        "items": [
            {
                "node": "planner",
                "visits": 4,
                "steps": 4,
                "ms": 5200,
                "tokens": 9100,
                "cost_usd": 0.0042,
                "last_seq": 19,
                "roles": ["planner"],
            }
        ]
    },
    "UsageBreakdownOut": {
        "roles": [
            {
                "role": "planner",
                "engine": "litellm",
                "model": "openai/gpt-5-mini",
                "calls": 4,
                "rejected": 0,
                "prompt_tokens": 8700,
                "cached_prompt_tokens": 5100,
                "completion_tokens": 400,
                "reasoning_tokens": 0,
                "cost_usd": 0.0042,
                "is_priced": True,
                "ms": 5200,
            }
        ],
        "points": [{"turn": 1, "tokens": 2100, "cost_usd": 0.001}],
    },
    "RunSourceList": {
        "items": [
            {
                "key": "01980000-0000-7000-8000-00000000000c",
                "source_id": "01980000-0000-7000-8000-00000000000c",
                "title": "Pool",
                "name": "docs/api/Pool.md",
                "state": "cited",
                "reason": "",
                "step_seqs": [6, 11],
                "step_count": 2,
                "spans": [{"text_id": "01980000-0000-7000-8000-00000000000d", "start": 120, "end": 640}],
                "span_count": 1,
            }
        ],
        "total": 1,
        "is_complete": True,
    },
}
