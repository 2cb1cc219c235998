# pyright: reportUnknownMemberType=false
"""Event streams: each durable step once and in order, whatever happens to the stream or to Redis."""

import asyncio
import random
import socket
import time
from collections.abc import Callable
from contextlib import aclosing
from uuid import UUID, uuid4

import pytest
import redis.asyncio

from offing.api import feed, streams
from offing.api.run_reads import SharedRunReads
from offing.core.run import FencingToken, RunStatus
from offing.core.step import StepDraft, StepKind
from offing.core.usage import UsageDelta
from tests.api.conftest import Api
from tests.api.sse import following


@pytest.fixture
def nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A watcher learns from notices alone, unless a test says how often it looks; none is given up for slowness."""
    monkeypatch.setattr("offing.bus.live.PUBLISH_TIMEOUT_SECONDS", 30)
    monkeypatch.setattr("offing.bus.live.RESYNC_CONNECTED_SECONDS", 3600)
    for name in ("MIN_STATE_INTERVAL_SECONDS", "KEEP_ALIVE_SECONDS"):
        monkeypatch.setattr(feed, name, 3600)


async def test_a_stream_tells_the_state_then_every_step_then_the_end_and_closes(api: Api) -> None:
    run = await api.submit()
    fence = await api.hands.claim(run)
    await api.hands.notes(fence, ["one", "two"])
    async with following(api.http, f"/api/v1/runs/{run}/events") as stream:
        assert stream.response.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert stream.response.headers["cache-control"] == "no-store"
        await stream.until(lambda s: s.seqs == [1, 2, 3])
        assert stream.seen[0].name == "run"
        assert stream.seen[0].data["step_marks"] == "nnn"
        await api.hands.notes(fence, ["three"])
        await api.hands.end(fence)
        await stream.until(lambda s: s.closed)
    assert stream.seqs == [1, 2, 3, 4, 5]
    assert [e.id for e in stream.named("step")] == ["1", "2", "3", "4", "5"]
    assert all(e.id is None for e in stream.seen if e.name != "step")
    assert [e.name for e in stream.seen[-3:]] == ["step", "run", "end"]
    assert stream.named("run")[-1].data["status"] == "done"
    assert stream.named("run")[-1].data["step_marks"] == "nnnnn"


async def test_a_step_reaches_a_watcher_long_before_it_would_look(api: Api) -> None:
    run = await api.submit()
    fence = await api.hands.claim(run)
    waits: list[float] = []
    loop = asyncio.get_running_loop()
    async with following(api.http, f"/api/v1/runs/{run}/events") as stream:
        await stream.until(lambda s: len(s.seqs) == 1)
        for n in range(10):
            (step,) = await api.hands.notes(fence, [f"step {n}"], tell=False)
            began = loop.time()
            await api.hands.live.publish_steps(api.tenant, run, [step])
            await stream.until(lambda s, seq=step.seq: s.seqs[-1] == seq)
            waits.append(loop.time() - began)
    assert sorted(waits)[5] < 1, waits  # a look without notice comes after five seconds


async def test_missed_steps_come_in_bursts_of_bounded_length(api: Api) -> None:
    run = await api.submit()
    fence = await api.hands.claim(run)
    await api.hands.notes(fence, [f"n{n}" for n in range(feed.BURST_STEPS + 4)])
    is_followed: list[bool] = []
    reads = SharedRunReads(api.database, api.hands.live, 60)
    event_feed = feed.RunEventFeed(
        api.database, api.hands.live, reads, api.tenant, {run: 0}, reauthenticate=lambda: asyncio.sleep(0)
    )
    async with aclosing(event_feed.events()) as events:
        while len(is_followed) < feed.BURST_STEPS + 5:
            event = await anext(events)
            if isinstance(event, feed.StepFeedEvent):
                is_followed.append(event.is_followed)
    assert [at for at, followed in enumerate(is_followed, 1) if not followed] == [feed.BURST_STEPS, len(is_followed)]


async def test_a_reconnecting_client_continues_after_its_last_id(api: Api) -> None:
    run = await api.submit()
    fence = await api.hands.claim(run)
    await api.hands.notes(fence, [f"n{n}" for n in range(9)])
    path = f"/api/v1/runs/{run}/events"
    async with following(api.http, path, **{"Last-Event-ID": "7"}) as stream:
        await stream.until(lambda s: s.seqs == [8, 9, 10])
    async with following(api.http, f"{path}?after=3", **{"Last-Event-ID": "9"}) as stream:
        await stream.until(lambda s: s.seqs == [10])
    async with following(api.http, f"{path}?after=8") as stream:
        await stream.until(lambda s: s.seqs == [9, 10])
        assert stream.seen[0].data["step_marks"] == "n" * 10


async def test_an_invalid_cursor_is_rejected_before_the_stream_begins(api: Api) -> None:
    run = await api.submit()
    path = f"/api/v1/runs/{run}/events"
    for position in ("x", "-1", "1.5", "9" * 30, "²"):
        rejected = await api.http.get(path, headers=[(b"Last-Event-ID", position.encode("latin-1"))])
        assert (rejected.status_code, rejected.json()["field"]) == (422, "Last-Event-ID"), position
    for cursor in ("", "x", f"{run}", f"{run}:x", f"{run}:-1", ",".join(f"{uuid4()}:0" for _ in range(51))):
        rejected = await api.http.get("/api/v1/events", params={"cursor": cursor})
        assert (rejected.status_code, rejected.json()["field"]) == (422, "cursor"), cursor
    assert (await api.http.get(f"/api/v1/runs/{uuid4()}/events")).status_code == 404
    assert (await api.http.get("/api/v1/events", params={"cursor": f"{run}:0,{uuid4()}:0"})).status_code == 404


@pytest.mark.usefixtures("nobody_looks")
async def test_what_was_never_announced_is_found_when_the_next_step_is(api: Api) -> None:
    run = await api.submit()
    fence = await api.hands.claim(run)
    async with following(api.http, f"/api/v1/runs/{run}/events") as stream:
        await stream.until(lambda s: s.seqs == [1])
        await api.hands.notes(fence, ["lost", "lost too"], tell=False)
        await api.hands.notes(fence, ["told"])
        await stream.until(lambda s: len(s.seqs) == 4, seconds=30)
        message = await api.hands.notes(fence, ["told twice"])
        await api.hands.live.publish_steps(api.tenant, run, message)
        await api.hands.notes(fence, ["last"])
        await stream.until(lambda s: len(s.seqs) >= 6)
    assert stream.seqs == [1, 2, 3, 4, 5, 6]


@pytest.mark.usefixtures("nobody_looks")
async def test_without_any_notification_a_watcher_still_gets_everything(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("offing.bus.live.RESYNC_CONNECTED_SECONDS", 0.3)
    monkeypatch.setattr(feed, "MIN_STATE_INTERVAL_SECONDS", 0.3)
    run = await api.submit()
    fence = await api.hands.claim(run)
    async with following(api.http, f"/api/v1/runs/{run}/events") as stream:
        await stream.until(lambda s: s.seqs == [1])
        await api.hands.notes(fence, ["silent"], tell=False)
        await stream.until(lambda s: s.seqs == [1, 2], seconds=30)
        await api.hands.end(fence, RunStatus.FAILED, tell=False)
        await stream.until(lambda s: s.closed, seconds=30)
    assert stream.seen[-1].name == "end"


async def test_spending_is_published_at_most_once_per_second(api: Api) -> None:
    run = await api.submit()
    fence = await api.hands.claim(run)
    began = time.monotonic()
    async with following(api.http, f"/api/v1/runs/{run}/events") as stream:
        await stream.until(lambda s: s.seqs == [1])
        for n in range(20):
            await api.hands.append(fence, StepDraft(StepKind.NOTE, f"n{n}"), spent=UsageDelta(tokens=10))
        await stream.until(lambda s: s.named("run")[-1].data["usage"]["tokens"] == 200, seconds=30)
        assert len(stream.named("run")) <= 2 + (time.monotonic() - began) // feed.MIN_STATE_INTERVAL_SECONDS


async def test_what_a_run_does_comes_live_and_without_id(api: Api) -> None:
    run = await api.submit()
    await api.hands.claim(run)
    async with following(api.http, f"/api/v1/runs/{run}/events") as stream:
        await stream.until(lambda s: s.seqs == [1])
        await api.hands.live.publish_action(api.tenant, run, "reading salt.md")
        await api.hands.live.publish_action(api.tenant, run, None)
        await stream.until(lambda s: len(s.named("live")) == 2)
    assert [e.data and e.data["current_action"] for e in stream.named("live")] == ["reading salt.md", None]


async def test_several_runs_share_one_stream_whose_id_is_the_whole_cursor(api: Api) -> None:
    one, two = await api.submit("Question one?"), await api.submit("Question two?")
    fences = {run: await api.hands.claim(run) for run in (one, two)}
    async with following(api.http, f"/api/v1/events?cursor={one}:0,{two}:0") as stream:
        await stream.until(lambda s: len(s.seqs) == 2)
        await api.hands.notes(fences[one], ["a"])
        await api.hands.notes(fences[two], ["b"])
        await stream.until(lambda s: len(s.seqs) == 4)
        cursor = stream.last_id
        assert cursor == f"{one}:2,{two}:2"
        await api.hands.live.publish_action(api.tenant, two, "reading")
        await stream.until(lambda s: bool(s.named("live")))
        assert stream.named("live")[0].data["run_id"] == str(two)
        assert {e.data["run_id"] for e in stream.named("run")} == {str(one), str(two)}
        await api.hands.end(fences[one])
        await stream.until(lambda s: bool(s.named("end")))
        assert not stream.closed
    async with following(api.http, "/api/v1/events?cursor=" + f"{one}:0", **{"Last-Event-ID": str(cursor)}) as stream:
        await stream.until(lambda s: len(s.seqs) == 1)
        await api.hands.end(fences[two])
        await stream.until(lambda s: s.closed)
    assert [(e.data["run_id"], e.data["seq"]) for e in stream.named("step")] == [(str(one), 3), (str(two), 3)]


async def test_a_quiet_stream_shows_that_it_lives(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "KEEP_ALIVE_SECONDS", 0.2)
    run = await api.submit()
    async with following(api.http, f"/api/v1/runs/{run}/events") as stream:
        await stream.until(lambda s: s.comments >= 2)


async def test_a_stream_closes_when_its_key_is_revoked(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    from offing.services import access

    monkeypatch.setattr(feed, "KEEP_ALIVE_SECONDS", 0.2)
    monkeypatch.setattr(api.app.state.dependencies.authenticator._keys, "_seconds", 0.1)
    run = await api.submit()
    async with following(api.http, f"/api/v1/runs/{run}/events") as stream:
        await stream.until(lambda s: s.seqs == [1])
        await access.revoke_key(api.database, api.tenant, api.keys["mine"].split("_")[1])
        await stream.until(lambda s: s.closed)
    assert not stream.named("end")


async def test_a_client_that_takes_nothing_is_dropped(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "SEND_TIMEOUT_SECONDS", 0.3)
    run = await api.submit()
    fence = await api.hands.claim(run)
    for _ in range(8):
        await api.hands.notes(fence, ["€" * 150] * 1000, tell=False)
    host, port = api.base.removeprefix("http://").split(":")
    live = api.app.state.dependencies.bus
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect((host, int(port)))
        key = api.keys["mine"]
        client.send(
            f"GET /api/v1/runs/{run}/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n\r\n".encode()
        )
        await _until(lambda: live.subscriber_count == 1)
        await _until(lambda: live.subscriber_count == 0)


async def _until(expected: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not expected():  # noqa: ASYNC110
            await asyncio.sleep(0.02)


@pytest.mark.usefixtures("nobody_looks")
async def test_a_stream_ends_when_the_server_stops(api: Api) -> None:
    run = await api.submit()
    async with following(api.http, f"/api/v1/runs/{run}/events") as stream:
        await stream.until(lambda s: s.seqs == [1])
        api.app.state.dependencies.bus.close_subscribers()
        await stream.until(lambda s: s.closed, seconds=30)


@pytest.mark.usefixtures("nobody_looks")
async def test_a_client_that_waits_for_a_run_is_answered_when_the_server_stops(api: Api) -> None:
    run, live = await api.submit(), api.app.state.dependencies.bus
    waiting = asyncio.create_task(api.http.get(f"/api/v1/runs/{run}/wait", params={"timeout": 300}))
    await _until(lambda: live.subscriber_count == 1)
    live.close_subscribers()
    answer = await asyncio.wait_for(waiting, 30)
    assert (answer.status_code, answer.json()["status"]) == (200, "queued")


async def _busy(api: Api, fence: FencingToken, steps: int, pace: random.Random) -> None:
    for n in range(steps):
        await api.hands.notes(fence, [f"step {n}"] * pace.randint(1, 3))
        await asyncio.sleep(pace.random() * 0.01)
    await api.hands.end(fence)


async def _watched_through_reconnects(api: Api, run_id: UUID, pace: random.Random) -> list[int]:
    """What a browser would have seen that loses its connection again and again."""
    seqs: list[int] = []
    last: str | None = None
    while True:
        headers = {"Last-Event-ID": last} if last else {}
        async with following(api.http, f"/api/v1/runs/{run_id}/events", **headers) as stream:
            patience = pace.randint(1, 40)
            await stream.until(lambda s, patience=patience: s.closed or len(s.seqs) >= patience)
            seqs += stream.seqs
            last = stream.last_id or last
            if stream.named("end"):
                return seqs


async def test_no_step_is_missed_or_repeated_while_redis_is_flushed_and_cut_and_clients_reconnect(
    api: Api, redis_url: str
) -> None:
    pace = random.Random(7)
    run = await api.submit()
    fence = await api.hands.claim(run)
    watchers = [asyncio.create_task(_watched_through_reconnects(api, run, random.Random(seed))) for seed in range(3)]
    working = asyncio.create_task(_busy(api, fence, 150, pace))
    async with redis.asyncio.Redis.from_url(redis_url) as admin:
        while not working.done():
            await asyncio.sleep(0.15)
            await admin.flushall()
            await admin.client_kill_filter(_type="pubsub", skipme=True)
            await admin.client_kill_filter(_type="normal", skipme=True)
    await working
    async with asyncio.timeout(20):
        seen = await asyncio.gather(*watchers)
    body = (await api.http.get(f"/api/v1/runs/{run}")).json()
    assert body["last_seq"] > 150
    assert api.app.state.dependencies.bus.failure_count > 0
    for seqs in seen:
        assert seqs == list(range(1, body["last_seq"] + 1))
