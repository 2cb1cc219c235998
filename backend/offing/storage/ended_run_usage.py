"""Ended runs in the order of their cost or duration, and bounded counts of the runs that pass a filter."""

from collections.abc import Sequence
from typing import Literal, LiteralString
from uuid import UUID

from offing.storage.pool import Connection
from offing.storage.run_filter import RunFilter, get_parameters, list_conditions

Total = Literal["cost", "duration"]

TotalKey = tuple[int, UUID]
"""Total and id of a run: the page key of a list by totals. Costs are in millionths of a US dollar, durations in ms."""

COLUMNS: dict[Total, LiteralString] = {"cost": "cost_micros", "duration": "work_ms"}


async def list_by_total(connection: Connection, total: Total, before: TotalKey | None, limit: int) -> list[TotalKey]:
    """Return at most `limit` ended runs after `before`, the largest total first."""
    column = COLUMNS[total]
    condition: LiteralString = "" if before is None else f"where ({column}, run_id) < (%s, %s)"
    statement: LiteralString = (
        f"select {column}, run_id from ended_run_usage {condition} order by {column} desc, run_id desc limit %s"
    )
    cursor = await connection.execute(statement, (*(before or ()), limit), prepare=False)
    return [(value, run_id) for value, run_id in await cursor.fetchall()]


async def count_runs(connection: Connection, filters: Sequence[RunFilter], limit: int) -> list[int]:
    """Return for each filter how many runs pass it, at most `limit`. Filters by tag are not supported."""
    counts: list[int] = []
    for run_filter in filters:
        conditions = list_conditions(run_filter, "created_at")
        statement: LiteralString = " and ".join(("select from run where kind = %(kind)s", *conditions))
        values = {**get_parameters(run_filter), "limit": limit}
        counted: LiteralString = f"select count(*) from ({statement} limit %(limit)s) as passing"
        row = await (await connection.execute(counted, values, prepare=False)).fetchone()
        counts.append(row[0] if row else 0)
    return counts
