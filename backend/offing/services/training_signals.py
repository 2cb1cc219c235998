"""What people said about a run, the right answer that they give, and whether the run may be learned from."""

from uuid import UUID

from offing.clock import new_id
from offing.core.errors import InvalidInput, NotFound
from offing.core.training_signal import TextOrigin, TrainingSignal
from offing.services.run_labels import check_started_by_person
from offing.storage import reports, runs, training_signals
from offing.storage.pool import Connection, Database
from offing.storage.training_signals import TrainingConsent

MAX_ANSWER_CHARS = 8_000
"""Maximum code points of a corrected answer, as of a task's reference answer."""


async def list_signals(database: Database, tenant_id: UUID, run_id: UUID) -> list[TrainingSignal]:
    """List the training signals of a run, oldest first. Raises NotFound."""
    async with database.transaction(tenant_id) as connection:
        await _get_consent(connection, run_id)
        return await training_signals.list_signals(connection, [run_id])


async def correct_answer(
    database: Database, tenant_id: UUID, run_id: UUID, answer: str, *, person: str, text_origin: TextOrigin
) -> TrainingSignal:
    """Store what a person says is the right answer of a run. It is about the latest version of the report.

    Raises NotFound, InvalidInput for an empty or too long answer, and Conflict for a run that no person started.
    """
    text = answer.strip()
    if not 0 < len(text) <= MAX_ANSWER_CHARS:
        problem = f"the answer has {len(text):,} characters"
        raise InvalidInput("answer", problem, f"Send 1 to {MAX_ANSWER_CHARS:,} characters.")
    async with database.transaction(tenant_id) as connection:
        await check_started_by_person(connection, await runs.get_run(connection, run_id), "corrected")
        latest = await reports.find_latest_version(connection, run_id)
        return await training_signals.insert_correction(
            connection, tenant_id, new_id(), run_id, latest and latest.number, text, text_origin, person
        )


async def get_consent(database: Database, tenant_id: UUID, run_id: UUID) -> TrainingConsent:
    """Return whether a run may be learned from. Raises NotFound."""
    async with database.transaction(tenant_id) as connection:
        return await _get_consent(connection, run_id)


async def set_consent(
    database: Database, tenant_id: UUID, run_id: UUID, is_allowed: bool | None, *, person: str
) -> TrainingConsent:
    """Decide whether a run may be learned from. `None` means as the tenant's `training_opt_in` says.

    Raises NotFound, and Conflict for a run that no person started.
    """
    async with database.transaction(tenant_id) as connection:
        await check_started_by_person(connection, await runs.get_run(connection, run_id), "decided about")
        await training_signals.set_consent(connection, tenant_id, run_id, is_allowed, person)
        return await _get_consent(connection, run_id)


async def _get_consent(connection: Connection, run_id: UUID) -> TrainingConsent:
    consent = await training_signals.find_consent(connection, run_id)
    if consent is None:
        raise NotFound("run", str(run_id))
    return consent
