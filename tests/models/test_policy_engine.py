"""A policy asked over its wire: whole traces, exact continuation, seeds, budgets, and what is missing said in words."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from offing.core.model import EngineConfig, FailureKind, InvalidOutput, Message, Usage
from offing.core.run import StopReason
from offing.core.token_checks import check_token_trace
from offing.core.tokens import CompletionSpan, SpanKind
from offing.models.policy_engine import PolicyEngine
from offing.sdk.prompt_format import PromptFormat
from tests.model_provider import Completion, Fault, Hangup, Malformed, Reply, Slow, WireServer, scripted
from tests.model_provider.policy_server import END, FIRST, Policies, logprob, rendered, says, tokens_of
from tests.models.builders import GOOD, VERIFIER, Ledger, Question, Time, Verdict, accepting, answered, failed, request


def policy_engine(url: str, time: Time | None = None, **env: str) -> PolicyEngine:
    time = time or Time()
    return PolicyEngine(
        accepting() | {"OFFING_ENGINE_URL": url, **env}, sleep=time.sleep, random_float=lambda: 0.5, clock=time.clock
    )


def small(**more: Any) -> EngineConfig:
    return EngineConfig.model_validate({"engine": "policy", "model": "small@1", "timeout_seconds": 5} | more)


def _verdict(text: str, _: Question) -> Verdict | InvalidOutput:
    word, space, rest = text.partition(" ")
    return Verdict(analysis=rest, stop=word == "stop") if space else InvalidOutput("Write stop or go, then why.")


def _words(text: str) -> tuple[CompletionSpan, ...]:
    at = text.index(" ")
    return (CompletionSpan(SpanKind.SWITCH, 0, at), CompletionSpan(SpanKind.THINK, at, len(text)))


PLAIN = PromptFormat("text", lambda inputs: (Message("user", (f"plain {inputs.text}",)),), _verdict, _words)
COMPACT = replace(PLAIN, name="compact", stop=("\n",))
SPEAKING = replace(VERIFIER, prompt_formats=(PLAIN, COMPACT))


async def test_an_answer_carries_the_tokens_it_was_sampled_in() -> None:
    async with WireServer(policies := Policies(says(GOOD))) as server:
        answer = await answered(policy_engine(server.url), request(small()))
    trace = answer.trace
    assert trace is not None
    assert trace.prompt_ids == (*rendered(policies.chats[0]["messages"]), 3)
    assert trace.completion_ids == (*tokens_of(GOOD), END)
    assert (trace.policy, trace.finish_reason, trace.engine_build) == ("small@1", "stop", "offing-engine 1")
    assert (trace.weights_sha256, trace.tokenizer_sha256, trace.template_sha256) == ("w", "t", "c")
    assert len(trace.entropy or ()) == len(trace.completion_ids)
    check_token_trace(trace, answer.text)


async def test_what_is_sent_is_all_that_shapes_the_distribution() -> None:
    async with WireServer(policies := Policies(says(GOOD))) as server:
        options = {"top_p": 0.9, "top_k": 20, "stop": ["###"]}
        chosen = small(temperature=0.7, max_tokens=99, options=options)
        answer = await answered(policy_engine(server.url), request(chosen))
        await answered(policy_engine(server.url), request(small()))
    sent, plain = policies.chats
    assert (sent["temperature"], sent["top_p"], sent["top_k"], sent["stop"]) == (0.7, 0.9, 20, ["###"])
    assert (sent["max_tokens"], sent["return_token_ids"], sent["logprobs"]) == (99, True, True)
    assert sent["include_stop_str_in_output"] is True
    assert (plain["temperature"], plain["top_p"], plain["top_k"]) == (1.0, 1.0, -1)
    assert {k: answer.sampling[k] for k in ("temperature", "seed")} == {k: sent[k] for k in ("temperature", "seed")}


async def test_seeds_differ_between_runs_turns_and_positions_and_repeat_with_a_repeated_run() -> None:
    role_request = request(small())
    others = [replace(role_request, seed=8), replace(role_request, turn=2), replace(role_request, call_path="3/a/1")]
    async with WireServer(policies := Policies(says(GOOD))) as server:
        for each in (role_request, role_request, *others):
            await answered(policy_engine(server.url), each)
    first, again, *different = [chat["seed"] for chat in policies.chats]
    assert first == again
    assert len({first, *different}) == 4


async def test_a_role_with_a_text_format_is_asked_in_it_and_its_spans_are_kept() -> None:
    async with WireServer(policies := Policies(says("stop enough"))) as server:
        answer = await answered(policy_engine(server.url), request(small(), role=SPEAKING))
    assert policies.chats[0]["messages"] == [{"role": "user", "content": "plain Is the evidence enough?"}]
    assert answer.output == Verdict(analysis="enough", stop=True)
    assert [span.kind for span in answer.spans] == ["switch", "think"]


async def test_a_form_that_the_role_lacks_is_rejected_by_name() -> None:
    failure = await failed(policy_engine("http://127.0.0.1:1"), request(small(prompt_format="odd"), role=SPEAKING))
    assert failure.kind is FailureKind.BAD_REQUEST
    assert "text, compact" in failure.message


async def test_a_turn_continues_from_the_very_tokens_of_the_one_before() -> None:
    earlier = (Message("user", ("one",)), Message("assistant", ("x y",), turn=7))
    growing = PromptFormat("compact", lambda inputs: (*earlier, Message("user", (inputs.text,))), _verdict)
    requests: list[tuple[Message, ...]] = []

    async def recall(message: Any) -> tuple[int, ...]:
        requests.append(tuple(message))
        return (2, 5, 6, 0)

    async with WireServer(policies := Policies(says("go on"))) as server:
        role = replace(VERIFIER, prompt_formats=(growing,))
        inputs = replace(request(small(prompt_format="compact"), role=role), find_prefix=recall)
        answer = await answered(policy_engine(server.url), inputs)
    assert requests == [earlier]
    assert policies.chats[0]["offing_prefix"] == {"token_ids": [2, 5, 6, 0], "message_count": 2}
    assert answer.trace is not None
    assert answer.trace.prompt_ids[:4] == (2, 5, 6, 0)
    assert answer.sampling["prefix"] is True


async def test_a_server_without_prefixes_renders_the_prompt_whole() -> None:
    earlier = (Message("user", ("one",)), Message("assistant", ("x y",), turn=7))
    growing = PromptFormat("compact", lambda inputs: (*earlier, Message("user", (inputs.text,))), _verdict)

    async def recall(_: Any) -> tuple[int, ...]:
        return (2, 5, 6, 0)

    async with WireServer(Policies(says("go on"), without=frozenset({"prefix_used"}))) as server:
        role = replace(VERIFIER, prompt_formats=(growing,))
        inputs = replace(request(small(prompt_format="compact"), role=role), find_prefix=recall)
        answer = await answered(policy_engine(server.url), inputs)
    assert answer.trace is not None
    assert answer.trace.prompt_ids[:2] == (2, ord("o") + FIRST)
    assert "prefix" not in answer.sampling


MISSING = [
    ("prompt_token_ids", "prompt token ids"),
    ("token_ids", "completion token ids"),
    ("logprobs", "logprobs"),
]


@pytest.mark.parametrize(("field", "words"), MISSING)
async def test_a_missing_field_leaves_text_without_a_trace_and_says_so(field: str, words: str) -> None:
    async with WireServer(Policies(says(GOOD), without=frozenset({field}))) as server:
        answer = await answered(policy_engine(server.url), request(small()))
    assert (answer.trace, answer.text) == (None, GOOD)
    assert answer.missing_trace_reason == f"the server does not return {words}"


async def test_entropy_and_hashes_may_be_missing() -> None:
    bare = frozenset({"token_entropy", "weights_sha256", "tokenizer_sha256", "template_sha256", "system_fingerprint"})
    async with WireServer(Policies(says(GOOD), without=bare)) as server:
        answer = await answered(policy_engine(server.url), request(small()))
    assert answer.trace is not None
    assert (answer.trace.entropy, answer.trace.weights_sha256) == (None, "")


async def test_tokens_in_the_places_where_sglang_has_them_are_found() -> None:
    async with WireServer(policies := Policies(says(GOOD), native=True)) as server:
        answer = await answered(policy_engine(server.url), request(small()))
    (sent,) = policies.chats
    assert answer.trace is not None, answer.missing_trace_reason
    assert sent["return_prompt_token_ids"] is True
    assert answer.trace.prompt_ids == (*rendered(sent["messages"]), 3)
    assert answer.trace.completion_ids == (*tokens_of(GOOD), END)
    assert answer.trace.logprobs[:2] == pytest.approx(
        [logprob([*answer.trace.prompt_ids, *answer.trace.completion_ids[:n]], answer.trace.completion_ids[n])
         for n in (0, 1)]
    )  # fmt: skip
    assert answer.trace.text == GOOD
    assert answer.trace.entropy is None
    check_token_trace(answer.trace, answer.text)


NATIVE: list[tuple[dict[str, Any], str, str]] = [
    ({"without": frozenset({"meta_info"})}, GOOD, "the server does not return completion token ids"),
    ({"without": frozenset({"prompt_token_ids"})}, GOOD, "the server does not return prompt token ids"),
    ({}, GOOD.replace("enough", "genüg"), "the server's tokens do not decode to its text"),
]


@pytest.mark.parametrize(("more", "text", "words"), NATIVE)
async def test_what_sglang_leaves_out_or_cannot_show_leaves_text_without_a_trace(
    more: dict[str, Any], text: str, words: str
) -> None:
    """Its pieces are text, so that half a character is lost."""
    async with WireServer(Policies(says(text), native=True, **more)) as server:
        answer = await answered(policy_engine(server.url), request(small()))
    assert (answer.trace, answer.text, answer.missing_trace_reason) == (None, text, words)


async def test_sglang_s_raw_log_probabilities_of_a_changed_distribution_are_not_taken() -> None:
    async with WireServer(Policies(says(GOOD), native=True)) as server:
        answer = await answered(policy_engine(server.url), request(small(temperature=0.7)))
    assert answer.trace is None
    assert "temperature 1" in answer.missing_trace_reason


@pytest.mark.parametrize("how", [{"temperature": 0.7}, {"options": {"top_p": 0.9}}, {"options": {"top_k": 5}}])
async def test_raw_log_probabilities_of_a_changed_distribution_are_not_taken(how: dict[str, Any]) -> None:
    async with WireServer(Policies(says(GOOD), fingerprint="fp_1")) as server:
        answer = await answered(policy_engine(server.url), request(small(**how)))
        mode = {"options": how.get("options", {}) | {"logprobs_mode": "processed_logprobs"}}
        known = await answered(policy_engine(server.url), request(small(**how | mode)))
    assert answer.trace is None
    assert "temperature 1" in answer.missing_trace_reason
    assert known.trace is not None


async def test_greedy_answers_have_no_trace() -> None:
    async with WireServer(Policies(says(GOOD))) as server:
        answer = await answered(policy_engine(server.url), request(small(temperature=0)))
    assert (answer.trace, answer.missing_trace_reason) == (None, "at temperature 0 nothing is sampled")


async def test_an_absent_version_is_rejected_and_no_other_asked() -> None:
    async with WireServer(Policies(says(GOOD), versions=("small@1", "small@3"))) as server:
        failure = await failed(policy_engine(server.url), request(small(model="small@2")))
    assert failure.kind is FailureKind.UNKNOWN_VERSION
    assert "small@2" in failure.message
    assert [body["model"] for body in server.bodies] == ["small@2"]


async def test_an_answer_of_another_version_is_rejected() -> None:
    async with WireServer(lambda _: Malformed(body_of("small@9"))) as server:
        failure = await failed(policy_engine(server.url), request(small()))
    assert failure.kind is FailureKind.UNKNOWN_VERSION
    assert "small@9" in failure.message


async def test_an_unusable_answer_is_asked_for_again_in_words_and_kept_as_an_attempt() -> None:
    meter = Ledger()
    async with WireServer(policies := Policies(says("what", GOOD))) as server:
        answer = await answered(policy_engine(server.url), request(small(), meter=meter))
    first, second = policies.chats
    (attempt,) = answer.attempts
    assert (attempt.text, attempt.usage.completion_tokens) == ("what", 5)
    assert attempt.completion is not None
    assert attempt.completion.trace.completion_ids == (*tokens_of("what"), END)
    assert attempt.completion.trace.prompt_ids == (*rendered(first["messages"]), 3)
    assert [m.text for m in attempt.completion.messages] == [m["content"] for m in first["messages"]]
    assert attempt.completion.sampling["seed"] == first["seed"]
    assert second["messages"][: len(first["messages"])] == first["messages"]
    assert "cannot be used" in second["messages"][-1]["content"]
    assert second["seed"] != first["seed"]
    assert answer.trace is not None
    assert answer.trace.completion_ids == (*tokens_of(GOOD), END)
    assert [m.text for m in answer.messages][-2] == "what"
    assert answer.usage == meter.total


async def test_a_nul_in_what_a_policy_wrote_is_unusable_and_the_attempt_can_be_stored() -> None:
    async with WireServer(Policies(says(GOOD + "\0", GOOD))) as server:
        answer = await answered(policy_engine(server.url), request(small()))
    assert [(a.text, a.message) for a in answer.attempts] == [
        (GOOD + "\ufffd", "The answer has a NUL character. Leave it out.")
    ]
    sampled = answer.attempts[0].completion
    assert sampled is not None
    assert sampled.trace.completion_ids == (*tokens_of(GOOD + "\0"), END)
    assert "\0" not in "".join(m.text for m in answer.messages)


async def test_a_compact_prompt_is_sampled_again_as_it_was() -> None:
    async with WireServer(policies := Policies(says("what", "stop now\n"))) as server:
        answer = await answered(policy_engine(server.url), request(small(prompt_format="compact"), role=SPEAKING))
    first, second = policies.chats
    assert second == first | {"seed": second["seed"]}
    assert second["seed"] != first["seed"]
    assert first["stop"] == ["\n"]
    assert len(answer.attempts) == 1


async def test_re_asks_can_be_switched_off() -> None:
    async with WireServer(policies := Policies(says("what"))) as server:
        failure = await failed(policy_engine(server.url), request(small(options={"max_corrections": 0})))
    assert (failure.kind, len(policies.chats)) == (FailureKind.INVALID_OUTPUT, 1)
    assert [a.completion is not None for a in failure.attempts] == [True]


async def test_an_attempt_whose_tokens_are_not_known_is_kept_as_text() -> None:
    async with WireServer(Policies(says("what"), without=frozenset({"token_ids"}))) as server:
        failure = await failed(policy_engine(server.url), request(small(options={"max_corrections": 0})))
    assert [(a.text, a.completion) for a in failure.attempts] == [("what", None)]


PASSING: list[tuple[Reply, FailureKind]] = [
    (Fault(500), FailureKind.OVERLOADED),
    (Fault(503, headers={"retry-after": "1"}), FailureKind.OVERLOADED),
    (Fault(429), FailureKind.RATE_LIMITED),
    (Hangup(), FailureKind.OVERLOADED),
    (Malformed(), FailureKind.OVERLOADED),
    (Malformed(b'{"choices": []}'), FailureKind.OVERLOADED),
]


@pytest.mark.parametrize(("fault", "kind"), PASSING, ids=str)
async def test_passing_faults_are_tried_again_with_the_same_seed(fault: Reply, kind: FailureKind) -> None:
    meter, replies = Ledger(), iter([fault])
    policies = Policies(says(GOOD))
    async with WireServer(lambda received: next(replies, None) or policies(received)) as server:
        answer = await answered(policy_engine(server.url), request(small(), meter=meter))
    assert [a.failure for a in answer.attempts] == [kind]
    assert server.bodies[0]["seed"] == server.bodies[1]["seed"]
    assert meter.booked == [Usage(), answer.usage]


PERMANENT = [
    (Fault(401, "no such token"), FailureKind.AUTHENTICATION_FAILED),
    (Fault(400, "This model's maximum context length is 9 tokens"), FailureKind.CONTEXT_TOO_LONG),
    (
        Fault(400, "messages: the prompt of 90 tokens plus 9 new tokens exceed the context of 64"),
        FailureKind.CONTEXT_TOO_LONG,
    ),
    (Fault(400, "what is that"), FailureKind.BAD_REQUEST),
    (Fault(404, "There is no POST /v1/chat/completions."), FailureKind.BAD_REQUEST),
]


@pytest.mark.parametrize(("fault", "kind"), PERMANENT, ids=str)
async def test_permanent_rejections_are_typed_and_never_tried_again(fault: Fault, kind: FailureKind) -> None:
    async with WireServer(scripted(fault)) as server:
        failure = await failed(policy_engine(server.url), request(small()))
    assert (failure.kind, len(server.requests)) == (kind, 1)


async def test_a_policy_that_does_not_end_in_time_is_not_asked_again_and_the_limit_is_named() -> None:
    slow = Slow(Completion(GOOD), 5)
    async with WireServer(scripted(*[slow] * 6)) as server:
        failure = await failed(policy_engine(server.url), request(small(timeout_seconds=0.2, max_tokens=700)))
    assert [a.failure for a in failure.attempts] == [FailureKind.TIMEOUT]
    assert "within 0.2 s. The policy may write 700 tokens. Set a smaller max_tokens" in failure.message


@pytest.mark.parametrize(("configured", "sent"), [(99, 20), (9, 9)])
async def test_a_format_whose_completions_are_short_limits_what_a_policy_may_write(configured: int, sent: int) -> None:
    short = replace(SPEAKING, prompt_formats=(replace(PLAIN, max_tokens=20),))
    async with WireServer(policies := Policies(says("stop enough"))) as server:
        await answered(policy_engine(server.url), request(small(max_tokens=configured), role=short))
    assert policies.chats[0]["max_tokens"] == sent


async def test_what_an_attempt_may_use_is_reserved_and_a_limit_stops_it() -> None:
    async with WireServer(Policies(says(GOOD))) as server:
        failure = await failed(policy_engine(server.url), request(small(max_tokens=50), meter=Ledger(tokens=60)))
    assert (failure.kind, failure.stop_reason) == (FailureKind.BUDGET_EXHAUSTED, StopReason.TOKEN_LIMIT)
    assert server.requests == []


async def test_the_key_goes_to_the_engine_that_the_environment_names_and_to_no_other() -> None:
    async with WireServer(Policies(says(GOOD))) as ours, WireServer(Policies(says(GOOD))) as other:
        engine = policy_engine(ours.url, OFFING_ENGINE_KEY="k")
        await answered(engine, request(small()))
        await answered(engine, request(small(api_base=other.url)))
    assert ours.requests[0].headers["authorization"] == "Bearer k"
    assert "authorization" not in other.requests[0].headers


@pytest.mark.parametrize("address", ["unix:///run/other.sock", "http://10.0.0.1:8000", "nonsense"])
async def test_an_address_that_nobody_allowed_is_not_called(address: str) -> None:
    failure = await failed(policy_engine("unix:///run/ours.sock"), request(small(api_base=address)))
    assert failure.kind is FailureKind.BAD_REQUEST


async def test_without_an_engine_the_remedy_is_said() -> None:
    failure = await failed(policy_engine(""), request(small()))
    assert failure.kind is FailureKind.UNKNOWN_ENGINE
    assert "OFFING_ENGINE_URL" in failure.message


async def test_a_unix_socket_is_an_address(tmp_path: Path) -> None:
    async with WireServer(Policies(says(GOOD)), socket=str(tmp_path / "engine.sock")) as server:
        answer = await answered(policy_engine(server.url), request(small()))
    assert answer.trace is not None


async def test_a_policy_without_a_version_is_rejected() -> None:
    failure = await failed(policy_engine("http://127.0.0.1:1"), request(small(model="small")))
    assert (failure.kind, "NAME@VERSION" in failure.message) == (FailureKind.BAD_REQUEST, True)


def body_of(model: str) -> bytes:
    return json.dumps({"model": model, "choices": [{"message": {"content": GOOD}}]}).encode()
