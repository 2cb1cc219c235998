"""The closed loop from nothing, once a seed: what a planner can do before and after, on worlds that it never saw.

    .venv/bin/python -m tests.results.closed_loop [SEED ...]

A seed has a home of its own under .loop and is not run again once it has a result; cut short, it goes on. Intervals are
bootstrapped over seeds and tasks together (percentile method, 95 %).
"""

import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, LiteralString

import orjson

from offing.cli.show import with_database
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing.world.asking import MOST_HOPS

HOMES = Path(".loop")
PAGE = Path("docs/results/closed-loop.md")
CONFIG = Path("deploy/loop.toml")
SEEDS = (0, 1, 2)
RESAMPLES = 4000
MARK = "<!-- figures: written by `make loop` -->"


BY_LOOK_UPS: LiteralString = """
    select v.name || '@' || v.version, round(t.difficulty * %s)::int, avg(r.reward), avg((r.outcome = 'violated')::int)
      from evaluation e join policy_version v on v.id = e.policy_version_id
      join evaluation_result r on r.evaluation_id = e.id join task t on t.id = r.task_id
     where e.mode = 'greedy' group by 1, 2 order by 2
"""


def main() -> int:
    seeds = [int(text) for text in sys.argv[1:]] or list(SEEDS)
    found = [_of_seed(seed) for seed in seeds]
    lines = _lines(found)
    print("\n".join(lines))
    head = PAGE.read_text("utf-8").partition(MARK)[0]
    PAGE.write_text(f"{head}{MARK}\n" + "\n".join(lines) + "\n", "utf-8")
    return 0


def _of_seed(seed: int) -> dict[str, Any]:
    home = HOMES / f"seed-{seed}"
    file = home / "result.json"
    if file.is_file():
        return orjson.loads(file.read_bytes())
    home.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "offing.cli", "loop", str(CONFIG), "--set", f"seed={seed}", "--json"]
    environment = {**os.environ, "OFFING_HOME": str(home.resolve())}
    with _timed(home / "minutes"):
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    result = {**orjson.loads(done.stdout), "seed": seed, "minutes": float((home / "minutes").read_text())}
    file.write_bytes(orjson.dumps(result, option=orjson.OPT_INDENT_2))
    return result


@contextmanager
def _timed(file: Path) -> Generator[None]:
    """Adds the minutes that the block takes to those in the file, also when it is cut short by an exception."""
    began = time.monotonic()
    before = float(file.read_text()) if file.is_file() else 0.0
    try:
        yield
    finally:
        file.write_text(str(before + (time.monotonic() - began) / 60))


def _lines(found: Sequence[dict[str, Any]]) -> list[str]:
    minutes = ", ".join(f"{one['minutes']:.1f}" for one in found)
    seeds = ", ".join(str(one["seed"]) for one in found)
    lines = [
        f"Seeds {seeds}; minutes a seed: {minutes}.",
        "",
        "| success on held-out tasks | before | after | gain (95 %) | imitation of the same rollouts |",
        "|---|---|---|---|---|",
    ]
    lines += [_line(found, nth, mode) for nth, mode in enumerate(("sampled", "greedy"))]
    lines += ["", *(line for one in found for line in _by_look_ups(one))]
    return [
        *lines,
        *(f"Seed {one['seed']}: {one['why_not'] or 'it passed the gate and took over.'}" for one in found),
    ]


def _by_look_ups(one: dict[str, Any]) -> list[str]:
    """Greedy, one seed: share of right answers, and of rollouts that ended by breaking a rule of the flow."""
    os.environ["OFFING_HOME"] = str((HOMES / f"seed-{one['seed']}").resolve())
    rows = with_database(_shares)
    names = {when: one[when][1]["policy"] for when in ("before", "after", "compared") if one[when]}
    lines = [f"| seed {one['seed']}, greedy, by look-ups | {' | '.join(names)} |", "|---|" + "---|" * len(names)]
    for hops in sorted({hops for _, hops in rows}):
        told = [f"{rows[name, hops][0]:.0%} right, {rows[name, hops][1]:.0%} broke a rule" for name in names.values()]
        lines.append(f"| {hops} | {' | '.join(told)} |")
    return [*lines, ""]


async def _shares(database: Database) -> dict[tuple[str, int], tuple[float, float]]:
    """By version and look-ups."""
    async with database.transaction(LOCAL_TENANT) as connection:
        rows = await (await connection.execute(BY_LOOK_UPS, (MOST_HOPS,))).fetchall()
    return {(name, hops): (float(right), float(broken)) for name, hops, right, broken in rows}


def _line(found: Sequence[dict[str, Any]], nth: int, mode: str) -> str:
    before, after = ([one[when][nth]["rewards"] for one in found] for when in ("before", "after"))
    gains = [[b - a for a, b in zip(*pair, strict=True)] for pair in zip(before, after, strict=True)]
    low, high = _interval(gains)
    gain = f"{statistics.fmean(g for seed in gains for g in seed):+.2f} ({low:+.2f} to {high:+.2f})"
    imitated = [one["compared"][nth]["rewards"] for one in found if one["compared"]]
    return f"| {mode} | {_mean(before)} | {_mean(after)} | {gain} | {_mean(imitated) if imitated else '-'} |"


def _mean(rewards: Sequence[Sequence[float]]) -> str:
    """Over all seeds, with each seed's own."""
    shares = [statistics.fmean(seed) for seed in rewards]
    return f"{statistics.fmean(shares):.2f} ({', '.join(f'{share:.2f}' for share in shares)})"


def _interval(gains: Sequence[Sequence[float]]) -> tuple[float, float]:
    rng = random.Random(0)
    drawn = sorted(
        statistics.fmean(statistics.fmean(rng.choices(seed, k=len(seed))) for seed in rng.choices(gains, k=len(gains)))
        for _ in range(RESAMPLES)
    )
    return drawn[round(0.025 * RESAMPLES)], drawn[RESAMPLES - 1 - round(0.025 * RESAMPLES)]


if __name__ == "__main__":
    sys.exit(main())
