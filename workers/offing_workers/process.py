"""A worker process: one event loop with all clients, the claimed runs and the watchers.

The watchers are the heartbeat (a thread with its own connection), the sweepers of runs and of ended
rollouts, the runner of distillation jobs, the filler of vectors, the schedule of crons, and the listeners for
notifications.
"""

import asyncio
import random
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from importlib.metadata import version
from typing import Any
from uuid import UUID

import structlog

from offing.bus.call_slots import RedisCallSlots
from offing.bus.control import ControlChannel
from offing.bus.dispatch import CeleryDispatcher
from offing.bus.live import LiveBus
from offing.bus.notifier import BusNotifier
from offing.bus.queue_channel import QueueChannel
from offing.bus.run_streams import RunStreams
from offing.cancellation import cancel_tasks
from offing.core.errors import LeaseLostError, Unavailable
from offing.core.run import FencingToken
from offing.mcp.server_registry import McpServerRegistry
from offing.models.call_slots import install_call_slots
from offing.models.engine_discovery import default_engine_config, role_engine_configs
from offing.process_name import get_process_name
from offing.sdk import Graph
from offing.services import child_runs, run_webhooks, webhooks
from offing.services.health import WORKER_REPORT_SECONDS
from offing.services.langgraph_crons import MAX_DUE, begin_due_runs, read_clock
from offing.services.langgraph_runs import RunPlatform
from offing.services.project_webhooks import read_webhook_rules
from offing.services.run_search import index_all_tenants
from offing.services.tool_backends import open_tool_backends
from offing.settings import Settings
from offing.storage import claims, installation, runs
from offing.storage.claims import Claim, NextClaim
from offing.storage.heartbeat import HeartbeatConnection
from offing.storage.metric_queries import count_ended_runs
from offing.storage.pool import Database
from offing.storage.table_statistics import analyze_new_tables
from offing_workers.claimed_run import ClaimedRun, DrainReason
from offing_workers.live_publisher import LivePublisher
from offing_workers.prompt_distillation.job import PROMPT_LIBRARY_FOLDER, DistillationContext, run_next_job
from offing_workers.retention import remove_expired
from offing_workers.rollout_finalizer import finalize_ended_rollout, finalize_overdue
from offing_workers.run_claimer import RunClaimer, build_slots
from offing_workers.slice import Slice, SliceLimits
from offing_workers.vector_filler import VectorFiller

MAX_THREADS = 512
"""Maximum number of threads. They are started when needed.

A plain function of a graph occupies a thread while it waits for a model, and the call of the model
may need another one.
"""

GRACE_SECONDS = 20.0
"""Seconds that a drain waits for running calls before it interrupts them."""

CANCEL_GRACE_SECONDS = 0.5
"""Seconds that a run waits for running calls after a person cancelled it.

Then its requests to model providers are cancelled, so that it stops paying within a second.
"""

MAX_COUNTED_RUNS = 500
"""Maximum number of ended runs that one transaction adds to the totals of the metrics."""

MAX_INDEXED_RUNS = 100
"""Maximum number of runs of a tenant whose words are indexed per sweep."""

DISTILLATION_POLL_SECONDS = 2.0
"""Seconds between polls for a distillation job.

They are few, because a person waits for the job to start.
"""

WEBHOOK_POLL_SECONDS = 2.0
"""Seconds between polls for deliveries to webhooks, which is about how late they are."""

CRON_POLL_SECONDS = 1.0
"""Seconds between searches for crons whose time has come, which is about how late their runs are."""

FORGET_SECONDS = 2.0
"""Maximum seconds that the end of a process waits for Postgres to forget it."""

log = structlog.get_logger()


class WorkerProcess:
    """A worker process, which `start` starts once per process.

    Its methods are called from Celery's threads. Everything else runs on its event loop.
    """

    def __init__(self, settings: Settings, graphs: Mapping[str, Graph], database_url: str, redis_url: str) -> None:
        self._settings, self._graphs = settings, graphs
        self._database_url, self._redis_url = database_url, redis_url
        self._name = get_process_name()
        self._claimed_runs: dict[UUID, ClaimedRun] = {}
        slots = build_slots(settings.worker_concurrency, settings.interactive_slots)
        self._run_claimer = RunClaimer(slots, self._claim_next, self._advance, self._broadcast)
        self._loop = asyncio.new_event_loop()
        self._loop.set_default_executor(ThreadPoolExecutor(MAX_THREADS, "offing-thread"))
        self._draining = False
        self._stopped = threading.Event()

    def start(self) -> None:
        """Open the clients and start the watchers."""
        threading.Thread(target=self._loop.run_forever, name="offing-loop", daemon=True).start()
        self._run_on_loop(self._open())
        threading.Thread(target=self._run_heartbeat, name="offing-heartbeat", daemon=True).start()

    def check_queue(self) -> None:
        """Check the queue after a notification. Returns immediately, so that notifications never wait."""
        self._loop.call_soon_threadsafe(partial(self._run_claimer.check_queue, was_notified=True))

    def drain(self) -> None:
        """Stop every slice at its next superstep boundary, and claim no more runs.

        Returns immediately. Safe in a signal handler.
        """
        self._draining = True
        self._loop.call_soon_threadsafe(self._drain_all)

    def stop(self) -> None:
        """Close all clients after the last slice."""
        self._run_on_loop(self._run_claimer.close())
        self._stopped.set()
        self._run_on_loop(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)

    def _run_on_loop(self, coroutine: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    async def _open(self) -> None:
        settings = self._settings
        pool = Database(
            self._database_url,
            max_connections=settings.pool_size,
            queue_seconds=None,
            stall_seconds=settings.lease_seconds,
        )
        self._database = await pool.__aenter__()
        self._live_bus, self._control_channel = LiveBus(self._redis_url), ControlChannel(self._redis_url)
        self._queue_channel, self._run_streams = QueueChannel(self._redis_url), RunStreams(self._redis_url)
        self._call_slots = RedisCallSlots(self._redis_url, settings.lease_seconds)
        install_call_slots(self._call_slots)
        self._live_publisher = LivePublisher(self._live_bus)
        self._run_dispatcher = CeleryDispatcher(self._redis_url)
        self._tool_backends_context = open_tool_backends(settings)
        self._tool_backends = await self._tool_backends_context.__aenter__()
        queue = (self._run_claimer.claim_until_cancelled, self._listen_to_queue, self._sweep_queue)
        watchers = (
            *queue,
            self._sweep_rollouts,
            self._run_distillation_jobs,
            self._listen_to_control,
            self._remove_expired,
            self._report_alive,
            self._index_runs,
            self._count_runs,
            self._analyze_tables,
            self._deliver_webhooks,
            self._begin_scheduled_runs,
            *([self._fill_vectors] if self._tool_backends.library_models.embedder else []),
        )
        self._watchers = [asyncio.create_task(self._run_watcher(watcher)) for watcher in watchers]
        self._run_claimer.check_queue()

    async def _close(self) -> None:
        await cancel_tasks(self._watchers)
        await self._tool_backends_context.__aexit__(None, None, None)
        await self._live_publisher.close()
        await self._run_dispatcher.close()
        await self._queue_channel.close()
        await self._run_streams.__aexit__()
        await self._call_slots.close()
        await self._control_channel.close()
        await self._live_bus.close()
        with suppress(Unavailable, TimeoutError):
            async with asyncio.timeout(FORGET_SECONDS):
                await installation.forget_worker(self._database, self._name)
        await self._database.__aexit__()

    async def _claim_next(self, max_runs: int, max_rollouts: int, swept_run_ids: Sequence[UUID]) -> list[NextClaim]:
        term = self._settings.lease_seconds
        return await claims.claim_next_runs(
            self._database, self._name, term, max_runs=max_runs, max_rollouts=max_rollouts, swept_run_ids=swept_run_ids
        )

    async def _broadcast(self) -> None:
        await self._queue_channel.publish()

    async def _advance(self, claim: Claim) -> None:
        """Advance a claimed run by one slice."""
        term = self._settings.lease_seconds
        claimed_run = self._register_claim(claim.fence)
        keep = self._settings.keep_running_checkpoints
        limits = SliceLimits(
            term, self._settings.slice_max_turns, self._settings.slice_max_seconds, keep, self._settings.max_store_items
        )
        slice = Slice(
            self._database,
            self._live_publisher,
            self,
            self._graphs,
            claim,
            claimed_run,
            limits,
            self._tool_backends,
            self._run_streams,
        )
        claimed_run.task = asyncio.create_task(slice.advance_run())
        if self._draining:
            self._drain_run(claimed_run)  # claimed while the other runs were drained
        try:
            await asyncio.wait({claimed_run.task})
        finally:
            self._forget_run(claimed_run)
        self._log_failure(claimed_run)
        if slice.needs_finalization and not self._draining:
            await self._finalize_rollout(claimed_run)

    def _register_claim(self, fencing_token: FencingToken) -> ClaimedRun:
        """Register a new claim. An earlier slice that has not released the same run has lost its lease."""
        before, claimed_run = self._claimed_runs.get(fencing_token.run_id), ClaimedRun(fencing_token)
        self._claimed_runs[fencing_token.run_id] = claimed_run
        if before is not None:
            before.mark_lease_lost()
        return claimed_run

    def _forget_run(self, claimed_run: ClaimedRun) -> None:
        """Remove a claimed run, but never the one of a later claim.

        A slice that has released its run may still publish events while this process claims the run again.
        """
        if self._claimed_runs.get(claimed_run.fencing_token.run_id) is claimed_run:
            del self._claimed_runs[claimed_run.fencing_token.run_id]

    async def _finalize_rollout(self, claimed_run: ClaimedRun) -> None:
        """Finalize a rollout that has just ended, after its claimed run was removed.

        An ended run has no lease, and a judge takes time. If the rollout cannot be finalized now, the sweep
        does it later.
        """
        try:
            await finalize_ended_rollout(
                self._database, self, claimed_run.fencing_token.tenant_id, claimed_run.fencing_token.run_id
            )
        except Unavailable as error:
            log.info("rollout not finalized yet", run=str(claimed_run.fencing_token.run_id), reason=str(error))

    def _log_failure(self, claimed_run: ClaimedRun) -> None:
        assert claimed_run.task is not None
        if not claimed_run.task.cancelled() and (error := claimed_run.task.exception()):
            log.error("slice failed", run=str(claimed_run.fencing_token.run_id), exc_info=error)

    async def dispatch_run(self, run_id: UUID) -> None:
        """Dispatch a queued run to the workers. If the message is lost, this process finds the run on its own."""
        self._run_claimer.check_queue_when_slot_frees()
        await self._run_dispatcher([run_id])

    def _drain_all(self) -> None:
        self._run_claimer.stop_claiming()
        for claimed_run in self._claimed_runs.values():
            self._drain_run(claimed_run)

    def _drain_run(self, claimed_run: ClaimedRun) -> None:
        claimed_run.request_drain(DrainReason.SHUTDOWN)
        self._loop.call_later(GRACE_SECONDS, claimed_run.cancel_slice)

    async def _run_watcher(self, watcher: Callable[[], Awaitable[None]]) -> None:
        """Run a watcher, and restart it one second after any error."""
        while True:
            try:
                await watcher()
            except Unavailable as error:
                log.info("watcher waits for a server", watcher=watcher.__name__, reason=str(error))
            except Exception:
                log.exception("watcher failed", watcher=watcher.__name__)
            await asyncio.sleep(1.0)

    async def _sweep_queue(self) -> None:
        """Check the queue periodically, without a notification. Several workers may do so at once."""
        settings = self._settings
        while True:
            await asyncio.sleep(settings.sweep_interval_seconds * random.uniform(0.5, 1.0))
            await child_runs.cancel_orphaned_children(self._database)
            if self._run_claimer.slots.free:
                swept = await claims.sweep_overdue_runs(
                    self._database, 2 * settings.sweep_interval_seconds, settings.lease_seconds
                )
                self._run_claimer.check_queue(swept)

    async def _sweep_rollouts(self) -> None:
        """Finalize overdue rollouts periodically.

        This is separate from the sweep of runs, because a judge may take minutes.
        """
        while True:
            await asyncio.sleep(self._settings.sweep_interval_seconds * random.uniform(0.5, 1.0))
            await finalize_overdue(self._database, self, 2 * self._settings.sweep_interval_seconds)

    async def _remove_expired(self) -> None:
        """Remove expired data in batches, periodically. The interval is shorter while there is more to remove."""
        seconds = self._settings.retention_interval_seconds
        more = False
        while True:
            await asyncio.sleep((seconds / 10 if more else seconds) * random.uniform(0.5, 1.0))
            more = await remove_expired(self._database, self._settings)

    async def _report_alive(self) -> None:
        """Report periodically that this process is alive, for people who look at the installation."""
        code_version, slots = version("offing"), self._settings.worker_concurrency
        while True:
            await installation.record_worker(self._database, self._name, code_version, slots, len(self._claimed_runs))
            await asyncio.sleep(WORKER_REPORT_SECONDS * random.uniform(0.5, 1.0))

    async def _index_runs(self) -> None:
        """Index the words of new and changed runs periodically, so that searches find nearly all of them indexed."""
        while True:
            await asyncio.sleep(self._settings.sweep_interval_seconds * random.uniform(0.5, 1.0))
            await index_all_tenants(self._database, MAX_INDEXED_RUNS)

    async def _count_runs(self) -> None:
        """Add ended runs to the totals of the metrics, periodically and until none is left."""
        while True:
            await asyncio.sleep(self._settings.sweep_interval_seconds * random.uniform(0.5, 1.0))
            while await count_ended_runs(self._database, MAX_COUNTED_RUNS) == MAX_COUNTED_RUNS:
                pass

    async def _analyze_tables(self) -> None:
        """Analyze tables that have got their first rows, so that plans for empty tables are not kept."""
        while True:
            await asyncio.sleep(self._settings.sweep_interval_seconds * random.uniform(0.5, 1.0))
            await analyze_new_tables(self._database)

    async def _deliver_webhooks(self) -> None:
        """Attempt deliveries to webhooks that are due. Several workers may do so at once."""
        read_rules = partial(read_webhook_rules, self._settings.graph_paths)
        async with webhooks.open_poster(self._settings) as poster:
            while True:
                await asyncio.sleep(min(WEBHOOK_POLL_SECONDS, self._settings.sweep_interval_seconds))
                while not self._draining and await webhooks.deliver_due(self._database, poster):
                    pass
                while not self._draining and await run_webhooks.deliver_due(
                    self._database, poster, self._graphs, read_rules
                ):
                    pass

    async def _begin_scheduled_runs(self) -> None:
        """Begin the runs of crons whose time has come. Several workers may do so at once."""
        async with BusNotifier(self._redis_url) as notifier:
            platform = RunPlatform(
                self._database,
                notifier,
                notifier.live,
                self._graphs,
                default_engine_config(),
                role_engine_configs(),
                McpServerRegistry(self._settings.mcp_config),
                self._settings.thread_ttl,
            )
            while True:
                await asyncio.sleep(min(CRON_POLL_SECONDS, self._settings.sweep_interval_seconds))
                while not self._draining and await begin_due_runs(platform, read_clock()) == MAX_DUE:
                    pass

    async def _fill_vectors(self) -> None:
        """Compute missing vectors of the document library."""
        embedder = self._tool_backends.library_models.embedder
        assert embedder is not None
        await VectorFiller(self._database, embedder, lambda: self._draining).run()

    async def _run_distillation_jobs(self) -> None:
        """Run distillation jobs, one at a time. Nearly all of their time is spent waiting for a model."""
        settings = self._settings
        async with BusNotifier(self._redis_url) as notifier:
            folder, term = settings.home / PROMPT_LIBRARY_FOLDER, settings.lease_seconds
            context = DistillationContext(self._database, folder, self._name, term, self._graphs, notifier)
            while True:
                await asyncio.sleep(min(DISTILLATION_POLL_SECONDS, settings.sweep_interval_seconds))
                try:
                    while not self._draining and await run_next_job(context) is not None:
                        pass
                except LeaseLostError as error:
                    log.info("the lease of a distillation job was lost", reason=str(error))

    async def _listen_to_queue(self) -> None:
        """Check the queue when a notified worker has no free slot. Without Redis, the sweep does the same."""
        async for _ in self._queue_channel.listen():
            self._run_claimer.check_queue()

    async def _listen_to_control(self) -> None:
        """Refresh the control requests of notified runs. Without Redis, the heartbeat does the same."""
        async for run in self._control_channel.listen():
            if claimed_run := self._claimed_runs.get(run):
                await self._refresh_control(claimed_run)

    async def _refresh_control(self, claimed_run: ClaimedRun) -> None:
        fence, lease_seconds = claimed_run.fencing_token, self._settings.lease_seconds
        self._apply_control(claimed_run, await claims.renew_lease(self._database, fence, lease_seconds))

    def _apply_control(self, claimed_run: ClaimedRun, request: runs.ControlRequest | None) -> None:
        if self._claimed_runs.get(claimed_run.fencing_token.run_id) is not claimed_run or claimed_run.is_released:
            return  # a later claim of this process has the run, or the run was released
        if request is None:
            return claimed_run.mark_lease_lost()
        claimed_run.apply_control_request(request)
        if claimed_run.drain_reason is DrainReason.CANCEL:
            self._loop.call_later(CANCEL_GRACE_SECONDS, claimed_run.interrupt_graph)

    def _run_heartbeat(self) -> None:
        """Renew all leases periodically.

        Claims that cannot be renewed are given up before another worker may claim their runs.
        """
        settings, connection = self._settings, HeartbeatConnection(self._database_url)
        renewed = time.monotonic()
        while not self._stopped.wait(settings.heartbeat_interval_seconds):
            claimed_runs = [
                claimed_run for claimed_run in list(self._claimed_runs.values()) if not claimed_run.is_released
            ]
            try:
                requests = (
                    connection.renew_leases([h.fencing_token for h in claimed_runs], settings.lease_seconds)
                    if claimed_runs
                    else []
                )
                renewed = time.monotonic()
                by_run = {request.run_id: request for request in requests}
                self._loop.call_soon_threadsafe(self._apply_heartbeat, claimed_runs, by_run)
            except Exception as error:  # continue after any error, because without a heartbeat all runs are lost
                is_expected = isinstance(error, Unavailable)
                log.warning("heartbeat failed", reason=str(error), exc_info=None if is_expected else error)
                if time.monotonic() - renewed > 0.8 * settings.lease_seconds:
                    log.warning("leases may have expired", runs=len(claimed_runs))
        connection.close()

    def _apply_heartbeat(self, claimed_runs: list[ClaimedRun], requests: Mapping[UUID, runs.ControlRequest]) -> None:
        for claimed_run in claimed_runs:
            self._apply_control(claimed_run, requests.get(claimed_run.fencing_token.run_id))
