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

from offing.core.model import EngineChoice
from offing.exports.format import Options, named
from offing.services import exports, trajectories
from offing.services.graphs import installed
from offing.services.runs import RunRequest, submit
from offing.storage.runs import RunRow
from offing.storage.trajectories import Query
from tests.web.site import Reply, running
from tests.wire.replies import Completion, Fault
from tests.wire.server import WireServer, scripted
from tests.workers import leaking
from tests.workers.collecting import Sql
from tests.workers.conftest import Platform, StartWorker

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


def found_in(text: str) -> list[str]:
    """Secrets that a text holds, in whichever spelling a reader could undo."""
    bare = [MARK, MARK.encode().hex(), *(_inner(MARK, lead) for lead in range(3))]
    return [form for form in bare if form in text]


def _inner(text: str, lead: int) -> str:
    """What base 64 makes of a text that stands `lead` bytes behind a border of three, whatever stands around it."""
    return base64.b64encode(bytes(lead) + text.encode()).decode()[(0, 2, 3)[lead] : (lead + len(text)) * 8 // 6]


@asynccontextmanager
async def listening(url: str) -> AsyncGenerator[list[str]]:
    """Everything that is said in Valkey's channels meanwhile."""
    heard: list[str] = []
    async with redis.asyncio.Redis.from_url(url) as client, client.pubsub() as channels:  # pyright: ignore[reportUnknownMemberType]
        await channels.psubscribe("*")  # pyright: ignore[reportUnknownMemberType]

        async def listen() -> None:
            async for message in channels.listen():  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
                heard.append(str(message))  # pyright: ignore[reportUnknownArgumentType]

        task = asyncio.create_task(listen())
        try:
            yield heard
        finally:
            task.cancel()


async def kept_in(url: str) -> str:
    """Keys and values of Valkey."""
    async with redis.asyncio.Redis.from_url(url) as client:  # pyright: ignore[reportUnknownMemberType]
        keys: list[Any] = await client.keys("*")  # pyright: ignore[reportUnknownMemberType]
        return str([(key, await client.dump(key)) for key in keys])


def tables(sql: Sql) -> dict[str, str]:
    """Every row of every table as text, with bytes as they are."""
    listed = sql(
        "select quote_ident(schemaname) || '.' || quote_ident(tablename) from pg_tables where schemaname = 'app'"
    )
    return {name: "\n".join(map(str, sql(f"select * from {name}"))) for (name,) in listed}


async def asked(platform: Platform, graph: str, server: WireServer) -> RunRow:
    choice = EngineChoice(engine="litellm", model="openai/stand-in", api_base=server.url, options={"form": "text"})
    request = RunRequest("What is echoed?", graph, scope={"web": True}, engines={"speaker": choice})
    graphs = installed(leaking.GRAPHS)
    submitted = await submit(platform.database, platform.hints, platform.tenant, request, graphs=graphs)
    return await platform.ended(submitted.run.id, 90)


async def test_no_secret_is_found_in_any_sink(
    platform: Platform, start_worker: StartWorker, sql: Sql, redis_url: str
) -> None:
    sql("update app.tenant set training_opt_in = true")
    said = Completion(text=json.dumps({"word": EVERYTHING}))
    async with running() as site, WireServer(scripted(Fault(500, EVERYTHING), said)) as server:
        place = f"127.0.0.1:{site.port}"
        hit = {
            "url": f"http://{place}/x?token={quote(SECRETS[NAMES[0]], safe='')}",
            "title": EVERYTHING,
            "content": EVERYTHING,
        }
        site.pages = {"/search": Reply(orjson.dumps({"results": [hit]}), headers={"Content-Type": "application/json"})}
        worker = start_worker(
            **SECRETS,
            **{leaking.NAMES: ",".join(NAMES), "OFFING_GRAPHS": leaking.GRAPHS, "OFFING_SEARCH": "searxng"},
            SEARXNG_URL=f"http://user:{quote(SECRETS[NAMES[1]], safe='')}@{place}",
            OFFING_FETCH_HOSTS=place,
            OTEL_TRACES_EXPORTER="console",
            OTEL_BSP_SCHEDULE_DELAY="100",
        )
        async with listening(redis_url) as heard:
            run = await asked(platform, "leaking", server)
            broken = await asked(platform, "failing", server)
        assert len(server.requests) == 2
    steps = await platform.steps(run.id)
    assert len([s for s in steps if "[redacted]" in str(s)]) > 3 * len(SECRETS)

    live = await kept_in(redis_url)
    assert worker.finish() == 0
    reports = [
        (await exports.export(platform.database, platform.tenant, run.id, f)).body for f in ("md", "html", "json")
    ]
    wanted, atif = Query(kind="ask"), named("atif")
    lines = trajectories.stream(platform.database, platform.tenant, wanted, atif, Options(), None, 10)
    exported = b"".join([line async for line in lines])
    assert str(run.id).encode() in exported

    assert {name: found_in(text) for name, text in tables(sql).items() if found_in(text)} == {}
    assert found_in(live + str(heard)) == []
    assert heard
    assert found_in(worker.log.read_text()) == []
    assert found_in("".join(body.decode() for body in reports)) == []
    assert found_in(exported.decode()) == []
    assert broken.terminal
