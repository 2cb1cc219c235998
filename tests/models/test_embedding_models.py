"""An embedding model through litellm: what is sent, what comes back, and every way in which that can be unusable."""

import asyncio
import json
import math
import os
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from offing.core.model import FailureKind, Usage
from offing.models.embedding import Embeddings
from offing.models.embedding_models import open_embedder
from offing.models.litellm_embedder import LitellmEmbedder
from offing.models.retrieval_model import CallLimits, RetrievalModel
from offing.models.retry import RetryPolicy
from offing.models.role_call import AttemptFailure, CallSettings
from offing.settings import Settings
from tests.model_provider import Fault, Hangup, Malformed, Reply, Slow, Whole, WireServer
from tests.model_provider.embeddings import word_vector
from tests.model_provider.retrieval_models import RetrievalModels
from tests.models.builders import Time

Json = dict[str, Any]
RIVER, FLOOD, LAW = "the river floods the valley", "a flood of the river in the valley", "parliament passed a law"
KEY = "canary-key-of-mine"


def embedder(url: str, model: str = "openai/words", time: Time | None = None, **more: Any) -> LitellmEmbedder:
    time = time or Time()
    settings = CallSettings(sleep=time.sleep, random_float=lambda: 0.5, clock=time.clock)
    env = {"OPENAI_API_KEY": KEY}
    return LitellmEmbedder(RetrievalModel("OFFING_EMBEDDING", "embedding model", model, url, env, settings), **more)


async def embedded(model: LitellmEmbedder, *texts: str, purpose: Any = "passage") -> Embeddings:
    outcome = await model.embed(texts, purpose)
    assert isinstance(outcome, Embeddings), outcome
    return outcome


async def failed(model: LitellmEmbedder, *texts: str, purpose: Any = "passage") -> AttemptFailure:
    outcome = await model.embed(texts, purpose)
    assert isinstance(outcome, AttemptFailure), outcome
    return outcome


async def test_texts_that_share_words_are_near_in_rows_of_length_1() -> None:
    async with WireServer(RetrievalModels()) as server:
        outcome = await embedded(embedder(server.url), RIVER, FLOOD, LAW)
    vectors = outcome.vectors
    assert (vectors.dtype, vectors.shape) == (np.float32, (3, 64))
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1, 1])
    assert vectors[0] @ vectors[1] > 2 * abs(vectors[0] @ vectors[2])
    assert outcome.usage == Usage(17, 0, Decimal(), priced=False)


@pytest.mark.parametrize(
    ("model", "path"),
    [
        ("openai/words", "/v1/embeddings"),
        ("hosted_vllm/a/words", "/v1/embeddings"),
        ("lm_studio/words", "/v1/embeddings"),
        ("infinity/a/words", "/v1/embeddings"),
        ("ollama/words", "/v1/api/embed"),
    ],
)
async def test_each_wire_gives_the_same_vectors_without_a_key(model: str, path: str) -> None:
    async with WireServer(RetrievalModels()) as server:
        outcome = await embedded(embedder(server.url, model), RIVER, LAW)
    (received,) = server.requests
    assert received.path == path
    assert KEY not in repr(received)
    assert outcome.vectors == pytest.approx(np.array([word_vector(RIVER), word_vector(LAW)]), abs=1e-6)
    assert outcome.usage.prompt_tokens == 9
    assert outcome.usage.priced is (model != "openai/words")


async def test_the_key_goes_to_a_server_that_the_provider_s_variable_names() -> None:
    async with WireServer(RetrievalModels()) as server:
        model = embedder(server.url)
        env = {"OPENAI_API_KEY": KEY, "OPENAI_API_BASE": server.url}
        keyed = LitellmEmbedder(RetrievalModel("OFFING_EMBEDDING", "embedding model", "openai/words", server.url, env))
        await embedded(model, RIVER)
        await embedded(keyed, RIVER)
    assert [received.headers["authorization"] for received in server.requests] == ["Bearer none", f"Bearer {KEY}"]


async def test_a_listed_model_has_its_price() -> None:
    async with WireServer(RetrievalModels()) as server:
        outcome = await embedded(embedder(server.url, "openai/text-embedding-3-small"), RIVER * 100)
    assert outcome.usage.priced
    assert outcome.usage.cost_usd == Decimal("0.00000002") * outcome.usage.prompt_tokens > 0


async def test_usage_that_the_provider_does_not_send_is_estimated() -> None:
    def without_usage(body: Json) -> Json:
        return body | {"usage": {"prompt_tokens": 0, "total_tokens": 0}}

    async with WireServer(RetrievalModels(change=without_usage)) as server:
        outcome = await embedded(embedder(server.url, "openai/text-embedding-3-small"), RIVER)
    assert outcome.usage.prompt_tokens == math.ceil(len(RIVER) / 3.5)
    assert outcome.usage.cost_usd > 0


async def test_texts_go_in_batches_and_come_back_in_order() -> None:
    texts = [f"word{number} and" for number in range(7)]
    async with WireServer(RetrievalModels()) as server:
        outcome = await embedded(embedder(server.url, batch_size=3), *texts)
    assert [len(body["input"]) for body in server.bodies] == [3, 3, 1]
    assert outcome.vectors == pytest.approx(np.array([word_vector(text) for text in texts]), abs=1e-6)
    assert outcome.usage.prompt_tokens == 14


async def test_a_batch_of_long_texts_is_smaller() -> None:
    texts = [f"{number} " * 4000 for number in range(1, 4)] * 20
    async with WireServer(RetrievalModels()) as server:
        outcome = await embedded(embedder(server.url, batch_size=2048), *texts)
    assert [len(body["input"]) for body in server.bodies] == [25, 25, 10]
    assert outcome.vectors == pytest.approx(np.array([word_vector(text) for text in texts]), abs=1e-6)


async def test_a_batch_that_is_too_large_for_the_server_names_the_setting() -> None:
    large = Fault(422, "batch size 32 > maximum allowed batch size 16")
    async with WireServer(RetrievalModels(first=(large,))) as server:
        failure = await failed(embedder(server.url), RIVER)
    assert "maximum allowed batch size 16" in failure.message
    assert failure.message.endswith("Reduce OFFING_EMBEDDING_BATCH_SIZE.")


async def test_each_purpose_has_its_prefix() -> None:
    async with WireServer(RetrievalModels()) as server:
        model = embedder(server.url, query_prefix="query: ", passage_prefix="passage: ")
        await embedded(model, RIVER, purpose="query")
        await embedded(model, RIVER)
    assert [body["input"] for body in server.bodies] == [[f"query: {RIVER}"], [f"passage: {RIVER}"]]


@pytest.mark.parametrize(
    ("model", "values"),
    [
        ("voyage/voyage-3", {"input_type": ["query", "document"]}),
        ("nvidia_nim/words", {"input_type": ["query", "passage"]}),
        ("cohere/embed-v4.0", {"input_type": ["search_query", "search_document"]}),
        ("gemini/gemini-embedding-001", {"taskType": ["RETRIEVAL_QUERY", "RETRIEVAL_DOCUMENT"]}),
    ],
)
async def test_providers_that_tell_a_query_from_a_passage_get_the_purpose(
    model: str, values: dict[str, list[str]]
) -> None:
    async with WireServer(lambda _: Fault(400)) as server:
        env = {"OFFING_ALLOWED_ENGINE_URLS": server.url}
        other = LitellmEmbedder(RetrievalModel("OFFING_EMBEDDING", "embedding model", model, server.url, env))
        await failed(other, RIVER, purpose="query")
        await failed(other, RIVER)
    ((name, expected),) = values.items()
    assert [json.loads(r.raw).get(name) or r.body["requests"][0][name] for r in server.requests] == expected


@pytest.mark.parametrize("model", ["openai/words", "hosted_vllm/words", "ollama/words"])
async def test_dimensions_are_requested_and_checked(model: str) -> None:
    async with WireServer(RetrievalModels()) as server:
        outcome = await embedded(embedder(server.url, model, dimensions=16), RIVER)
    assert outcome.vectors.shape == (1, 16)
    async with WireServer(RetrievalModels(first=(Whole({"data": [row(0, [1.0])], "model": "m"}),))) as server:
        failure = await failed(embedder(server.url, dimensions=16), RIVER)
    assert "OFFING_EMBEDDING_DIMENSIONS is 16" in failure.message


async def test_blank_texts_are_not_sent_and_have_no_direction() -> None:
    async with WireServer(RetrievalModels()) as server:
        outcome = await embedded(embedder(server.url), "", RIVER, " \n")
    assert [body["input"] for body in server.bodies] == [[RIVER]]
    assert np.linalg.norm(outcome.vectors, axis=1) == pytest.approx([0, 1, 0])


async def test_blank_texts_alone_have_the_dimensions_of_the_model() -> None:
    async with WireServer(RetrievalModels()) as server:
        model = embedder(server.url)
        shapes = [(await embedded(model, *texts)).vectors.shape for texts in (["", " "], [""])]
    assert shapes == [(2, 64), (1, 64)]
    assert len(server.requests) == 1


async def test_no_texts_send_nothing() -> None:
    async with WireServer(RetrievalModels()) as server:
        outcome = await embedded(embedder(server.url))
    assert (len(outcome.vectors), outcome.usage, server.requests) == (0, Usage(), [])


async def test_text_that_cannot_be_encoded_is_sent_without_what_cannot() -> None:
    async with WireServer(RetrievalModels()) as server:
        await embedded(embedder(server.url), "lone \ud800 half")
    assert [body["input"] for body in server.bodies] == [["lone ? half"]]


async def test_a_long_query_is_shortened() -> None:
    async with WireServer(RetrievalModels()) as server:
        await embedded(embedder(server.url), "word " * 9000, purpose="query")
    assert [len(body["input"][0]) for body in server.bodies] == [2000]


@pytest.mark.parametrize(
    "rejection",
    [
        Fault(400, "This model's maximum context length is 9", "context_length_exceeded"),
        Fault(413, "Input validation error: `inputs` must have less than 512 tokens. Given: 700"),
    ],
    ids=["openai", "other"],
)
async def test_a_passage_that_is_too_long_for_the_model_is_shortened_until_it_fits(rejection: Fault) -> None:
    async with WireServer(RetrievalModels(max_chars=1500, too_long=rejection)) as server:
        outcome = await embedded(embedder(server.url), "word " * 1000, LAW)
    assert [len(body["input"][0]) for body in server.bodies] == [5000, 2500, 1250]
    assert {body["input"][1] for body in server.bodies} == {LAW}
    assert outcome.vectors.shape == (2, 64)


async def test_a_model_that_takes_no_length_fails_once_it_was_tried() -> None:
    async with WireServer(RetrievalModels(max_chars=1)) as server:
        failure = await failed(embedder(server.url), "word " * 1000)
    assert failure.kind is FailureKind.CONTEXT_TOO_LONG
    assert [len(body["input"][0]) for body in server.bodies] == [5000, 2500, 1250, 625, 312]


def row(index: int | None, vector: Any) -> Json:
    return {"object": "embedding", "index": index, "embedding": vector}


async def test_answers_out_of_order_are_put_in_order() -> None:
    def reverse(body: Json) -> Json:
        return body | {"data": body["data"][::-1]}

    async with WireServer(RetrievalModels(change=reverse)) as server:
        outcome = await embedded(embedder(server.url), RIVER, FLOOD, LAW)
    assert outcome.vectors == pytest.approx(np.array([word_vector(t) for t in (RIVER, FLOOD, LAW)]), abs=1e-6)


async def test_vectors_of_any_length_are_normalized() -> None:
    async with WireServer(RetrievalModels(change=replacing(row(0, [3e300, 4e300]), row(1, [0.0, 0.0])))) as server:
        outcome = await embedded(embedder(server.url), RIVER, LAW)
    assert outcome.vectors == pytest.approx(np.array([[0.6, 0.8], [0, 0]]))


def replacing(*rows: Json) -> Callable[[Json], Json]:
    return lambda body: body | {"data": list(rows)}


UNUSABLE = {
    "1 vectors for 2 texts": [row(0, [1.0])],
    "0 vectors for 2 texts": [],
    "3 vectors for 2 texts": [row(0, [1.0]), row(1, [1.0]), row(2, [1.0])],
    "repeated or too large": [row(0, [1.0]), row(0, [1.0])],
    "missing, repeated": [row(0, [1.0]), row(2, [1.0])],
    "not finite": [row(0, [1.0, math.nan]), row(1, [1.0, 1.0])],
    "that are not finite": [row(0, [1.0, math.inf]), row(1, [1.0, 1.0])],
    "different lengths": [row(0, [1.0]), row(1, [1.0, 1.0])],
    "other than numbers": [row(0, ["a"]), row(1, ["b"])],
    "without numbers": [row(0, []), row(1, [])],
}


@pytest.mark.parametrize("problem", UNUSABLE)
async def test_an_unusable_answer_is_a_failure_that_names_the_model(problem: str) -> None:
    async with WireServer(RetrievalModels(change=replacing(*UNUSABLE[problem]))) as server:
        failure = await failed(embedder(server.url, "hosted_vllm/words"), RIVER, LAW)
    assert len(server.requests) == 1
    assert failure.kind is FailureKind.INVALID_OUTPUT
    assert failure.message.startswith("The embedding model hosted_vllm/words sent an unusable response: ")
    assert problem in failure.message
    assert failure.usage.prompt_tokens == 9


async def test_a_server_that_changes_its_model_is_noticed() -> None:
    models = RetrievalModels()
    async with WireServer(models) as server:
        model = embedder(server.url)
        await embedded(model, RIVER)
        models.dimensions = 32
        failure = await failed(model, LAW)
    assert "vectors of 32 numbers, after earlier ones of 64" in failure.message
    assert "OFFING_EMBEDDING_MODEL" in failure.message


PASSING: list[tuple[Reply, FailureKind]] = [
    (Fault(429, "slow down", headers={"retry-after": "7"}), FailureKind.RATE_LIMITED),
    (Fault(500), FailureKind.OVERLOADED),
    (Malformed(), FailureKind.OVERLOADED),
    (Hangup(), FailureKind.OVERLOADED),
]


@pytest.mark.parametrize("model", ["openai/words", "hosted_vllm/words", "ollama/words"])
@pytest.mark.parametrize(("fault", "kind"), PASSING, ids=str)
async def test_passing_faults_are_tried_again_by_offing_alone(fault: Reply, kind: FailureKind, model: str) -> None:
    time = Time()
    async with WireServer(RetrievalModels(first=(fault,))) as server:
        await embedded(embedder(server.url, model, time), RIVER)
    assert len(server.requests) == 2
    assert time.waits == [0.25] or kind is FailureKind.RATE_LIMITED
    async with WireServer(RetrievalModels(first=(fault,) * 9)) as server:
        failure = await failed(embedder(server.url, model), RIVER)
    assert (failure.kind, len(server.requests)) == (kind, 4)
    assert failure.message.startswith(f"The embedding model {model} failed: ")


async def test_retry_after_is_honoured_in_the_background_and_ends_a_query() -> None:
    busy, time = Fault(429, "slow down", headers={"retry-after": "7"}), Time()
    async with WireServer(RetrievalModels(first=(busy,))) as server:
        await embedded(embedder(server.url, time=time), RIVER)
    assert time.waits == [7.25]
    async with WireServer(RetrievalModels(first=(busy,))) as server:
        failure = await failed(embedder(server.url), RIVER, purpose="query")
    assert (failure.kind, failure.retry_after, len(server.requests)) == (FailureKind.RATE_LIMITED, 7.0, 1)


async def test_a_query_is_tried_twice() -> None:
    async with WireServer(RetrievalModels(first=(Fault(500),) * 9)) as server:
        await failed(embedder(server.url), RIVER, purpose="query")
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("fault", "kind", "remedy"),
    [
        (Fault(401, "Incorrect API key"), FailureKind.AUTHENTICATION_FAILED, "OFFING_ALLOWED_ENGINE_URLS"),
        (Fault(404, "no such model"), FailureKind.MODEL_UNAVAILABLE, "Check OFFING_EMBEDDING_MODEL"),
        (Fault(400, "what is that"), FailureKind.BAD_REQUEST, "Check OFFING_EMBEDDING_MODEL"),
    ],
    ids=str,
)
async def test_permanent_errors_end_at_once_with_a_remedy(fault: Fault, kind: FailureKind, remedy: str) -> None:
    async with WireServer(RetrievalModels(first=(fault,))) as server:
        failure = await failed(embedder(server.url), RIVER)
    assert (failure.kind, len(server.requests)) == (kind, 1)
    assert fault.message in failure.message
    assert remedy in failure.message


async def test_a_wrong_key_names_its_variable() -> None:
    async with WireServer(RetrievalModels(first=(Fault(401, f"Incorrect API key {KEY}"),))) as server:
        env = {"OPENAI_API_KEY": KEY, "OPENAI_API_BASE": server.url}
        keyed = LitellmEmbedder(RetrievalModel("OFFING_EMBEDDING", "embedding model", "openai/words", server.url, env))
        failure = await failed(keyed, RIVER)
    assert failure.message.endswith("Set a valid OPENAI_API_KEY where Offing runs.")


async def test_a_failed_batch_charges_the_batches_before_it() -> None:
    models = RetrievalModels()
    async with WireServer(models) as server:
        model = embedder(server.url, batch_size=1)

        def fail_next(body: Json) -> Json:
            models.first = (Fault(401),)
            return body

        models.change = fail_next
        failure = await failed(model, RIVER, LAW)
    assert failure.usage.prompt_tokens == 5


@pytest.mark.parametrize("model", ["openai/words", "hosted_vllm/words", "ollama/words", "lm_studio/words"])
async def test_a_redirect_is_not_followed(model: str) -> None:
    async with WireServer(RetrievalModels()) as elsewhere:
        away = Fault(307, headers={"location": f"{elsewhere.url}/embeddings"})
        async with WireServer(lambda _: away) as server:
            env = {"OFFING_ALLOWED_ENGINE_URLS": server.url, "OPENAI_API_KEY": KEY, "HOSTED_VLLM_API_KEY": KEY}
            redirected = LitellmEmbedder(RetrievalModel("OFFING_EMBEDDING", "embedding model", model, server.url, env))
            failure = await failed(redirected, RIVER)
    assert (failure.kind, elsewhere.requests) == (FailureKind.BAD_REQUEST, [])
    assert "redirect" in failure.message
    assert KEY not in failure.message


@pytest.mark.parametrize("model", ["openai/words", "hosted_vllm/words", "ollama/words"])
async def test_a_hanging_server_is_a_timeout(model: str) -> None:
    limits = CallLimits(0.5, 600.0, RetryPolicy(max_attempts=2))
    async with WireServer(lambda _: Slow(Whole({}), 60)) as server:
        outcome = await embedder(server.url, model).model.call("aembedding", {"input": [RIVER]}, limits)
    assert isinstance(outcome, AttemptFailure)
    assert (outcome.kind, len(server.requests)) == (FailureKind.TIMEOUT, 2)


@pytest.mark.parametrize("model", ["openai/words", "hosted_vllm/words", "ollama/words"])
async def test_a_server_that_is_away_says_so_in_plain_words(model: str) -> None:
    async with WireServer(RetrievalModels()) as server:
        url = server.url
    failure = await failed(embedder(url, model), RIVER)
    assert failure.kind is FailureKind.OVERLOADED
    assert "onnect" in failure.message
    assert "OFFING_EMBEDDING_API_BASE" in failure.message
    assert not any(word in failure.message for word in ("Exception", "object at", "Error:"))


async def test_waits_and_attempts_end_with_the_total_time() -> None:
    limits, busy = CallLimits(5.0, 10.0, RetryPolicy()), Fault(429, headers={"retry-after": "6"})
    async with WireServer(lambda _: busy) as server:
        outcome = await embedder(server.url).model.call("aembedding", {"input": [RIVER]}, limits)
    assert isinstance(outcome, AttemptFailure)
    assert len(server.requests) == 2
    limits, time, models = CallLimits(60.0, 7.0, RetryPolicy()), Time(), RetrievalModels(first=(busy,))
    async with WireServer(lambda received: models(received) if models.first else Slow(Whole({}), 60)) as server:
        outcome = await embedder(server.url, time=time).model.call("aembedding", {"input": [RIVER]}, limits)
    assert isinstance(outcome, AttemptFailure)
    assert time.waits == [6.25, 0.5]
    assert outcome.message.startswith("The embedding model openai/words failed: No complete response within 0.25 s.")


async def test_a_cancelled_call_stays_cancelled() -> None:
    arrived = asyncio.Event()

    def wait(_: object) -> Reply:
        arrived.set()
        return Slow(Whole({}), 60)

    async with WireServer(wait) as server:
        task = asyncio.create_task(embedder(server.url).embed([RIVER], "passage"))
        await arrived.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_a_local_server_that_nobody_named_must_be_accepted_first() -> None:
    failure = await failed(embedder("", "ollama/words"), RIVER)
    assert failure.kind is FailureKind.BAD_REQUEST
    assert "OFFING_EMBEDDING_MODEL: 'ollama/words' is served at http://127.0.0.1:11434" in failure.message
    assert "offing engine accept http://127.0.0.1:11434" in failure.message


async def test_a_provider_with_other_secrets_needs_its_own_variable_for_another_server() -> None:
    async with WireServer(RetrievalModels()) as server:
        failure = await failed(embedder(server.url, "cohere/embed-v4.0"), RIVER)
    assert server.requests == []
    assert "OFFING_EMBEDDING_API_BASE" in failure.message
    assert "COHERE_API_BASE" in failure.message


async def test_a_key_that_the_server_repeats_is_not_in_the_message() -> None:
    async with WireServer(RetrievalModels(first=(Fault(401, "Incorrect API key provided: sk-1234567890abcdef"),))) as s:
        failure = await failed(embedder(s.url), RIVER)
    assert "1234567890abcdef" not in failure.message


def test_the_same_model_works_in_one_event_loop_after_another() -> None:
    async def embed(name: str) -> int:
        async with WireServer(RetrievalModels()) as server:
            return len((await embedded(embedder(server.url, name), RIVER)).vectors)

    for model in ("ollama/words", "openai/words", "hosted_vllm/words"):
        assert [asyncio.run(embed(model)), asyncio.run(embed(model))] == [1, 1]


async def test_the_settings_open_the_model() -> None:
    async with WireServer(RetrievalModels()) as server:
        settings = Settings(
            embedding_model="hosted_vllm/words",
            embedding_api_base=server.url,
            embedding_dimensions=16,
            embedding_query_prefix="q: ",
            embedding_passage_prefix="p: ",
            embedding_batch_size=1,
        )
        model = open_embedder(settings, os.environ)
        assert model is not None
        outcome = await model.embed([RIVER, LAW], "query")
    assert isinstance(outcome, Embeddings)
    assert [(body["input"], body["dimensions"]) for body in server.bodies] == [
        ([f"q: {RIVER}"], 16),
        ([f"q: {LAW}"], 16),
    ]
    assert model.key == 'hosted_vllm/words dimensions=16 query="q: " passage="p: "'
