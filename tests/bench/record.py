"""Disk space of the training record: bytes per completion token and per token that a prompt adds.

Rows are written by the store itself, with random ids of a large vocabulary, which is the worst case for compression.
The cost of a token is the slope between short and long turns, so that the fixed cost of a turn is not included.
"""

import random
from collections.abc import Callable
from typing import LiteralString

import psycopg

from offing.clock import new_id
from offing.core.model import EngineResponse, Message, Usage
from offing.core.role_call import CallOrigin, SegmentPosition
from offing.core.run import FencingToken
from offing.core.tokens import TokenTrace
from offing.core.trajectory import BoundaryReason
from offing.storage import role_calls
from offing.storage.migrate import LOCAL_TENANT
from tests.bench.measurement import Aim, Measurement
from tests.bench.platform import Client
from tests.workers.graphs import Say

VOCABULARY, TURNS, SHORT, LONG = 150_000, 2_000, 64, 1024

BEGUN: LiteralString = """
    with thread as (insert into thread (id, tenant_id, title) values (%(id)s, %(tenant)s, 'bench') returning id)
    insert into run (id, tenant_id, thread_id, graph, graph_version, question, engines, tool_policy,
                     tool_policy_sha256, budget,
                     status, kind)
    select %(id)s, %(tenant)s, id, 'bench', '1', 'Why?', '{}', '{}', '', '{"turns": 1}', 'done', 'rollout' from thread
"""

COLUMNS: LiteralString = """
    select sum(pg_column_size(completion_ids) + pg_column_size(logprobs) + pg_column_size(entropy)
               + pg_column_size(loss_mask)), sum(pg_column_size(prompt_ids)) from app.role_call where run_id = any(%s)
"""

SIZE: LiteralString = """
    select sum(pg_total_relation_size(c.oid))::bigint from pg_class c
     where c.oid = any(array['app.role_call', 'app.segment', 'app.completion_span', 'app.text_part']::regclass[])
"""


async def bytes_a_token(client: Client, owner_url: str) -> list[Measurement]:
    """Return the slopes of the sizes of the tables on disk, including text and indexes."""
    completion = await _slope(client, owner_url, lambda n: (SHORT, n))
    prompt = await _slope(client, owner_url, lambda n: (n, SHORT))
    return [
        Measurement(
            "storage of a completion token (id, log probability, entropy, mask, text)",
            (completion,),
            "bytes",
            (9.1,),
            "of columns",
            aim=Aim("at most 14", at_most=14),
        ),
        Measurement(
            "storage of a token that a prompt adds (id; its text is stored once as a part)",
            (prompt,),
            "bytes",
            (3,),
            "of columns",
            aim=Aim("at most 4.5", at_most=4.5),
        ),
    ]


async def _slope(client: Client, owner_url: str, sizes: Callable[[int], tuple[int, int]]) -> float:
    taken = [await _stored(client, owner_url, *sizes(n)) for n in (SHORT, LONG)]
    return (taken[1] - taken[0]) / (TURNS * (LONG - SHORT))


async def _stored(client: Client, owner_url: str, prompt: int, completion: int) -> int:
    """Return the bytes of this number of turns of these sizes."""
    dice, run = random.Random(prompt * 10_000 + completion), new_id()
    before = _size(owner_url)
    async with client.database.transaction(LOCAL_TENANT) as connection:
        await connection.execute(BEGUN, {"id": run, "tenant": LOCAL_TENANT})
        for seq in range(1, TURNS + 1):
            position = SegmentPosition(seq - 1, 0, BoundaryReason.ROOT if seq == 1 else BoundaryReason.WORKSPACE_RESET)
            fence, origin = FencingToken(LOCAL_TENANT, run, 1), CallOrigin("planner", "policy", seq)
            row = role_calls.build_role_call_row(seq, origin, _answer(dice, prompt, completion), position)
            await role_calls.insert_role_calls(connection, fence, [row])
    return _size(owner_url) - before


def _answer(dice: random.Random, prompt: int, completion: int) -> EngineResponse:
    ids = tuple(dice.randrange(VOCABULARY) for _ in range(completion))
    words = tuple(f" {WORDS[i % len(WORDS)]}".encode() for i in ids)
    trace = TokenTrace(
        prompt_ids=tuple(dice.randrange(VOCABULARY) for _ in range(prompt)),
        completion_ids=ids,
        logprobs=tuple(-dice.random() for _ in ids),
        token_bytes=words,
        policy="planner@1",
        finish_reason="stop",
        entropy=tuple(dice.random() for _ in ids),
    )
    usage = Usage(prompt, completion)
    return EngineResponse(
        Say(word="x"), trace.text, "planner@1", (Message("user", ("The same question.",)),), {}, usage, (), trace
    )


WORDS = (
    *("the", "of", "and", "to", "in", "that", "for", "with", "not", "his", "but", "this", "have", "from", "they"),
    *("which", "one", "were", "all", "there", "would", "their", "been", "when", "who", "will", "more", "about"),
)


def _size(owner_url: str) -> int:
    with psycopg.connect(owner_url, autocommit=True) as connection:
        connection.execute("vacuum app.role_call, app.segment, app.completion_span, app.text_part")
        row = connection.execute(SIZE).fetchone()
    assert row is not None
    return row[0]
