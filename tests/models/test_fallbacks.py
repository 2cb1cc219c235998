"""Fallbacks of an engine on the wire, and in texts, stored runs and digests."""

import asyncio
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from offing.core.errors import InvalidInput
from offing.core.model import (
    EngineConfig,
    FailureKind,
    engine_to_digest_json,
    engine_to_json,
    get_smallest_answer,
    get_smallest_window,
    parse_engine,
)
from offing.core.run import StopReason
from offing.models.accepted_servers import ACCEPTED_SERVERS_VARIABLE
from offing.models.credentials import PLACEHOLDER_KEY
from offing.models.stored_provider import StoredProvider
from offing.services.engine_configs import check_engine
from tests.model_provider import Completion, Fault, Slow, Tokens, WireServer, scripted
from tests.models.builders import GOOD, Ledger, Time, answered, choice, failed, litellm_engine, request

OK = Completion(GOOD)
MAIN, SPARE = "openai/gpt-4o-mini", "openai/spare"


@pytest.mark.parametrize(("status", "requests"), [(401, 1), (429, 4), (503, 4)])
async def test_the_fallback_answers_when_the_provider_fails(status: int, requests: int) -> None:
    async with WireServer(scripted(*[Fault(status)] * requests, OK)) as server:
        meter, spare = Ledger(), choice(server.url, model=SPARE)
        answer = await answered(litellm_engine(), request(choice(server.url, fallbacks=[spare]), meter=meter))
    assert [body["model"] for body in server.bodies] == ["gpt-4o-mini"] * requests + ["spare"]
    assert [attempt.model for attempt in answer.attempts] == [MAIN] * requests
    assert (answer.model, answer.fallback) == (SPARE, SPARE)
    assert answer.usage == meter.total


async def test_the_own_engine_of_the_role_is_not_called_a_fallback() -> None:
    async with WireServer(scripted(OK)) as server:
        spare = choice(server.url, model=SPARE)
        answer = await answered(litellm_engine(), request(choice(server.url, fallbacks=[spare])))
    assert (answer.model, answer.fallback) == (MAIN, "")


async def test_a_bad_request_and_an_invalid_output_are_no_reason_for_a_fallback() -> None:
    for replies in ([Fault(400)], [Completion("no")] * 3):
        async with WireServer(scripted(*replies, OK)) as server:
            spare = choice(server.url, model=SPARE)
            failure = await failed(litellm_engine(), request(choice(server.url, fallbacks=[spare])))
        assert failure.kind in {FailureKind.BAD_REQUEST, FailureKind.INVALID_OUTPUT}
        assert {body["model"] for body in server.bodies} == {"gpt-4o-mini"}


async def test_the_failure_of_a_whole_chain_is_that_of_its_first_model_and_names_the_others() -> None:
    async with WireServer(scripted(Fault(401), Fault(401))) as server:
        spare = choice(server.url, model=SPARE)
        failure = await failed(litellm_engine(), request(choice(server.url, fallbacks=[spare])))
    assert failure.kind is FailureKind.AUTHENTICATION_FAILED
    assert f"Fallback {SPARE}:" in failure.message
    assert [attempt.model for attempt in failure.attempts] == [MAIN, SPARE]


async def test_the_time_of_the_first_model_is_not_given_to_the_fallback_again() -> None:
    time, busy = Time(), Fault(429, headers={"retry-after": "3"})
    async with WireServer(scripted(busy, Fault(401), busy, OK)) as server:
        chosen = choice(server.url, fallbacks=[choice(server.url, model=SPARE)])
        failure = await failed(litellm_engine(time), request(chosen, deadline=5))
    assert time.waits == [3.25], "the fallback had 1.75 s left, which is less than its pause of 3 s"
    assert [attempt.model for attempt in failure.attempts] == [MAIN, MAIN, SPARE]


async def test_a_fallback_answers_instead_of_a_long_wait_or_a_second_timeout() -> None:
    time = Time()
    async with WireServer(scripted(Fault(429, headers={"retry-after": "11"}), OK, OK, Slow(OK, 30), OK)) as server:
        spare = choice(server.url, model=SPARE)
        chosen = choice(server.url, fallbacks=[spare], timeout_seconds=1)
        first = await answered(litellm_engine(time), request(chosen))
        second = await answered(litellm_engine(time), request(chosen))
        time.now += 60
        third = await answered(litellm_engine(time), request(chosen))
    assert [body["model"] for body in server.bodies] == ["gpt-4o-mini", "spare", "spare", "gpt-4o-mini", "spare"]
    assert {one.fallback for one in (first, second, third)} == {SPARE}
    assert [one.message for one in second.passed_over] == ["Not sent: openai asks to wait 11 s."]
    assert [one.failure for one in third.attempts] == [FailureKind.TIMEOUT]
    assert not time.waits


async def test_the_last_engine_of_a_chain_waits_as_an_engine_without_fallbacks() -> None:
    time = Time()
    async with WireServer(scripted(Fault(401), Fault(429, headers={"retry-after": "11"}), OK)) as server:
        chosen = choice(server.url, fallbacks=[choice(server.url, model=SPARE)])
        await answered(litellm_engine(time), request(chosen))
    assert time.waits == [11.25]


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (Fault(404, "no such model"), FailureKind.MODEL_UNAVAILABLE),
        (
            Fault(400, "This model's maximum context length is 9", "context_length_exceeded"),
            FailureKind.CONTEXT_TOO_LONG,
        ),
    ],
)
async def test_the_fallback_answers_when_the_model_is_refused_or_too_small(fault: Fault, kind: FailureKind) -> None:
    async with WireServer(scripted(fault, OK)) as server:
        chosen = choice(server.url, fallbacks=[choice(server.url, model=SPARE)])
        answer = await answered(litellm_engine(), request(chosen))
    assert [(one.model, one.failure) for one in answer.passed_over] == [(MAIN, kind)]


async def test_the_same_model_at_two_addresses_is_named_with_its_address() -> None:
    async with WireServer(scripted(Fault(401))) as server, WireServer(scripted(OK)) as other:
        names = [f"{MAIN} at {url}" for url in (server.url, other.url)]
        answer = await answered(litellm_engine(), request(choice(server.url, fallbacks=[choice(other.url)])))
    assert [answer.attempts[0].model, answer.fallback] == names


async def test_a_key_reaches_only_the_provider_that_it_belongs_to() -> None:
    async with (
        WireServer(lambda _: Fault(401)) as first,
        WireServer(lambda _: Fault(401)) as second,
        WireServer(scripted(OK)) as third,
    ):
        stored = {
            "one": StoredProvider("one", "openai", first.url, "key-of-the-first"),
            "two": StoredProvider("two", "hosted_vllm", second.url, "key-of-the-second"),
        }

        async def find(name: str) -> StoredProvider | None:
            return stored.get(name)

        chosen = choice("", model="one/m", fallbacks=[choice("", model="two/m"), choice(third.url)])
        env = {"OPENAI_API_KEY": "of-the-environment"}
        answer = await answered(litellm_engine(env=env), replace(request(chosen), find_provider=find))
    sent = [[one.headers["authorization"] for one in server.requests] for server in (first, second, third)]
    assert sent == [["Bearer key-of-the-first"], ["Bearer key-of-the-second"], [f"Bearer {PLACEHOLDER_KEY}"]]
    assert [one.model for one in answer.attempts] == ["one/m", "two/m"]


async def test_each_attempt_is_charged_at_the_price_of_its_own_model() -> None:
    """The first model writes what cannot be used, and is then down."""
    read = Tokens(1_000, 0)
    async with WireServer(scripted(Completion("no", tokens=read), Fault(401), Completion(GOOD, tokens=read))) as server:
        meter, spare = Ledger(), choice(server.url, model="openai/gpt-4o")
        answer = await answered(litellm_engine(), request(choice(server.url, fallbacks=[spare]), meter=meter))
    assert [one.cost_usd for one in meter.booked] == [Decimal("0.00015"), Decimal(), Decimal("0.0025")]
    assert answer.usage.cost_usd == Decimal("0.00265")


async def test_a_fallback_that_the_budget_does_not_allow_is_not_called() -> None:
    async with WireServer(scripted(Fault(401), OK)) as server:
        meter, spare = Ledger(usd=Decimal("0.002")), choice(server.url, model="openai/gpt-4o", max_tokens=2_000)
        chosen = choice(server.url, fallbacks=[spare], max_tokens=2_000)
        failure = await failed(litellm_engine(), request(chosen, meter=meter))
    assert (failure.kind, failure.stop_reason) == (FailureKind.BUDGET_EXHAUSTED, StopReason.SPEND_LIMIT)
    assert len(server.requests) == 1


async def test_a_cancelled_call_does_not_go_on_to_the_fallback() -> None:
    async with WireServer(scripted(Slow(OK, 30), OK)) as server:
        meter, spare = Ledger(), choice(server.url, model=SPARE)
        call = asyncio.create_task(litellm_engine().answer(request(choice(server.url, fallbacks=[spare]), meter=meter)))
        while not server.requests:  # noqa: ASYNC110  the server has no event for this
            await asyncio.sleep(0.01)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
    assert (len(server.requests), meter.open) == (1, False)


def test_settings_after_a_fallback_are_its_own() -> None:
    config = parse_engine("litellm:openai/a;max_tokens=8000;fallback=anthropic/b@0.2;max_tokens=4000;fallback=groq/c")
    assert config.fallbacks is not None
    first, second = config.fallbacks
    assert (config.model, config.max_tokens) == ("openai/a", 8_000)
    assert (first.model, first.temperature, first.max_tokens) == ("anthropic/b", 0.2, 4_000)
    assert (second.engine, second.model, second.max_tokens) == ("litellm", "groq/c", None)


def test_a_stored_engine_config_keeps_its_fallbacks_and_is_unchanged_without_them() -> None:
    config = parse_engine("litellm:openai/a;fallback=anthropic/b")
    assert EngineConfig.model_validate(engine_to_json(config)) == config
    alone = parse_engine("litellm:openai/a")
    assert "fallbacks" not in engine_to_json(alone) | engine_to_digest_json(alone)
    assert engine_to_digest_json(config) != engine_to_digest_json(alone)


def test_prompts_fit_the_smallest_known_window_of_the_chain() -> None:
    config = parse_engine("litellm:a/a;context_tokens=9000;fallback=b/b;context_tokens=8000;fallback=c/c")
    assert get_smallest_window(config) == 8_000


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("policy:mine@1;fallback=openai/a", "fallbacks.0.engine"),
        ("litellm:openai/a;fallback=openai/b;library=x@1", "fallbacks.0.prompt_library"),
        ("litellm:openai/a;fallback=ollama_chat/qwen3", "fallbacks.0.model"),
        ("litellm:openai/a;fallback=", "fallbacks.0.model: '' cannot be called"),
        ("litellm:openai/a;fallback=gpt-5-mini", "fallbacks.0.model: 'gpt-5-mini' cannot be called"),
        ("litellm:openai/a;fallback=policy:x@1", "fallbacks.0.model"),
        ("litellm:openai/a;fallback=openai/b;fallback=openai/a", "fallbacks.1.model"),
        ("litellm:openai/a" + "".join(f";fallback=openai/{n}" for n in range(5)), "fallbacks: has 5 engines"),
        ("litellm:openai/a;fallback=openai/gpt-4o;max_tokens=900000", "fallbacks.0.max_tokens"),
    ],
)
def test_a_fallback_that_cannot_be_used_is_rejected_with_its_field(
    text: str, field: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(ACCEPTED_SERVERS_VARIABLE, str(tmp_path / "engine-servers"))
    with pytest.raises(InvalidInput, match=field):
        check_engine("engines.planner", parse_engine(text))


def test_the_shortest_answer_of_a_chain_counts() -> None:
    config = parse_engine("litellm:a/a;max_tokens=9000;fallback=b/b;max_tokens=8000;fallback=c/c")
    assert get_smallest_answer(config) == 8_000
    assert get_smallest_answer(config.model_copy(update={"answer_tokens": 4_096})) == 4_096
    assert get_smallest_answer(parse_engine("extractive")) is None
