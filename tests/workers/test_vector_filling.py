"""A worker process computes vectors after an upload, and its runs search by them."""

import asyncio
import time
from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from offing.core.model import FailureKind
from offing.core.run import Budget
from offing.core.step import StepKind
from offing.models.embedding import EmbeddingPurpose, Embeddings
from offing.models.role_call import AttemptFailure
from offing.services.runs import RunRequest
from offing.storage import vectors
from offing.storage.vectors import VectorCoverage
from offing_workers import vector_filler
from offing_workers.vector_filler import VectorFiller
from tests.documents import ingest_folder
from tests.model_provider.embeddings import WordEmbedder
from tests.model_provider.retrieval_models import RetrievalModels
from tests.model_provider.server import WireServer
from tests.workers.conftest import Platform, StartWorker

MODEL = "openai/words"


@dataclass(slots=True)
class FailingEmbedder(WordEmbedder):
    """An embedding model whose third call a test can await."""

    third_call: asyncio.Event = field(default_factory=asyncio.Event)

    async def embed(self, texts: Sequence[str], purpose: EmbeddingPurpose) -> Embeddings | AttemptFailure:
        result = await WordEmbedder.embed(self, texts, purpose)
        if len(self.calls) == 3:
            self.third_call.set()
        return result


async def coverage_when(platform: Platform, filled_count: int, key: str = MODEL) -> VectorCoverage:
    """The coverage as soon as `filled_count` texts have vectors."""
    give_up = time.monotonic() + 60
    while True:
        async with platform.database.transaction(platform.tenant) as connection:
            coverage = await vectors.get_coverage(connection, platform.tenant, key)
        if coverage.filled_count >= filled_count:
            return coverage
        assert time.monotonic() < give_up, coverage
        await asyncio.sleep(0.1)


async def wait_for_lines(logs: Sequence[MutableMapping[str, Any]], count: int) -> None:
    """Wait until `count` lines are logged."""
    give_up = time.monotonic() + 60
    while True:
        if len(logs) >= count:
            return
        assert time.monotonic() < give_up, logs
        await asyncio.sleep(0.02)


@pytest.mark.timeout(300)
async def test_a_worker_computes_vectors_and_its_runs_search_by_them(
    platform: Platform, start_worker: StartWorker, tmp_path: Path
) -> None:
    (tmp_path / "tower.md").write_text("# Eddystone\n\nJohn Smeaton built the third tower.\n")
    async with WireServer(RetrievalModels()) as server:
        start_worker(OFFING_EMBEDDING_MODEL=MODEL, OFFING_EMBEDDING_API_BASE=server.url)
        await ingest_folder(platform.database, platform.tenant, tmp_path)
        assert await coverage_when(platform, 1) == VectorCoverage(1, 1, 0, 64)
        request = RunRequest("Who built the third tower?", budget=Budget(max_turns=3))
        ended = await platform.ended((await platform.submit(request)).id)
    inputs = [body["input"] for body in server.bodies]
    assert inputs[0] == ["Eddystone\nEddystone\n# Eddystone\n\nJohn Smeaton built the third tower."]
    searches = [
        step.payload
        for step in await platform.steps(ended.id)
        if step.kind is StepKind.TOOL_RESULT and "passages" in (step.payload.get("content") or {})
    ]
    assert searches
    assert [searches[0]["args"]["query"]] == inputs[1]
    assert "notices" not in searches[0]["content"]


async def test_a_failure_is_logged_once_until_the_model_answers_again(
    platform: Platform, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_filler, "MIN_PAUSE_SECONDS", 0.01)
    embedder = FailingEmbedder(failure=AttemptFailure(FailureKind.OVERLOADED, "The server is away."))
    (tmp_path / "tower.md").write_text("John Smeaton built the third tower.\n")
    await ingest_folder(platform.database, platform.tenant, tmp_path)
    filler = VectorFiller(platform.database, embedder, lambda: False)
    with capture_logs() as logs:
        task = asyncio.create_task(filler.run(0.01))
        async with asyncio.timeout(60):
            await embedder.third_call.wait()
        embedder.failure = None
        await coverage_when(platform, 1, embedder.key)
        await wait_for_lines(logs, 3)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert [entry["log_level"] for entry in logs] == ["warning", "info", "info"]
