"""What a provider is sent and what becomes of its answer, through litellm itself over real HTTP."""

import asyncio
import json
from decimal import Decimal
from typing import Any

import pytest
from pydantic import BaseModel

from offing.core.model import FailureKind, Message
from offing.core.step import StepKind
from offing.sdk.role import Headline, Role
from tests.model_provider import Completion, Tokens, WireServer, scripted
from tests.models.builders import GOOD, Ledger, Question, Verdict, answered, choice, failed, litellm_engine, request

OUTPUT_MODES = ("schema", "tool", "text")


def good(output_mode: str, tokens: Tokens | None = None) -> Completion:
    """A usable answer in the shape that `output_mode` asks for."""
    if output_mode == "tool":
        return Completion(tool="answer", arguments=GOOD, tokens=tokens)
    return Completion(GOOD, tokens=tokens)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("output_mode", OUTPUT_MODES)
async def test_an_answer_comes_back_typed_with_the_provider_s_own_usage(output_mode: str, stream: bool) -> None:
    async with WireServer(scripted(good(output_mode, Tokens(1000, 100)))) as server:
        meter = Ledger()
        options = {"output_mode": output_mode, "stream": stream}
        answer = await answered(litellm_engine(), request(choice(server.url, options=options), meter=meter))
    assert answer.output == Verdict(analysis="enough", stop=True)
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (1000, 100)
    assert answer.usage.cost_usd == Decimal("0.00021")
    assert answer.usage.priced
    assert meter.booked == [answer.usage]
    assert "usage_estimated" not in answer.sampling
    assert json.loads(answer.text) == json.loads(GOOD)
    assert server.bodies[0].get("stream", False) is stream


async def test_what_is_configured_is_what_the_wire_gets_and_what_is_recorded() -> None:
    sampling = {"top_p": 0.9, "frequency_penalty": 0.25, "stop": ["END"]}
    chosen = {"temperature": 0.0, "max_tokens": 321, "options": {"sampling": sampling, "send_seed": True}}
    async with WireServer(scripted(Completion(GOOD))) as server:
        answer = await answered(litellm_engine(), request(choice(server.url, **chosen)))
    (sent,) = server.bodies
    for name, value in {"temperature": 0.0, "max_tokens": 321, "seed": 7, **sampling}.items():
        assert sent[name] == value
        assert answer.sampling[name] == value
    assert sent["model"] == "gpt-4o-mini"
    assert not {"tools", "stream", "n", "presence_penalty"} & sent.keys()


@pytest.mark.parametrize("temperature", [0.0, 0.3, 1.0])
async def test_temperature_is_honoured(temperature: float) -> None:
    async with WireServer(scripted(Completion(GOOD))) as server:
        await answered(litellm_engine(), request(choice(server.url, temperature=temperature)))
    assert server.bodies[0]["temperature"] == temperature


async def test_no_temperature_means_that_none_is_sent_or_claimed() -> None:
    async with WireServer(scripted(Completion(GOOD))) as server:
        answer = await answered(litellm_engine(), request(choice(server.url)))
    assert "temperature" not in server.bodies[0]
    assert "temperature" not in answer.sampling


async def test_a_parameter_that_a_model_does_not_take_is_rejected_rather_than_dropped() -> None:
    async with WireServer(scripted(Completion(GOOD))) as server:
        failure = await failed(litellm_engine(), request(choice(server.url, model="openai/o3-mini", temperature=0.2)))
    assert failure.kind is FailureKind.BAD_REQUEST
    assert "temperature" in failure.message
    assert server.requests == []


async def test_a_model_that_takes_schemas_is_sent_a_strict_one() -> None:
    async with WireServer(scripted(Completion(GOOD))) as server:
        await answered(litellm_engine(), request(choice(server.url)))
    form = server.bodies[0]["response_format"]["json_schema"]
    assert form["strict"] is True
    assert form["schema"]["required"] == ["analysis", "stop"]
    assert form["schema"]["additionalProperties"] is False


async def test_a_tool_is_forced_where_tools_are_the_form() -> None:
    async with WireServer(scripted(good("tool"))) as server:
        await answered(litellm_engine(), request(choice(server.url, options={"output_mode": "tool"})))
    (sent,) = server.bodies
    assert sent["tool_choice"] == {"type": "function", "function": {"name": "answer"}}
    assert [tool["function"]["name"] for tool in sent["tools"]] == ["answer"]


async def test_a_model_that_nobody_knows_gets_the_schema_in_words_and_a_price_of_unknown() -> None:
    async with WireServer(scripted(Completion(f"```json\n{GOOD}\n```"))) as server:
        answer = await answered(litellm_engine(), request(choice(server.url, model="openai/our-own-model")))
    (sent,) = server.bodies
    assert "response_format" not in sent
    assert "tools" not in sent
    assert '"stop"' in sent["messages"][0]["content"]
    assert sent["messages"][0]["content"].startswith("You verify.\n\nBe strict.\n\n")
    assert answer.messages[0].parts[:2] == ("You verify.", "Be strict.")
    assert answer.sampling["output_mode"] == "text"
    assert (answer.usage.cost_usd, answer.usage.priced) == (Decimal(), False)


@pytest.mark.parametrize("stream", [False, True])
async def test_usage_that_no_provider_gave_is_estimated_and_marked(stream: bool) -> None:
    async with WireServer(scripted(Completion(GOOD, tokens=None))) as server:
        meter = Ledger()
        answer = await answered(litellm_engine(), request(choice(server.url, options={"stream": stream}), meter=meter))
    assert answer.sampling["usage_estimated"] is True
    assert answer.usage.prompt_tokens > 10
    assert answer.usage.completion_tokens > 5
    assert meter.booked == [answer.usage]


async def test_the_reservation_covers_prompt_and_the_longest_completion_with_its_price() -> None:
    async with WireServer(scripted(Completion(GOOD, tokens=Tokens(60, 7)))) as server:
        meter = Ledger()
        await answered(litellm_engine(), request(choice(server.url, max_tokens=1000), meter=meter))
    ((tokens, usd),) = meter.reservations
    assert 1040 < tokens < 1400
    assert Decimal("0.0006") < usd < Decimal("0.0008")


@pytest.mark.parametrize(
    "text",
    [
        "The agent must not stop here.",
        "Conclusion: STOP",
        '{"analysis": "do not stop", "stop": "do not stop"}',
        '{"analysis": "x", "stop": "true"}',
        '{"analysis": "x", "stop": 1}',
        '{"analysis": "x", "stop": null}',
        '{"analysis": "x", "stop": false, "stop": true}',
        '{"analysis": "x"}',
        '{"analysis": "x", "stop": true} {"analysis": "x", "stop": false}',
        '{"analysis": "cut',
        "",
    ],
)
async def test_a_text_never_becomes_its_opposite(text: str) -> None:
    async with WireServer(scripted(*[Completion(text)] * 3)) as server:
        failure = await failed(litellm_engine(), request(choice(server.url, model="openai/our-own-model")))
    assert failure.kind is FailureKind.INVALID_OUTPUT
    assert [attempt.text for attempt in failure.attempts] == [text] * 3
    assert len(server.requests) == 3


async def test_a_bad_answer_is_requested_again_with_its_fault_and_every_attempt_is_charged() -> None:
    replies = (
        Completion('{"analysis": "x", "stop": "maybe"}', tokens=Tokens(10, 1)),
        Completion(GOOD, tokens=Tokens(20, 2)),
    )
    async with WireServer(scripted(*replies)) as server:
        meter = Ledger()
        answer = await answered(litellm_engine(), request(choice(server.url), meter=meter))
    again = server.bodies[1]["messages"]
    assert [message["role"] for message in again] == ["system", "user", "assistant", "user"]
    assert again[2]["content"] == '{"analysis": "x", "stop": "maybe"}'
    assert "stop: " in again[3]["content"]
    assert [(a.failure, a.usage.tokens) for a in answer.attempts] == [(FailureKind.INVALID_OUTPUT, 11)]
    assert answer.usage.tokens == 33
    assert meter.total == answer.usage
    assert [m.text for m in answer.messages] == [m["content"] for m in again]


async def test_asking_again_ends_after_two_times() -> None:
    async with WireServer(scripted(*[Completion("no", tokens=Tokens(10, 1))] * 5)) as server:
        meter = Ledger()
        failure = await failed(litellm_engine(), request(choice(server.url), meter=meter))
    assert len(server.requests) == 3
    assert failure.usage.tokens == meter.total.tokens == 33


async def test_asking_again_stops_at_the_budget_before_the_call() -> None:
    async with WireServer(scripted(*[Completion("no", tokens=Tokens(3000, 100))] * 3)) as server:
        meter = Ledger(tokens=4000)
        failure = await failed(litellm_engine(), request(choice(server.url, max_tokens=2000), meter=meter))
    assert (failure.kind, failure.stop_reason) == (FailureKind.BUDGET_EXHAUSTED, "token_limit")
    assert len(server.requests) == 1
    assert failure.usage.tokens == 3100
    assert len(failure.attempts) == 1


@pytest.mark.parametrize(
    ("limits", "stop"), [({"tokens": 500}, "token_limit"), ({"usd": Decimal("0.0001")}, "spend_limit")]
)
async def test_a_budget_without_room_is_rejected_before_anything_is_sent(limits: dict[str, Any], stop: str) -> None:
    async with WireServer(scripted(Completion(GOOD))) as server:
        failure = await failed(litellm_engine(), request(choice(server.url), meter=Ledger(**limits)))
    assert (failure.kind, failure.stop_reason) == (FailureKind.BUDGET_EXHAUSTED, stop)
    assert server.requests == []


async def test_an_answer_cut_at_max_tokens_is_said_to_be_that() -> None:
    replies = Completion('{"analysis": "too lo', finish="length"), Completion(GOOD)
    async with WireServer(scripted(*replies)) as server:
        answer = await answered(litellm_engine(), request(choice(server.url, max_tokens=9)))
    assert "max_tokens (9)" in answer.attempts[0].message


@pytest.mark.parametrize("stream", [False, True])
async def test_two_tool_calls_are_rejected_rather_than_one_left_undone(stream: bool) -> None:
    twice = Completion(tool="answer", arguments=GOOD, calls=2)
    async with WireServer(scripted(twice, good("tool"))) as server:
        options = {"output_mode": "tool", "stream": stream}
        answer = await answered(litellm_engine(), request(choice(server.url, options=options)))
    assert ["2 tool calls" in attempt.message for attempt in answer.attempts] == [True]


class Command(BaseModel):
    """A free-form object inside, which no strict schema can hold."""

    tool: str
    args: dict[str, Any]


async def test_multi_line_and_nested_arguments_arrive_whole() -> None:
    role: Role[Question, Command] = Role(
        "executor",
        Question,
        Command,
        lambda g: (Message("user", (g.text,)),),
        lambda c: Headline(c.tool),
        StepKind.TOOL_CALL,
    )
    inputs = {"tool": "search", "args": {"query": "two\nlines", "nested": {"k": [1, {"stop": "no"}]}}}
    reply = Completion(tool="answer", arguments=json.dumps(inputs, indent=2))
    async with WireServer(scripted(reply)) as server:
        options = {"output_mode": "tool", "stream": True}
        answer = await answered(litellm_engine(), request(choice(server.url, options=options), role=role))
    assert answer.output == Command.model_validate(inputs)
    assert server.bodies[0]["tools"][0]["function"]["strict"] is False


async def test_many_calls_at_once_keep_their_own_answers() -> None:
    def echo(received: Any) -> Completion:
        return Completion(json.dumps({"analysis": received.body["messages"][1]["content"], "stop": False}))

    async with WireServer(echo) as server:
        engine = litellm_engine()
        requests = [request(choice(server.url), inputs=Question(text=f"question {n}")) for n in range(40)]
        answers = await asyncio.gather(*(answered(engine, one) for one in requests))
    assert [a.output for a in answers] == [Verdict(analysis=f"question {n}", stop=False) for n in range(40)]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("output_mode", OUTPUT_MODES)
async def test_a_key_that_a_provider_repeats_is_not_in_the_answer_whole_or_in_pieces(
    output_mode: str, stream: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "a-key-that-the-provider-was-sent"
    monkeypatch.setenv("SOME_API_KEY", key)
    text = json.dumps({"analysis": f"You sent {key}.", "stop": True})
    reply = Completion(tool="answer", arguments=text) if output_mode == "tool" else Completion(text)
    async with WireServer(scripted(reply)) as server:
        options = {"output_mode": output_mode, "stream": stream}
        answer = await answered(litellm_engine(), request(choice(server.url, options=options)))
    assert answer.output == Verdict(analysis="You sent [redacted].", stop=True)
    assert key not in str(answer)
