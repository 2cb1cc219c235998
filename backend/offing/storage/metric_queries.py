"""Sums over a tenant's runs, steps and role calls, for metrics."""

from offing.storage.pool import Connection
from offing.telemetry.metrics import FIRST_TOKEN_BUCKETS_SECONDS, EngineMetric, RunMetric, StepMetric

LIST_RUN_METRICS = """
    select graph, status, count(*), coalesce(sum(extract(epoch from started_at - created_at)), 0)::float8,
           count(started_at)
      from run group by 1, 2 order by 1, 2
"""

LIST_STEP_METRICS = """
    select kind, label, count(*), (coalesce(sum(ms), 0) / 1000.0)::float8, count(ms), count(*) filter (where not ok)
      from step where not exists (select from run where id = step.run_id and step.seq <= forked_at_seq)
     group by 1, 2 order by 1, 2
"""
"""Rows that a fork copied are counted once, with the run in which they were created."""

LIST_ENGINE_METRICS = """
    select role, engine, model, sum(prompt_tokens)::bigint, sum(completion_tokens)::bigint, sum(cost_usd)::float8,
           sum(jsonb_array_length(failed_attempts))::bigint,
           count(sampling->>'first_text_ms'),
           (coalesce(sum((sampling->>'first_text_ms')::float8), 0) / 1000.0)::float8,
           array(select count(*) filter (where taken <= bound)
                   from unnest(%s::float8[]) as bound,
                        unnest(array_agg((sampling->>'first_text_ms')::float8 / 1000.0)) as taken
                  group by bound order by bound),
           count(sampling->>'slot_wait_ms'), (coalesce(sum((sampling->>'slot_wait_ms')::float8), 0) / 1000.0)::float8
      from role_call where not exists (select from run where id = role_call.run_id and role_call.seq <= forked_at_seq)
     group by 1, 2, 3 order by 1, 2, 3
"""


async def list_tenant_metrics(connection: Connection) -> list[RunMetric | StepMetric | EngineMetric]:
    """Return the metrics of the transaction's tenant.

    This reads all of its rows: call it at most every few seconds.
    """
    runs = await (await connection.execute(LIST_RUN_METRICS)).fetchall()
    steps = await (await connection.execute(LIST_STEP_METRICS)).fetchall()
    calls = await (await connection.execute(LIST_ENGINE_METRICS, [list(FIRST_TOKEN_BUCKETS_SECONDS)])).fetchall()
    return [*(RunMetric(*r) for r in runs), *(StepMetric(*s) for s in steps), *(EngineMetric(*c) for c in calls)]
