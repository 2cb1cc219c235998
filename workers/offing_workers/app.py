"""The Celery side of a worker: its configuration, its only task and its signals.

A message is a notification that runs are queued. It is acknowledged immediately and never waits for
a slice. Postgres decides which runs are executed, and in which order.
"""

# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false
# Celery has no type annotations.

import logging
import os
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any

import structlog
from celery import Celery
from celery.platforms import SecurityWarning
from celery.signals import setup_logging, worker_init, worker_ready, worker_shutdown, worker_shutting_down

from offing import environment
from offing.bus.broker import use_transport
from offing.bus.dispatch import ADVANCE_TASK, QUEUE_NAME, build_broker_url, build_transport_options
from offing.garbage_collection import configure_garbage_collection
from offing.models.call_limits import LIMITS_VARIABLE, parse_call_limits
from offing.settings import Settings, get_app_database_url, get_redis_url, load_settings
from offing.telemetry.logs import setup_logs
from offing.telemetry.tracing import setup_tracing
from offing_workers.process import GRACE_SECONDS, WorkerProcess
from offing_workers.ready_file import write_ready_file

process: WorkerProcess | None = None

log = structlog.get_logger()

EXIT_TIMEOUT_SECONDS = GRACE_SECONDS + 5.0
"""Maximum time from the stop request to the end of the process, in seconds.

It includes the grace time of running calls and the time to close.
"""

EXIT_CODE = 70
"""Exit code of a process that did not close in time: EX_SOFTWARE of sysexits."""

celery_log = logging.getLogger("celery")


def create_celery_app(redis_url: str) -> Celery:
    """Create the Celery app of this process."""
    use_transport()
    app = Celery("offing", broker=build_broker_url(redis_url))
    app.conf.update(
        broker_transport_options=build_transport_options(),
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        task_default_queue=QUEUE_NAME,
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
    app.task(name=ADVANCE_TASK, Strategy=f"{__name__}:handle_on_receipt")(handle_dispatch)
    return app


def handle_on_receipt(task: Any, app: Celery, consumer: Any, **_: Any) -> Callable[..., None]:
    """Return Celery's handler of the messages of `task`, which executes it where the message is received.

    Celery's default strategy gives each task a request, a place in a pool and a trace, which cost more than this task.
    """

    def handle(message: Any, body: object, ack: Callable[..., object], reject: object, callbacks: object) -> None:
        ack(celery_log, consumer.connection_errors)
        task.run()

    return handle


def handle_dispatch(*_: str) -> None:
    """Check the queue. The arguments are ignored."""
    assert process is not None
    process.check_queue()


def run_worker_process(settings: Settings, database_url: str, redis_url: str) -> None:
    """Run the worker process until it is stopped."""

    def begin(**_: Any) -> None:
        from offing.services.graphs import open_registry_from_settings

        global process
        process = WorkerProcess(settings, open_registry_from_settings(settings), database_url, redis_url)
        process.start()
        configure_garbage_collection()

    worker_init.connect(begin, weak=False)
    app = create_celery_app(redis_url)
    quiet = ("--without-gossip", "--without-mingle", "--without-heartbeat")
    setup_logging.connect(lambda **_: None, weak=False)  # keep our logging; Celery would install its own
    # Celery warns about root because of pickle. Only JSON with run ids is accepted here.
    warnings.filterwarnings("ignore", category=SecurityWarning)
    app.start(["--quiet", "worker", "--pool=solo", *quiet, "--loglevel=WARNING"])


@worker_ready.connect
def _on_ready(**_: Any) -> None:
    write_ready_file()


@worker_shutting_down.connect
def _on_shutting_down(**_: Any) -> None:
    if process is not None:
        exit_after(EXIT_TIMEOUT_SECONDS)
        process.drain()


def exit_after(timeout_seconds: float) -> None:
    """End this process after the timeout, even if a slice waits for Postgres or a client is still closing.

    Other workers claim its runs, as after a kill.
    """

    def end() -> None:
        log.error("the worker did not stop in time; exiting immediately", seconds=timeout_seconds)
        os._exit(EXIT_CODE)

    timer = threading.Timer(timeout_seconds, end)
    timer.daemon = True
    timer.start()


@worker_shutdown.connect
def _on_shutdown(**_: Any) -> None:
    if process is not None:
        process.stop()


def main() -> None:
    """Entry point of `python -m offing_workers`."""
    settings = load_settings()
    parse_call_limits(environment.VARIABLES.get(LIMITS_VARIABLE, ""))  # an invalid one fails here, not in each run
    setup_logs("console" if sys.stderr.isatty() else "json")
    logging.getLogger("celery").setLevel(logging.WARNING)  # it logs every message
    setup_tracing("offing-worker")
    run_worker_process(settings, get_app_database_url(settings), get_redis_url(settings))
