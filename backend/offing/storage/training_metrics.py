"""Metrics of training jobs, step by step."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from psycopg.rows import class_row

from offing.storage.pool import Connection

INSERT_METRICS = """
    insert into training_metric (job_id, tenant_id, step, name, value)
    select %(job)s, %(tenant)s, %(step)s, name, value
      from unnest(%(names)s::text[], %(values)s::float8[]) as measured(name, value)
        on conflict (job_id, step, name) do update set value = excluded.value, at = clock_timestamp()
"""

LIST_METRICS_SINCE = """
    select step, name, value, at from training_metric
     where job_id = %(job)s and step > %(after)s and (%(names)s::text[] is null or name = any(%(names)s))
     order by step, name limit %(limit)s
"""

GET_LAST_METRIC_VALUES = """
    select asked.job, found.value
      from unnest(%s::uuid[]) as asked(job)
     cross join lateral (select value from training_metric where job_id = asked.job and name = %s
                          order by step desc limit 1) as found
"""

GET_FIRST_VALUES = """
    select distinct on (name) name, value from training_metric
     where job_id = %s and name = any(%s) order by name, step
"""

LIST_RECENT_VALUES = """
    select value from training_metric where job_id = %s and name = %s order by step desc limit %s
"""


@dataclass(frozen=True, slots=True)
class TrainingMetric:
    step: int
    name: str
    value: float
    at: datetime


async def store_metrics(
    connection: Connection, tenant_id: UUID, job_id: UUID, step: int, metrics: Mapping[str, float]
) -> None:
    """Store the metrics of a step by name. A metric that the step already has is replaced."""
    values = [float(value) for value in metrics.values()]
    parameters = {"job": job_id, "tenant": tenant_id, "step": step, "names": list(metrics), "values": values}
    await connection.execute(INSERT_METRICS, parameters)


async def list_metrics_since(
    connection: Connection, job_id: UUID, after_step: int, names: Sequence[str] | None, limit: int
) -> list[TrainingMetric]:
    """Return the metrics of the steps after `after_step`, in order.

    If `names` is `None`, return all.
    """
    values = {"job": job_id, "after": after_step, "names": list(names) if names else None, "limit": limit}
    async with connection.cursor(row_factory=class_row(TrainingMetric)) as cursor:
        await cursor.execute(LIST_METRICS_SINCE, values)
        return await cursor.fetchall()


async def get_last_metric_values(connection: Connection, job_ids: Sequence[UUID], name: str) -> dict[UUID, float]:
    """Return the latest value of a metric by job."""
    return dict(await (await connection.execute(GET_LAST_METRIC_VALUES, (list(job_ids), name))).fetchall())


async def get_first_values(connection: Connection, job_id: UUID, names: Sequence[str]) -> dict[str, float]:
    """Return the first stored value of each of these metrics. A metric that no step has is missing."""
    return dict(await (await connection.execute(GET_FIRST_VALUES, (job_id, list(names)))).fetchall())


async def list_recent_values(connection: Connection, job_id: UUID, name: str, limit: int) -> list[float]:
    """List the values of a metric in the last steps of a job, latest first."""
    rows = await (await connection.execute(LIST_RECENT_VALUES, (job_id, name, limit))).fetchall()
    return [value for (value,) in rows]
