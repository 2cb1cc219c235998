"""A Retry-After holds for all calls of the process to the same endpoint."""

import asyncio
from dataclasses import replace

import pytest

from offing.core.model import FailureKind
from offing.models.credentials import EngineEndpoint
from offing.models.endpoint_pauses import EndpointPauses, identify_endpoint
from tests.model_provider import Completion, Fault, WireServer, scripted
from tests.models.builders import GOOD, Time, answered, choice, failed, litellm_engine, request

OK = Completion(GOOD)
LONG = Fault(429, headers={"retry-after": "600"})


def busy(seconds: int, status: int = 429) -> Fault:
    return Fault(status, headers={"retry-after": str(seconds)})


@pytest.mark.parametrize("status", [429, 503])
async def test_a_call_waits_until_the_retry_after_of_another_one_has_passed(status: int) -> None:
    time = Time()
    async with WireServer(scripted(busy(9, status), OK)) as server:
        await failed(litellm_engine(time), request(choice(server.url), deadline=5))
        await answered(litellm_engine(time), request(choice(server.url)))
    assert time.waits == [9.0]
    assert len(server.requests) == 2


async def test_a_pause_that_is_too_long_to_wait_for_is_a_failure_without_a_request() -> None:
    time = Time()
    async with WireServer(scripted(LONG, OK)) as server:
        await failed(litellm_engine(time), request(choice(server.url)))
        failure = await failed(litellm_engine(time), request(choice(server.url)))
    assert (failure.kind, failure.retry_after_seconds, time.waits) == (FailureKind.RATE_LIMITED, 600.0, [])
    assert [attempt.message for attempt in failure.attempts] == ["Not sent: openai asks to wait 600 s."]
    assert len(server.requests) == 1


async def test_a_call_whose_deadline_is_before_the_end_of_the_pause_is_not_sent() -> None:
    time = Time()
    async with WireServer(scripted(busy(9), OK)) as server:
        await failed(litellm_engine(time), request(choice(server.url), deadline=5))
        failure = await failed(litellm_engine(time), request(choice(server.url), deadline=8))
    assert (failure.kind, time.waits, len(server.requests)) == (FailureKind.RATE_LIMITED, [], 1)


async def test_a_rate_limit_does_not_hold_for_another_model_and_an_overload_does() -> None:
    time = Time()
    async with WireServer(scripted(busy(9), OK, busy(7, 503), OK)) as server:
        await failed(litellm_engine(time), request(choice(server.url), deadline=5))
        await answered(litellm_engine(time), request(choice(server.url, model="openai/other")))
        assert not time.waits
        await failed(litellm_engine(time), request(choice(server.url, model="openai/other"), deadline=5))
        await answered(litellm_engine(time), request(choice(server.url)))
    assert sum(time.waits) == 9.0


async def test_another_address_is_not_paused() -> None:
    time = Time()
    async with WireServer(scripted(busy(9))) as server, WireServer(scripted(OK)) as other:
        await failed(litellm_engine(time), request(choice(server.url), deadline=5))
        await answered(litellm_engine(time), request(choice(other.url)))
    assert not time.waits


async def test_waiting_calls_continue_in_the_order_in_which_they_came() -> None:
    times = [Time() for _ in range(3)]
    async with WireServer(scripted(busy(9), OK, OK, OK)) as server:
        await failed(litellm_engine(Time()), request(choice(server.url), deadline=5))
        for time in times:
            await answered(litellm_engine(time), request(choice(server.url)))
    assert [time.waits for time in times] == [[9.0], [9.05], [9.1]]


async def test_a_waiting_call_can_be_cancelled() -> None:
    time = Time()
    async with WireServer(scripted(busy(9))) as server:
        await failed(litellm_engine(time), request(choice(server.url), deadline=5))
        waits = asyncio.Event()

        async def sleep(_: float) -> None:
            waits.set()
            await asyncio.Event().wait()

        engine = replace(litellm_engine(time), sleep=sleep)
        call = asyncio.create_task(engine.answer(request(choice(server.url))))
        await waits.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
    assert len(server.requests) == 1


def test_the_identity_of_an_endpoint_tells_keys_apart_and_does_not_show_them() -> None:
    first, second = (
        identify_endpoint("openai/a", EngineEndpoint("https://models.example/v1/", key)) for key in ("sk-1", "sk-2")
    )
    assert first != second
    assert first == identify_endpoint("openai/b", EngineEndpoint("https://models.example/v1", "sk-1"))
    assert "sk-1" not in repr(first)
    assert first.key_sha256 not in repr(first)


def test_a_shorter_retry_after_does_not_shorten_a_pause_and_old_pauses_are_forgotten() -> None:
    pauses, endpoint = EndpointPauses(), identify_endpoint("openai/a", EngineEndpoint())
    pauses.start_pause(endpoint, "openai/a", FailureKind.RATE_LIMITED, 9, now=0)
    pauses.start_pause(endpoint, "openai/a", FailureKind.RATE_LIMITED, 3, now=1)
    pause = pauses.find_pause(endpoint, "openai/a", now=8.9)
    assert pause is not None
    assert pause.until == 9
    assert pauses.find_pause(endpoint, "openai/a", now=9) is None
