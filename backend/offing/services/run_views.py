"""What the views of one run show beside its steps: its sources, its usage, its nodes, and matches of a search."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from uuid import UUID

from offing.core.run_sources import Passage, RunSource, find_discarded, list_sources
from offing.core.tool import SourceSpan
from offing.storage import run_sources, run_summaries, run_usage, step_search
from offing.storage.pool import Connection, Database
from offing.storage.run_usage import NodeUsage, RoleUsage, TurnUsage
from offing.storage.step_search import StepMatch

MAX_TOOL_RESULTS = 5_000
"""Maximum number of tool results of a run whose sources are listed. The latest are used."""
MAX_SOURCES = 1_000
MAX_ROLES = 100
MAX_NODES = 200
MAX_POINTS = 200
"""Maximum number of points of the usage over turns."""


@dataclass(frozen=True, slots=True)
class SourceList:
    sources: tuple[RunSource, ...]
    """In the order in which the run first met them, at most `MAX_SOURCES`."""
    total: int
    is_complete: bool
    """Whether the sources of all tool results were read."""


@dataclass(frozen=True, slots=True)
class UsagePoint:
    """Usage up to the end of a turn."""

    turn: int
    tokens: int
    cost_usd: Decimal


@dataclass(frozen=True, slots=True)
class UsageBreakdown:
    roles: Sequence[RoleUsage]
    points: tuple[UsagePoint, ...]


@dataclass(frozen=True, slots=True)
class MatchPage:
    matches: Sequence[StepMatch]
    total: int | None
    """Number of all matches. `None` means that this is not the first page."""
    next_seq: int | None
    """`None` means that this is the last page."""


async def find_run_sources(database: Database, tenant_id: UUID, run_id: UUID) -> SourceList:
    """Return the sources that a run has met. Raises NotFound."""
    async with database.transaction(tenant_id) as connection:
        await run_summaries.get_run_status(connection, run_id)
        passages = await run_sources.list_passages(connection, run_id, MAX_TOOL_RESULTS)
        failures = await run_sources.list_failures(connection, run_id, MAX_TOOL_RESULTS)
        cited = await run_sources.list_cited(connection, run_id)
        discarded = await _load_discarded(connection, run_id, passages)
        count = await run_sources.count_tool_results(connection, run_id)
    sources = list_sources(passages, failures, discarded, cited)
    return SourceList(tuple(sources[:MAX_SOURCES]), len(sources), count <= MAX_TOOL_RESULTS)


async def _load_discarded(connection: Connection, run_id: UUID, passages: Sequence[Passage]) -> dict[SourceSpan, str]:
    judgments = await run_sources.list_judgments(connection, run_id, MAX_TOOL_RESULTS)
    if not judgments:
        return {}
    seqs = await run_sources.list_evidence_order(connection, run_id, MAX_TOOL_RESULTS)
    order = {seq: at for at, seq in enumerate(seqs)}
    ordered = sorted((p for p in passages if p.seq in order), key=lambda passage: order[passage.seq])
    spans = dict.fromkeys(passage.span for passage in ordered if passage.span is not None)
    return find_discarded(judgments, {f"E{number}": span for number, span in enumerate(spans, 1)})


async def get_usage(database: Database, tenant_id: UUID, run_id: UUID) -> UsageBreakdown:
    """Return the usage of a run's role calls by role and model, and over its turns. Raises NotFound."""
    async with database.transaction(tenant_id) as connection:
        await run_summaries.get_run_status(connection, run_id)
        roles = await run_usage.list_role_usage(connection, run_id, MAX_ROLES)
        turns = await run_usage.list_turn_usage(connection, run_id)
    return UsageBreakdown(roles, thin_points(accumulate_usage(turns)))


def accumulate_usage(turns: Sequence[TurnUsage]) -> tuple[UsagePoint, ...]:
    """Return the usage up to the end of each turn."""
    points, tokens, cost = list[UsagePoint](), 0, Decimal(0)
    for one in turns:
        tokens, cost = tokens + one.tokens, cost + one.cost_usd
        points.append(UsagePoint(one.turn, tokens, cost))
    return tuple(points)


def thin_points(points: Sequence[UsagePoint], limit: int = MAX_POINTS) -> tuple[UsagePoint, ...]:
    """Return at most `limit` of the points, evenly spread, with the first and the last."""
    if len(points) <= limit:
        return tuple(points)
    last = len(points) - 1
    return tuple(points[round(at * last / (limit - 1))] for at in range(limit))


async def list_nodes(database: Database, tenant_id: UUID, run_id: UUID) -> Sequence[NodeUsage]:
    """Return what each node of a run's graph has recorded. Raises NotFound."""
    async with database.transaction(tenant_id) as connection:
        await run_summaries.get_run_status(connection, run_id)
        return await run_usage.list_node_usage(connection, run_id, MAX_NODES)


async def search_steps(
    database: Database, tenant_id: UUID, run_id: UUID, text: str, node: str | None, after: int, limit: int
) -> MatchPage:
    """Return a page of the steps that contain a text, in any letter case, and that a node recorded.

    An empty text and `None` match every step. Raises NotFound.
    """
    async with database.transaction(tenant_id) as connection:
        await run_summaries.get_run_status(connection, run_id)
        matches = await step_search.list_matches(connection, run_id, text, node, after, limit + 1)
        page = matches[:limit]
        is_last = len(matches) <= limit
        total = None
        if after == 0:
            total = len(page) if is_last else await step_search.count_matches(connection, run_id, text, node)
    return MatchPage(page, total, None if is_last else page[-1].seq)
