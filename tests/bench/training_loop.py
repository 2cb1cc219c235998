"""The training loop: how long a finished group waits for its gradient, and where the wall time of an iteration goes.

This is the loop of deploy/loop.toml with its own start and few steps: real workers, the engine's process, and the
trainer. The parts are the metrics that a job stores for each step. The CPU time of a collection is that of the programs
that it uses.
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

from offing.bus.notifier import BusNotifier
from offing.cli.loop import build_loop_context
from offing.local.data_directory import locate_data_directory
from offing.local.engine_process import with_engine_url
from offing.local.servers import ServerUrls
from offing.settings import load_settings
from offing.storage import training_jobs, training_metrics
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing.storage.training_jobs import TrainingJobRow
from tests.bench.measurement import Measurement, median
from tests.bench.platform import ROOT, measured_stack

STEPS, UNCOUNTED = 7, 2
"""Number of iterations, and how many of the first ones are not counted."""

PARTS = {
    "collect": "running, scoring and finalizing rollouts",
    "read": "reading rows",
    "forward": "advantages and the forward passes for them",
    "update": "optimizer steps",
    "create_batch": "drawing tasks and creating the batch",
    "save": "checkpoint",
    "commit": "the step's transaction",
    "export": "writing the weights",
    "register": "hashing and registering the weights",
    "load": "loading the weights into the engine",
    "choose": "selecting groups",
    "other": "other work",
}
"""The meaning of a step's `seconds_PART`."""

PROGRAMS = {"workers": "offing_workers", "engine": "engine serve", "Postgres": "postgres", "Redis": "valkey"}
"""By a part of their command line."""

FINISHED: LiteralString = """
    select split_part(b.idempotency_key, '/', 2)::int + 1, g.completed_at
      from rollout_group g join rollout_batch b on b.id = g.batch_id where b.idempotency_key like %s
"""
"""By step; see `Collector`."""


@dataclass(slots=True)
class PhaseTimes:
    """Messages of the jobs, and the CPU time in the meantime."""

    moved: dict[tuple[UUID, int], float] = field(default_factory=dict[tuple[UUID, int], float])
    """Unix time at which a step's weights were updated."""
    work: list[tuple[float, Counter[str]]] = field(default_factory=list[tuple[float, Counter[str]]])
    """Seconds of each collection, and CPU milliseconds of each program in it."""
    _began: tuple[float, Counter[str]] = (0.0, Counter())

    def record_phase(self, job: TrainingJobRow, phase: str, _figures: Mapping[str, float]) -> None:
        if phase == "moved":
            self.moved[job.id, job.step + 1] = time.time()
        elif phase == "waiting":
            self._began = time.perf_counter(), _worked()
        elif phase == "collected":
            began, before = self._began
            self.work.append((time.perf_counter() - began, _worked() - before))


def loop_speed() -> list[Measurement]:
    with tempfile.TemporaryDirectory() as policies, measured_stack(workers=0, OFFING_POLICY_DIR=policies) as servers:
        return asyncio.run(_measured(servers))


async def _measured(servers: ServerUrls) -> list[Measurement]:
    from offing_trainer.loop import run_training_loop
    from offing_trainer.loop_config import parse_loop_config

    settings, received = load_settings(None), PhaseTimes()
    settings = with_engine_url(settings, locate_data_directory(settings.home))
    async with Database(servers.app_url, max_connections=4) as database, BusNotifier(servers.redis_url) as notifier:
        await run_training_loop(
            build_loop_context(database, notifier, settings, say=lambda _: None, report_progress=received.record_phase),
            parse_loop_config(_short()),
        )
        async with database.transaction(LOCAL_TENANT) as connection:
            job = next(j for j in await training_jobs.list_jobs(connection, None, None, 10) if j.kind == "loop")
            message = await training_metrics.list_metrics_since(connection, job.id, UNCOUNTED, None, 100_000)
            groups = await (await connection.execute(FINISHED, (f"{job.id}/%",))).fetchall()
    finished = [(received.moved[job.id, step], at.timestamp()) for step, at in groups if step > UNCOUNTED]
    return [_wait(finished), *_iteration(message), *_collection(received.work[UNCOUNTED:])]


def _short() -> dict[str, Any]:
    """Return the loop of the file with few steps.

    The start is not shortened, because a planner that imitated less writes longer outputs, so that a rollout is more
    work.
    """
    tables = tomllib.loads((ROOT / "deploy" / "loop.toml").read_text("utf-8"))
    tables["train"]["max_steps"] = STEPS
    return {**tables, "evaluate": {**tables["evaluate"], "task_count": 8}, "compare": {}}


def _wait(finished: Sequence[tuple[float, float]]) -> Measurement:
    """Return the times from a complete group to the end of the optimizer steps that used it (`finished`)."""
    waits = [moved - at for moved, at in finished]
    last = [moved - max(at for other, at in finished if other == moved) for moved in {moved for moved, _ in finished}]
    return Measurement(
        "from a finished group to the end of the optimizer steps that used it",
        tuple(waits),
        "s",
        note=f"{median(last):.1f} s for the last group of a batch",
    )


def _iteration(messages: Sequence[training_metrics.TrainingMetric]) -> list[Measurement]:
    """Return means over steps, with shares of the total, largest first."""
    seconds = {part: _mean(messages, f"seconds_{part}") for part in ("step", *PARTS)}
    whole = seconds.pop("step")
    rows, tokens = _mean(messages, "rows"), _mean(messages, "tokens")
    note = f"{rows:,.0f} rows, {tokens:,.0f} tokens trained"
    parts = sorted(seconds.items(), key=lambda item: -item[1])
    return [Measurement("an iteration of the loop: 32 groups of 8", (whole,), "ms", note=note)] + [
        Measurement(f"- of this: {PARTS[part]}", (spent,), "ms", ratios=(spent / whole,), ratio_what="of the total")
        for part, spent in parts
    ]


def _collection(work: Sequence[tuple[float, Counter[str]]]) -> list[Measurement]:
    """Return the CPU time of the programs, with its share of all cores in that time."""
    whole = round(1000 * sum(seconds for seconds, _ in work)) * (os.cpu_count() or 1)
    spent = sum((programs for _, programs in work), Counter[str]())
    shares = [*spent.most_common(), ("other programs, or idle", whole - spent.total())]
    return [
        Measurement(
            f"- CPU time: {who}",
            (took / 1000 / len(work),),
            "ms",
            ratios=(took / whole,),
            ratio_what="of all cores",
        )
        for who, took in shares
    ]


def _mean(messages: Sequence[training_metrics.TrainingMetric], name: str) -> float:
    return sum(one.value for one in messages if one.name == name) / (STEPS - UNCOUNTED)


def _worked() -> Counter[str]:
    """Return the CPU milliseconds so far of the stack's programs and of this process, by name."""
    own = psutil.Process()
    results = Counter({"trainer": round(1000 * sum(own.cpu_times()[:2]))})
    for child in own.children(recursive=True):
        try:
            line, times = " ".join(child.cmdline()), child.cpu_times()
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
        name = next((name for name, mark in PROGRAMS.items() if mark in line), "others")
        results[name] += round(1000 * (times.user + times.system))
    return results
