"""Limits of a role's model on the wire: the answer's room, room for thinking, and what a small budget leaves."""

from decimal import Decimal
from typing import Any

import pytest

from offing.core.model import EngineConfig, FailureKind
from offing.models.model_limits import RoleLimits, resolve_model_limits
from offing.sdk import REPORT_ANSWER_TOKENS
from tests.model_provider import Completion, Tokens, WireServer, scripted
from tests.models.builders import GOOD, Ledger, answered, choice, failed, litellm_engine, request

CUT_BY_THINKING = Completion("", finish="length", reasoning="Hm. " * 50, tokens=Tokens(20, 500, reasoning=500))


def resolved(url: str, *, answer_tokens: int = 4_096, **fields: Any) -> EngineConfig:
    """The engine config of a role after its run was submitted."""
    return resolve_model_limits(choice(url, **fields), RoleLimits(answer_tokens))


def sent_limit(body: dict[str, Any]) -> int:
    """The maximum of a request. Reasoning models of OpenAI have it under another name."""
    return body.get("max_completion_tokens") or body["max_tokens"]


@pytest.mark.parametrize(
    ("model", "limit"), [("openai/gpt-4o-mini", 16_384), ("openai/o3-mini", 16_384 + 8_192), ("openai/mine", 4_096)]
)
async def test_the_writer_may_write_what_its_model_and_its_report_allow(model: str, limit: int) -> None:
    async with WireServer(scripted(Completion(GOOD))) as server:
        chosen = resolved(server.url, model=model, answer_tokens=REPORT_ANSWER_TOKENS)
        answer = await answered(litellm_engine(), request(chosen))
    assert sent_limit(server.bodies[0]) == answer.sampling["max_tokens"] == limit


async def test_the_completion_and_the_prompt_share_a_known_window() -> None:
    async with WireServer(scripted(Completion(GOOD))) as server:
        chosen = choice(server.url, model="openai/mine", context_tokens=2_000, max_tokens=1_990)
        await answered(litellm_engine(), request(chosen))
    assert 1_024 <= sent_limit(server.bodies[0]) < 1_990


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "cut_off",
    [
        CUT_BY_THINKING,
        Completion("", finish="length", tokens=Tokens(20, 500)),  # the provider hides its thinking
        Completion("<think>First I should", finish="length", tokens=Tokens(20, 500)),
        Completion('{"analysis": "to', finish="length", tokens=Tokens(20, 4_090, reasoning=4_000)),
        Completion('{"analysis": "to', finish="length", reasoning="Hm. " * 300, tokens=None),
    ],
)
async def test_an_answer_that_thinking_cut_off_is_asked_again_with_more_room_by_the_same_prompt(
    cut_off: Completion, stream: bool
) -> None:
    async with WireServer(scripted(cut_off, Completion(GOOD))) as server:
        chosen = choice(server.url, model="openai/mine", max_tokens=600, options={"stream": stream})
        answer = await answered(litellm_engine(), request(chosen))
    assert [attempt.failure for attempt in answer.attempts] == [FailureKind.THINKING_TOO_LONG]
    assert "Thinking used up the room" in answer.attempts[0].message
    first, second = server.bodies
    assert (sent_limit(first), sent_limit(second)) == (600, 1_200)
    assert second["messages"] == first["messages"]


async def test_an_answer_that_is_long_itself_is_asked_to_be_shorter_although_the_model_thinks() -> None:
    long = Completion('{"analysis": "on and', finish="length", tokens=Tokens(20, 9_000, reasoning=900))
    async with WireServer(scripted(long, Completion(GOOD))) as server:
        answer = await answered(litellm_engine(), request(resolved(server.url, model="openai/o3-mini")))
    assert [attempt.failure for attempt in answer.attempts] == [FailureKind.INVALID_OUTPUT]
    assert "Answer more briefly" in server.bodies[1]["messages"][-1]["content"]
    assert sent_limit(server.bodies[1]) == sent_limit(server.bodies[0])


async def test_more_room_ends_at_the_output_limit_of_the_model() -> None:
    async with WireServer(scripted(*[CUT_BY_THINKING] * 5)) as server:
        chosen = choice(server.url, model="openai/mine", max_tokens=600, output_tokens=1_500)
        failure = await failed(litellm_engine(), request(chosen))
    assert [sent_limit(body) for body in server.bodies] == [600, 1_200, 1_500]
    assert failure.kind is FailureKind.INVALID_OUTPUT
    assert "Thinking used up the room" in failure.message
    assert "Lower reasoning_effort" in failure.message


async def test_a_model_without_a_known_limit_gets_more_room_three_times() -> None:
    async with WireServer(scripted(*[CUT_BY_THINKING] * 9)) as server:
        await failed(litellm_engine(), request(choice(server.url, model="openai/mine", max_tokens=500)))
    assert [sent_limit(body) for body in server.bodies] == [500, 1_000, 2_000, 4_000]


async def test_more_room_for_thinking_leaves_the_corrections_of_an_invalid_answer() -> None:
    bad = Completion("no")
    async with WireServer(scripted(CUT_BY_THINKING, bad, bad, Completion(GOOD))) as server:
        answer = await answered(litellm_engine(), request(choice(server.url, max_tokens=500)))
    assert len(answer.attempts) == 3


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("text", [f"<think>Is {{it}}?</think>\n\n{GOOD}", f"It is.\n</think>\n{GOOD}", GOOD])
async def test_thinking_in_the_text_is_not_part_of_the_answer(text: str, stream: bool) -> None:
    async with WireServer(scripted(Completion(text))) as server:
        answer = await answered(litellm_engine(), request(choice(server.url, options={"stream": stream})))
    assert not answer.attempts
    assert answer.text == GOOD


async def test_the_reasoning_effort_reaches_the_wire_and_the_record() -> None:
    async with WireServer(scripted(Completion(GOOD))) as server:
        chosen = resolved(server.url, model="openai/o3-mini", reasoning_effort="high")
        answer = await answered(litellm_engine(), request(chosen))
    assert server.bodies[0]["reasoning_effort"] == answer.sampling["reasoning_effort"] == "high"
    assert sent_limit(server.bodies[0]) == 4_096 + 16_384


async def test_no_effort_is_left_out_for_a_model_that_does_not_think() -> None:
    async with WireServer(scripted(Completion(GOOD))) as server:
        await answered(litellm_engine(), request(resolved(server.url, reasoning_effort="none")))
    assert "reasoning_effort" not in server.bodies[0]


@pytest.mark.parametrize("limits", [{"tokens": 6_000}, {"usd": Decimal("0.003")}])
async def test_a_budget_with_less_room_than_the_model_shortens_the_completion(limits: dict[str, Any]) -> None:
    async with WireServer(scripted(Completion(GOOD))) as server:
        meter = Ledger(**limits)
        chosen = resolved(server.url, answer_tokens=REPORT_ANSWER_TOKENS)
        await answered(litellm_engine(), request(chosen, meter=meter))
    assert sent_limit(server.bodies[0]) == 4_096
    assert len(meter.reservations) == 1


async def test_an_answer_that_the_budget_cut_off_says_so_and_is_not_asked_again() -> None:
    cut_off = Completion('{"analysis": "on and', finish="length", tokens=Tokens(20, 4_096))
    async with WireServer(scripted(cut_off, Completion(GOOD))) as server:
        chosen = resolved(server.url, answer_tokens=REPORT_ANSWER_TOKENS)
        failure = await failed(litellm_engine(), request(chosen, meter=Ledger(tokens=6_000)))
    assert len(server.bodies) == 1
    assert (failure.kind, failure.stop_reason) == (FailureKind.BUDGET_EXHAUSTED, "token_limit")
    assert "cut off at 4096 tokens: token limit left no more" in failure.message
    assert [attempt.failure for attempt in failure.attempts] == [FailureKind.BUDGET_EXHAUSTED]


async def test_more_room_that_the_budget_does_not_have_is_not_replaced_by_the_same_room() -> None:
    async with WireServer(scripted(CUT_BY_THINKING, Completion(GOOD))) as server:
        chosen = choice(server.url, model="openai/mine", max_tokens=2_000)
        failure = await failed(litellm_engine(), request(chosen, meter=Ledger(tokens=2_600)))
    assert len(server.bodies) == 1
    assert (failure.kind, failure.stop_reason) == (FailureKind.BUDGET_EXHAUSTED, "token_limit")


@pytest.mark.parametrize("stream", [False, True])
async def test_cached_and_thinking_tokens_are_counted_within_the_usage_and_priced_by_the_list(stream: bool) -> None:
    tokens = Tokens(10_000, 100, cached=8_000, reasoning=60)
    async with WireServer(scripted(Completion(GOOD, tokens=tokens))) as server:
        answer = await answered(litellm_engine(), request(choice(server.url, options={"stream": stream})))
    used = answer.usage
    assert (used.prompt_tokens, used.completion_tokens) == (10_000, 100)
    assert (used.cached_prompt_tokens, used.reasoning_tokens) == (8_000, 60)
    listed = 2_000 * Decimal("0.00000015") + 8_000 * Decimal("0.000000075") + 100 * Decimal("0.0000006")
    assert used.cost_usd == listed
