"""A run of 2,048 turns: its storage, and the time a worker needs to continue it."""

import time
from statistics import mean
from typing import LiteralString
from uuid import UUID

import psycopg

from offing.local.servers import ServerUrls
from tests.bench.measurement import Aim, Measurement
from tests.bench.platform import Client, request

STORED: LiteralString = """
    select coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint from pg_class c
     where c.relnamespace = 'app'::regnamespace and c.relkind = 'r'
"""

HAND_OVERS: LiteralString = """
    select turn, gap from (
      select turn, fence, extract(epoch from at - lag(at) over w) as gap, lag(fence) over w as before
        from app.step where run_id = %s and fence > 0 window w as (order by seq)) as steps
     where fence <> before order by turn
"""
"""Return the seconds from the last step of a slice to the first of the next: notification, claim, first call."""


def stored_bytes(url: str) -> int:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("vacuum app.run, app.step, app.role_call, app.checkpoint, app.checkpoint_value")
        row = connection.execute(STORED).fetchone()
    assert row is not None
    return row[0]


async def long_run(client: Client, servers: ServerUrls, turns: int = 2048) -> list[Measurement]:
    """Execute one run and measure its storage before and after."""
    before = stored_bytes(servers.owner_url)
    began = time.perf_counter()
    run = await client.submit(request("bench_turns", turns=turns))
    await client.ended(run.id, every=0.2)
    wall = time.perf_counter() - began
    megabytes = (stored_bytes(servers.owner_url) - before) / 1e6
    gaps = hand_overs(servers.owner_url, run.id)
    early = [gap for turn, gap in gaps if turn < turns / 4]
    late = [gap for turn, gap in gaps if turn > turns * 3 / 4]
    worst, early_mean, late_mean = max(gap for _, gap in gaps), mean(early), mean(late)
    return [
        Measurement(f"a run of {turns:,} turns (2 kB per answer)", (wall,), "s"),
        Measurement("storage of this run", (megabytes,), "MB", aim=Aim("at most 16 MB", at_most=16)),
        Measurement("continuing it in another slice, maximum", (worst,), "ms", aim=Aim("under 1 s", at_most=1)),
        Measurement("the same, mean of the last quarter; bare: of the first", (late_mean,), "ms", (early_mean,)),
    ]


def hand_overs(url: str, run_id: UUID) -> list[tuple[int, float]]:
    """Return turn and seconds of each change of slice."""
    with psycopg.connect(url, autocommit=True) as connection:
        return [(turn, float(gap)) for turn, gap in connection.execute(HAND_OVERS, (run_id,)).fetchall()]
