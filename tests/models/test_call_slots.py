"""Calls to a provider with a limit wait for each other, in order, and say for how long."""

import asyncio
import time
from dataclasses import replace
from typing import Any

import pytest

from offing.core.model import EngineConfig, EngineFailure, EngineResponse, FailureKind
from offing.core.run import StopReason
from offing.models.call_limits import LIMITS_VARIABLE, CallLimit
from offing.models.call_slots import LocalCallSlots
from offing.models.credentials import EngineEndpoint
from offing.models.endpoint_pauses import get_pauses, identify_endpoint
from offing.models.engine import RoleRequest
from offing.models.litellm_engine import LitellmEngine
from offing.models.stored_provider import StoredProvider
from tests.model_provider import Completion, Fault, Received, Reply, Slow, WireServer, scripted
from tests.models import builders
from tests.models.builders import GOOD, Ledger, accepting, request

ONE = CallLimit("test", 1)
SLOW = Slow(Completion(GOOD), 0.3)


def choice(url: str, **more: Any) -> EngineConfig:
    """An engine config with time to spare on a busy machine."""
    return builders.choice(url, **{"timeout_seconds": 60} | more)


def engine(**env: str) -> LitellmEngine:
    """An engine with the real clock."""
    return LitellmEngine(env=accepting() | env, random_float=lambda: 0.0)


def stored(server: WireServer, calls: int | None, chosen: EngineConfig, meter: Ledger | None = None) -> RoleRequest:
    """A call through the stored provider `mine`."""
    limit = None if calls is None else CallLimit("stored", calls)

    async def find(name: str) -> StoredProvider | None:
        return StoredProvider("mine", "openai", server.url, "the-stored-key", limit) if name == "mine" else None

    return replace(request(chosen, meter=meter), find_provider=find)


async def answer_all(calls: list[RoleRequest], **env: str) -> list[EngineResponse]:
    outcomes = await asyncio.gather(*(engine(**env).answer(call) for call in calls))
    assert all(isinstance(one, EngineResponse) for one in outcomes), outcomes
    return [one for one in outcomes if isinstance(one, EngineResponse)]


@pytest.mark.parametrize(("limit", "overlaps"), [(1, 1), (2, 2), (None, 4)])
async def test_at_most_as_many_calls_as_the_limit_of_the_stored_provider_are_sent(
    limit: int | None, overlaps: int
) -> None:
    async with WireServer(lambda _: SLOW) as server:
        answers = await answer_all([stored(server, limit, choice("", model="mine/gpt-4o-mini")) for _ in range(4)])
    assert server.most_at_once == overlaps
    assert sum(one.slot_wait_ms > 200 for one in answers) == (4 - limit if limit else 0)
    for one in answers:
        assert one.sampling.get("slot_wait_ms", 0) == one.slot_wait_ms


async def test_the_limit_of_an_address_holds_for_all_keys_and_models() -> None:
    async with WireServer(lambda _: SLOW) as server:
        calls = [
            stored(server, None, choice("", model="mine/a")),
            request(choice(server.url, model="openai/b")),
            request(choice(server.url, model="hosted_vllm/c")),
        ]
        await answer_all(calls, **{LIMITS_VARIABLE: f"{server.url}=1"})
    assert server.most_at_once == 1


async def test_both_limits_hold_if_there_are_two() -> None:
    async with WireServer(lambda _: SLOW) as server:
        calls = [stored(server, 2, choice("", model="mine/a")) for _ in range(3)]
        calls += [request(choice(server.url)) for _ in range(2)]
        await answer_all(calls, **{LIMITS_VARIABLE: f"{server.url}=3"})
    assert server.most_at_once == 3


async def test_nothing_is_reserved_while_a_call_waits_and_its_deadline_holds() -> None:
    async with WireServer(lambda _: Slow(Completion(GOOD), 2)) as server:
        chosen = choice("", model="mine/gpt-4o-mini")
        first = asyncio.create_task(engine().answer(stored(server, 1, chosen)))
        while not server.requests:  # noqa: ASYNC110  the server has no event for this
            await asyncio.sleep(0.01)
        meter = Ledger()
        outcome = await engine().answer(replace(stored(server, 1, chosen, meter), deadline_seconds=0.3))
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
    assert isinstance(outcome, EngineFailure)
    assert (outcome.kind, outcome.stop_reason) == (FailureKind.BUDGET_EXHAUSTED, StopReason.TIME_LIMIT)
    assert "waited for openai: at most 1 at the same time" in outcome.message
    assert 250 < outcome.slot_wait_ms < 1_500
    assert (meter.reservations, len(server.requests)) == ([], 1)


async def test_the_slot_is_free_while_a_call_waits_to_try_again() -> None:
    """The first call waits for a second; the other model, which is not limited, is answered meanwhile."""

    def respond(received: Received) -> Reply:
        is_first = received.body["model"] == "busy" and len(server.requests) == 1
        return Fault(429, headers={"retry-after": "1"}) if is_first else Completion(GOOD)

    async with WireServer(respond) as server:
        first = asyncio.create_task(engine().answer(stored(server, 1, choice("", model="mine/busy"))))
        while not server.requests:  # noqa: ASYNC110  the server has no event for this
            await asyncio.sleep(0.01)
        await engine().answer(stored(server, 1, choice("", model="mine/other")))
        assert not first.done()
        assert isinstance(await first, EngineResponse)
    assert [body["model"] for body in server.bodies] == ["busy", "other", "busy"]


async def test_a_call_that_waited_for_its_slot_respects_a_pause_that_began_meanwhile() -> None:
    async with WireServer(scripted(SLOW, Completion(GOOD))) as server:
        chosen = choice("", model="mine/gpt-4o-mini")
        calls = [asyncio.create_task(engine().answer(stored(server, 1, chosen))) for _ in range(2)]
        while not server.requests:  # noqa: ASYNC110  the server has no event for this
            await asyncio.sleep(0.01)
        endpoint = identify_endpoint("openai/gpt-4o-mini", EngineEndpoint(server.url, "the-stored-key"))
        get_pauses().start_pause(endpoint, "", FailureKind.OVERLOADED, 1.5, time.monotonic())
        assert all(isinstance(one, EngineResponse) for one in await asyncio.gather(*calls))
    assert server.gaps[0] > 1.2, "nothing is sent until the pause ends"


async def test_a_fallback_waits_for_its_own_limit_alone() -> None:
    async with WireServer(lambda _: Fault(401)) as main, WireServer(lambda _: SLOW) as spare:
        chain = choice(main.url, fallbacks=[choice("", model="mine/gpt-4o-mini")])
        answers = await answer_all([stored(spare, 1, chain) for _ in range(3)])
    assert spare.most_at_once == 1
    assert main.requests[2].at < spare.requests[1].at, "no call waits before it is known that the fallback is needed"
    assert sorted(one.slot_wait_ms > 200 for one in answers) == [False, True, True]


async def test_an_invalid_limit_of_the_operator_is_the_failure_of_the_call() -> None:
    async with WireServer(lambda _: Completion(GOOD)) as server:
        failure = await engine(**{LIMITS_VARIABLE: "openai"}).answer(request(choice(server.url)))
    assert isinstance(failure, EngineFailure)
    assert LIMITS_VARIABLE in failure.message


async def test_waiting_calls_get_slots_in_order_and_cancelled_ones_take_none() -> None:
    slots, order = LocalCallSlots(), list[int]()

    async def call(number: int) -> None:
        async with slots.hold(ONE):
            order.append(number)
            await asyncio.sleep(0.01)

    calls = [asyncio.create_task(call(number)) for number in range(6)]
    await asyncio.sleep(0)
    calls[2].cancel()  # while it waits
    while order != [0, 1]:  # noqa: ASYNC110
        await asyncio.sleep(0.001)
    calls[1].cancel()  # while it holds the slot
    await asyncio.gather(*calls, return_exceptions=True)
    assert order == [0, 1, 3, 4, 5]


async def test_a_cancelled_call_makes_way_for_one_behind_it_that_has_a_larger_limit() -> None:
    slots = LocalCallSlots()
    async with slots.hold(ONE):
        small = asyncio.create_task(slots.hold(ONE).__aenter__())
        await asyncio.sleep(0)
        large = asyncio.create_task(slots.hold(replace(ONE, max_calls=2)).__aenter__())
        await asyncio.sleep(0)
        small.cancel()
        async with asyncio.timeout(10):
            assert await large


async def test_a_call_that_is_cancelled_in_the_moment_in_which_it_gets_its_slot_gives_it_on() -> None:
    slots = LocalCallSlots()
    first, second = slots.hold(ONE), asyncio.create_task(slots.hold(ONE).__aenter__())
    await first.__aenter__()
    await asyncio.sleep(0)
    await first.__aexit__(None, None, None)
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    async with asyncio.timeout(10), slots.hold(ONE) as has_waited:
        assert not has_waited
