"""Read input requests and submit responses to them.

A response is stored in the same transaction that requeues a waiting run; a notification follows.
"""

from dataclasses import dataclass
from uuid import UUID

from offing.bus.notifier import RunNotifier
from offing.core.errors import Conflict
from offing.core.input_request import InputRequest, InputResponse, Responder, check_response
from offing.storage import input_requests, runs, steps
from offing.storage.pool import Database


@dataclass(frozen=True, slots=True)
class InputRequestStatus:
    """An input request, and whether it still accepts a response."""

    request: InputRequest
    pending: bool
    """`False` if it was answered or its run has ended."""


async def list_input_requests(database: Database, tenant_id: UUID, run_id: UUID) -> list[InputRequestStatus]:
    """List the input requests of a run, oldest first. Raises NotFound."""
    async with database.transaction(tenant_id) as connection:
        row = await runs.get_run(connection, run_id)
        requests = await input_requests.list_input_requests_of_run(connection, run_id)
    return [InputRequestStatus(question, question.is_pending and not row.is_terminal) for question in requests]


async def get_input_request(database: Database, tenant_id: UUID, run_id: UUID, number: int) -> InputRequest:
    """Return an input request. Raises NotFound."""
    async with database.transaction(tenant_id) as connection:
        return await input_requests.get_input_request(connection, run_id, number)


async def submit_response(
    database: Database,
    notifier: RunNotifier,
    tenant_id: UUID,
    run_id: UUID,
    number: int,
    response: InputResponse,
    *,
    responded_by: str,
) -> InputRequest:
    """Respond to an input request. The first response counts, and a waiting run continues.

    Raises NotFound, InvalidInput if the response does not fit, and Conflict if there is a response already or
    the run has ended.
    """
    async with database.transaction(tenant_id) as connection:
        row = await runs.lock_run(connection, run_id)
        request = await input_requests.get_input_request(connection, run_id, number)
        if not request.is_pending:
            raise Conflict(
                "This input request already has a response.", "Read the input requests of the run again to see it."
            )
        if row.is_terminal:
            raise Conflict(f"Run {run_id} has ended ({row.status}).", "Ask a follow-up question in the thread instead.")
        response = check_response(request.input_prompt, response)
        await input_requests.store_response(connection, run_id, request, response, Responder.PERSON, responded_by)
        goes_on = await runs.requeue_waiting_run(connection, run_id)
        answered = await input_requests.get_input_request(connection, run_id, number)
        recorded_steps = await steps.list_steps_by_seq(connection, run_id, [number])
    if goes_on:
        await notifier.dispatch_run(run_id)
    await notifier.publish_steps(
        tenant_id, run_id, recorded_steps
    )  # no new step, but it makes subscribers read the run again
    return answered
