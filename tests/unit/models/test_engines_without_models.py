"""The engines that need no provider: the seam itself, extractive and scripted."""

import threading
import time
from dataclasses import replace
from decimal import Decimal
from itertools import count
from typing import Any

import pytest

from offing.core.model import EngineConfig, EngineFailure, FailureKind, Usage
from offing.models.engine import ENGINES, create_engine
from offing.models.extractive import ExtractiveEngine
from offing.models.scripted import ScriptedEngine
from tests.models.builders import VERIFIER, Ledger, Question, Verdict, answered, failed, request

SCRIPT = {"analysis": "turn {turn} of {nonce}", "stop": False}


def scripted(*answers: dict[str, Any], **more: Any) -> EngineConfig:
    return EngineConfig(engine="scripted", options={"answers": list(answers) or [SCRIPT], **more})


@pytest.mark.parametrize("name", ENGINES)
def test_every_engine_is_found_by_name(name: str) -> None:
    assert not isinstance(create_engine(EngineConfig(engine=name)), EngineFailure)


def test_an_unknown_engine_is_a_value_that_names_the_known_ones() -> None:
    failure = create_engine(EngineConfig(engine="oracle"))
    assert isinstance(failure, EngineFailure)
    assert failure.kind is FailureKind.UNKNOWN_ENGINE
    assert "oracle" in failure.message
    assert "extractive, litellm, own, policy, rules, scripted" in failure.message


async def test_extractive_calls_the_role_s_own_function_and_spends_nothing() -> None:
    meter = Ledger()
    answer = await answered(ExtractiveEngine(), request(EngineConfig(), inputs=Question(text="why"), meter=meter))
    assert answer.output == Verdict(analysis="why", stop=True)
    assert (answer.usage, meter.reservations) == (Usage(), [])


async def test_extractive_work_does_not_hold_up_the_event_loop() -> None:
    here = threading.get_ident()

    def slow(inputs: Question) -> Verdict:
        return Verdict(analysis=str(threading.get_ident() == here), stop=True)

    answer = await answered(ExtractiveEngine(), request(EngineConfig(), role=replace(VERIFIER, extractive=slow)))
    assert answer.output == Verdict(analysis="False", stop=True)


async def test_a_role_without_a_model_free_form_is_rejected_by_name_with_the_remedy() -> None:
    failure = await failed(ExtractiveEngine(), request(EngineConfig(), role=replace(VERIFIER, extractive=None)))
    assert failure.kind is FailureKind.UNKNOWN_ENGINE
    assert "'verifier'" in failure.message
    assert "verifier=litellm:" in failure.message


async def test_a_model_free_function_of_the_wrong_type_is_a_fault_of_its_author() -> None:
    def astray(inputs: Question) -> Any:
        return inputs

    wrong = replace(VERIFIER, extractive=astray)
    with pytest.raises(TypeError, match="verifier"):
        await ExtractiveEngine().answer(request(EngineConfig(), role=wrong))


@pytest.mark.parametrize(
    ("turn", "expected"), [(0, "first"), (1, "first"), (2, "second"), (3, "second"), (900, "second")]
)
async def test_a_turn_gets_its_answer_and_late_turns_the_last(turn: int, expected: str) -> None:
    answers = [{"analysis": word, "stop": False} for word in ("first", "second")]
    answer = await answered(ScriptedEngine(), request(scripted(*answers), turn=turn))
    assert answer.output == Verdict(analysis=expected, stop=False)


async def test_the_same_turn_asked_again_answers_the_same_unless_it_varies() -> None:
    async def answer_text(vary: bool, seed: int = 1) -> str:
        role_request = request(scripted(vary=vary), turn=3, seed=seed)
        return (await answered(ScriptedEngine(), role_request)).text

    assert await answer_text(False) == await answer_text(False)
    assert await answer_text(False) != await answer_text(False, seed=2)
    assert await answer_text(True) != await answer_text(True)
    assert "turn 3 of" in await answer_text(True)


async def test_placeholders_are_filled_at_any_depth_and_nowhere_else() -> None:
    serial = count(1)
    engine = ScriptedEngine(draw_nonce=lambda: f"n{next(serial)}")
    chosen = scripted({"analysis": '{turn} {nonce} {other} {"a": 1}', "stop": False}, vary=True)
    answer = await answered(engine, request(chosen, turn=5))
    assert answer.output == Verdict(analysis='5 n1 {other} {"a": 1}', stop=False)


async def test_failures_strike_at_their_turn_and_may_recover() -> None:
    fail = {"2": {"kind": "rate_limited", "retry_after": 3}, "3": {"recovers": True}}
    chosen = scripted(fail=fail)
    assert (await answered(ScriptedEngine(), request(chosen, turn=1))).attempts == ()
    failure = await failed(ScriptedEngine(), request(chosen, turn=2))
    assert (failure.kind, failure.retry_after_seconds) == (FailureKind.RATE_LIMITED, 3.0)
    recovered = await answered(ScriptedEngine(), request(chosen, turn=3))
    assert [attempt.failure for attempt in recovered.attempts] == [FailureKind.OVERLOADED]


async def test_scripted_usage_goes_through_the_meter() -> None:
    chosen = scripted(usage={"prompt_tokens": 10, "completion_tokens": 5, "cost_usd": "0.01"})
    meter = Ledger(tokens=20)
    answer = await answered(ScriptedEngine(), request(chosen, meter=meter))
    assert answer.usage == Usage(10, 5, Decimal("0.01")) == meter.total
    failure = await failed(ScriptedEngine(), request(chosen, meter=meter))
    assert (failure.kind, failure.stop_reason) == (FailureKind.BUDGET_EXHAUSTED, "token_limit")


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({}, "options.answers"),
        ({"answers": [SCRIPT], "speed": 1}, "options.speed"),
        ({"answers": ["x"]}, "options.answers.0"),
    ],
)
async def test_options_that_are_no_script_are_rejected_by_field(options: dict[str, Any], field: str) -> None:
    failure = await failed(ScriptedEngine(), request(EngineConfig(engine="scripted", options=options)))
    assert failure.kind is FailureKind.BAD_REQUEST
    assert field in failure.message


async def test_a_scripted_answer_is_held_to_the_role_s_type() -> None:
    failure = await failed(ScriptedEngine(), request(scripted({"analysis": "do not stop", "stop": "do not stop"})))
    assert failure.kind is FailureKind.INVALID_OUTPUT


async def test_thousands_of_calls_are_cheap() -> None:
    engine, role_request = ScriptedEngine(), request(scripted())
    started = time.thread_time()
    for _ in range(2000):
        await answered(engine, role_request)
    assert time.thread_time() - started < 2
