# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
"""What runs do at this moment, over Redis pub/sub: for pages that watch, and for calls that wait.

Best effort both ways. A publisher never waits longer than `PUBLISH_SECONDS` and never fails for Redis; a follower is
told to look for itself (`Look`) whenever something may have been missed, and from time to time anyway. Knows nothing of
Postgres. Names of channels and keys carry the tenant, who comes from the caller's key and never from the request.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self
from uuid import UUID

import orjson
import structlog
from redis.asyncio import Redis
from redis.asyncio.client import Pipeline, PubSub
from redis.asyncio.connection import AbstractConnection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeout

from offing.bus.skipping import SkippedMessages
from offing.core.step import Step, StepKind

PUBLISH_SECONDS = 0.5
"""After which a publisher gives up."""

REST_SECONDS, REST_AFTER_TIMEOUT = 0.2, 3.0
"""How long publishing rests after a refused connection, and after Redis hung, so that either costs workers little."""

LIVE_SECONDS = 900
"""How long what a run does is believed without news."""

TICK_CONNECTED, TICK_ALONE = 5.0, 1.0
"""How long a follower goes without looking for itself, with Redis and without."""

PING_SECONDS = 5.0

MOST_INBOX = 256
"""Notices kept for a follower that does not keep up; then they become one `Look`."""

MOST_STEPS = 64
"""Steps of one notice; more become a `Look`."""

FAULTS = (RedisError, OSError, TimeoutError)

MALFORMED = (ValueError, KeyError, TypeError)
"""What reading a message that is none of ours raises."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Doing:
    """What a run does, in a few words, and since when."""

    text: str
    since: datetime


@dataclass(frozen=True, slots=True)
class NewSteps:
    """Steps that were committed. Their payloads are left out."""

    run: UUID
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class NowDoing:
    run: UUID
    doing: Doing | None
    """None: nothing that it tells of."""


@dataclass(frozen=True, slots=True)
class Look:
    """Something may have been missed: read Postgres."""


Notice = NewSteps | NowDoing | Look


class Follower:
    """One watcher's inbox: an asynchronous iterator that never ends and never holds more than `MOST_INBOX` notices."""

    def __init__(self, tick: Callable[[], float]) -> None:
        self._tick = tick
        self._inbox: deque[Notice] = deque()
        self._arrived = asyncio.Event()

    def offer(self, notice: Notice) -> None:
        if len(self._inbox) >= MOST_INBOX:
            self._inbox.clear()
            notice = Look()
        self._inbox.append(notice)
        self._arrived.set()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Notice:
        return await self.next(self._tick())

    async def next(self, seconds: float) -> Notice:
        """The next notice; a `Look` when `seconds`, or the usual time between looks, pass without one."""
        if not self._inbox:
            self._arrived.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(min(seconds, self._tick())):
                    await self._arrived.wait()
        return self._inbox.popleft() if self._inbox else Look()


class LiveBus:
    """This process's end of the bus. Belongs to one event loop; connects when first used."""

    def __init__(self, redis_url: str) -> None:
        self._redis: Redis = Redis.from_url(
            redis_url,
            socket_connect_timeout=PUBLISH_SECONDS,
            socket_timeout=PUBLISH_SECONDS,
            retry=Retry(NoBackoff(), 0),
        )
        self._followers: dict[str, set[Follower]] = {}
        self._confirmed: dict[str, asyncio.Event] = {}
        self._listener: asyncio.Task[None] | None = None
        self._pubsub: PubSub | None = None
        self._orders: set[asyncio.Task[None]] = set()
        self._rest_until = 0.0
        self._failing = False
        self.closing = False
        """True: this process stops; followers should let go."""
        self._skipped = SkippedMessages("live updates")
        self.faults = 0
        """Times that Redis failed this process."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        tasks = [*self._orders, *([self._listener] if self._listener else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._redis.aclose()

    def wind_up(self) -> None:
        """Ask every follower to let go, because the process stops."""
        self.closing = True
        self._look_all()

    @property
    def connected(self) -> bool:
        """Whether notices can arrive at present."""
        return self._pubsub is not None

    @property
    def followers(self) -> int:
        return sum(len(watching) for watching in self._followers.values())

    # Publishing ------------------------------------------------------------------------------------------------------

    async def steps(self, tenant: UUID, run: UUID, steps: Sequence[Step]) -> None:
        """Tell watchers of steps. Only after their commit."""
        if steps:
            told = [_slim(s) for s in steps] if len(steps) <= MOST_STEPS else []
            await self._send(lambda pipe: pipe.publish(_channel(tenant, run), orjson.dumps({"steps": told})))

    async def doing(self, tenant: UUID, run: UUID, text: str | None, since: datetime | None = None) -> None:
        """Tell watchers what a run does now. None: nothing worth telling. `since` None: now."""
        doing = None if text is None else {"text": text[:300], "since": since or datetime.now(UTC)}
        body = orjson.dumps(doing)

        def fill(pipe: Pipeline) -> None:
            if doing is None:
                pipe.delete(_key(tenant, run))
            else:
                pipe.set(_key(tenant, run), body, ex=LIVE_SECONDS)
            pipe.publish(_channel(tenant, run), b'{"doing":' + body + b"}")

        await self._send(fill)

    async def now(self, tenant: UUID, run: UUID) -> Doing | None:
        """What a run was last told to do. None: nothing is known."""
        if time.monotonic() < self._rest_until:
            return None
        try:
            stored: Any = await self._redis.get(_key(tenant, run))
        except ResponseError as error:  # a key of another type
            self._skipped.skip(str(error), _key(tenant, run))
            return None
        except FAULTS as error:
            self._failed("read", error)
            return None
        try:
            return _doing(orjson.loads(stored)) if stored else None
        except MALFORMED:
            self._skipped.skip("not what a run does", stored)
            return None

    async def answers(self) -> bool:
        """Whether Redis answers just now."""
        try:
            await self._redis.ping()  # pyright: ignore[reportUnknownMemberType, reportGeneralTypeIssues]
        except FAULTS:
            return False
        return True

    async def _send(self, fill: Callable[[Pipeline], object]) -> None:
        if time.monotonic() < self._rest_until:
            return
        try:
            async with asyncio.timeout(PUBLISH_SECONDS), self._redis.pipeline(transaction=False) as pipe:
                fill(pipe)
                await pipe.execute()
            self._worked()
        except FAULTS as error:
            self._failed("publish", error)

    def _failed(self, doing: str, error: Exception) -> None:
        if not self._failing:
            log.warning("redis failed; watchers look for themselves", doing=doing, error=type(error).__name__)
        self._failing = True
        self.faults += 1
        hung = isinstance(error, TimeoutError | RedisTimeout)
        self._rest_until = time.monotonic() + (REST_AFTER_TIMEOUT if hung else REST_SECONDS)

    def _worked(self) -> None:
        if self._failing:
            log.info("redis answers again", faults=self.faults)
        self._failing = False

    # Following -------------------------------------------------------------------------------------------------------

    def follow(self, tenant: UUID, runs: Collection[UUID]) -> AbstractAsyncContextManager[Follower]:
        """Notices about some runs, all that are published once the context is entered; read Postgres inside it."""
        return self._followed(frozenset(_channel(tenant, run) for run in runs))

    @asynccontextmanager
    async def _followed(self, channels: frozenset[str]) -> AsyncGenerator[Follower]:
        follower = Follower(lambda: TICK_CONNECTED if self.connected else TICK_ALONE)
        for channel in channels:
            self._followers.setdefault(channel, set()).add(follower)
        try:
            await self._subscribe(channels)
            yield follower
        finally:
            self._leave(follower, channels)

    async def _subscribe(self, channels: Collection[str]) -> None:
        """Ask for what is not subscribed yet, and wait until it is, but not long: the follower ticks anyway."""
        if self._listener is None:
            self._listener = asyncio.create_task(self._listen(), name="live bus")
        new = [c for c in channels if c not in self._confirmed]
        self._confirmed.update((c, asyncio.Event()) for c in new)
        if self._pubsub is not None and new:
            self._order(self._pubsub.subscribe, new)
        if self._pubsub is None and self._failing:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(PUBLISH_SECONDS):
                for confirmed in [self._confirmed[c] for c in channels if c in self._confirmed]:
                    await confirmed.wait()

    def _leave(self, follower: Follower, channels: Collection[str]) -> None:
        for channel in channels:
            self._followers[channel].discard(follower)
        empty = [c for c in channels if not self._followers[c]]
        for channel in empty:
            del self._followers[channel]
            self._confirmed.pop(channel, None)
        if empty and self._pubsub is not None:
            self._order(self._pubsub.unsubscribe, empty)

    def _order(self, command: Callable[..., Awaitable[Any]], channels: Sequence[str]) -> None:
        """Send a command on the subscription from a task of its own: a watcher that is cancelled in the middle would
        break the connection that all of them share. Tasks start in the order in which they were made."""

        async def send() -> None:
            with suppress(*FAULTS):  # the listener meets the same fault, counts it and connects anew
                await command(*channels)

        task = asyncio.create_task(send())
        self._orders.add(task)
        task.add_done_callback(self._orders.discard)

    async def _listen(self) -> None:
        """Keep one subscription up as long as the process lives."""
        pause = 0.1
        while True:
            try:
                async with _Subscription(self._redis.connection_pool) as pubsub:
                    await pubsub.subscribe(_HELLO)
                    self._pubsub = pubsub  # from here on, who comes subscribes for itself
                    if self._followers:
                        await pubsub.subscribe(*self._followers)
                    pause = 0.1
                    await self._receive_from(pubsub)
            except FAULTS as error:
                self._failed("follow", error)
            finally:
                self._pubsub = None
                self._confirmed.clear()
                self._look_all()
            await asyncio.sleep(pause)
            pause = min(pause * 2, 2.0)

    async def _receive_from(self, pubsub: PubSub) -> None:
        silent = False
        while True:
            message: dict[str, Any] | None = await pubsub.get_message(timeout=PING_SECONDS)
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
            if channel == _HELLO:
                self._worked()
                self._look_all()
            elif channel in self._followers:
                self._confirmed.setdefault(channel, asyncio.Event()).set()
            return
        try:
            notice = _notice(UUID(channel.rpartition(":")[2]), message["data"])
        except MALFORMED:  # by another version, or by nobody of ours
            self._skipped.skip("no notice of a run", message["data"])
            notice = Look()
        for follower in self._followers.get(channel, ()):
            follower.offer(notice)

    def _look_all(self) -> None:
        """The subscription came or went: something may have been missed, and the time between looks changed."""
        for watching in self._followers.values():
            for follower in watching:
                follower.offer(Look())


class _Subscription(PubSub):
    """A subscription that ends with its connection.

    The library's own connects anew in whichever task meets the fault, and two tasks that do so at once leave a socket
    open. Here the listener alone connects, with a new subscription.
    """

    async def connect(self) -> None:
        self._require_connection()
        await super().connect()

    async def parse_response(self, block: bool = True, timeout: float = 0) -> Any:  # noqa: ASYNC109  its signature
        self._require_connection()
        return await super().parse_response(block, timeout)

    async def _reconnect(self, conn: AbstractConnection, *_: object, **__: object) -> None:
        await conn.disconnect(nowait=True)

    def _require_connection(self) -> None:
        if self.connection is not None and not self.connection.is_connected:
            raise RedisConnectionError("the subscription's connection is gone")


_HELLO = "offing:live"


def _channel(tenant: UUID, run: UUID) -> str:
    return f"offing:live:{tenant}:{run}"


def _key(tenant: UUID, run: UUID) -> str:
    return f"offing:doing:{tenant}:{run}"


def _slim(step: Step) -> list[Any]:
    return [
        step.seq, step.kind, step.title, step.label, step.detail, step.ok, step.ms, step.tokens, step.turn, step.at
    ]  # fmt: skip


def _step(told: list[Any]) -> Step:
    seq, kind, title, label, detail, ok, ms, tokens, turn, at = told
    numbers, texts = (seq, tokens, turn, 0 if ms is None else ms), (title, label, detail)
    if any(type(n) is not int for n in numbers) or not all(isinstance(t, str) for t in texts) or type(ok) is not bool:
        raise TypeError("a step with fields of other types")
    return Step(
        seq=seq, kind=StepKind(kind), title=title, payload={}, label=label, detail=detail, ok=ok, ms=ms, tokens=tokens,
        turn=turn, at=datetime.fromisoformat(at), fence=0,
    )  # fmt: skip


def _doing(told: dict[str, Any] | None) -> Doing | None:
    if told is None:
        return None
    text, since = told["text"], datetime.fromisoformat(told["since"])
    if not isinstance(text, str) or since.tzinfo is None:
        raise TypeError("what a run does is text, and its time has an offset")
    return Doing(text, since)


def _notice(run: UUID, data: bytes) -> Notice:
    """A message as a notice. Raises one of MALFORMED."""
    told = orjson.loads(data)
    if "doing" in told:
        return NowDoing(run, _doing(told["doing"]))
    steps = tuple(_step(s) for s in told["steps"])
    return NewSteps(run, steps) if steps else Look()
