"""`offing doctor` calls the embedding model and the reranker once and reports what they answer."""

from pathlib import Path
from typing import Any

from offing.core.check import Check
from offing.local import doctor
from offing.settings import Settings
from tests.model_provider import Fault, serve_on_thread
from tests.model_provider.retrieval_models import RetrievalModels


def inspect(home: Path, **values: Any) -> tuple[Check, Check]:
    return doctor.inspect_retrieval_models(Settings(home=home, **values))


def inspect_both(home: Path, embedding: str, rerank: str, url: str) -> tuple[Check, Check]:
    return inspect(home, embedding_model=embedding, embedding_api_base=url, rerank_model=rerank, rerank_api_base=url)


def test_without_a_model_there_is_nothing_to_do(tmp_path: Path) -> None:
    checks = inspect(tmp_path)
    assert [(check.ok, check.remedy) for check in checks] == [(True, None)] * 2
    assert checks[0].detail == "not configured, so documents are searched by words alone"


def test_models_that_respond_are_described(tmp_path: Path) -> None:
    with serve_on_thread(RetrievalModels()) as server:
        checks = inspect_both(tmp_path, "hosted_vllm/words", "infinity/ranks", server.url)
    assert [(check.ok, check.detail) for check in checks] == [
        (True, "hosted_vllm/words, vectors of 64 numbers"),
        (True, "infinity/ranks, scores such as 1 and 0"),
    ]
    assert len(server.requests) == 2


def test_a_model_that_fails_is_reported_with_its_remedy(tmp_path: Path) -> None:
    with serve_on_thread(lambda _: Fault(401, "Incorrect API key")) as server:
        checks = inspect_both(tmp_path, "openai/words", "hosted_vllm/ranks", server.url)
    assert [check.ok for check in checks] == [False, False]
    assert "OPENAI_API_KEY" in checks[0].detail
    assert "HOSTED_VLLM_API_KEY" in checks[1].detail
    assert "OFFING_EMBEDDING_MODEL" in (checks[0].remedy or "")
    assert "OFFING_RERANK_MODEL" in (checks[1].remedy or "")


def test_a_setting_that_cannot_work_is_reported(tmp_path: Path) -> None:
    check, _ = inspect(tmp_path, embedding_model="openai/m", embedding_api_base="nonsense")
    assert (check.ok, check.detail.partition(":")[0]) == (False, "OFFING_EMBEDDING_API_BASE")
    _, check = inspect(tmp_path, rerank_model="openai/m")
    assert (check.ok, check.detail.partition(":")[0]) == (False, "OFFING_RERANK_MODEL")


def test_a_model_that_ranks_a_wrong_answer_first_is_reported(tmp_path: Path) -> None:
    def turn(body: dict[str, Any]) -> dict[str, Any]:
        results = [{**result, "relevance_score": -result["relevance_score"]} for result in body["results"]]
        return body | {"results": results}

    with serve_on_thread(RetrievalModels(change=turn)) as server:
        _, check = inspect(tmp_path, rerank_model="hosted_vllm/ranks", rerank_api_base=server.url)
    assert not check.ok
    assert "ranks a wrong answer first" in check.detail
