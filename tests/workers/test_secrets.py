"""Twenty-five secrets of a worker, brought to every place of a run, are found in none of six sinks.

They come by search engines that repeat what they were sent, a provider that does, arguments, addresses, errors and a
graph's own words, each in five spellings. The sinks: all tables with the checkpoints among them, all of Valkey with
what passes through it, the log, its traces, reports as files, and exported trajectories.
"""

import asyncio
import base64
import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

import orjson
import redis.asyncio

from offing.core.model import EngineConfig
from offing.exports.format import FORMATS, ExportOptions
from offing.report_files.writers import ReportFileWriter
from offing.services import report_export, trajectories
from offing.services.graphs import open_registry
from offing.services.runs import RunRequest, submit_run
from offing.storage.runs import RunRow
from offing.storage.trajectories import TrajectoryQuery
from tests.model_provider.replies import Completion, Fault
from tests.model_provider.server import WireServer, scripted
from tests.web.site import Reply, running
from tests.workers import leaking_graphs
from tests.workers.conftest import Platform, StartWorker
from tests.workers.rollout_batches import Sql

PROVIDERS = ("OPENAI", "ANTHROPIC", "BRAVE", "TAVILY", "MISTRAL", "GROQ", "GEMINI", "COHERE")
NAMES = (
    *(f"{who}_API_KEY" for who in PROVIDERS),
    *(f"SERVICE{n}_{kind}" for kind, most in (("TOKEN", 8), ("PASSWORD", 5), ("SECRET", 4)) for n in range(most)),
)
SECRETS = {
    name: f'c4n4ry{n:02}-"x\\y/é+{name[::-1]}' if n % 2 else f"c4n4ry{n:02}.{name}.zq" for n, name in enumerate(NAMES)
}
MARK = "c4n4ry"
"""Begins each of them, and occurs nowhere else."""


def spellings(secret: str) -> Iterator[str]:
    yield secret
    yield quote(secret, safe="")
    yield json.dumps(secret)[1:-1]
    yield base64.b64encode(f"user:{secret}".encode()).decode()
    yield secret.encode().hex()


EVERYTHING = " ".join(form for secret in SECRETS.values() for form in spellings(secret))


def find_secrets(text: str) -> list[str]:
    """Secrets that a text holds, in whichever spelling a reader could undo."""
    bare = [MARK, MARK.encode().hex(), *(_inner(MARK, lead) for lead in range(3))]
    return [form for form in bare if form in text]


def _inner(text: str, lead: int) -> str:
    """What base 64 makes of a text that stands `lead` bytes behind a border of three, whatever stands around it."""
    return base64.b64encode(bytes(lead) + text.encode()).decode()[(0, 2, 3)[lead] : (lead + len(text)) * 8 // 6]


@asynccontextmanager
async def listening(url: str) -> AsyncGenerator[list[str]]:
    """Everything that is said in Valkey's channels meanwhile."""
    received: list[str] = []
    async with redis.asyncio.Redis.from_url(url) as client, client.pubsub() as channels:  # pyright: ignore[reportUnknownMemberType]
        await channels.psubscribe("*")  # pyright: ignore[reportUnknownMemberType]

        async def listen() -> None:
            async for message in channels.listen():  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
                received.append(str(message))  # pyright: ignore[reportUnknownArgumentType]

        task = asyncio.create_task(listen())
        try:
            yield received
        finally:
            task.cancel()


async def list_keys(url: str) -> str:
    """Keys and values of Valkey."""
    async with redis.asyncio.Redis.from_url(url) as client:  # pyright: ignore[reportUnknownMemberType]
        keys: list[Any] = await client.keys("*")  # pyright: ignore[reportUnknownMemberType]
        return str([(key, await client.dump(key)) for key in keys])


def tables(sql: Sql) -> dict[str, str]:
    """Every row of every table as text, with bytes unchanged."""
    listed = sql(
        "select quote_ident(schemaname) || '.' || quote_ident(tablename) from pg_tables where schemaname = 'app'"
    )
    return {name: "\n".join(map(str, sql(f"select * from {name}"))) for (name,) in listed}


async def run_question(platform: Platform, graph: str, server: WireServer) -> RunRow:
    choice = EngineConfig(
        engine="litellm", model="openai/stand-in", api_base=server.url, options={"output_mode": "text"}
    )
    request = RunRequest("What is echoed?", graph, scope={"web": True}, engines={"speaker": choice})
    graphs = open_registry(leaking_graphs.GRAPHS)
    submitted = await submit_run(platform.database, platform.notifier, platform.tenant, request, graphs=graphs)
    return await platform.ended(submitted.run.id, 90)


async def test_no_secret_is_found_in_any_sink(
    platform: Platform, start_worker: StartWorker, sql: Sql, redis_url: str
) -> None:
    sql("update app.tenant set training_opt_in = true")
    message = Completion(text=json.dumps({"word": EVERYTHING}))
    async with running() as site, WireServer(scripted(Fault(500, EVERYTHING), message)) as server:
        address = f"127.0.0.1:{site.port}"
        hit = {
            "url": f"http://{address}/x?token={quote(SECRETS[NAMES[0]], safe='')}",
            "title": EVERYTHING,
            "content": EVERYTHING,
        }
        site.pages = {"/search": Reply(orjson.dumps({"results": [hit]}), headers={"Content-Type": "application/json"})}
        worker = start_worker(
            **SECRETS,
            **{
                leaking_graphs.NAMES: ",".join(NAMES),
                "OFFING_EXTRA_GRAPHS": leaking_graphs.GRAPHS,
                "OFFING_SEARCH_ENGINES": "searxng",
            },
            SEARXNG_URL=f"http://user:{quote(SECRETS[NAMES[1]], safe='')}@{address}",
            OFFING_ALLOWED_FETCH_HOSTS=address,
            OTEL_TRACES_EXPORTER="console",
            OTEL_BSP_SCHEDULE_DELAY="100",
        )
        async with listening(redis_url) as received:
            run = await run_question(platform, "leaking", server)
            broken = await run_question(platform, "failing", server)
        assert len(server.requests) == 2
    steps = await platform.steps(run.id)
    assert len([s for s in steps if "[redacted]" in str(s)]) > 3 * len(SECRETS)

    live = await list_keys(redis_url)
    assert worker.finish() == 0
    reports = [
        (await report_export.export_report(platform.database, ReportFileWriter(), platform.tenant, run.id, f)).body
        for f in ("md", "html", "json", "bib", "ris")
    ]
    expected, atif = TrajectoryQuery(kind="interactive"), FORMATS["atif"]
    lines = trajectories.stream_trajectories(
        platform.database, platform.tenant, expected, atif, ExportOptions(), None, 10
    )
    exported = b"".join([line async for line in lines])
    assert str(run.id).encode() in exported

    assert {name: find_secrets(text) for name, text in tables(sql).items() if find_secrets(text)} == {}
    assert find_secrets(live + str(received)) == []
    assert received
    assert find_secrets(worker.log.read_text()) == []
    assert find_secrets("".join(body.decode() for body in reports)) == []
    assert find_secrets(exported.decode()) == []
    assert broken.is_terminal
