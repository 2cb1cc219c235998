"""Sums over a tenant's runs, steps and role calls, for metrics.

Ended runs are added to totals in the background (`count_ended_runs`). Metrics are these totals, and sums over the runs
that are not part of them yet: active runs and those that have just ended.
"""

from typing import LiteralString

from offing.storage.pool import Connection, Database
from offing.telemetry.metrics import EngineMetric, RunMetric, StepMetric

UNCOUNTED: LiteralString = """
    array(select id from run where ended_at is null union all select run_id from uncounted_run)
"""
"""Each run is either here or in the totals, because a statement reads both as of the same moment."""

LIST_RUN_METRICS = f"""
    select graph, status, sum(run_count)::bigint, sum(queued_seconds)::float8, sum(started_count)::bigint
      from (select * from run_total union all select * from app.sum_runs({UNCOUNTED})) as part
     where tenant_id = app.current_tenant_id()
     group by 1, 2 having sum(run_count) > 0 or sum(started_count) > 0 order by 1, 2
"""

LIST_STEP_METRICS = f"""
    select kind, label, sum(step_count)::bigint, sum(seconds)::float8, sum(timed_count)::bigint,
           sum(failed_count)::bigint
      from (select * from step_total union all select * from app.sum_steps({UNCOUNTED})) as part
     where tenant_id = app.current_tenant_id()
     group by 1, 2 order by 1, 2
"""

LIST_ENGINE_METRICS = f"""
    with part as (
      select * from role_call_total where tenant_id = app.current_tenant_id()
      union all select * from app.sum_role_calls({UNCOUNTED})),
    bucket as (
      select role, engine, model, position, sum(counted)::bigint as counted
        from part cross join unnest(first_token_counts) with ordinality as b(counted, position) group by 1, 2, 3, 4)
    select role, engine, model, sum(prompt_tokens)::bigint, sum(completion_tokens)::bigint, sum(cost_usd)::float8,
           sum(failed_attempt_count)::bigint, sum(streamed_count)::bigint, sum(first_token_seconds)::float8,
           array(select counted from bucket b where (b.role, b.engine, b.model) = (part.role, part.engine, part.model)
                  order by position),
           sum(slot_wait_count)::bigint, sum(slot_wait_seconds)::float8
      from part group by 1, 2, 3 order by 1, 2, 3
"""

COUNT_ENDED_RUNS = "select app.count_ended_runs(%s)"


async def list_tenant_metrics(connection: Connection) -> list[RunMetric | StepMetric | EngineMetric]:
    """Return the metrics of the transaction's tenant. Reads the rows of the runs that are not part of the totals."""
    runs = await (await connection.execute(LIST_RUN_METRICS)).fetchall()
    steps = await (await connection.execute(LIST_STEP_METRICS)).fetchall()
    calls = await (await connection.execute(LIST_ENGINE_METRICS)).fetchall()
    return [*(RunMetric(*r) for r in runs), *(StepMetric(*s) for s in steps), *(EngineMetric(*c) for c in calls)]


async def count_ended_runs(database: Database, limit: int) -> int:
    """Add at most `limit` ended runs of all tenants to the totals. Return their number.

    It is 0 while another process counts.
    """
    rows = await database.call_function(COUNT_ENDED_RUNS, (limit,))
    return rows[0][0]
