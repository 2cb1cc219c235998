"""The steps that tell what a run's plan is, and which of them have used a person's change of it."""

from dataclasses import dataclass
from uuid import UUID

from offing.core.plan_outline import CONSUMED_FIELD, PLAN_FIELD
from offing.core.step import Step, StepKind
from offing.storage import steps
from offing.storage.pool import Connection
from offing.storage.steps import COLUMNS, step_from_row

FIND_LATEST_CHANGE = f"""
    select {COLUMNS} from step
     where run_id = %s and kind = 'user_message' and payload ? '{PLAN_FIELD}' order by seq desc limit 1
"""

FIND_USE = f"""
    with consumed as (
      select min(seq) as seq from step
       where run_id = %(run)s and kind = 'note' and seq > %(change)s
         and payload->'{CONSUMED_FIELD}' = to_jsonb(%(change)s::bigint))
    select coalesce(consumed.seq, 0),
           coalesce((select min(seq) from step where run_id = %(run)s and kind = 'plan' and seq > consumed.seq), 0)
      from consumed
"""


@dataclass(frozen=True, slots=True)
class PlanSteps:
    """The latest steps about a run's plan. `None` means that there is no such step."""

    analysis: Step | None
    change: Step | None
    """The latest change by a person."""
    verification: Step | None
    consumed_seq: int
    """Step with which the graph has read the change. 0 means not yet."""
    used_seq: int
    """The first plan after that. 0 means not yet."""


async def load_plan_steps(connection: Connection, run_id: UUID) -> PlanSteps:
    """Return the steps from which the plan of a run is made."""
    row = await (await connection.execute(FIND_LATEST_CHANGE, (run_id,))).fetchone()
    change = step_from_row(row) if row else None
    analyses = await steps.list_last_steps(connection, run_id, StepKind.ANALYSIS, 1)
    verifications = await steps.list_last_steps(connection, run_id, StepKind.VERIFICATION, 1)
    consumed_seq, used_seq = await _find_use(connection, run_id, change.seq) if change else (0, 0)
    return PlanSteps(next(iter(analyses), None), change, next(iter(verifications), None), consumed_seq, used_seq)


async def _find_use(connection: Connection, run_id: UUID, change_seq: int) -> tuple[int, int]:
    row = await (await connection.execute(FIND_USE, {"run": run_id, "change": change_seq})).fetchone()
    assert row is not None
    return row[0], row[1]
