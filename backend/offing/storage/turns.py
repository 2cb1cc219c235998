"""Role calls as a trainer reads them: rendered prompt, completion, sampling, usage, and what they may be trained for.

Prompt parts are stored once by hash; the parsed output is in the turn's step.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

import orjson
from psycopg.types.json import Jsonb

from offing.core.model import Answer, Attempt, Message
from offing.core.run import Fence
from offing.storage.pool import Connection

INSERT = """
    insert into turn (run_id, seq, tenant_id, role, engine, model, prompt, completion, sampling, prompt_tokens,
                      completion_tokens, usd, priced, failed_attempts, trainable, trainable_reason)
    values (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
"""

INSERT_PARTS = """
    insert into text_part (tenant_id, sha256, body)
    select %s, part.sha256, part.body from unnest(%s::bytea[], %s::text[]) as part(sha256, body)
    on conflict do nothing
"""


@dataclass(frozen=True, slots=True)
class Trainable:
    """What a turn may be trained for, and why not for more."""

    use: str
    """rl, sft or none."""
    reason: str = ""


def trainable_as(answer: Answer) -> Trainable:
    """Text alone trains by imitation; token ids and log-probabilities would be needed for more."""
    if not answer.text or not answer.messages:
        return Trainable("none", "the engine is not a language model")
    return Trainable("sft", "the engine gives no token ids")


async def insert(connection: Connection, fence: Fence, seq: int, role: str, engine: str, answer: Answer) -> None:
    """Store the role call behind step `seq`, in the transaction that appended it."""
    await _insert_parts(connection, fence.tenant, answer.messages)
    trainable = trainable_as(answer)
    prompt = [[m.role, [_sha256(part).hex() for part in m.parts]] for m in answer.messages]
    row = (
        *(fence.run, seq, fence.tenant, role, engine, answer.model, _jsonb(prompt), answer.text),
        *(_jsonb(answer.sampling), answer.usage.prompt_tokens, answer.usage.completion_tokens),
        *(answer.usage.usd, answer.usage.priced, _jsonb([_attempt(a) for a in answer.attempts])),
        *(trainable.use, trainable.reason),
    )
    await connection.execute(INSERT, row)


async def _insert_parts(connection: Connection, tenant: UUID, messages: Sequence[Message]) -> None:
    parts = {_sha256(part): part for message in messages for part in message.parts}
    if parts:
        await connection.execute(INSERT_PARTS, (tenant, list(parts), list(parts.values())))


def _sha256(part: str) -> bytes:
    return hashlib.sha256(part.encode()).digest()


def _attempt(attempt: Attempt) -> dict[str, Any]:
    usage: dict[str, Any] = asdict(attempt.usage) | {"usd": str(attempt.usage.usd)}
    return asdict(attempt) | {"usage": usage}


def _jsonb(value: object) -> Jsonb:
    return Jsonb(value, dumps=orjson.dumps)
