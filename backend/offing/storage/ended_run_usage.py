"""Ended runs in the order of their cost or duration."""

from typing import Literal, LiteralString

from offing.storage.pagination import NumberKey
from offing.storage.pool import Connection

Total = Literal["cost", "duration"]

COLUMNS: dict[Total, LiteralString] = {"cost": "cost_micros", "duration": "work_ms"}
"""Costs are in millionths of a US dollar, durations in milliseconds."""


async def list_by_total(connection: Connection, total: Total, before: NumberKey | None, limit: int) -> list[NumberKey]:
    """Return totals and ids of at most `limit` ended runs after `before`, the largest total first."""
    column = COLUMNS[total]
    condition: LiteralString = "" if before is None else f"where ({column}, run_id) < (%s, %s)"
    statement: LiteralString = (
        f"select {column}, run_id from ended_run_usage {condition} order by {column} desc, run_id desc limit %s"
    )
    cursor = await connection.execute(statement, (*(before or ()), limit), prepare=False)
    return [(value, run_id) for value, run_id in await cursor.fetchall()]
