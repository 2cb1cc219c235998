"""What a run retrieved and calculated is read from its steps, each passage once and in the order of the calls."""

from typing import Any
from uuid import UUID

import pytest

from offing.core.step import StepDraft, StepKind
from offing.core.usage import UsageDelta
from offing.storage import claims, steps
from offing_workers import recorded_results
from offing_workers.recorded_results import read_recorded_results
from tests.workers.rollout_batches import TERM, Collector


def a_passage(number: int) -> dict[str, Any]:
    return {"text_id": str(UUID(int=number)), "source": str(UUID(int=100 + number)), "title": f"Document {number}",
            "name": f"{number}.md", "heading": "", "start": 0, "end": 5, "text": "Text.", "score": 1.0}  # fmt: skip


def a_result(tool: str, content: dict[str, Any], status: str = "ok") -> StepDraft:
    return StepDraft(StepKind.TOOL_RESULT, tool, {"tool": tool, "status": status, "content": content})


@pytest.mark.parametrize("page_size", [2, 200])
async def test_passages_are_in_the_order_of_retrieval_and_calculations_in_that_of_calls(
    collector: Collector, monkeypatch: pytest.MonkeyPatch, page_size: int
) -> None:
    monkeypatch.setattr(recorded_results, "MAX_STEPS_PER_QUERY", page_size)
    await collector.collect(size=1)
    (rollout,) = await collector.members()
    claim = await claims.claim_run(collector.database, rollout.run_id, "hands", TERM)
    assert claim is not None
    drafts = [
        a_result("search_library", {"query": "a", "passages": [a_passage(3), a_passage(1)]}),
        a_result("calculate", {"expression": "6*7", "result": 42, "text": "42"}),
        StepDraft(StepKind.NOTE, "A note", {"content": {"passages": [a_passage(9)]}}),
        a_result("search_library", {"query": "b", "passages": [a_passage(1), a_passage(2)]}),
        a_result("calculate", {}, "failed"),
        a_result("run_python", {"exit": 0, "stdout": "3.5\n", "error": ""}),
        a_result("read_source", a_passage(4)),
    ]
    async with collector.database.transaction(collector.tenant) as connection:
        await steps.append_steps(connection, claim.fence, TERM, drafts, UsageDelta())
        results = await read_recorded_results(connection, rollout.run_id)
    assert [passage.title for passage in results.retrieved] == [f"Document {n}" for n in (3, 1, 2, 4)]
    assert [passage.id for passage in results.retrieved] == ["E1", "E2", "E3", "E4"]
    assert results.calculations == ("42", "3.5\n")
