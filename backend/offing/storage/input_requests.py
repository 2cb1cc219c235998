"""Input requests as rows: pending requests, responses, and responses that runs have consumed.

The text of a request is in its step.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson
from psycopg.types.json import Jsonb

from offing.core.errors import NotFound
from offing.core.input_request import (
    InputPrompt,
    InputRequest,
    InputResponse,
    Responder,
    prompt_from_json,
    response_from_json,
    response_to_json,
)
from offing.core.run import FencingToken
from offing.storage.pool import Connection

COLUMNS = """
    q.seq, s.payload, q.requested_at, q.default_at, q.responded_at, q.response, q.responder, q.responded_by,
    q.interrupt_id
"""

SELECT_INPUT_REQUESTS = f"select {COLUMNS} from input_request q join step s on s.run_id = q.run_id and s.seq = q.seq"

INSERT_INPUT_REQUEST = """
    insert into input_request (run_id, seq, tenant_id, interrupt_id, kind, default_at)
    values (%(run)s, %(seq)s, %(tenant)s, %(interrupt)s, %(kind)s, clock_timestamp() + %(within)s::interval)
"""

LIST_OF_RUN = f"{SELECT_INPUT_REQUESTS} where q.run_id = %s order by q.seq limit 500"

GET_INPUT_REQUEST = f"{SELECT_INPUT_REQUESTS} where q.run_id = %s and q.seq = %s"

LIST_OF_INTERRUPTS = f"{SELECT_INPUT_REQUESTS} where q.run_id = %s and q.interrupt_id = any(%s) order by q.seq"

IS_OVERDUE = "select default_at <= clock_timestamp() from input_request where run_id = %s and seq = %s"

STORE_RESPONSE = """
    update input_request set responded_at = clock_timestamp(), response = %(answer)s, responder = %(answerer)s,
                        responded_by = %(by)s
     where run_id = %(run)s and seq = %(seq)s and responded_at is null
    returning 1
"""

MARK_CONSUMED = "update input_request set consumed_seq = %s where run_id = %s and seq = %s"

LIST_UNCONSUMED = """
    select q.seq from input_request q
     where run_id = %s and interrupt_id = any(%s) and responded_at is not null and consumed_seq is null order by seq
"""

HAS_RESPONSE = """
    select exists (select from input_request where run_id = %s and (seq = any(%s) or interrupt_id = any(%s))
                      and responded_at is not null)
"""

SECONDS_TO_DEFAULT = """
    select extract(epoch from min(default_at) - clock_timestamp())::float8 from input_request
     where run_id = %s and responded_at is null
"""


@dataclass(frozen=True, slots=True)
class NewInputRequest:
    """A new input request. `seq` is that of its step."""

    seq: int
    prompt: InputPrompt
    interrupt_id: str | None = None


async def insert_input_request(connection: Connection, fence: FencingToken, new: NewInputRequest) -> None:
    """Store an input request in the transaction of its step, which has checked the fencing token."""
    within = None if new.prompt.timeout_seconds is None else f"{new.prompt.timeout_seconds} seconds"
    parameters = {
        "run": fence.run_id,
        "seq": new.seq,
        "tenant": fence.tenant_id,
        "interrupt": new.interrupt_id,
        "kind": new.prompt.kind,
        "within": within,
    }
    await connection.execute(INSERT_INPUT_REQUEST, parameters)


async def list_input_requests_of_run(connection: Connection, run_id: UUID) -> list[InputRequest]:
    """Return a run's input requests in the order in which they were made, at most 500."""
    return [_input_request_from_row(row) for row in await (await connection.execute(LIST_OF_RUN, (run_id,))).fetchall()]


async def list_input_requests_of_interrupts(
    connection: Connection, run_id: UUID, interrupt_ids: Sequence[str]
) -> dict[str, InputRequest]:
    """Return the input requests of these interrupts of a run, by interrupt id."""
    rows = await (await connection.execute(LIST_OF_INTERRUPTS, (run_id, list(interrupt_ids)))).fetchall()
    return {q.interrupt_id: q for q in map(_input_request_from_row, rows) if q.interrupt_id is not None}


async def find_input_request(connection: Connection, run_id: UUID, seq: int) -> InputRequest | None:
    """Return an input request. `None` means that the run has none of this number."""
    row = await (await connection.execute(GET_INPUT_REQUEST, (run_id, seq))).fetchone()
    return None if row is None else _input_request_from_row(row)


async def get_input_request(connection: Connection, run_id: UUID, seq: int) -> InputRequest:
    """Return an input request. Raises `NotFound` if it does not exist."""
    if (request := await find_input_request(connection, run_id, seq)) is None:
        raise NotFound("question", f"{run_id}/{seq}")
    return request


async def is_overdue(connection: Connection, run_id: UUID, seq: int) -> bool:
    """Return whether the timeout of an input request has passed, by the database's clock."""
    row = await (await connection.execute(IS_OVERDUE, (run_id, seq))).fetchone()
    return bool(row and row[0])


async def store_response(
    connection: Connection,
    run_id: UUID,
    input_request: InputRequest,
    response: InputResponse,
    responder: Responder,
    responded_by: str = "",
) -> bool:
    """Store a response. Only the first response counts. Return false if there already was one."""
    parameters = {
        "run": run_id,
        "seq": input_request.seq,
        "answer": Jsonb(response_to_json(input_request.input_prompt.kind, response), dumps=orjson.dumps),
        "answerer": responder,
        "by": responded_by,
    }
    return await (await connection.execute(STORE_RESPONSE, parameters)).fetchone() is not None


async def mark_consumed(connection: Connection, run_id: UUID, request_seq: int, seq: int) -> None:
    """Record that the run consumed the response with step `seq`."""
    await connection.execute(MARK_CONSUMED, (seq, run_id, request_seq))


async def list_unconsumed(connection: Connection, run_id: UUID, interrupt_ids: Sequence[str]) -> list[int]:
    """Return the numbers of input requests with an unconsumed response.

    Only requests of these interrupts are searched.
    """
    return [
        seq for (seq,) in await (await connection.execute(LIST_UNCONSUMED, (run_id, list(interrupt_ids)))).fetchall()
    ]


async def has_response(connection: Connection, run_id: UUID, seqs: Sequence[int], interrupt_ids: Sequence[str]) -> bool:
    """Return whether at least one of these input requests has a response."""
    row = await (await connection.execute(HAS_RESPONSE, (run_id, list(seqs), list(interrupt_ids)))).fetchone()
    return bool(row and row[0])


async def find_seconds_to_default(connection: Connection, run_id: UUID) -> float | None:
    """Return the seconds until the first pending input request takes its default.

    `None` means that none has a default time.
    """
    row = await (await connection.execute(SECONDS_TO_DEFAULT, (run_id,))).fetchone()
    return None if row is None else row[0]


def _input_request_from_row(row: Sequence[Any]) -> InputRequest:
    """Convert a row of `COLUMNS`."""
    seq, payload, asked_at, due_at, answered_at, answered, answerer, by, interrupt = row
    return InputRequest(
        seq,
        prompt_from_json(payload),
        asked_at,
        due_at,
        answered_at,
        None if answered is None else response_from_json(answered),
        Responder(answerer) if answerer else None,
        by,
        interrupt,
    )
