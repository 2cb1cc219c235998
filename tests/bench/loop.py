"""The closed loop: how long a finished group waits for its gradient, and where the wall time of an iteration goes.

The loop of deploy/loop.toml with a short start, so that what is measured is its iteration: real workers, the engine's
process, and the trainer. The parts are the figures that a job stores of each step; the processor time of a collection
is that of the programs which it keeps busy.
"""

import asyncio
import os
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, LiteralString
from uuid import UUID

import psutil

from offing.bus.hints import BusHints
from offing.cli.loop import loop_room
from offing.local.datadir import layout
from offing.local.policy import with_engine
from offing.local.servers import Servers
from offing.settings import load_settings
from offing.storage import training_jobs
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing.storage.training_jobs import JobRow
from tests.bench.figures import Figure, median
from tests.bench.platform import ROOT, measured_stack

STEPS, UNCOUNTED = 7, 2
"""Iterations, and how many of them at the beginning are not counted."""

PARTS = {
    "collect": "rollouts run, scored and settled",
    "read": "rows read",
    "forward": "credit, and forward passes for it",
    "update": "optimiser steps",
    "ask": "tasks drawn and the batch made",
    "save": "checkpoint",
    "commit": "the step's transaction",
    "export": "weights written",
    "register": "hashed and registered",
    "load": "loaded by the engine",
    "choose": "groups chosen",
    "rest": "the rest",
}
"""What a step's `seconds_PART` is."""

PROGRAMS = {"workers": "offing_workers", "engine": "engine serve", "Postgres": "postgres", "Redis": "valkey"}
"""By what stands in their command line."""

FINISHED: LiteralString = """
    select split_part(b.idempotency_key, '/', 2)::int + 1, g.completed_at
      from rollout_group g join batch b on b.id = g.batch_id where b.idempotency_key like %s
"""
"""By step; see `Collector`."""


@dataclass(slots=True)
class Heard:
    """What jobs said, and what the processors did meanwhile."""

    moved: dict[tuple[UUID, int], float] = field(default_factory=dict[tuple[UUID, int], float])
    """Unix time at which a step's weights had moved."""
    work: list[tuple[float, Counter[str]]] = field(default_factory=list[tuple[float, Counter[str]]])
    """Seconds of each collection, and processor milliseconds of each program in it."""
    _began: tuple[float, Counter[str]] = (0.0, Counter())

    def told(self, job: JobRow, phase: str, _figures: Mapping[str, float]) -> None:
        if phase == "moved":
            self.moved[job.id, job.step + 1] = time.time()
        elif phase == "waiting":
            self._began = time.perf_counter(), _worked()
        elif phase == "collected":
            began, before = self._began
            self.work.append((time.perf_counter() - began, _worked() - before))


def loop_speed() -> list[Figure]:
    with tempfile.TemporaryDirectory() as policies, measured_stack(workers=0, OFFING_POLICIES=policies) as servers:
        return asyncio.run(_measured(servers))


async def _measured(servers: Servers) -> list[Figure]:
    from offing_trainer.loop import closed_loop
    from offing_trainer.loop_config import loop_config

    settings, heard = load_settings(None), Heard()
    settings = with_engine(settings, layout(settings.home))
    async with Database(servers.app_url, most=4) as database, BusHints(servers.redis_url) as hints:
        await closed_loop(
            loop_room(database, hints, settings, say=lambda _: None, told=heard.told), loop_config(_short())
        )
        async with database.transaction(LOCAL_TENANT) as connection:
            job = next(j for j in await training_jobs.latest(connection, None, None, 10) if j.kind == "loop")
            told = await training_jobs.metrics_since(connection, job.id, UNCOUNTED, None, 100_000)
            groups = await (await connection.execute(FINISHED, (f"{job.id}/%",))).fetchall()
    finished = [(heard.moved[job.id, step], at.timestamp()) for step, at in groups if step > UNCOUNTED]
    return [_wait(finished), *_iteration(told), *_collection(heard.work[UNCOUNTED:])]


def _short() -> dict[str, Any]:
    """The loop of the file, from a start that can just write calls."""
    tables = tomllib.loads((ROOT / "deploy" / "loop.toml").read_text("utf-8"))
    tables["start"]["demonstrations"] = 320
    tables["start"]["learning"]["data"]["passes"] = 6
    tables["collect"].setdefault("max_tokens", 32)  # a weak planner may not end an answer; its 2,048 tokens are no news
    tables["train"]["steps"] = STEPS
    return {**tables, "evaluate": {**tables["evaluate"], "count": 8}, "compare": {}}


def _wait(finished: Sequence[tuple[float, float]]) -> Figure:
    """`finished`: when the optimiser steps that used a group were done, and when it was whole."""
    waits = [moved - at for moved, at in finished]
    last = [moved - max(at for other, at in finished if other == moved) for moved in {moved for moved, _ in finished}]
    return Figure(
        "from a finished group to the end of the optimizer steps that used it",
        tuple(waits),
        "s",
        note=f"{median(last):.1f} s for the last group of a batch",
    )


def _iteration(told: Sequence[training_jobs.Metric]) -> list[Figure]:
    """Means over steps, with shares of the whole; the largest part first."""
    seconds = {part: _mean(told, f"seconds_{part}") for part in ("step", *PARTS)}
    whole = seconds.pop("step")
    rows, tokens = _mean(told, "rows"), _mean(told, "tokens")
    note = f"{rows:,.0f} rows, {tokens:,.0f} tokens trained"
    parts = sorted(seconds.items(), key=lambda item: -item[1])
    return [Figure("an iteration of the loop: 32 groups of 8", (whole,), "ms", note=note)] + [
        Figure(f"- of it: {PARTS[part]}", (spent,), "ms", ratios=(spent / whole,), ratio_what="of it")
        for part, spent in parts
    ]


def _collection(work: Sequence[tuple[float, Counter[str]]]) -> list[Figure]:
    """Processor time of the programs, with its share of what all cores could give in that time."""
    whole = round(1000 * sum(seconds for seconds, _ in work)) * (os.cpu_count() or 1)
    spent = sum((programs for _, programs in work), Counter[str]())
    shares = [*spent.most_common(), ("others, or idle", whole - spent.total())]
    return [
        Figure(
            f"- processors meanwhile: {who}",
            (took / 1000 / len(work),),
            "ms",
            ratios=(took / whole,),
            ratio_what="of what all cores could give",
        )
        for who, took in shares
    ]


def _mean(told: Sequence[training_jobs.Metric], name: str) -> float:
    return sum(one.value for one in told if one.name == name) / (STEPS - UNCOUNTED)


def _worked() -> Counter[str]:
    """Processor milliseconds so far of our own programs, and of this process, by name."""
    own = psutil.Process()
    found = Counter({"trainer": round(1000 * sum(own.cpu_times()[:2]))})
    for child in own.children(recursive=True):
        try:
            line, times = " ".join(child.cmdline()), child.cpu_times()
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
        name = next((name for name, mark in PROGRAMS.items() if mark in line), "others")
        found[name] += round(1000 * (times.user + times.system))
    return found
