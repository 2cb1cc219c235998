"""Worker processes of tests: started with short leases, and killed, stopped and continued at will."""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from tests.workers import input_graphs, parent_graph, special_graphs
from tests.workers.worker_forks import Forked, fork

ROOT = Path(__file__).parents[2]

GRAPHS = "tests.workers.graphs:counting,tests.workers.graphs:noop,tests.workers.graphs:broken"

ALL_GRAPHS = f"{GRAPHS},{special_graphs.GRAPHS},{input_graphs.GRAPHS},{parent_graph.GRAPHS}"

LEASE = 3.0
"""Seconds."""


def with_tests() -> str:
    """PYTHONPATH of a child that imports from our tests; what ours finds comes after."""
    return os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])


@dataclass
class Worker:
    """A worker process that a test may kill, stop and continue."""

    child: Forked
    log: Path
    ready: Path

    @property
    def pid(self) -> int:
        return self.child.pid

    def alive(self) -> bool:
        return self.child.poll() is None

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.child.pid, number)

    def kill(self) -> None:
        self.child.kill()
        self.child.wait()

    def finish(self, seconds: float = 30) -> int:
        """SIGTERM, and wait for the drain; the exit code."""
        self.child.terminate()
        return self.child.wait(seconds)

    def await_ready(self) -> None:
        give_up = time.monotonic() + 60
        while not self.ready.exists():
            if not self.alive() or time.monotonic() > give_up:
                raise AssertionError(f"the worker did not start:\n{self.log.read_text()}")
            time.sleep(0.02)


def spawn(
    folder: Path, name: str, app_url: str, redis_url: str, *, module: str = "offing_workers", **more: str
) -> Worker:
    """A worker that is starting, and dies with us. `more`: environment beside, or in place of, the usual."""
    ready, log = folder / f"{name}.ready", folder / f"{name}.log"
    environment = {
        **os.environ,
        "OFFING_APP_DATABASE_URL": app_url,
        "REDIS_URL": redis_url,
        "OFFING_READY_FILE": str(ready),
        "OFFING_LEASE_SECONDS": str(LEASE),
        "OFFING_HEARTBEAT_INTERVAL_SECONDS": "0.75",
        "OFFING_SWEEP_INTERVAL_SECONDS": "1",
        "OFFING_WORKER_CONCURRENCY": "20",
        "OFFING_EXTRA_GRAPHS": ALL_GRAPHS,
        "PYTHONPATH": with_tests(),
        **more,
    }
    return Worker(fork(name, module, environment, log, folder), log, ready)
