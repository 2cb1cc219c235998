"""A worker process: one event loop that owns every client, the runs in hand, and the watchers beside them.

Watchers: the heartbeat (a thread with a connection of its own), the sweepers of runs and of ended rollouts, the one
that does jobs which learn, and the listener for nudges.
"""

import asyncio
import random
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any
from uuid import UUID

import structlog

from offing.bus.control import Control
from offing.bus.hints import BusHints
from offing.bus.live import LiveBus
from offing.bus.queue_channel import QueueChannel
from offing.bus.wake import CeleryWake
from offing.core.errors import Fenced, Unavailable
from offing.core.run import Fence
from offing.process_name import own_name
from offing.sdk import Graph
from offing.services import child_runs
from offing.services.reach import opened
from offing.settings import Settings
from offing.storage import runs
from offing.storage.heartbeat import HeartbeatConnection
from offing.storage.pool import Database
from offing.storage.runs import Claim, NextRun
from offing_workers.collection import settle, settle_forgotten
from offing_workers.dispatcher import Dispatcher, slots
from offing_workers.hold import Drain, Hold
from offing_workers.prompts.learning import FOLDER, Room, work_one
from offing_workers.retention import remove_expired
from offing_workers.showing import Showing
from offing_workers.slice import Slice, SliceLimits

THREADS = 512
"""At most; made as they are needed. A graph's plain function holds one while it waits for a model, and what that
model's call needs a thread for must find another."""

GRACE = 20.0
"""Seconds that a drain waits for calls in flight before it interrupts them."""

CANCEL_GRACE = 2.0
"""The same for a run that a person cancelled."""

LEARN_SECONDS = 2.0
"""Between looks for a job that learns: a person waits who has just asked for it."""

log = structlog.get_logger()


class WorkerProcess:
    """Made once a process, by `start`. Its methods are called from Celery's threads; the rest happens on its loop."""

    def __init__(self, settings: Settings, graphs: Mapping[str, Graph], database_url: str, redis_url: str) -> None:
        self._settings, self._graphs = settings, graphs
        self._database_url, self._redis_url = database_url, redis_url
        self._name = own_name()
        self._holds: dict[UUID, Hold] = {}
        room = slots(settings.worker_concurrency, settings.interactive_slots)
        self._dispatcher = Dispatcher(room, self._claim_next, self._advance, self._broadcast)
        self._loop = asyncio.new_event_loop()
        self._loop.set_default_executor(ThreadPoolExecutor(THREADS, "offing-thread"))
        self._draining = False
        self._stopped = threading.Event()

    def start(self) -> None:
        """Open the clients and begin watching."""
        threading.Thread(target=self._loop.run_forever, name="offing-loop", daemon=True).start()
        self._wait(self._open())
        threading.Thread(target=self._heartbeat, name="offing-heartbeat", daemon=True).start()

    def check_queue(self) -> None:
        """Claim queued runs: a notification has come. Returns at once, so that none waits behind another's slice."""
        self._loop.call_soon_threadsafe(partial(self._dispatcher.check_queue, notified=True))

    def drain(self) -> None:
        """Stop every slice at its next boundary, and take no other. Returns at once; safe in a signal handler."""
        self._draining = True
        self._loop.call_soon_threadsafe(self._drain_all)

    def stop(self) -> None:
        """Close everything, after the last slice."""
        self._wait(self._dispatcher.close())
        self._stopped.set()
        self._wait(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)

    def _wait(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _open(self) -> None:
        settings = self._settings
        pool = Database(
            self._database_url, most=settings.pool_size, queue_seconds=None, stall_seconds=settings.lease_seconds
        )
        self._database = await pool.__aenter__()
        self._live, self._control = LiveBus(self._redis_url), Control(self._redis_url)
        self._queue_channel = QueueChannel(self._redis_url)
        self._showing = Showing(self._live)
        self._wake = CeleryWake(self._redis_url)
        self._reaching = opened(settings)
        self._reach = await self._reaching.__aenter__()
        queue = (self._dispatcher.watch, self._hear_of_queue, self._sweep)
        watchers = (*queue, self._settle, self._learn, self._listen, self._retain)
        self._watchers = [asyncio.create_task(self._watch(watcher)) for watcher in watchers]
        self._dispatcher.check_queue()

    async def _close(self) -> None:
        for watcher in self._watchers:
            watcher.cancel()
        await asyncio.gather(*self._watchers, return_exceptions=True)
        await self._reaching.__aexit__(None, None, None)
        await self._showing.close()
        await self._queue_channel.close()
        await self._control.close()
        await self._live.close()
        await self._database.__aexit__()

    async def _claim_next(self, room: int, rollout_room: int, also: Sequence[UUID]) -> list[NextRun]:
        term = self._settings.lease_seconds
        return await runs.claim_next(self._database, self._name, term, room=room, rollout_room=rollout_room, also=also)

    async def _broadcast(self) -> None:
        await self._queue_channel.publish()

    async def _advance(self, claim: Claim) -> None:
        """Advance a claimed run by a slice."""
        term = self._settings.lease_seconds
        hold = self._claimed(claim.fence)
        keep = self._settings.keep_running_checkpoints
        limits = SliceLimits(
            term, self._settings.slice_turns, self._settings.slice_seconds, keep, self._settings.store_items
        )
        slice = Slice(self._database, self._showing, self, self._graphs, claim, hold, limits, self._reach)
        hold.task = asyncio.create_task(slice.advance())
        if self._draining:
            self._drain_one(hold)  # claimed while the others were told
        try:
            await asyncio.wait({hold.task})
        finally:
            self._release(hold)
        self._report(hold)
        if slice.to_settle and not self._draining:
            await self._settle_at_once(hold)

    def _claimed(self, fence: Fence) -> Hold:
        """The hold of a new claim. An earlier slice of the same run that has not handed it back has lost it."""
        before, hold = self._holds.get(fence.run), Hold(fence)
        self._holds[fence.run] = hold
        if before is not None:
            before.lose()
        return hold

    def _release(self, hold: Hold) -> None:
        """Forget a hold, and never the one of a later claim: a slice that has handed its run back may still be telling
        of it while this process claims the run again."""
        if self._holds.get(hold.fence.run) is hold:
            del self._holds[hold.fence.run]

    async def _settle_at_once(self, hold: Hold) -> None:
        """Settle the rollout that has just ended, once its hold is gone: an ended run has no lease, and a judge takes
        its time. Where it cannot be done now, the sweep does it later."""
        try:
            await settle(self._database, self, hold.fence.tenant, hold.fence.run)
        except Unavailable as error:
            log.info("not settled", run=str(hold.fence.run), reason=str(error))

    def _report(self, hold: Hold) -> None:
        assert hold.task is not None
        if not hold.task.cancelled() and (error := hold.task.exception()):
            log.error("slice failed", run=str(hold.fence.run), exc_info=error)

    async def wake(self, run: UUID) -> None:
        """Notify a worker that a run is queued. Should that be lost, this process finds the run by itself."""
        self._dispatcher.check_queue_when_slot_frees()
        await self._wake([run])

    def _drain_all(self) -> None:
        self._dispatcher.stop_claiming()
        for hold in self._holds.values():
            self._drain_one(hold)

    def _drain_one(self, hold: Hold) -> None:
        hold.drain(Drain.SHUTDOWN)
        self._loop.call_later(GRACE, hold.abandon)

    async def _watch(self, watcher: Callable[[], Awaitable[None]]) -> None:
        """Keep a watcher up: its fault is told, and costs a second, but never the watch."""
        while True:
            try:
                await watcher()
            except Unavailable as error:
                log.info("watcher waits", watcher=watcher.__name__, reason=str(error))
            except Exception:
                log.exception("watcher failed", watcher=watcher.__name__)
            await asyncio.sleep(1.0)

    async def _sweep(self) -> None:
        """Check the queue, whether or not a notification has come. Any number of workers may do so at once."""
        settings = self._settings
        while True:
            await asyncio.sleep(settings.sweep_seconds * random.uniform(0.5, 1.0))
            await child_runs.drop_forsaken(self._database)
            if self._dispatcher.slots.free:
                found = await runs.sweep(self._database, 2 * settings.sweep_seconds, settings.lease_seconds)
                self._dispatcher.check_queue(found)

    async def _settle(self) -> None:
        """Settle rollouts that have ended and that nobody settled. Apart from runs, since a judge may take minutes."""
        while True:
            await asyncio.sleep(self._settings.sweep_seconds * random.uniform(0.5, 1.0))
            await settle_forgotten(self._database, self, 2 * self._settings.sweep_seconds)

    async def _retain(self) -> None:
        """Remove what was kept for long enough, a batch at a time; sooner again while there is more."""
        seconds = self._settings.retention_seconds
        more = False
        while True:
            await asyncio.sleep((seconds / 10 if more else seconds) * random.uniform(0.5, 1.0))
            more = await remove_expired(self._database, self._settings)

    async def _learn(self) -> None:
        """Do jobs that learn from judged runs, one at a time; they wait for a model nearly all of their time."""
        settings = self._settings
        async with BusHints(self._redis_url) as hints:
            folder, term = settings.home / FOLDER, settings.lease_seconds
            room = Room(self._database, folder, self._name, term, self._graphs, hints)
            while True:
                await asyncio.sleep(min(LEARN_SECONDS, settings.sweep_seconds))
                try:
                    while not self._draining and await work_one(room) is not None:
                        pass
                except Fenced as error:
                    log.info("a job that learns was lost", reason=str(error))

    async def _hear_of_queue(self) -> None:
        """Claim runs that a notified worker had no slot for. Without Redis the sweep finds them as well."""
        async for _ in self._queue_channel.messages():
            self._dispatcher.check_queue()

    async def _listen(self) -> None:
        """Look at runs that somebody nudged. Without Redis the heartbeat finds out as well."""
        async for run in self._control.nudges():
            if hold := self._holds.get(run):
                await self._look(hold)

    async def _look(self, hold: Hold) -> None:
        fence = hold.fence
        term = f"{self._settings.lease_seconds} seconds"
        rows = await self._database.platform(runs.HEARTBEAT, ([fence.run], [fence.number], term))
        self._take(hold, runs.wish_of(rows[0]) if rows else None)

    def _take(self, hold: Hold, wish: runs.Wish | None) -> None:
        if self._holds.get(hold.fence.run) is not hold or hold.released:
            return  # a later claim of this process has the run, or nobody needs to be told any more
        if wish is None:
            return hold.lose()
        hold.apply(wish)
        if hold.draining is Drain.CANCEL:
            self._loop.call_later(CANCEL_GRACE, hold.interrupt)

    def _heartbeat(self) -> None:
        """Renew all leases each few seconds; give up what could not be renewed before another worker may take it."""
        settings, connection = self._settings, HeartbeatConnection(self._database_url)
        renewed = time.monotonic()
        while not self._stopped.wait(settings.heartbeat_seconds):
            held = [hold for hold in list(self._holds.values()) if not hold.released]
            try:
                wishes = connection.beat([h.fence for h in held], settings.lease_seconds) if held else []
                renewed = time.monotonic()
                self._loop.call_soon_threadsafe(self._apply, held, {w.run: w for w in wishes})
            except Exception as error:  # whatever it is, a heart that stops beating loses every run of this process
                known = isinstance(error, Unavailable)
                log.warning("no heartbeat", reason=str(error), exc_info=None if known else error)
                if time.monotonic() - renewed > 0.8 * settings.lease_seconds:
                    log.warning("leases may have passed", runs=len(held))
        connection.close()

    def _apply(self, held: list[Hold], wishes: Mapping[UUID, runs.Wish]) -> None:
        for hold in held:
            self._take(hold, wishes.get(hold.fence.run))
