"""No secret reaches the server of an embedding model or a reranker unless the operator's variables say so."""

import logging
from typing import Any

import pytest

from offing.core.model import FailureKind
from offing.models.litellm_client import get_litellm
from offing.models.litellm_embedder import LitellmEmbedder
from offing.models.litellm_reranker import LitellmReranker
from offing.models.retrieval_model import RetrievalModel
from offing.models.role_call import AttemptFailure
from tests.model_provider import Fault, WireServer
from tests.models.test_redirects import arrived, canaries, redirecting, secrets

__all__ = ["canaries", "secrets"]  # fixtures

pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning", "ignore:Unclosed:ResourceWarning")


def model(name: str, url: str, env: dict[str, str]) -> RetrievalModel:
    return RetrievalModel("OFFING_EMBEDDING", "embedding model", name, url, env)


async def list_providers() -> list[str]:
    litellm = await get_litellm()
    return sorted({str(getattr(one, "value", one)) for one in litellm.provider_list})


async def test_no_secret_of_the_environment_arrives_at_a_server_of_the_settings(secrets: dict[str, str]) -> None:
    """Through every provider: most are rejected, and the others say nothing of whose request it is."""
    requests = dict[str, set[str]](embedding=set(), rerank=set())
    async with WireServer(lambda _: Fault(500)) as elsewhere:
        for provider in await list_providers():
            async with redirecting(elsewhere) as server:
                retrieval_model = model(f"{provider}/some-model", server.url, secrets)
                calls: dict[str, Any] = {
                    "embedding": LitellmEmbedder(retrieval_model).embed(["a text"], "passage"),
                    "rerank": LitellmReranker(retrieval_model).rerank("a query", ["a text"]),
                }
                for kind, call in calls.items():
                    server.requests.clear()
                    failure = await call
                    assert isinstance(failure, AttemptFailure), failure
                    assert arrived(server.requests) == set(), f"{provider} {kind}"
                    assert "canary" not in failure.message
                    requests[kind] |= {provider} if server.requests else set()
        assert elsewhere.requests == []
    assert {"openai", "ollama", "hosted_vllm", "lm_studio", "infinity", "xinference"} <= requests["embedding"]
    assert requests["rerank"] == {"hosted_vllm", "infinity", "litellm_proxy"}


async def test_no_provider_is_followed_to_another_address(secrets: dict[str, str]) -> None:
    """Also at a server that gets the key, because the operator's variables name it."""
    requests = set[str]()
    async with WireServer(lambda _: Fault(500)) as elsewhere:
        for provider in await list_providers():
            async with redirecting(elsewhere, place=f"{provider}/embeddings") as server:
                env = secrets | {"OFFING_ALLOWED_ENGINE_URLS": server.url}
                retrieval_model = model(f"{provider}/some-model", server.url, env)
                await LitellmEmbedder(retrieval_model).embed(["a text"], "query")
                await LitellmReranker(retrieval_model).rerank("a query", ["a text"])
                requests |= {provider} if server.requests else set()
        assert elsewhere.requests == [], f"followed: {[one.path for one in elsewhere.requests]}"
    assert len(requests) > 30, "litellm asks fewer providers here than it did"


@pytest.mark.parametrize("name", ["openai/words", "hosted_vllm/words", "ollama/words"])
async def test_texts_and_keys_are_in_no_log(name: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with WireServer(lambda _: Fault(400, "no such model")) as server:
        env = {
            "OFFING_ALLOWED_ENGINE_URLS": server.url,
            "OPENAI_API_KEY": "canary-key",
            "HOSTED_VLLM_API_KEY": "canary-key",
        }
        outcome = await LitellmEmbedder(model(name, server.url, env)).embed(["canary text"], "passage")
        if name.startswith("hosted_vllm"):
            await LitellmReranker(model(name, server.url, env)).rerank("canary query", ["canary text"])
    assert isinstance(outcome, AttemptFailure)
    assert outcome.kind is FailureKind.BAD_REQUEST
    assert "canary" not in caplog.text
