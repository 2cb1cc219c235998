"""Fallbacks of an engine on the wire, and in texts, stored runs and digests."""

import pytest

from offing.core.errors import InvalidInput
from offing.core.model import (
    EngineConfig,
    FailureKind,
    engine_to_digest_json,
    engine_to_json,
    get_smallest_window,
    parse_engine,
)
from offing.services.engine_configs import check_engine
from tests.model_provider import Completion, Fault, WireServer, scripted
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
    time = Time()
    async with WireServer(scripted(Fault(429, headers={"retry-after": "9"}), *[Fault(401)] * 2)) as server:
        spare = choice(server.url, model=SPARE)
        chosen = choice(server.url, fallbacks=[spare, spare])
        time.now = 1.0
        failure = await failed(litellm_engine(time), request(chosen, deadline=9))
    assert [attempt.model for attempt in failure.attempts] == [MAIN, SPARE, SPARE]
    assert not time.waits


def test_settings_after_a_fallback_are_its_own() -> None:
    config = parse_engine("litellm:openai/a;max_tokens=8000;fallback=anthropic/b@0.2;max_tokens=4000;fallback=groq/c")
    first, second = config.fallbacks or ()
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
    ],
)
def test_a_fallback_that_cannot_be_used_is_rejected_with_its_field(text: str, field: str) -> None:
    with pytest.raises(InvalidInput, match=field):
        check_engine("engines.planner", parse_engine(text))
