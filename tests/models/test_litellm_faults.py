"""What a provider can do wrong, and that each comes out as the value it is, after exactly the attempts it deserves."""

import asyncio
from collections.abc import Callable
from decimal import Decimal

import pytest

from offing.core.model import FailureKind, Usage
from offing.core.run import StopReason
from tests.model_provider import Completion, Cut, Fault, Hangup, Malformed, Reply, Slow, WireServer, scripted
from tests.models.builders import GOOD, Ledger, Time, answered, choice, failed, litellm_engine, request

OK = Completion(GOOD)
BUSY = Fault(503, "busy")


async def test_retries_really_fire_and_wait_as_the_policy_says() -> None:
    async with WireServer(scripted(BUSY, Fault(500), Fault(429, "slow down"), OK)) as server:
        time, meter = Time(), Ledger()
        answer = await answered(litellm_engine(time, draw=0.5), request(choice(server.url), meter=meter))
    assert len(server.requests) == 4
    assert time.waits == [0.25, 0.5, 1.0]
    assert [a.failure for a in answer.attempts] == ["overloaded", "overloaded", "rate_limited"]
    assert meter.booked == [Usage(), Usage(), Usage(), answer.usage]


async def test_attempts_end_at_four() -> None:
    async with WireServer(scripted(*[BUSY] * 9)) as server:
        failure = await failed(litellm_engine(), request(choice(server.url)))
    assert len(server.requests) == 4
    assert (failure.kind, len(failure.attempts)) == (FailureKind.OVERLOADED, 4)
    assert failure.message == "busy"


async def test_retry_after_is_honoured() -> None:
    async with WireServer(scripted(Fault(429, headers={"retry-after": "7"}), OK)) as server:
        time = Time()
        await answered(litellm_engine(time, draw=0.0), request(choice(server.url)))
    assert time.waits == [7.0]


async def test_a_long_retry_after_is_handed_on_instead_of_waited_for() -> None:
    async with WireServer(scripted(Fault(429, headers={"retry-after": "600"}), OK)) as server:
        time = Time()
        failure = await failed(litellm_engine(time), request(choice(server.url)))
    assert (failure.kind, failure.retry_after_seconds, time.waits) == (FailureKind.RATE_LIMITED, 600.0, [])
    assert len(server.requests) == 1


PERMANENT = [
    (Fault(401, "Incorrect API key"), FailureKind.AUTHENTICATION_FAILED),
    (Fault(403, "not yours"), FailureKind.AUTHENTICATION_FAILED),
    (Fault(429, "You exceeded your current quota", "insufficient_quota"), FailureKind.AUTHENTICATION_FAILED),
    (Fault(400, "what is that"), FailureKind.BAD_REQUEST),
    (Fault(404, "no such model"), FailureKind.MODEL_UNAVAILABLE),
    (Fault(422, "unprocessable"), FailureKind.BAD_REQUEST),
    (Fault(400, "This model's maximum context length is 9", "context_length_exceeded"), FailureKind.CONTEXT_TOO_LONG),
    (Fault(400, "blocked", "content_filter"), FailureKind.CONTENT_FILTERED),
]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("fault", "kind"), PERMANENT, ids=lambda value: str(getattr(value, "message", value)))
async def test_permanent_errors_are_typed_and_never_tried_again(fault: Fault, kind: FailureKind, stream: bool) -> None:
    async with WireServer(scripted(fault, OK)) as server:
        failure = await failed(litellm_engine(), request(choice(server.url, options={"stream": stream})))
    assert failure.kind is kind
    assert len(server.requests) == 1
    assert fault.message in failure.message


PASSING: list[tuple[Reply, FailureKind]] = [
    (Fault(500), FailureKind.OVERLOADED),
    (Fault(502), FailureKind.OVERLOADED),
    (Fault(503), FailureKind.OVERLOADED),
    (Fault(429), FailureKind.RATE_LIMITED),
    (Malformed(), FailureKind.OVERLOADED),
    (Malformed(b""), FailureKind.OVERLOADED),
    (Malformed(b'{"choices": []}'), FailureKind.OVERLOADED),
    (Cut(OK), FailureKind.OVERLOADED),
    (Cut(OK, 0.0), FailureKind.OVERLOADED),
    (Hangup(), FailureKind.OVERLOADED),
]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("fault", "kind"), PASSING, ids=str)
async def test_passing_faults_are_tried_again_and_never_reach_the_parser(
    fault: Reply, kind: FailureKind, stream: bool
) -> None:
    async with WireServer(scripted(fault, OK)) as server:
        meter = Ledger()
        answer = await answered(litellm_engine(), request(choice(server.url, options={"stream": stream}), meter=meter))
    assert [a.failure for a in answer.attempts] == [kind]
    assert len(server.requests) == 2
    assert len(meter.booked) == 2


async def test_a_slow_answer_is_a_timeout() -> None:
    async with WireServer(scripted(Slow(OK, 60), OK)) as server:
        answer = await answered(litellm_engine(), request(choice(server.url, timeout_seconds=3)))
    assert [a.failure for a in answer.attempts] == [FailureKind.TIMEOUT]


async def test_a_slow_stream_cannot_outlast_its_timeout_and_its_chunks_are_charged() -> None:
    dripping = Slow(Completion('{"analysis": "' + "word " * 1000), 0.05, between=True)
    async with WireServer(scripted(dripping, OK)) as server:
        meter = Ledger()
        chosen = choice(server.url, timeout_seconds=3, options={"stream": True})
        answer = await answered(litellm_engine(), request(chosen, meter=meter))
    (attempt,) = answer.attempts
    assert attempt.failure is FailureKind.TIMEOUT
    assert attempt.text.startswith('{"analysis": "word')
    assert attempt.usage.completion_tokens > 0
    assert attempt.usage.cost_usd > Decimal()
    assert meter.booked[0] == attempt.usage
    assert answer.usage == meter.total


async def test_nobody_listening_is_an_overload() -> None:
    async with WireServer(scripted()) as server:
        url = server.url
    failure = await failed(litellm_engine(), request(choice(url)))
    assert (failure.kind, len(failure.attempts)) == (FailureKind.OVERLOADED, 4)


async def test_each_attempt_is_metered_so_that_retries_stop_at_the_budget() -> None:
    meter = Refusing(after=2)
    async with WireServer(scripted(*[BUSY] * 9)) as server:
        failure = await failed(litellm_engine(), request(choice(server.url), meter=meter))
    assert (failure.kind, failure.stop_reason) == (FailureKind.BUDGET_EXHAUSTED, "tenant_spend_limit")
    assert len(server.requests) == 2


class Refusing(Ledger):
    """Grants only its first `after` reservations."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self.left = after

    async def reserve(self, max_tokens: int, max_cost_usd: Decimal) -> StopReason | None:
        if self.left == 0:
            return StopReason.TENANT_SPEND_LIMIT
        self.left -= 1
        return await super().reserve(max_tokens, max_cost_usd)


async def test_no_wait_outlasts_the_deadline() -> None:
    async with WireServer(scripted(Fault(429, headers={"retry-after": "9"}), OK)) as server:
        time = Time()
        failure = await failed(litellm_engine(time), request(choice(server.url), deadline=5.0))
    assert (failure.kind, failure.retry_after_seconds, time.waits) == (FailureKind.RATE_LIMITED, 9.0, [])


async def test_a_deadline_that_has_passed_sends_nothing() -> None:
    async with WireServer(scripted(OK)) as server:
        failure = await failed(litellm_engine(), request(choice(server.url), deadline=0.0))
    assert (failure.kind, failure.stop_reason) == (FailureKind.BUDGET_EXHAUSTED, "time_limit")
    assert server.requests == []


async def test_a_call_that_waited_for_its_reservation_past_the_deadline_is_not_made() -> None:
    class Late(Ledger):
        async def reserve(self, max_tokens: int, max_cost_usd: Decimal) -> StopReason | None:
            time.now += 0.5
            return await super().reserve(max_tokens, max_cost_usd)

    meter, time = Late(), Time()
    async with WireServer(scripted(OK)) as server:
        failure = await failed(litellm_engine(time), request(choice(server.url), meter=meter, deadline=0.3))
    assert (failure.kind, failure.stop_reason) == (FailureKind.BUDGET_EXHAUSTED, "time_limit")
    assert server.requests == []
    assert (meter.open, meter.booked) == (False, [Usage()])


async def test_an_attempt_is_broken_off_at_the_deadline() -> None:
    loop = asyncio.get_running_loop()
    async with WireServer(scripted(Slow(OK, 60))) as server:
        started = loop.time()
        await failed(litellm_engine(), request(choice(server.url, timeout_seconds=90), deadline=0.3))
    assert loop.time() - started < 30


@pytest.mark.parametrize("stream", [False, True])
async def test_a_cancelled_call_finalizes_its_reservation_and_stays_cancelled(stream: bool) -> None:
    async with WireServer(scripted(Slow(OK, 9))) as server:
        meter = Ledger()
        task = asyncio.create_task(
            litellm_engine().answer(request(choice(server.url, options={"stream": stream}), meter=meter))
        )
        await until(lambda: bool(server.requests))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert meter.booked == [Usage()]
    assert not meter.open


async def test_a_call_cancelled_while_it_reserves_is_not_made_and_leaves_nothing_open() -> None:
    meter = Hesitant()
    async with WireServer(scripted(OK)) as server:
        task = asyncio.create_task(litellm_engine().answer(request(choice(server.url), meter=meter)))
        await until(lambda: meter.is_reserving)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert (meter.open, meter.booked) == (False, [])
    assert server.requests == []


class Hesitant(Ledger):
    """Takes its time over a reservation."""

    def __init__(self) -> None:
        super().__init__()
        self.is_reserving = False

    async def reserve(self, max_tokens: int, max_cost_usd: Decimal) -> StopReason | None:
        self.is_reserving = True
        await asyncio.sleep(60)
        return await super().reserve(max_tokens, max_cost_usd)


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not true():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


async def test_no_key_is_in_what_is_kept_of_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "canary-key-of-mine")
    async with WireServer(scripted(Fault(401, "Incorrect API key provided: canary-key-of-mine"))) as server:
        env = {"OPENAI_API_KEY": "canary-key-of-mine", "OPENAI_API_BASE": server.url}
        failure = await failed(litellm_engine(env=env), request(choice(server.url)))
    assert server.requests[0].headers["authorization"] == "Bearer canary-key-of-mine"
    assert "canary" not in repr(failure)
    assert "OPENAI_API_KEY" in failure.message


async def test_the_environment_s_key_goes_to_no_address_that_an_engine_config_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "canary-key-of-mine")
    async with WireServer(scripted(OK)) as server:
        await answered(litellm_engine(env={"OPENAI_API_KEY": "canary-key-of-mine"}), request(choice(server.url)))
    assert "canary" not in str(server.requests[0].headers)


async def test_an_address_elsewhere_is_rejected_before_anything_is_sent() -> None:
    failure = await failed(litellm_engine(), request(choice("http://192.0.2.7/v1")))
    assert failure.kind is FailureKind.BAD_REQUEST
    assert "api_base" in failure.message
    assert "OFFING_ALLOWED_ENGINE_URLS" in failure.message


async def test_a_missing_key_is_a_rejected_key_with_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    failure = await failed(litellm_engine(), request(choice("")))
    assert failure.kind is FailureKind.AUTHENTICATION_FAILED
    assert "OPENAI_API_KEY" in failure.message
    assert len(failure.attempts) == 1


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"model": ""}, "model"),
        ({"model": "gpt-4o-mini"}, "provider/model"),
        ({"model": "github_copilot/gpt-4o"}, "provider/model"),
        ({"model": "nobody/knows"}, "Provider"),
        ({"options": {"api_key": "x"}}, "options.api_key"),
        ({"options": {"output_mode": "xml"}}, "options.output_mode"),
        ({"options": {"sampling": {"logit_bias": {}}}}, "options.sampling.logit_bias"),
    ],
)
async def test_a_choice_that_cannot_work_is_rejected_by_field(more: dict[str, object], field: str) -> None:
    failure = await failed(litellm_engine(), request(choice("", **more)))
    assert failure.kind is FailureKind.BAD_REQUEST
    assert field in failure.message
