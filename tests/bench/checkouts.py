"""CPU time per followed run of two or more checkouts, in alternating rounds.

    .venv/bin/python -m tests.bench.checkouts CHECKOUT… [--rounds 4] [--runs 160] [--clients 8]

Each checkout runs in a process of its own with its own servers, API and worker, which stay up for all rounds. Runs of
a graph that does nothing are submitted and followed through HTTP, as by the part `cost`. The client does the same for
all checkouts, so its ratio shows how much they differ by chance. The rows that a run reads in Postgres are counted,
too: they must not grow with the rounds. An older checkout needs copies of this file, whole_cost.py and platform.py.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median

import psycopg

from offing.local.servers import ServerUrls
from tests.bench import whole_cost
from tests.bench.api_process import create_key, open_api_process
from tests.bench.graphs import NAMES
from tests.bench.platform import ROOT, client, measured_stack
from tests.bench.protocol import at_once
from tests.ports import free_port

WARM_RUNS = 160
"""Runs before the first round. After some executions, psycopg has prepared its statements on each connection."""

ROWS_READ = "select sum(coalesce(idx_tup_fetch, 0) + seq_tup_read)::bigint from pg_stat_user_tables"

SETTLE_SECONDS = 1.5
"""Seconds after which all connections have reported what they read."""


def main() -> None:
    expected = _arguments()
    if expected.measured:
        with measured_stack(workers=1) as servers:
            asyncio.run(_measure_when_asked(servers, expected.runs, expected.clients))
    else:
        _print(_compare(expected.checkouts, expected.rounds, expected.runs, expected.clients))


def _arguments() -> argparse.Namespace:
    reader = argparse.ArgumentParser(prog="python -m tests.bench.checkouts", description=__doc__)
    reader.add_argument("checkouts", nargs="*", type=Path)
    reader.add_argument("--rounds", type=int, default=4)
    reader.add_argument("--runs", type=int, default=160)
    reader.add_argument("--clients", type=int, default=8)
    reader.add_argument("--measured", action="store_true", help="measure this checkout for each line of the input")
    return reader.parse_args()


async def _measure_when_asked(servers: ServerUrls, runs: int, clients: int) -> None:
    """Write a line when the stack is warm, and one with the result of a round for each line of the input."""
    async with client(servers) as one:
        key = await create_key(one.database)
        with open_api_process(ROOT, servers, free_port(), key, {"OFFING_EXTRA_GRAPHS": NAMES}) as api:
            async with whole_cost.open_http(api) as http:

                async def work(count: int) -> None:
                    await at_once(clients, count, lambda: whole_cost.follow_run(http))

                await work(WARM_RUNS)
                print("{}", flush=True)
                while await asyncio.to_thread(sys.stdin.readline):
                    read = _rows_read(servers)
                    spent = await whole_cost.spent(api, lambda: work(runs), runs)
                    await asyncio.sleep(SETTLE_SECONDS)
                    values = {name: 1e3 * seconds for name, seconds in spent.items()}
                    print(json.dumps({**values, "rows read": (_rows_read(servers) - read) / runs}), flush=True)


def _rows_read(servers: ServerUrls) -> int:
    with psycopg.connect(servers.owner_url, autocommit=True) as connection:
        row = connection.execute(ROWS_READ).fetchone()
    assert row is not None
    return row[0]


def _compare(
    checkouts: Sequence[Path], rounds: int, runs: int, clients: int
) -> Mapping[Path, Sequence[Mapping[str, float]]]:
    """Return the rounds of each checkout, in milliseconds and rows per run."""
    results: dict[Path, list[Mapping[str, float]]] = {checkout: [] for checkout in checkouts}
    with ExitStack() as stack:
        processes = {one: stack.enter_context(_start(one.resolve(), runs, clients)) for one in checkouts}
        for process in processes.values():
            _answer(process)
        for _ in range(rounds):
            for checkout, process in processes.items():
                _ask(process)
                results[checkout].append(_answer(process))
        for process in processes.values():
            assert process.stdin is not None
            process.stdin.close()
    return results


def _start(checkout: Path, runs: int, clients: int) -> subprocess.Popen[str]:
    folders = ("", "backend", "graphs", "workers")
    command = [sys.executable, "-m", "tests.bench.checkouts", "--measured", "--runs", str(runs), "--clients"]
    return subprocess.Popen(
        [*command, str(clients)],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(str(checkout / folder) for folder in folders)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _ask(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def _answer(process: subprocess.Popen[str]) -> Mapping[str, float]:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise RuntimeError(f"the process of a checkout ended with status {process.wait()}")
    return json.loads(line)


def _print(results: Mapping[Path, Sequence[Mapping[str, float]]]) -> None:
    for checkout, rounds in results.items():
        print(checkout)
        for name in rounds[0]:
            values = [one[name] for one in rounds]
            print(f"  {name}: {median(values):.1f} ({', '.join(f'{value:.1f}' for value in values)})")


main()
