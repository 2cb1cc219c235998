# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
"""Live updates of runs over Redis pub/sub.

Pages subscribe to display a run, and requests to wait for one. Publishing and receiving are best
effort. A publisher waits at most `PUBLISH_TIMEOUT_SECONDS` and never fails because of Redis. A
subscriber gets a `ResyncEvent` whenever it may have missed an event, and also at regular
intervals. Names of channels and keys contain the tenant, which comes from the caller's key and
never from the request.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import Any, Self
from uuid import UUID

import orjson
import structlog
from redis.asyncio import Redis
from redis.asyncio.client import Pipeline, PubSub
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.exceptions import TimeoutError as RedisTimeout

from offing.bus.live_events import (
    MALFORMED_MESSAGE_ERRORS,
    PROBE_CHANNEL,
    CurrentAction,
    ResyncEvent,
    RunActivity,
    build_action_key,
    build_draft_index_key,
    build_draft_key,
    decode_action,
    decode_draft,
    encode_draft,
    encode_step,
    parse_event,
    run_channel_name,
    stream_channel_name,
)
from offing.bus.skipped_messages import SkippedMessages
from offing.bus.subscriber import Subscriber, Subscription
from offing.cancellation import cancel_tasks
from offing.core.answer_draft import MAX_DRAFT_CHARS, MAX_DRAFTS_PER_RUN, DraftEnd, DraftPart
from offing.core.step import Step

PUBLISH_TIMEOUT_SECONDS = 0.5
"""Time after which a publisher gives up."""

PAUSE_AFTER_REFUSAL_SECONDS, PAUSE_AFTER_TIMEOUT_SECONDS = 0.2, 3.0
"""Duration for which publishing pauses after a rejected connection and after a timeout, so that neither slows
down the workers.
"""

ACTION_TTL_SECONDS = 900
"""Time after which a current action without an update is no longer shown."""

DRAFT_TTL_SECONDS = 300
"""Time after which a draft without new text is no longer shown."""

RESYNC_CONNECTED_SECONDS, RESYNC_DISCONNECTED_SECONDS = 5.0, 1.0
"""Interval between two resync events of a subscriber, while Redis is connected and while it is not."""

PING_INTERVAL_SECONDS = 5.0

UNSUBSCRIBE_DELAY_SECONDS = 0.5
"""Time after which channels without a subscriber are left, together with the others that are unused then."""

MAX_STEPS_PER_EVENT = 64
"""Maximum number of steps in one event. A larger batch is published as a `ResyncEvent`."""

REDIS_ERRORS = (RedisError, OSError, TimeoutError)

log = structlog.get_logger()


class LiveBus:
    """The connection of this process to the live updates.

    It belongs to one event loop and connects when it is first used.
    """

    def __init__(self, redis_url: str) -> None:
        self._redis: Redis = Redis.from_url(
            redis_url,
            socket_connect_timeout=PUBLISH_TIMEOUT_SECONDS,
            socket_timeout=PUBLISH_TIMEOUT_SECONDS,
            retry=Retry(NoBackoff(), 0),
        )
        self._subscribers: dict[str, set[Subscriber]] = {}
        self._confirmed: dict[str, asyncio.Event] = {}
        self._event_counts: dict[str, int] = {}
        self._resync_count = 0
        self._unused_channels: set[str] = set()
        self._unsubscribing: asyncio.TimerHandle | None = None
        self._listener: asyncio.Task[None] | None = None
        self._pubsub: PubSub | None = None
        self._command_tasks: set[asyncio.Task[None]] = set()
        self._paused_until = 0.0
        self._failing = False
        self._is_closed = False
        self.is_closing = False
        """True if this process is shutting down; subscribers should stop."""
        self._skipped = SkippedMessages("live updates")
        self.failure_count = 0
        """Number of times that a request to Redis has failed."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections. Nothing opens new ones: what is published afterwards is not sent, and who subscribes
        afterwards only gets resync events.
        """
        self._is_closed = True
        if self._unsubscribing is not None:
            self._unsubscribing.cancel()
        await cancel_tasks([*self._command_tasks, *([self._listener] if self._listener else [])])
        await self._redis.aclose()

    def close_subscribers(self) -> None:
        """Ask all subscribers to stop, because the process is shutting down."""
        self.is_closing = True
        self._send_resync()

    @property
    def is_connected(self) -> bool:
        """Whether events can currently be received."""
        return self._pubsub is not None

    @property
    def subscriber_count(self) -> int:
        return sum(len(watching) for watching in self._subscribers.values())

    # Publishing ---------------------------------------------------------------------------------

    async def publish_steps(self, tenant_id: UUID, run_id: UUID, steps: Sequence[Step]) -> None:
        """Publish the steps of a run to its subscribers.

        Call it only after the steps are committed.
        """
        if steps:
            encoded_steps = [encode_step(s) for s in steps] if len(steps) <= MAX_STEPS_PER_EVENT else []
            await self._send(
                lambda pipe: pipe.publish(run_channel_name(tenant_id, run_id), orjson.dumps({"steps": encoded_steps}))
            )

    async def publish_change(self, tenant_id: UUID, run_id: UUID) -> None:
        """Tell the subscribers of a run to read it again, because something other than a step has changed.

        Call it only after the change is committed.
        """
        await self._send(lambda pipe: pipe.publish(run_channel_name(tenant_id, run_id), orjson.dumps({"steps": []})))

    async def publish_action(
        self, tenant_id: UUID, run_id: UUID, text: str | None, started_at: datetime | None = None
    ) -> None:
        """Publish what a run is doing now.

        If `text` is `None`, the run has no current action. If `started_at` is `None`, the action
        started now.
        """
        doing = None if text is None else {"text": text[:300], "since": started_at or datetime.now(UTC)}
        body = orjson.dumps(doing)

        def fill(pipe: Pipeline) -> None:
            if doing is None:
                pipe.delete(build_action_key(tenant_id, run_id))
            else:
                pipe.set(build_action_key(tenant_id, run_id), body, ex=ACTION_TTL_SECONDS)
            pipe.publish(run_channel_name(tenant_id, run_id), b'{"doing":' + body + b"}")

        await self._send(fill)

    async def publish_draft(self, tenant_id: UUID, run_id: UUID, part: DraftPart) -> bool:
        """Publish text of an answer while it is written, and keep it for viewers that connect later.

        Return whether it was sent. If it was not, send the whole draft again, with offset 0.
        """
        draft, text = part.draft, part.text.encode("utf-8", "replace")
        body = orjson.dumps({"draft": [*encode_draft(draft), part.offset, text.decode()]})
        text_key, index_key = build_draft_key(tenant_id, run_id, draft), build_draft_index_key(tenant_id, run_id)

        def fill(pipe: Pipeline) -> None:
            if part.offset == 0:
                pipe.hset(index_key, draft.call_id, orjson.dumps(encode_draft(draft)))  # pyright: ignore[reportArgumentType]
                pipe.set(text_key, text)
            else:
                pipe.append(text_key, text)  # pyright: ignore[reportArgumentType]
            pipe.expire(text_key, DRAFT_TTL_SECONDS)
            pipe.expire(index_key, DRAFT_TTL_SECONDS)
            pipe.publish(run_channel_name(tenant_id, run_id), body)

        return await self._send(fill)

    async def end_draft(self, tenant_id: UUID, run_id: UUID, end: DraftEnd) -> bool:
        """Remove one draft or all drafts of a run. Their texts expire. Return whether it was sent."""
        body = orjson.dumps({"draft_end": [end.call_id, end.fence]})

        def fill(pipe: Pipeline) -> None:
            if end.call_id:
                pipe.hdel(build_draft_index_key(tenant_id, run_id), end.call_id)
            else:
                pipe.delete(build_draft_index_key(tenant_id, run_id))
            pipe.publish(run_channel_name(tenant_id, run_id), body)

        return await self._send(fill)

    async def list_drafts(self, tenant_id: UUID, run_id: UUID) -> list[DraftPart]:
        """Return the drafts of a run, each as one part from the beginning.

        The list is empty if there are none or if Redis is unavailable.
        """
        return (await self.find_activity(tenant_id, run_id)).drafts

    async def find_activity(self, tenant_id: UUID, run_id: UUID) -> RunActivity:
        """Return what a run is doing, as far as it was published and Redis is available."""
        if self._is_paused:
            return RunActivity(None, [])
        action_key, index_key = build_action_key(tenant_id, run_id), build_draft_index_key(tenant_id, run_id)
        try:
            async with self._redis.pipeline(transaction=False) as pipe:
                pipe.get(action_key)
                pipe.hgetall(index_key)
                action, index = await pipe.execute(raise_on_error=False)
            drafts = await self._read_drafts(tenant_id, run_id, self._skip_error(index, index_key) or {})
        except REDIS_ERRORS as error:
            self._record_failure("read", error)
            return RunActivity(None, [])
        return RunActivity(self._parse_action(self._skip_error(action, action_key)), drafts)

    async def _read_drafts(self, tenant_id: UUID, run_id: UUID, index: dict[bytes, bytes]) -> list[DraftPart]:
        try:
            drafts = [decode_draft(orjson.loads(entry)) for entry in list(index.values())[:MAX_DRAFTS_PER_RUN]]
            keys = [build_draft_key(tenant_id, run_id, draft) for draft in drafts]
            texts: Any = await self._redis.mget(keys) if keys else []
            return [
                DraftPart(draft, 0, text.decode()[:MAX_DRAFT_CHARS])
                for draft, text in zip(drafts, texts, strict=True)
                if text is not None
            ]
        except MALFORMED_MESSAGE_ERRORS as error:
            self._skipped.skip("not a draft", str(error))
            return []

    async def find_current_action(self, tenant_id: UUID, run_id: UUID) -> CurrentAction | None:
        """Return the last published action of a run, without its drafts.

        `None` means that there is none or that Redis is unavailable.
        """
        if self._is_paused:
            return None
        key = build_action_key(tenant_id, run_id)
        try:
            async with self._redis.pipeline(transaction=False) as pipe:
                pipe.get(key)
                (action,) = await pipe.execute(raise_on_error=False)
        except REDIS_ERRORS as error:
            self._record_failure("read", error)
            return None
        return self._parse_action(self._skip_error(action, key))

    def _parse_action(self, stored: bytes | None) -> CurrentAction | None:
        if stored is None:
            return None
        try:
            return decode_action(orjson.loads(stored))
        except MALFORMED_MESSAGE_ERRORS:
            self._skipped.skip("not a current action", stored)
            return None

    def _skip_error(self, answer: Any, key: str) -> Any:
        """Return the answer to a command of a pipeline. `None` stands for an error: the key has another type."""
        if isinstance(answer, RedisError):
            self._skipped.skip(str(answer), key)
            return None
        return answer

    async def is_reachable(self) -> bool:
        """Return whether Redis answers a ping. After `close`, it is not asked."""
        if self._is_closed:
            return False
        try:
            await self._redis.ping()  # pyright: ignore[reportUnknownMemberType, reportGeneralTypeIssues]
        except REDIS_ERRORS:
            return False
        return True

    async def _send(self, add_commands: Callable[[Pipeline], object]) -> bool:
        """Send commands and return whether Redis accepted them."""
        if self._is_paused:
            return False
        try:
            async with asyncio.timeout(PUBLISH_TIMEOUT_SECONDS), self._redis.pipeline(transaction=False) as pipe:
                add_commands(pipe)
                await pipe.execute()
            self._record_success()
            return True
        except REDIS_ERRORS as error:
            self._record_failure("publish", error)
            return False

    @property
    def _is_paused(self) -> bool:
        return self._is_closed or time.monotonic() < self._paused_until

    def _record_failure(self, operation: str, error: Exception) -> None:
        if not self._failing:
            log.warning("redis failed; subscribers poll the database", doing=operation, error=type(error).__name__)
        self._failing = True
        self.failure_count += 1
        hung = isinstance(error, TimeoutError | RedisTimeout)
        self._paused_until = time.monotonic() + (PAUSE_AFTER_TIMEOUT_SECONDS if hung else PAUSE_AFTER_REFUSAL_SECONDS)

    def _record_success(self) -> None:
        if self._failing:
            log.info("redis is available again", faults=self.failure_count)
        self._failing = False

    # Subscribing --------------------------------------------------------------------------------

    def subscribe(
        self, tenant_id: UUID, run_ids: Collection[UUID], *, waits: bool = True
    ) -> AbstractAsyncContextManager[Subscriber]:
        """Subscribe to events of some runs.

        No event published after the context is entered is missed; read Postgres inside the
        context. If it does not wait, this holds from when `Subscriber.is_confirmed`.
        """
        return self._open_subscriber(frozenset(run_channel_name(tenant_id, run) for run in run_ids), waits)

    def count_events(self, tenant_id: UUID, run_id: UUID) -> int:
        """Return a number that grows with every event of a run that has arrived while it has a subscriber.

        It also grows when events may have been missed.
        """
        return self._event_counts.get(run_channel_name(tenant_id, run_id), 0) + self._resync_count

    def subscribe_stream(
        self, tenant_id: UUID, thread_id: UUID, run_id: UUID | None = None, *, waits: bool = True
    ) -> AbstractAsyncContextManager[Subscriber]:
        """Subscribe to the stream of a thread (`offing.bus.run_streams`), and to a run if one is named.

        News of the stream is a `StreamMessage`, or a `ResyncEvent` if some may have been missed.
        """
        of_run = () if run_id is None else (run_channel_name(tenant_id, run_id),)
        return self._open_subscriber(frozenset((*of_run, stream_channel_name(tenant_id, thread_id))), waits)

    @asynccontextmanager
    async def _open_subscriber(self, channels: frozenset[str], waits: bool) -> AsyncGenerator[Subscriber]:
        follower = Subscriber(
            lambda: RESYNC_CONNECTED_SECONDS if self.is_connected else RESYNC_DISCONNECTED_SECONDS,
            lambda: all(c in self._confirmed and self._confirmed[c].is_set() for c in channels),
        )
        for channel in channels:
            self._subscribers.setdefault(channel, set()).add(follower)
        try:
            self._add_channels(channels)
            if waits:
                await self._wait_for_confirmation(channels)
            yield follower
        finally:
            self._remove_subscriber(follower, channels)

    def _add_channels(self, channels: Collection[str]) -> None:
        """Subscribe to channels that are not subscribed yet."""
        if self._listener is None and not self._is_closed:
            self._listener = asyncio.create_task(self._listen(), name="live bus")
        new = [c for c in channels if c not in self._confirmed]
        self._confirmed.update((c, asyncio.Event()) for c in new)
        if self._pubsub is not None and new and not self._is_closed:
            self._send_command(self._pubsub.subscribe, new)

    async def _wait_for_confirmation(self, channels: Collection[str]) -> None:
        """Wait briefly for the confirmation: the subscriber also resyncs at regular intervals."""
        if self._is_closed or (self._pubsub is None and self._failing):
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(PUBLISH_TIMEOUT_SECONDS):
                for confirmed in [self._confirmed[c] for c in channels if c in self._confirmed]:
                    await confirmed.wait()

    def _remove_subscriber(self, subscriber: Subscriber, channels: Collection[str]) -> None:
        for channel in channels:
            self._subscribers[channel].discard(subscriber)
        empty = [c for c in channels if not self._subscribers[c]]
        for channel in empty:
            del self._subscribers[channel]
            self._event_counts.pop(channel, None)
            self._confirmed.pop(channel, None)
        if empty and self._pubsub is not None:
            self._unused_channels.update(empty)
            if self._unsubscribing is None:
                loop = asyncio.get_running_loop()
                self._unsubscribing = loop.call_later(UNSUBSCRIBE_DELAY_SECONDS, self._unsubscribe)

    def _unsubscribe(self) -> None:
        """Leave the channels that nobody has subscribed to again."""
        unused = [c for c in self._unused_channels if c not in self._subscribers]
        self._unused_channels.clear()
        self._unsubscribing = None
        if unused and self._pubsub is not None:
            self._send_command(self._pubsub.unsubscribe, unused)

    def _send_command(self, command: Callable[..., Awaitable[Any]], channels: Sequence[str]) -> None:
        """Send a command on the shared connection in a separate task.

        If a subscriber were cancelled while it sends the command itself, the connection would
        break for all subscribers. Tasks start in the order in which they are created.
        """

        async def send() -> None:
            with suppress(*REDIS_ERRORS):  # the listener gets the same error, counts it and reconnects
                await command(*channels)

        task = asyncio.create_task(send())
        self._command_tasks.add(task)
        task.add_done_callback(self._command_tasks.discard)

    async def _listen(self) -> None:
        """Keep one subscription open as long as the process runs. Reconnect when it breaks."""
        pause = 0.1
        while True:
            try:
                async with Subscription(self._redis.connection_pool) as pubsub:
                    await pubsub.subscribe(PROBE_CHANNEL)
                    self._pubsub = pubsub  # from now on, new subscribers add their channels themselves
                    if self._subscribers:
                        await pubsub.subscribe(*self._subscribers)
                    pause = 0.1
                    await self._receive_from(pubsub)
            except REDIS_ERRORS as error:
                self._record_failure("follow", error)
            finally:
                self._pubsub = None
                self._confirmed.clear()
                self._send_resync()
            await asyncio.sleep(pause)
            pause = min(pause * 2, 2.0)

    async def _receive_from(self, pubsub: PubSub) -> None:
        silent = False
        while True:
            message: dict[str, Any] | None = await pubsub.get_message(timeout=PING_INTERVAL_SECONDS)
            if message is None:
                if silent:
                    raise TimeoutError("Redis does not answer a ping on the subscription")
                await pubsub.ping()
            silent = message is None
            if message is not None:
                self._dispatch(message)

    def _dispatch(self, message: dict[str, Any]) -> None:
        if message["type"] not in ("subscribe", "message"):
            return
        channel = message["channel"].decode()
        if message["type"] == "subscribe":
            if channel == PROBE_CHANNEL:
                self._record_success()
                self._send_resync()
            elif channel in self._subscribers:
                self._confirmed.setdefault(channel, asyncio.Event()).set()
            return
        try:
            notice = parse_event(channel, message["data"])
        except MALFORMED_MESSAGE_ERRORS:  # written by another version, or not by Offing
            self._skipped.skip("not a run event", message["data"])
            notice = ResyncEvent()
        if channel in self._subscribers:
            self._event_counts[channel] = self._event_counts.get(channel, 0) + 1
        for follower in self._subscribers.get(channel, ()):
            follower.offer(notice)

    def _send_resync(self) -> None:
        """Send a resync event to all subscribers.

        Called when the subscription starts or ends: events may have been missed, and the resync
        interval changes.
        """
        self._resync_count += 1
        for watching in self._subscribers.values():
            for follower in watching:
                follower.offer(ResyncEvent())
