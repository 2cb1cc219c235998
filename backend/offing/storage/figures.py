"""Sums over a tenant's runs, steps and role calls, for metrics."""

from offing.storage.pool import Connection
from offing.telemetry.metrics import EngineFigure, RunFigure, StepFigure

RUNS = """
    select graph, status, count(*), coalesce(sum(extract(epoch from started_at - created_at)), 0)::float8,
           count(started_at)
      from run group by 1, 2 order by 1, 2
"""

STEPS = """
    select kind, label, count(*), (coalesce(sum(ms), 0) / 1000.0)::float8, count(ms), count(*) filter (where not ok)
      from step where not exists (select from run where id = step.run_id and step.seq <= forked_at)
     group by 1, 2 order by 1, 2
"""
"""What a fork copied counts once: with the run that it was made in."""

CALLS = """
    select role, engine, model, sum(prompt_tokens)::bigint, sum(completion_tokens)::bigint, sum(usd)::float8,
           sum(jsonb_array_length(failed_attempts))::bigint
      from turn where not exists (select from run where id = turn.run_id and turn.seq <= forked_at)
     group by 1, 2, 3 order by 1, 2, 3
"""


async def of_tenant(connection: Connection) -> list[RunFigure | StepFigure | EngineFigure]:
    """Everything on record of the transaction's tenant. Reads all of its rows: ask no more than each few seconds."""
    runs = await (await connection.execute(RUNS)).fetchall()
    steps = await (await connection.execute(STEPS)).fetchall()
    calls = await (await connection.execute(CALLS)).fetchall()
    return [*(RunFigure(*r) for r in runs), *(StepFigure(*s) for s in steps), *(EngineFigure(*c) for c in calls)]
