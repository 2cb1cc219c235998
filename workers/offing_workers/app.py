"""Celery's side of a worker: its configuration, its one task, and its signals.

A message is a notification that runs are queued. It is acknowledged at once and never waits for a slice: what must run,
and in which order, is in Postgres.
"""

# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false
# Celery ships no types.

import gc
import logging
import os
import sys
import threading
import warnings
from typing import Any

import structlog
from celery import Celery
from celery.platforms import SecurityWarning
from celery.signals import setup_logging, worker_init, worker_ready, worker_shutdown, worker_shutting_down

from offing.bus.broker import use_transport
from offing.bus.wake import ADVANCE, QUEUE, broker_url, transport_options
from offing.settings import Settings, app_address, load_settings, redis_address
from offing.telemetry.logs import setup_logs
from offing.telemetry.tracing import setup_tracing
from offing_workers.process import GRACE, WorkerProcess
from offing_workers.ready import tell_ready

process: WorkerProcess | None = None

log = structlog.get_logger()

EXIT_SECONDS = GRACE + 5.0
"""From the request to stop until the process has ended: calls in flight have their grace, all else the remainder."""

EXIT_CODE = 70
"""Of a process that did not close in time; EX_SOFTWARE of sysexits."""

THREADS = 2
"""For messages, each of which is done in an instant. Runs are advanced elsewhere."""

COLLECT_AFTER = (50_000, 20, 100)
"""Thresholds of Python's collector of cycles. Its own 700 make it a fifth of what a process with hundreds of runs in
hand does; these leave some megabytes lying for a while."""


def celery_app(redis_url: str) -> Celery:
    """The app of this process."""
    use_transport()
    app = Celery("offing", broker=broker_url(redis_url))
    app.conf.update(
        broker_transport_options=transport_options(),
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        task_default_queue=QUEUE,
        task_acks_late=False,
        task_ignore_result=True,
        task_serializer="json",
        accept_content=["json"],
        worker_prefetch_multiplier=1,
        worker_hijack_root_logger=False,
        worker_cancel_long_running_tasks_on_connection_loss=False,
        worker_enable_remote_control=False,
        worker_send_task_events=False,
    )
    app.task(name=ADVANCE)(advance)
    return app


def advance(*_: str) -> None:
    """Check the queue. Arguments are those of an older version's messages."""
    assert process is not None
    process.check_queue()


def serve(settings: Settings, database_url: str, redis_url: str) -> None:
    """Work until told to stop."""

    def begin(**_: Any) -> None:
        from offing.services.graphs import available

        global process
        process = WorkerProcess(settings, available(settings), database_url, redis_url)
        process.start()
        gc.freeze()  # what is loaded by now stays, and is not looked through again
        gc.set_threshold(*COLLECT_AFTER)

    worker_init.connect(begin, weak=False)
    app = celery_app(redis_url)
    concurrency = f"--concurrency={THREADS}"
    quiet = ("--without-gossip", "--without-mingle", "--without-heartbeat")
    setup_logging.connect(lambda **_: None, weak=False)  # ours stands; Celery would put its own in its place
    # Celery warns root because of pickle; only JSON with a run's id is accepted here.
    warnings.filterwarnings("ignore", category=SecurityWarning)
    app.start(["--quiet", "worker", "--pool=threads", concurrency, *quiet, "--loglevel=WARNING"])


@worker_ready.connect
def _ready(**_: Any) -> None:
    tell_ready()


@worker_shutting_down.connect
def _drain(**_: Any) -> None:
    if process is not None:
        end_within(EXIT_SECONDS)
        process.drain()


def end_within(seconds: float) -> None:
    """End this process after that time whatever still hangs: a slice that waits for Postgres, or a client that is being
    closed. What it had claimed, others take over as after a kill."""

    def end() -> None:
        log.error("not closed in time; ending hard", seconds=seconds)
        os._exit(EXIT_CODE)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()


@worker_shutdown.connect
def _stop(**_: Any) -> None:
    if process is not None:
        process.stop()


def main() -> None:
    """Entry point of `python -m offing_workers`."""
    settings = load_settings()
    setup_logs("console" if sys.stderr.isatty() else "json")
    logging.getLogger("celery").setLevel(logging.WARNING)  # it tells of every hint, which is no news
    setup_tracing("offing-worker")
    serve(settings, app_address(settings), redis_address(settings))
