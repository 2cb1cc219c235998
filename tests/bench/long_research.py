"""A run of 2,048 turns of iterresearch: its prompts, the memory of its worker, and its storage from start to end."""

import asyncio
from itertools import pairwise
from typing import LiteralString
from uuid import UUID

import psycopg

from offing.core.model import EngineConfig
from offing.core.run import Budget
from offing.local.servers import ServerUrls
from offing.services.graphs import open_registry
from offing.services.runs import RunRequest, submit_run
from offing.storage.migrate import LOCAL_TENANT
from tests.bench.graphs import NAMES
from tests.bench.long_run import stored_bytes
from tests.bench.measurement import Aim, Measurement
from tests.bench.platform import Client, worker_pid
from tests.bench.waiting_runs import resident_bytes

ROUNDS = 2048

PARTS = 4
"""The run is compared by quarters. The first quarter also contains what is created only once."""

FLAT = 0.10

PROMPT: LiteralString = """
    select avg(length) from (
      select sum(octet_length(part.body)) as length
        from app.role_call t join app.step s using (run_id, seq), jsonb_array_elements(t.prompt) as message,
             jsonb_array_elements_text(message->1) as hash
             join app.text_part part on part.sha256 = decode(hash, 'hex')
       where t.run_id = %s and s.turn > %s and s.turn <= %s group by t.seq) as prompts
"""


async def long_research(client: Client, servers: ServerUrls) -> list[Measurement]:
    """Use the rule that continues as long as allowed, in text format, so that every turn stores its prompt."""
    worker, engines = worker_pid(), {"researcher": EngineConfig(engine="rules", model="steady", prompt_format="text")}
    request = RunRequest("Does it go on?", "iterresearch", budget=Budget(max_turns=ROUNDS), engines=engines)
    run = (
        await submit_run(client.database, client.notifier, LOCAL_TENANT, request, graphs=open_registry(NAMES))
    ).run.id
    stored, resident = [stored_bytes(servers.owner_url)], [resident_bytes(worker)]
    for part in range(1, PARTS + 1):
        await _reached(client, run, ROUNDS * part // PARTS)
        stored.append(stored_bytes(servers.owner_url))
        resident.append(resident_bytes(worker))
    grown = [later - earlier for earlier, later in pairwise(stored[1:])]
    prompts = [_prompt_bytes(servers.owner_url, run, part) for part in range(PARTS)]
    return [
        _flat(
            "prompt per turn, 2,048 turns of iterresearch, last quarter; bare: first quarter",
            "bytes",
            prompts[-1],
            prompts[0],
        ),
        _flat(
            "memory of its worker at the end; bare: after the first quarter",
            "MB",
            resident[-1] / 1e6,
            resident[1] / 1e6,
        ),
        _flat(
            "its storage per turn, last quarter; bare: second quarter",
            "bytes",
            *(n * PARTS / ROUNDS for n in (grown[-1], grown[0])),
        ),
    ]


def _flat(what: str, unit: str, last: float, first: float) -> Measurement:
    aim = Aim("within 10 %", at_least=1 - FLAT, at_most=1 + FLAT, of_ratio=True)
    return Measurement(what, (last,), unit, (first,), aim=aim)


async def _reached(client: Client, run_id: UUID, turns: int) -> None:
    while not (row := await client.row(run_id)).is_terminal and row.usage.turns < turns:  # noqa: ASYNC110
        await asyncio.sleep(0.1)


def _prompt_bytes(url: str, run_id: UUID, part: int) -> float:
    size = ROUNDS // PARTS
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute(PROMPT, (run_id, part * size, (part + 1) * size)).fetchone()
    assert row is not None
    return float(row[0])
