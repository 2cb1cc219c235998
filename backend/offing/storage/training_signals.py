"""Training signals as rows: corrected answers and decisions about runs, and a view of what other tables contain."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from psycopg.rows import class_row

from offing.core.training_signal import SignalKind, TextOrigin, TrainingSignal
from offing.storage.pool import Connection

LIST_SIGNALS = """
    select case target when 'report' then 'report_rating' else 'sentence_rating' end as kind, id::text as id, run_id,
           substr(scorer, 8) as given_by, created_at, report_version, nullif(sentence_id, '') as sentence_id, value,
           correction as text, 'person' as text_origin, null::integer as base_version
      from reward where run_id = any(%(runs)s) and target in ('report', 'sentence') and scorer like 'person:%%'
    union all
    select 'answer_correction', id::text, run_id, given_by, created_at, report_version, null, null, answer,
           text_origin, null
      from answer_correction where run_id = any(%(runs)s)
    union all
    select 'report_edit', version::text, run_id, edited_by, created_at, version, null, null, '',
           case when edited_in is null then 'person' else 'model' end, (body->'edit'->>'base_version')::integer
      from report where run_id = any(%(runs)s) and edited_by is not null
    union all
    select 'input_response', seq::text, run_id, responded_by, responded_at, null, null, null, '', 'person', null
      from input_request where run_id = any(%(runs)s) and responder = 'person'
     order by created_at, kind, id
"""

INSERT_CORRECTION = """
    insert into answer_correction (id, tenant_id, run_id, report_version, answer, text_origin, given_by)
    values (%s, %s, %s, %s, %s, %s, %s) returning created_at
"""

GET_CONSENT = """
    select app.may_learn_from(r.id) as may_learn, c.is_allowed is not null as is_decided,
           coalesce(c.decided_by, '') as decided_by, c.decided_at
      from run r left join run_training_consent c on c.run_id = r.id where r.id = %s
"""

SET_CONSENT = """
    insert into run_training_consent (run_id, tenant_id, is_allowed, decided_by) values (%s, %s, %s, %s)
    on conflict (run_id) do update
       set is_allowed = excluded.is_allowed, decided_by = excluded.decided_by, decided_at = clock_timestamp()
"""

IS_NOT_REFUSED = "app.decided_training_consent(r.id) is distinct from false"
"""Condition on a run `r`: nobody has decided that it, or the run that it is a fork of, may not be learned from."""

DELETE_CONSENT = "delete from run_training_consent where run_id = %s"


@dataclass(frozen=True, slots=True)
class TrainingConsent:
    """Whether a run may be learned from."""

    may_learn: bool
    is_decided: bool
    """Whether it was decided for this run. If false, the run follows the tenant's `training_opt_in`."""
    decided_by: str
    """Empty if it was not decided for this run."""
    decided_at: datetime | None
    """`None` if it was not decided for this run."""


async def list_signals(connection: Connection, run_ids: Sequence[UUID]) -> list[TrainingSignal]:
    """Return the signals of runs, oldest first."""
    rows = await (await connection.execute(LIST_SIGNALS, {"runs": list(run_ids)})).fetchall()
    return [
        TrainingSignal(SignalKind(kind), id, run, by, at, version, sentence, value, text, TextOrigin(origin), base)
        for kind, id, run, by, at, version, sentence, value, text, origin, base in rows
    ]


async def insert_correction(
    connection: Connection,
    tenant_id: UUID,
    correction_id: UUID,
    run_id: UUID,
    report_version: int | None,
    answer: str,
    text_origin: TextOrigin,
    given_by: str,
) -> TrainingSignal:
    """Store the right answer of a run. `report_version` is `None` if the run has no report."""
    values = (correction_id, tenant_id, run_id, report_version, answer, text_origin.value, given_by)
    row = await (await connection.execute(INSERT_CORRECTION, values)).fetchone()
    assert row is not None, "an insert returns its row"
    return TrainingSignal(
        SignalKind.ANSWER_CORRECTION, str(correction_id), run_id, given_by, row[0], report_version, None, None, answer,
        text_origin,
    )  # fmt: skip


async def find_consent(connection: Connection, run_id: UUID) -> TrainingConsent | None:
    """Return whether a run may be learned from. `None` means that there is no such run."""
    async with connection.cursor(row_factory=class_row(TrainingConsent)) as cursor:
        await cursor.execute(GET_CONSENT, (run_id,))
        return await cursor.fetchone()


async def set_consent(
    connection: Connection, tenant_id: UUID, run_id: UUID, is_allowed: bool | None, decided_by: str
) -> None:
    """Decide whether a run may be learned from. `None` removes the decision, and the tenant's setting counts."""
    if is_allowed is None:
        await connection.execute(DELETE_CONSENT, (run_id,))
    else:
        await connection.execute(SET_CONSENT, (run_id, tenant_id, is_allowed, decided_by))
