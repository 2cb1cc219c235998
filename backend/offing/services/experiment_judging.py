"""Let a judge compare the reports of an experiment, each pair in both orders.

Each judgment is stored as soon as it exists, so that an interrupted experiment does not pay twice. A failure of the
judge is stored, and requested again when the experiment is resumed.
"""

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from uuid import UUID

from offing.core.model import EngineConfig
from offing.scorers.pairwise_judge import ReportPair, judge_pair, render_report
from offing.services.experiment_summary import is_failed
from offing.services.experiments import Experiment, ExperimentResults, build_budget_conflict, read_results
from offing.services.judge_meter import JudgeMeter
from offing.services.providers import TenantProviders
from offing.services.tenant_meter import TenantMeter
from offing.storage import experiments, reports
from offing.storage.experiments import ConfigurationRow, JudgmentRow, ResultRow
from offing.storage.pool import Database

MAX_CONCURRENT_CALLS = 4
"""Maximum number of judge calls at the same time."""

JudgeProgressCallback = Callable[[int, int], None]
"""Called with the number of judged comparisons and of all comparisons."""


@dataclass(frozen=True, slots=True)
class _Comparison:
    """One call of the judge to make."""

    question: str
    row: ResultRow
    base: ResultRow
    is_swapped: bool


async def judge_reports(
    database: Database, tenant_id: UUID, experiment: Experiment, on_progress: JudgeProgressCallback
) -> None:
    """Judge all pairs without a verdict. Without a judge, do nothing.

    Calls are charged to the judge budget of the configuration that is compared with the first one, and to the
    tenant's day. Raises Conflict if a budget had no room for a call; verdicts are kept.
    """
    if experiment.row.judge is None:
        return
    choice = EngineConfig.model_validate(experiment.row.judge)
    async with database.transaction(tenant_id) as connection:
        stored = await read_results(connection, experiment)
        configurations = await experiments.list_configurations(connection, [experiment.row.id])
    pending, total = _list_pending(stored)
    semaphore = asyncio.Semaphore(MAX_CONCURRENT_CALLS)
    meters = {one.number: _open_meter(database, tenant_id, one) for one in configurations}
    finished = total - len(pending)
    on_progress(finished, total)

    async def work(comparison: _Comparison) -> None:
        nonlocal finished
        meter = meters[comparison.row.number]
        async with semaphore:
            if not _is_spent(meter):
                await _judge(database, tenant_id, experiment.row.id, comparison, choice, meter)
        finished += 1
        on_progress(finished, total)

    await asyncio.gather(*map(work, pending))
    for one in configurations:
        if _is_spent(meters[one.number]):
            raise build_budget_conflict(one.name)


def _open_meter(database: Database, tenant_id: UUID, one: ConfigurationRow) -> JudgeMeter | TenantMeter:
    """Return the meter of a configuration's judge. A batch that was deleted has no budget any more."""
    if one.batch_id is None:
        return TenantMeter(database, tenant_id)
    return JudgeMeter(database, tenant_id, one.batch_id)


def _is_spent(meter: JudgeMeter | TenantMeter) -> bool:
    return isinstance(meter, JudgeMeter) and meter.is_spent


def _list_pending(stored: ExperimentResults) -> tuple[list[_Comparison], int]:
    """Return the comparisons without a verdict, and the number of all comparisons."""
    known = {(row.number, row.task_id, row.is_swapped) for row in stored.judgments if row.verdict is not None}
    questions = {task.id: task.question for task in stored.tasks}
    by_key: Mapping[tuple[int, UUID], ResultRow] = {
        (row.number, row.task_id): row for row in stored.results if not is_failed(row) and row.run_id is not None
    }
    every = [
        _Comparison(questions[task], by_key[number, task], by_key[0, task], is_swapped)
        for task in questions
        for number in range(1, len(stored.experiment.configurations))
        if (number, task) in by_key and (0, task) in by_key
        for is_swapped in (False, True)
    ]
    return [one for one in every if (one.row.number, one.row.task_id, one.is_swapped) not in known], len(every)


async def _judge(
    database: Database,
    tenant_id: UUID,
    experiment_id: UUID,
    comparison: _Comparison,
    choice: EngineConfig,
    meter: JudgeMeter | TenantMeter,
) -> None:
    row, base = comparison.row, comparison.base
    assert row.run_id is not None
    assert base.run_id is not None
    async with database.transaction(tenant_id) as connection:
        ours = render_report(await reports.find_own_report(connection, row.run_id))
        theirs = render_report(await reports.find_own_report(connection, base.run_id))
    first, second = (ours, theirs) if comparison.is_swapped else (theirs, ours)
    pair = ReportPair(question=comparison.question, first=first, second=second)
    find = TenantProviders(database, tenant_id).find
    result = await judge_pair(pair, choice, _derive_seed(row.task_id, comparison.is_swapped), meter, find)
    judgment = JudgmentRow(
        number=row.number,
        task_id=row.task_id,
        is_swapped=comparison.is_swapped,
        verdict=result.verdict,
        reason=result.reason,
        model=result.model,
        tokens=result.usage.tokens,
        cost_usd=float(result.usage.cost_usd),
    )
    async with database.transaction(tenant_id) as connection:
        await experiments.store_judgment(connection, tenant_id, experiment_id, judgment, row.run_id, base.run_id)


def _derive_seed(task_id: UUID, is_swapped: bool) -> int:
    digest = hashlib.blake2b(f"{task_id}:{is_swapped}".encode(), digest_size=6).digest()
    return int.from_bytes(digest, "big")
