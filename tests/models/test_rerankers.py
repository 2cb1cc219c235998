"""A reranker through litellm: what is sent to each provider, and what becomes of each answer."""

from decimal import Decimal
from typing import Any

import pytest

from offing.core.errors import InvalidInput
from offing.core.model import FailureKind, Usage
from offing.models.embedding import RerankScores
from offing.models.embedding_models import open_reranker
from offing.models.litellm_client import get_litellm
from offing.models.litellm_reranker import RERANK_PROVIDERS, LitellmReranker
from offing.models.retrieval_model import RetrievalModel
from offing.models.role_call import AttemptFailure, CallSettings
from offing.settings import Settings
from tests.model_provider import Fault, Malformed, Reply, WireServer
from tests.model_provider.retrieval_models import RetrievalModels
from tests.models.builders import Time

pytestmark = pytest.mark.filterwarnings("ignore:The `dict` method is deprecated")  # by litellm, for together_ai

Json = dict[str, Any]
QUERY = "river flood valley"
TEXTS = ["a law of parliament", "the river and the flood", "valley river flood"]
EXPECTED = (0.0, 2 / 3, 1.0)
KEY = "canary-key-of-mine"


def reranker(url: str, model: str = "hosted_vllm/ranks", **more: str) -> LitellmReranker:
    time, env = Time(), {"HOSTED_VLLM_API_KEY": KEY} | more
    settings = CallSettings(sleep=time.sleep, random_float=lambda: 0.5, clock=time.clock)
    return LitellmReranker(RetrievalModel("OFFING_RERANK", "reranker", model, url, env, settings))


async def scored(model: LitellmReranker, *texts: str, query: str = QUERY) -> RerankScores:
    outcome = await model.rerank(query, texts)
    assert isinstance(outcome, RerankScores), outcome
    return outcome


async def failed(model: LitellmReranker, *texts: str, query: str = QUERY) -> AttemptFailure:
    outcome = await model.rerank(query, texts)
    assert isinstance(outcome, AttemptFailure), outcome
    return outcome


@pytest.mark.parametrize(
    ("model", "path"),
    [
        ("hosted_vllm/a/ranks", "/v1/rerank"),
        ("infinity/a/ranks", "/v1/rerank"),
        ("cohere/rerank-v3.5", "/v1/v2/rerank"),
        ("jina_ai/jina-reranker-v2-base-multilingual", "/v1/rerank"),
        ("litellm_proxy/ranks", "/v1/v1/rerank"),
        ("together_ai/ranks", "/v1/rerank"),
    ],
)
async def test_each_provider_s_answer_is_in_the_order_of_the_texts(model: str, path: str) -> None:
    async with WireServer(RetrievalModels()) as server:
        key = f"{model.partition('/')[0].upper()}_API_KEY"
        outcome = await scored(reranker(server.url, model, OFFING_ALLOWED_ENGINE_URLS=server.url, **{key: KEY}), *TEXTS)
    (received,) = server.requests
    assert (received.path, received.body["query"], received.body["documents"]) == (path, QUERY, TEXTS)
    assert received.body["top_n"] == 3
    assert KEY in received.headers["authorization"] or model.startswith("together_ai")
    assert outcome.scores == pytest.approx(EXPECTED)


async def test_a_self_hosted_model_costs_nothing_and_gets_no_key() -> None:
    async with WireServer(RetrievalModels()) as server:
        outcome = await scored(reranker(server.url), *TEXTS)
    assert KEY not in repr(server.requests)
    assert outcome.usage == Usage(15, 0, Decimal(), priced=True)


async def test_searches_have_their_price_and_no_tokens() -> None:
    async with WireServer(RetrievalModels()) as server:
        env = {"OFFING_ALLOWED_ENGINE_URLS": server.url, "COHERE_API_KEY": KEY}
        outcome = await scored(reranker(server.url, "cohere/rerank-v3.5", **env), *TEXTS)
    assert outcome.usage == Usage(0, 0, Decimal("0.002"), priced=True)


async def test_a_model_that_is_not_listed_has_no_price() -> None:
    async with WireServer(RetrievalModels()) as server:
        env = {"OFFING_ALLOWED_ENGINE_URLS": server.url, "COHERE_API_KEY": KEY}
        outcome = await scored(reranker(server.url, "cohere/never-heard-of", **env), *TEXTS)
    assert (outcome.usage.cost_usd, outcome.usage.priced) == (0, False)


async def test_blank_texts_are_not_sent_and_come_last() -> None:
    async with WireServer(RetrievalModels()) as server:
        outcome = await scored(reranker(server.url), "", *TEXTS, " ")
    assert server.bodies[0]["documents"] == TEXTS
    assert outcome.scores == pytest.approx((-1.0, *EXPECTED, -1.0))


@pytest.mark.parametrize(("query", "texts"), [(" ", TEXTS), (QUERY, ["", " "]), (QUERY, [])])
async def test_without_a_query_or_a_text_nothing_is_sent(query: str, texts: list[str]) -> None:
    async with WireServer(RetrievalModels()) as server:
        outcome = await scored(reranker(server.url), *texts, query=query)
    assert (outcome.scores, outcome.usage, server.requests) == ((0.0,) * len(texts), Usage(), [])


async def test_texts_that_the_answer_leaves_out_come_last() -> None:
    def shorten(body: Json) -> Json:
        return body | {"results": body["results"][:1]}

    async with WireServer(RetrievalModels(change=shorten)) as server:
        outcome = await scored(reranker(server.url), *TEXTS)
    assert outcome.scores == (0.0, 0.0, 1.0)


async def test_many_texts_go_in_several_requests() -> None:
    texts = [*["a law"] * 149, QUERY]
    async with WireServer(RetrievalModels()) as server:
        outcome = await scored(reranker(server.url), *texts)
    assert [len(body["documents"]) for body in server.bodies] == [100, 50]
    assert outcome.scores == (*[0.0] * 149, 1.0)


async def test_long_texts_are_shortened_until_the_model_takes_them() -> None:
    async with WireServer(RetrievalModels(max_chars=1500)) as server:
        await scored(reranker(server.url), "word " * 1000, query="word " * 1000)
    assert [len(body["documents"][0]) for body in server.bodies] == [5000, 2500, 1250]
    assert {len(body["query"]) for body in server.bodies} == {2000}


def result(index: Any, score: Any) -> Json:
    return {"index": index, "relevance_score": score}


UNUSABLE = {
    "no results": [],
    "the index 3 for 3 texts": [result(0, 0.1), result(3, 0.2)],
    "the index -1 for 3 texts": [result(-1, 0.1)],
    "the index 1 twice": [result(1, 0.1), result(1, 0.2)],
    "not a finite number": [result(0, float("nan"))],
}


@pytest.mark.parametrize("problem", UNUSABLE)
async def test_an_unusable_answer_is_a_failure_that_names_the_model(problem: str) -> None:
    async with WireServer(RetrievalModels(change=lambda body: body | {"results": UNUSABLE[problem]})) as server:
        failure = await failed(reranker(server.url), *TEXTS)
    assert (failure.kind, len(server.requests)) == (FailureKind.INVALID_OUTPUT, 1)
    assert failure.message.startswith("The reranker hosted_vllm/ranks sent an unusable response: ")
    assert problem in failure.message
    assert failure.usage.prompt_tokens == 15


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (Fault(429), FailureKind.RATE_LIMITED),
        (Fault(500), FailureKind.OVERLOADED),
        (Malformed(), FailureKind.OVERLOADED),
        (Malformed(b'{"id": "x"}'), FailureKind.OVERLOADED),
    ],
    ids=str,
)
async def test_passing_faults_are_tried_twice(fault: Reply, kind: FailureKind) -> None:
    async with WireServer(RetrievalModels(first=(fault,))) as server:
        await scored(reranker(server.url), *TEXTS)
    assert len(server.requests) == 2
    async with WireServer(RetrievalModels(first=(fault,) * 9)) as server:
        failure = await failed(reranker(server.url), *TEXTS)
    assert (failure.kind, len(server.requests)) == (kind, 2)
    assert failure.message.startswith("The reranker hosted_vllm/ranks failed: ")
    assert "OFFING_RERANK_API_BASE" in failure.message or kind is FailureKind.RATE_LIMITED


async def test_a_wrong_key_names_its_variable() -> None:
    async with WireServer(RetrievalModels(first=(Fault(401, "no such key"),))) as server:
        env = {"OFFING_ALLOWED_ENGINE_URLS": server.url, "COHERE_API_KEY": KEY}
        failure = await failed(reranker(server.url, "cohere/rerank-v3.5", **env), *TEXTS)
    assert (failure.kind, len(server.requests)) == (FailureKind.AUTHENTICATION_FAILED, 1)
    assert "COHERE_API_KEY" in failure.message
    assert KEY not in failure.message


@pytest.mark.parametrize("model", ["hosted_vllm/ranks", "infinity/ranks", "cohere/rerank-v3.5", "together_ai/ranks"])
async def test_a_redirect_is_not_followed(model: str) -> None:
    async with WireServer(RetrievalModels()) as elsewhere:
        away = Fault(307, headers={"location": f"{elsewhere.url}/rerank"})
        async with WireServer(lambda _: away) as server:
            env = {"OFFING_ALLOWED_ENGINE_URLS": server.url, f"{model.partition('/')[0].upper()}_API_KEY": KEY}
            failure = await failed(reranker(server.url, model, **env), *TEXTS)
    assert len(server.requests) == 1
    assert (failure.kind, elsewhere.requests) == (FailureKind.BAD_REQUEST, [])
    assert "redirect" in failure.message


async def test_the_listed_providers_are_those_that_litellm_can_rerank_with() -> None:
    litellm = await get_litellm()
    from litellm.utils import ProviderConfigManager

    unsupported = (litellm.CohereRerankConfig, litellm.CohereRerankV2Config)

    def can_rerank(provider: Any) -> bool:
        config = ProviderConfigManager.get_provider_rerank_config("some-model", provider, "http://127.0.0.1", [])
        return type(config) not in unsupported or provider.value in ("cohere", "litellm_proxy")

    providers = {provider.value for provider in litellm.LlmProviders if can_rerank(provider)}
    assert providers | {"bedrock", "together_ai"} == RERANK_PROVIDERS  # these two have code of their own


async def test_the_settings_open_the_model() -> None:
    async with WireServer(RetrievalModels()) as server:
        model = open_reranker(Settings(rerank_model="infinity/ranks", rerank_api_base=server.url), {})
        assert model is not None
        outcome = await model.rerank(QUERY, TEXTS)
    assert isinstance(outcome, RerankScores)
    assert outcome.scores == pytest.approx(EXPECTED)


def test_a_provider_without_rerankers_is_rejected_with_those_that_have_them() -> None:
    with pytest.raises(InvalidInput, match=r"^OFFING_RERANK_MODEL: openai has no rerankers\. .*hosted_vllm"):
        open_reranker(Settings(rerank_model="openai/gpt-4o"))
