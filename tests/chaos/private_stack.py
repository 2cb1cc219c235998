"""A private stage for faults: servers of its own that may be killed, workers that come and go, and what they left.

Reads the database as its owner over one connection, which is opened again after the server was restarted: a test asks
hundreds of times, and Postgres starts a process for each connection.
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

from offing.local.data_directory import DataDirectory, prepare_data_directory
from offing.local.keyvalue import KeyValueServer
from offing.local.postgres import PostgresServer
from offing.local.servers import ServerUrls, get_server_urls
from offing.local.supervisor import Supervisor
from offing.packaged_files import get_migrations_dir
from offing.settings import Settings
from offing.storage.migrate import migrate
from tests.chaos import checker
from tests.chaos.graphs import GRAPHS
from tests.workers.processes import Worker, spawn

SLOW_MS = 200
"""What a call of the model-free engine takes here."""


@dataclass
class PrivateStack:
    """Postgres keeps what it committed, as in production; Valkey keeps nothing on disk."""

    folder: Path
    paths: DataDirectory
    servers: ServerUrls
    supervisor: Supervisor
    workers: list[Worker] = field(default_factory=list[Worker])
    started: int = 0
    _connection: psycopg.Connection[tuple[Any, ...]] | None = None

    @property
    def calls(self) -> Path:
        return self.folder / "calls"

    # Workers ----------------------------------------------------------------------------------------------------------

    def spawn_worker(self, **more: str) -> Worker:
        """A worker that is starting."""
        self.started += 1
        environment = {
            "CHAOS_CALLS": str(self.calls),
            "CHAOS_SLOW_MS": str(SLOW_MS),
            "OFFING_EXTRA_GRAPHS": GRAPHS,
            **more,
        }
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
        server = psutil.Process(self.supervisor.get_pid(name))
        server.send_signal(number)
        self.until(f"{name} to end", lambda: server.status() == psutil.STATUS_ZOMBIE, 10)

    def pause_server(self, name: str) -> None:
        """It is there, and answers nothing."""
        psutil.Process(self.supervisor.get_pid(name)).suspend()

    def resume_server(self, name: str) -> None:
        psutil.Process(self.supervisor.get_pid(name)).resume()

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
                return self._connect().execute(query.encode(), parameters).fetchall()
            except psycopg.OperationalError:
                self.disconnect()
                if time.monotonic() > give_up:
                    raise
                time.sleep(0.02)

    def _connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        if self._connection is None:
            self._connection = psycopg.connect(self.servers.owner_url, autocommit=True, connect_timeout=3)
        return self._connection

    def disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def until(self, what: str, expected: Callable[[], bool], seconds: float = 30) -> None:
        give_up = time.monotonic() + seconds
        while not expected():
            assert time.monotonic() < give_up, f"waited {seconds:g} s for {what}"
            time.sleep(0.01)

    def list_sent_requests(self, seed: int) -> list[checker.SentRequest]:
        """What engines were really asked for the run with this seed."""
        lines = self.calls.read_text().splitlines() if self.calls.exists() else []
        parts = [line.split() for line in lines]
        return [checker.SentRequest(role, int(turn), int(pid)) for s, role, turn, pid in parts if int(s) == seed]

    def calls_made(self) -> Counter[int]:
        """How often engines were really asked so far, by the seed of the run."""
        lines = self.calls.read_text().splitlines() if self.calls.exists() else []
        return Counter(int(line.split()[0]) for line in lines)

    def owner(self, run_id: UUID) -> int | None:
        """Pid of the worker that holds a run. None: nobody does."""
        ((owner,),) = self.rows("select worker from app.run where id = %s and status = 'running'", run_id) or [(None,)]
        return None if owner is None else int(owner.split(":")[1])

    def ended(self, run_id: UUID) -> bool:
        return self.rows("select 1 from app.run where id = %s and ended_at is not null", run_id) != []

    def written(self, runs: list[UUID], fence: int) -> dict[str, int]:
        """How many rows of each table carry a fence, and how many the whole database has of those that carry none."""
        return {
            table: self.rows(f"select count(*) from app.{table} where run_id = any(%s) and fence = %s", runs, fence)[0][
                0
            ]
            for table in ("step", "checkpoint", "intent")
        }

    def group(self, group_id: UUID) -> checker.GroupFacts:
        return group_facts(self.rows, group_id)

    def facts(self, run_id: UUID) -> checker.Rows:
        return facts(self.rows, run_id)


def raised(folder: Path) -> PrivateStack:
    """Servers up and migrated. Take it down with `struck`."""
    settings = Settings(home=folder / "home", database_url=None, redis_url=None)
    paths, supervisor = prepare_data_directory(settings.home), Supervisor()
    try:
        supervisor.start([KeyValueServer(paths, durable=False), PostgresServer(paths, durable=True)])
        servers = get_server_urls(settings, paths)
        migrate(servers.owner_url, folder=get_migrations_dir(), app_role=servers.app_role)
    except BaseException:
        supervisor.stop()
        raise
    return PrivateStack(folder, paths, servers, supervisor)


def struck(stack: PrivateStack) -> None:
    """Everything stopped and cleared away; what the workers wrote goes to the test's output."""
    for worker in stack.workers:
        worker.signal(signal.SIGCONT) if worker.alive() else None
        worker.kill()
    for log in sorted(stack.folder.glob("worker*.log")):
        print(f"{log.name}:\n{log.read_text()}", file=sys.stderr)
    stack.disconnect()
    stack.supervisor.stop()
    shutil.rmtree(stack.paths.socket_dir, ignore_errors=True)


RUN = """
    select status, stop_reason, fence, next_seq, turns, tokens, cost_usd,
           (select coalesce(sum(r.reserved_usd), 0) from app.reservation r where r.run_id = run.id), ended_at
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
    select seq, cost_usd, prompt_tokens + completion_tokens, role, segment_idx, position,
           md5(concat_ws('|', prompt, prompt_kept, completion, sampling, trainable, trainable_reason, is_final))
      from app.role_call where run_id = %s order by seq
"""

SEGMENTS = "select idx, role, parent_idx, boundary_reason from app.segment where run_id = %s order by idx"

GROUP = "select state, completed_at, size, scorers from app.rollout_group where id = %s"

ROLLOUTS = """
    select o.member, o.attempt, r.status, o.outcome, o.reward, o.finalized_at is not null,
           array(select scorer from app.reward where run_id = o.run_id and target = 'run' and value is not null)
      from app.rollout o join app.run r on r.id = o.run_id where o.group_id = %s order by o.member, o.attempt
"""

REPORTS = "select version, seq, status, stop_reason, body from app.report where run_id = %s order by version"

QUOTES = "select quote from app.citation where run_id = %s and report_version = %s order by number"


def facts(ask: Callable[..., list[tuple[Any, ...]]], run_id: UUID) -> checker.Rows:
    """What a run left, as the checker reads it. `ask`: runs a statement as the owner."""
    (result,) = ask(RUN, run_id)
    return checker.Rows(
        checker.RunFacts(*result),
        tuple(_step(row) for row in ask(STEPS, run_id)),
        tuple(checker.SavedFacts(*row) for row in ask(SAVED, run_id)),
        tuple(checker.CallFacts(*row) for row in ask(CALLS, run_id)),
        tuple(
            checker.ReportFacts(*row, quotes=tuple(q for (q,) in ask(QUOTES, run_id, row[0])))
            for row in ask(REPORTS, run_id)
        ),
        tuple(checker.SegmentFacts(*row) for row in ask(SEGMENTS, run_id)),
    )


def group_facts(ask: Callable[..., list[tuple[Any, ...]]], group_id: UUID) -> checker.GroupFacts:
    """What has become of a group of rollouts, as the checker reads it."""
    ((state, completed_at, size, scorers),) = ask(GROUP, group_id)
    members = tuple(checker.RolloutFacts(*rest, scores=tuple(scores)) for *rest, scores in ask(ROLLOUTS, group_id))
    return checker.GroupFacts(state, completed_at, size, tuple(s["name"] for s in scorers), members)


def _step(row: tuple[Any, ...]) -> checker.StepFacts:
    seq, kind, fence, superstep, path, ordinal, digest, turn, tokens, at, payload, title, ok = row
    key = None if superstep is None else (superstep, path, ordinal)
    return checker.StepFacts(seq, kind, fence, key, turn, tokens, at, payload, title, ok, digest)
