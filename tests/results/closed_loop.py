"""Run the training loop from scratch, once per seed, and compare the planner before and after on held-out worlds.

    .venv/bin/python -m tests.results.closed_loop [--split unseen] [SEED ...]

`--split unseen` evaluates on combinations of relations that no training question has. Each seed has its own folder
under .loop per configuration. A seed with a result is not run again, and a stopped run
continues. The results are added to docs/results/closed-loop.json, and the page is written from all records of that
file.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, LiteralString

import orjson

from offing.cli.show import run_with_database
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing_world.question_generator import MAX_HOPS
from tests.results import loop_record
from tests.results.loop_record import LookUps
from tests.results.loop_tables import CONFIG, EXPERIMENTS, SPLITS, list_entries, load_tables
from tests.results.runs import commit_of_checkout

HOMES = Path(".loop")
SEEDS = (0, 1, 2)

BY_LOOK_UPS: LiteralString = """
    select v.name || '@' || v.version, round(t.difficulty * %s)::int, avg(r.reward), avg((r.outcome = 'violated')::int)
      from evaluation e join policy_version v on v.id = e.policy_version_id
      join evaluation_result r on r.evaluation_id = e.id join task t on t.id = r.task_id
     where e.mode = 'greedy' and r.reward is not null group by 1, 2 order by 2
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seeds", nargs="*", type=int, default=list(SEEDS), metavar="SEED")
    parser.add_argument("--split", choices=SPLITS, default="all")
    options = parser.parse_args()
    configs = {EXPERIMENTS[split]: loop_record.config_hash(load_tables(split)) for split in SPLITS}
    config = configs[EXPERIMENTS[options.split]]
    for seed in options.seeds:
        home = home_of(seed, config)
        result = _of_seed(seed, home, list_entries(options.split))
        loop_record.add(loop_record.record_of(result, _by_look_ups(result, home), config))
        print("\n".join(loop_record.write_page(configs)))
    return 0


def home_of(seed: int, config: str) -> Path:
    """Return the folder of a seed for the configuration with this hash. Other configurations have other folders."""
    return HOMES / f"seed-{seed}-{config[:12]}"


def _of_seed(seed: int, home: Path, entries: Sequence[str] = ()) -> dict[str, Any]:
    """Return the result of a seed. Run the loop first if there is none. The commit is the one at its start.

    `entries` are those of the configuration that differ from the file, for `--set`.
    """
    file, commit = home / "result.json", home / "commit"
    if file.is_file():
        return orjson.loads(file.read_bytes())
    home.mkdir(parents=True, exist_ok=True)
    if not commit.is_file():
        commit.write_text(commit_of_checkout())
    changes = [word for entry in (f"seed={seed}", *entries) for word in ("--set", entry)]
    command = [sys.executable, "-m", "offing.cli", "loop", str(CONFIG), *changes, "--json"]
    environment = {**os.environ, "OFFING_HOME": str(home.resolve())}
    with _timed(home / "minutes"):
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    minutes = float((home / "minutes").read_text())
    origin = {"commit": commit.read_text(), "date": f"{datetime.now(UTC):%Y-%m-%d}"}
    result = {**orjson.loads(done.stdout), "seed": seed, "minutes": minutes, **origin}
    file.write_bytes(orjson.dumps(result, option=orjson.OPT_INDENT_2))
    return result


@contextmanager
def _timed(file: Path) -> Generator[None]:
    """Add the minutes that the block takes to those in the file, also if the block raises an exception."""
    began = time.monotonic()
    before = float(file.read_text()) if file.is_file() else 0.0
    try:
        yield
    finally:
        file.write_text(str(before + (time.monotonic() - began) / 60))


def _by_look_ups(result: dict[str, Any], home: Path) -> LookUps:
    """Return the results of the greedy evaluations by number of look-ups, from the seed's own database."""
    os.environ["OFFING_HOME"] = str(home.resolve())
    rows = run_with_database(_shares)
    names = {when: result[when][1]["policy"] for when in loop_record.WHEN if result[when]}
    return {
        when: {str(hops): rows[label, hops] for label, hops in sorted(rows) if label == name}
        for when, name in names.items()
    }


async def _shares(database: Database) -> dict[tuple[str, int], tuple[float, float]]:
    """Return shares by version and number of look-ups."""
    async with database.transaction(LOCAL_TENANT) as connection:
        rows = await (await connection.execute(BY_LOOK_UPS, (MAX_HOPS,))).fetchall()
    return {(name, hops): (round(float(right), 4), round(float(broken), 4)) for name, hops, right, broken in rows}


if __name__ == "__main__":
    sys.exit(main())
