"""Exporting rollouts: MB of stored token columns per second, compared with a bare `COPY` of the same rows.

The two halves of an export, reading rows and writing them, are also measured alone. The part uses its own servers.
The rows are inserted by SQL, because writing them is measured elsewhere.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from itertools import product
from pathlib import Path
from typing import LiteralString

import numpy as np
import psycopg

from offing.clock import new_id
from offing.core.training_rows import TrainingRow
from offing.exports.format import FORMATS, ExportOptions, RecordUnit
from offing.services import trajectories
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing.storage.token_columns import pack_ids
from offing.storage.trajectories import TrajectoryQuery
from tests.bench.measurement import Aim, Measurement, Samples
from tests.bench.servers import open_migrated_servers

ROLLOUTS, TURNS = 1000, 20

PROMPT, COMPLETION = 200, 64
"""Tokens that each turn adds."""

REPEATS = 5

ROWS_PER_WRITE = 190
"""Rows of one chunk of an export of these rollouts."""

HALF = Aim("at least 0.5", at_least=0.5, of_ratio=True)

LAID: LiteralString = """
    set search_path = app;
    set session_replication_role = replica;
    insert into rollout_batch (id, tenant_id, request) values ('{batch}', '{tenant}', '{{}}');
    insert into task (id, tenant_id, dataset, question, content_sha256)
      values ('{batch}', '{tenant}', 'bench', 'Why?', 'x');
    insert into rollout_group (id, tenant_id, batch_id, task_id, graph, graph_version, engines, scorers, size, seed,
                               max_attempts)
      values ('{batch}', '{tenant}', '{batch}', '{batch}', 'agentflow', '1', '{{}}', '[]', {rollouts}, 1, 1);
    create temporary table made as select gen_random_uuid() as id, n from generate_series(1, {rollouts}) n;
    insert into thread (id, tenant_id, title) select id, '{tenant}', '' from made;
    insert into run (id, tenant_id, thread_id, graph, graph_version, question, engines, tool_policy,
                     tool_policy_sha256, budget,
                     status, kind, ended_at)
      select id, '{tenant}', id, 'agentflow', '1', 'Why?', '{{}}', '{{}}', '', '{{"turns": 3}}', 'done', 'rollout',
             clock_timestamp() - interval '1 hour' from made;
    insert into rollout (run_id, group_id, tenant_id, member, outcome, reward, finalized_at)
      select id, '{batch}', '{tenant}', n, 'answered', 1, clock_timestamp() - interval '1 hour' from made;
    insert into segment (run_id, idx, tenant_id, role, boundary_reason) select id, 0, '{tenant}', 'planner',
                         'root' from made;
    insert into step (run_id, seq, tenant_id, fence, kind, label, title, turn, payload)
      select id, t, '{tenant}', 1, 'plan', 'plan', 'a plan', t, '{{}}' from made, generate_series(1, {turns}) t;
    insert into completion_span (run_id, seq, nth, tenant_id, kind, start_char, end_char, start_token, end_token)
      select id, t, s, '{tenant}', 'action', s * 20, s * 20 + 20, s * 20, s * 20 + 20
        from made, generate_series(1, {turns}) t, generate_series(0, 1) s;
"""

TURN = """
    insert into app.role_call (run_id, seq, tenant_id, role, engine, prompt, completion, sampling, trainable,
                               segment_idx, position,
                          prompt_offset, prompt_ids, completion_ids, logprobs, entropy, loss_mask, policy)
    select id, %(seq)s, %(tenant)s, 'planner', 'policy', '[]', 'text', '{"temperature": 1.0, "top_p": 1.0}', 'rl', 0,
           %(seq)s - 1, %(offset)s, %(prompt)s, %(completion)s, %(logprobs)s, %(entropy)s, %(mask)s, 'planner@1'
      from made where n = %(n)s
"""

SIZE: LiteralString = """
    select sum(octet_length(prompt_ids) + octet_length(completion_ids) + octet_length(logprobs)
               + octet_length(entropy) + octet_length(loss_mask)) from app.role_call
"""

BARE: LiteralString = """
    copy (select role_call.* from app.role_call join app.rollout using (run_id) where finalized_at is not null)
      to stdout
"""


def lay_down(owner_url: str) -> int:
    """Insert rollouts of random tokens and return the bytes of their token columns."""
    draw = np.random.default_rng(0)
    with psycopg.connect(owner_url, autocommit=True) as owner:
        filled = LAID.format(batch=new_id(), tenant=LOCAL_TENANT, rollouts=ROLLOUTS, turns=TURNS)
        owner.execute(filled)  # pyright: ignore[reportArgumentType, reportCallIssue]
        with owner.cursor() as cursor:
            positions = product(range(1, ROLLOUTS + 1), range(1, TURNS + 1))
            cursor.executemany(TURN, (_turn(draw, n, seq) for n, seq in positions))
        owner.execute("analyze")
        row = owner.execute(SIZE).fetchone()
    assert row is not None
    return row[0]


def _turn(draw: np.random.Generator, n: int, seq: int) -> dict[str, object]:
    return {
        "n": n,
        "seq": seq,
        "tenant": LOCAL_TENANT,
        "offset": (seq - 1) * (PROMPT + COMPLETION),
        "prompt": pack_ids(draw.integers(0, 150_000, PROMPT).tolist()),
        "completion": pack_ids(draw.integers(0, 150_000, COMPLETION).tolist()),
        "logprobs": (-draw.random(COMPLETION, np.float32)).tobytes(),
        "entropy": draw.random(COMPLETION, np.float32).astype("<f2").tobytes(),
        "mask": b"\xff" * (COMPLETION // 8),
    }


async def bare(app_url: str, format: LiteralString = "") -> None:
    """Read the same rows with `COPY` and discard them."""
    async with await psycopg.AsyncConnection.connect(app_url) as connection, connection.cursor() as cursor:
        await connection.execute(f"set app.tenant = '{LOCAL_TENANT}'".encode())
        async with cursor.copy(BARE + format) as copy:
            async for _ in copy:
                pass


async def ours(database: Database, format: str, folder: Path) -> None:
    out = folder / f"export.{format}"
    await trajectories.export_trajectories(
        database, LOCAL_TENANT, TrajectoryQuery(), FORMATS[format], ExportOptions(), None, out
    )


async def read_rows(database: Database) -> list[TrainingRow]:
    """Read the rows of the export without writing them."""
    chunks = trajectories.iter_chunks(database, LOCAL_TENANT, TrajectoryQuery(), RecordUnit.ROW, ExportOptions(), None)
    return [row async for chunk in chunks for row, _ in chunk.units()]


async def write_rows(rows: Sequence[TrainingRow], folder: Path) -> None:
    """Write rows that are in memory as Parquet."""
    with (folder / "written.parquet").open("wb") as file:
        sink = FORMATS["parquet"].create_sink(file, ExportOptions())
        for start in range(0, len(rows), ROWS_PER_WRITE):
            sink.write(rows[start : start + ROWS_PER_WRITE])
        sink.close()


async def _seconds(work: Callable[[], Awaitable[object]]) -> float:
    began = time.perf_counter()
    await work()
    return time.perf_counter() - began


async def _measured(app_url: str, folder: Path) -> dict[str, list[float]]:
    """Return the seconds of each, measured in turns."""
    taken: dict[str, list[float]] = {}
    async with Database(app_url, max_connections=2) as database:
        rows = await read_rows(database)
        ways: dict[str, Callable[[], Awaitable[object]]] = {
            "copy": lambda: bare(app_url),
            "binary": lambda: bare(app_url, " (format binary)"),
            "read": lambda: read_rows(database),
            "write": lambda: write_rows(rows, folder),
            **{f: lambda f=f: ours(database, f, folder) for f in ("parquet", "verl", "tinker")},
        }
        for _ in range(REPEATS):
            for name, work in ways.items():
                taken.setdefault(name, []).append(await _seconds(work))
    return taken


def export_speed() -> list[Measurement]:
    with open_migrated_servers(durable=False) as (servers, files):
        size = lay_down(servers.owner_url)
        taken = asyncio.run(_measured(servers.app_url, files))
    rates = {way: tuple(size / seconds / 1e6 for seconds in each) for way, each in taken.items()}
    return [
        *(_measurement(name, rates[name], rates["copy"], HALF) for name in ("parquet", "verl")),
        _measurement("tinker", rates["tinker"], rates["copy"]),
        Measurement("export as parquet; bare: COPY in binary form", rates["parquet"], "MB/s", rates["binary"]),
        Measurement("export: reading rows, without writing; bare: COPY", rates["read"], "MB/s", rates["copy"]),
        Measurement("export: writing read rows as parquet; bare: COPY", rates["write"], "MB/s", rates["copy"]),
    ]


def _measurement(name: str, ours: Samples, bare: Samples, aim: Aim | None = None) -> Measurement:
    what = f"export as {name}, {ROLLOUTS} rollouts of {TURNS} turns; bare: COPY"
    return Measurement(what, ours, "MB/s", bare, aim=aim)
