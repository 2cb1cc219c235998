"""Statistics of past runs: what their turns took and cost, by graph and models."""

from collections.abc import Sequence
from dataclasses import dataclass

from offing.storage.pool import Connection

MAX_RUNS_PER_GRAPH = 300
"""Number of the latest runs of each graph that are read."""

RUN_STATISTICS = """
    with latest as (
      select g.graph, r.*
        from unnest(%(graphs)s::text[]) as g (graph)
             cross join lateral (
               select turns, tokens, cost_usd, work_seconds, ended_at, forked_from_id, engines
                 from run where run.graph = g.graph and kind = 'interactive'
                order by created_at desc, id desc limit %(limit)s) as r),
    counted as (
      select graph, turns, tokens::float8 / turns as tokens, cost_usd::float8 / turns as cost_usd,
             work_seconds / turns as seconds,
             (select string_agg(distinct (e.value->>'engine') || case when coalesce(e.value->>'model', '') = '' then ''
                                else ':' || (e.value->>'model') end, ' ')
                from jsonb_each(engines) as e) as models
        from latest where ended_at is not null and turns > 0 and forked_from_id is null)
    select graph, models, count(*),
           percentile_cont(%(fractions)s) within group (order by turns::float8),
           percentile_cont(%(fractions)s) within group (order by seconds),
           percentile_cont(%(fractions)s) within group (order by tokens),
           percentile_cont(%(fractions)s) within group (order by cost_usd)
      from counted group by grouping sets ((graph), (graph, models)) order by graph, count(*) desc, models nulls first
"""
"""Reads the latest runs of each graph by the index run_by_graph. Forks are left out, because copied steps count in
their usage. The models are sorted.
"""

FRACTIONS = [0.25, 0.5, 0.75]


@dataclass(frozen=True, slots=True)
class Quartiles:
    low: float
    """A quarter of the runs had less."""
    median: float
    high: float
    """A quarter of the runs had more."""


@dataclass(frozen=True, slots=True)
class RunStatistics:
    """What the turns of ended runs of a graph took."""

    graph: str
    models: tuple[str, ...] | None
    """Engines with their models, such as `litellm:openai/gpt-5-mini`, sorted. `None` means any."""
    run_count: int
    turns: Quartiles
    """Turns per run."""
    seconds: Quartiles
    """Seconds of work per turn."""
    tokens: Quartiles
    """Tokens per turn."""
    cost_usd: Quartiles
    """Cost per turn in USD. 0 also means that the price was unknown."""


async def list_run_statistics(connection: Connection, graphs: Sequence[str]) -> list[RunStatistics]:
    """Return statistics of each graph and of each combination of models, those of the most runs first."""
    values = {"graphs": list(graphs), "limit": MAX_RUNS_PER_GRAPH, "fractions": FRACTIONS}
    rows = await (await connection.execute(RUN_STATISTICS, values, prepare=False)).fetchall()
    return [
        RunStatistics(
            graph, None if models is None else tuple(models.split(" ")), count, *(Quartiles(*q) for q in four)
        )
        for graph, models, count, *four in rows
    ]
