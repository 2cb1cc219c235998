"""A report that is being committed while a branch beside it raises is the run's report."""

import asyncio
from typing import Any

import pytest

from offing.storage import reports
from tests.chaos import checker
from tests.chaos.private_stack import facts
from tests.workers import special_graphs
from tests.workers.interrupted_runs import Bench, bench

__all__ = ["bench"]

LONG = 0.1
"""Seconds for which the report's transaction continues after the other branch was let to raise."""


async def test_a_report_whose_branch_was_cancelled_at_its_commit_is_not_written_over(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    delivering, insert = asyncio.Event(), reports.insert_report
    monkeypatch.setattr(special_graphs, "DELIVERING", [delivering])

    async def held(*inputs: Any, **options: Any) -> None:
        await insert(*inputs, **options)
        delivering.set()
        await asyncio.sleep(LONG)

    monkeypatch.setattr(reports, "insert_report", held)
    run = await bench.submitted("overtaken")
    await bench.advance(bench.database, run)
    rows = facts(bench.ask, run)
    assert checker.violations(rows) == []
    assert (rows.run.status, rows.run.stop_reason) == ("failed", "graph_error")
    assert [r.body["sections"][0]["heading"] for r in rows.reports] == ["Done"]
