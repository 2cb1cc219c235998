"""The API's CPU time for a page of 50 runs, over HTTP.

    .venv/bin/python -m tests.bench.run_pages [CHECKOUT…] [--rounds 3]

Each checkout serves the API in a process of its own, and gets 200 requests on one connection in each round. The runs
have the engines of four roles, tags and 5 steps, as in `tests.bench.stored_lists`.
"""

import argparse
import asyncio
import http.client
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import psycopg

from offing.local import ServerUrls
from offing.storage.pool import Database
from tests.bench.api_process import ApiProcess, create_key, open_api_process
from tests.bench.servers import open_migrated_servers
from tests.bench.stored_lists import fill

ROOT = Path(__file__).parents[2]

RUNS, REQUESTS, WARM_UP_REQUESTS = 2_000, 200, 20

PATHS = ("/api/v1/runs?limit=50", "/api/v1/threads?limit=50")


ADD_ENGINES = """
    update app.run set engines = (
      select jsonb_object_agg(role, '{"engine": "litellm", "model": "openai/model"}'::jsonb)
        from unnest(array['analyst', 'planner', 'verifier', 'generator']) role)
"""


def measure_path(api: ApiProcess, path: str) -> float:
    """Return the milliseconds of CPU time of the API per request. Raises RuntimeError if one fails."""
    connection = http.client.HTTPConnection("127.0.0.1", api.port, timeout=30)
    headers = {"Authorization": f"Bearer {api.key}"}

    def request_pages(count: int) -> None:
        for _ in range(count):
            connection.request("GET", path, headers=headers)
            response = connection.getresponse()
            body = response.read()
            if response.status != 200:
                raise RuntimeError(f"{path} answered {response.status}: {body[:200]!r}")

    request_pages(WARM_UP_REQUESTS)
    before = api.cpu_seconds
    request_pages(REQUESTS)
    connection.close()
    return 1000 * (api.cpu_seconds - before) / REQUESTS


def measure(checkouts: Sequence[Path], rounds: int, port: int) -> None:
    with open_migrated_servers() as (servers, _):
        key = asyncio.run(prepare(servers))
        figures: dict[tuple[str, Path], list[float]] = {}
        for _ in range(rounds):
            for checkout in checkouts:
                with open_api_process(checkout, servers, port, key) as api:
                    for path in PATHS:
                        figures.setdefault((path, checkout), []).append(measure_path(api, path))
    for (path, checkout), each in sorted(figures.items()):
        print(f"{path} {checkout}: {median(each):.2f} ms of CPU of the API ({min(each):.2f} to {max(each):.2f})")


async def prepare(servers: ServerUrls) -> str:
    """Write the rows, and return an API key."""
    fill(servers.owner_url, RUNS)
    with psycopg.connect(servers.owner_url, autocommit=True) as owner:
        owner.execute(ADD_ENGINES)
        owner.execute("vacuum analyze")
    async with Database(servers.app_url, max_connections=2) as database:
        return await create_key(database)


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("checkouts", nargs="*", type=Path, default=[ROOT])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--port", type=int, default=17898)
    options = parser.parse_args(arguments)
    measure(options.checkouts or [ROOT], options.rounds, options.port)


if __name__ == "__main__":
    main(sys.argv[1:])
