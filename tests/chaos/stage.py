"""A private stage for faults: servers of its own that may be killed, workers that come and go, and what they left.

Reads the database as its owner over short-lived connections, so that a restarted server is no surprise here.
"""

import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import psutil
import psycopg
import redis

from offing.local.datadir import Layout, prepare
from offing.local.keyvalue import KeyValue
from offing.local.postgres import Postgres
from offing.local.servers import Servers, addresses
from offing.local.supervisor import Supervisor
from offing.resources import migrations_dir
from offing.settings import Settings
from offing.storage.migrate import migrate
from tests.chaos import checker
from tests.chaos.flows import GRAPHS
from tests.workers.processes import Worker, spawn

SLOW_MS = 200
"""What a call of the model-free engine takes here."""


@dataclass
class Stage:
    """Postgres keeps what it committed, as in production; Valkey keeps nothing on disk."""

    folder: Path
    paths: Layout
    servers: Servers
    supervisor: Supervisor
    workers: list[Worker] = field(default_factory=list[Worker])
    started: int = 0

    @property
    def calls(self) -> Path:
        return self.folder / "calls"

    # Workers ----------------------------------------------------------------------------------------------------------

    def spawn_worker(self, **more: str) -> Worker:
        """A worker that is starting."""
        self.started += 1
        environment = {"CHAOS_CALLS": str(self.calls), "CHAOS_SLOW_MS": str(SLOW_MS), "OFFING_GRAPHS": GRAPHS, **more}
        name, servers = f"worker{self.started}", self.servers
        worker = spawn(
            self.folder, name, servers.app_url, servers.redis_url, module="tests.chaos.worker", **environment
        )
        self.workers.append(worker)
        return worker

    def lone_worker(self, **more: str) -> Worker:
        """The one worker that runs; started, or chosen, when there is not exactly one. `more`: a new one with that."""
        for worker in [w for w in self.workers if not w.alive()]:
            self.workers.remove(worker)
        for worker in self.workers if more else self.workers[:-1]:
            self.dismiss(worker)
        worker = self.workers[0] if self.workers else self.spawn_worker(**more)
        worker.await_ready()
        return worker

    def dismiss(self, worker: Worker) -> None:
        worker.signal(signal.SIGCONT)
        worker.kill()
        self.workers = [w for w in self.workers if w is not worker]

    # Servers ----------------------------------------------------------------------------------------------------------

    def kill_server(self, name: str, number: signal.Signals) -> None:
        """Send a signal to a server's process and wait until it is gone."""
        server = psutil.Process(self.supervisor.pid(name))
        server.send_signal(number)
        self.until(f"{name} to end", lambda: server.status() == psutil.STATUS_ZOMBIE, 10)

    def pause_server(self, name: str) -> None:
        """It is there, and answers nothing."""
        psutil.Process(self.supervisor.pid(name)).suspend()

    def resume_server(self, name: str) -> None:
        psutil.Process(self.supervisor.pid(name)).resume()

    def restart(self, name: str) -> None:
        self.supervisor.restart(name)

    def flush(self) -> None:
        with redis.Redis.from_url(self.servers.redis_url) as client:  # pyright: ignore[reportUnknownMemberType]
            client.flushall()  # pyright: ignore[reportUnknownMemberType]

    # What is in the database ------------------------------------------------------------------------------------------

    def rows(self, query: str, *parameters: object) -> list[tuple[Any, ...]]:
        """Rows by any statement, as the owner; asked again for a while when the server is away."""
        give_up = time.monotonic() + 20
        while True:
            try:
                with psycopg.connect(self.servers.owner_url, autocommit=True, connect_timeout=3) as connection:
                    return connection.execute(query.encode(), parameters).fetchall()
            except psycopg.OperationalError:
                if time.monotonic() > give_up:
                    raise
                time.sleep(0.02)

    def until(self, what: str, wanted: Callable[[], bool], seconds: float = 30) -> None:
        give_up = time.monotonic() + seconds
        while not wanted():
            assert time.monotonic() < give_up, f"waited {seconds:g} s for {what}"
            time.sleep(0.01)

    def asked(self, seed: int) -> list[checker.Asked]:
        """What engines were really asked for the run with this seed."""
        lines = self.calls.read_text().splitlines() if self.calls.exists() else []
        parts = [line.split() for line in lines]
        return [checker.Asked(role, int(turn), int(pid)) for s, role, turn, pid in parts if int(s) == seed]

    def calls_made(self) -> Counter[int]:
        """How often engines were really asked so far, by the seed of the run."""
        lines = self.calls.read_text().splitlines() if self.calls.exists() else []
        return Counter(int(line.split()[0]) for line in lines)

    def owner(self, run: UUID) -> int | None:
        """Pid of the worker that holds a run. None: nobody does."""
        ((owner,),) = self.rows("select owner from app.run where id = %s and status = 'running'", run) or [(None,)]
        return None if owner is None else int(owner.split(":")[1])

    def ended(self, run: UUID) -> bool:
        return self.rows("select 1 from app.run where id = %s and ended_at is not null", run) != []

    def written(self, runs: list[UUID], fence: int) -> dict[str, int]:
        """How many rows of each table carry a fence, and how many the whole database has of those that carry none."""
        return {
            table: self.rows(f"select count(*) from app.{table} where run_id = any(%s) and fence = %s", runs, fence)[0][
                0
            ]
            for table in ("step", "checkpoint", "intent")
        }

    def group(self, group: UUID) -> checker.GroupFacts:
        return group_facts(self.rows, group)

    def facts(self, run: UUID) -> checker.Rows:
        return facts(self.rows, run)


def raised(folder: Path) -> Stage:
    """Servers up and migrated. Take it down with `struck`."""
    settings = Settings(home=folder / "home", database_url=None, redis_url=None)
    paths, supervisor = prepare(settings.home), Supervisor()
    try:
        supervisor.start([KeyValue(paths, durable=False), Postgres(paths, durable=True)])
        servers = addresses(settings, paths)
        migrate(servers.owner_url, folder=migrations_dir(), app_role=servers.app_role)
    except BaseException:
        supervisor.stop()
        raise
    return Stage(folder, paths, servers, supervisor)


def struck(stage: Stage) -> None:
    """Everything stopped and cleared away; what the workers wrote goes to the test's output."""
    for worker in stage.workers:
        worker.signal(signal.SIGCONT) if worker.alive() else None
        worker.kill()
    for log in sorted(stage.folder.glob("worker*.log")):
        print(f"{log.name}:\n{log.read_text()}", file=sys.stderr)
    stage.supervisor.stop()
    shutil.rmtree(stage.paths.run, ignore_errors=True)


RUN = """
    select status, stop_reason, fence, next_seq, turns, tokens, usd,
           (select coalesce(sum(r.usd), 0) from app.reservation r where r.run_id = run.id), ended_at
      from app.run where id = %s
"""

STEPS = """
    select seq, kind, fence, superstep, path, ordinal, digest, turn, tokens, at, payload, title, ok from app.step
     where run_id = %s order by seq
"""

SAVED = """
    select ns, checkpoint_id, parent_id, fence, superstep, created_at from app.checkpoint where run_id = %s
     order by superstep
"""

CALLS = """
    select seq, usd, prompt_tokens + completion_tokens, role, segment, place,
           md5(concat_ws('|', prompt, prompt_kept, completion, sampling, trainable, trainable_reason, done))
      from app.turn where run_id = %s order by seq
"""

SEGMENTS = "select idx, role, parent_idx, fracture from app.segment where run_id = %s order by idx"

GROUP = "select state, completed_at, size, scorers from app.rollout_group where id = %s"

ROLLOUTS = """
    select o.member, o.attempt, r.status, o.outcome, o.reward, o.settled_at is not null,
           array(select scorer from app.reward where run_id = o.run_id and target = 'run' and value is not null)
      from app.rollout o join app.run r on r.id = o.run_id where o.group_id = %s order by o.member, o.attempt
"""

REPORTS = "select version, seq, status, reason, body from app.report where run_id = %s order by version"

QUOTES = "select quote from app.citation where run_id = %s and version = %s order by number"


def facts(ask: Callable[..., list[tuple[Any, ...]]], run: UUID) -> checker.Rows:
    """What a run left, as the checker reads it. `ask`: runs a statement as the owner."""
    (found,) = ask(RUN, run)
    return checker.Rows(
        checker.RunFacts(*found),
        tuple(_step(row) for row in ask(STEPS, run)),
        tuple(checker.SavedFacts(*row) for row in ask(SAVED, run)),
        tuple(checker.CallFacts(*row) for row in ask(CALLS, run)),
        tuple(
            checker.ReportFacts(*row, quotes=tuple(q for (q,) in ask(QUOTES, run, row[0]))) for row in ask(REPORTS, run)
        ),
        tuple(checker.SegmentFacts(*row) for row in ask(SEGMENTS, run)),
    )


def group_facts(ask: Callable[..., list[tuple[Any, ...]]], group: UUID) -> checker.GroupFacts:
    """What has become of a group of rollouts, as the checker reads it."""
    ((state, completed_at, size, scorers),) = ask(GROUP, group)
    members = tuple(checker.RolloutFacts(*rest, scores=tuple(scores)) for *rest, scores in ask(ROLLOUTS, group))
    return checker.GroupFacts(state, completed_at, size, tuple(s["name"] for s in scorers), members)


def _step(row: tuple[Any, ...]) -> checker.StepFacts:
    seq, kind, fence, superstep, path, ordinal, digest, turn, tokens, at, payload, title, ok = row
    key = None if superstep is None else (superstep, path, ordinal)
    return checker.StepFacts(seq, kind, fence, key, turn, tokens, at, payload, title, ok, digest)
