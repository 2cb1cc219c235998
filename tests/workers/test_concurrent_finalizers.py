"""Several finalizers at once, and finalizers that are lost at any moment: each rollout is finalized once."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Literal
from uuid import UUID

import pytest

from offing.core.errors import Unavailable
from offing.core.run import StopReason
from offing.services import rollouts
from offing.services.rollouts import ScorerSpec
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Connection, Database
from offing_workers import rollout_finalizer
from offing_workers.rollout_finalizer import finalize_ended_rollout, finalize_overdue
from tests.workers.rollout_batches import JUDGE, SECRET, Collector, Died, Sql, a_task, wait_until_finalized


async def test_finalizing_again_or_at_the_same_time_changes_nothing(collector: Collector) -> None:
    await collector.collect(size=4)
    members = await collector.members()
    for n, member in enumerate(members):
        await collector.end(
            member.run_id, SECRET if n else None, reason=StopReason.ANSWERED if n else StopReason.NO_PROGRESS
        )
    await asyncio.gather(*(wait_until_finalized(collector, m.run_id) for m in members for _ in range(5)))
    before = await collector.group()
    assert [(r.member, r.attempt) for r in before.rollouts] == [(0, 1), (0, 2), (1, 1), (2, 1), (3, 1)]
    assert len(before.scores) == 3
    await asyncio.gather(*(wait_until_finalized(collector, m.run_id) for m in members))
    assert await collector.group() == before


async def test_two_finalizers_do_not_ask_the_same_judge_twice(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = {**JUDGE, "options": {**JUDGE["options"], "delay_ms": 100}}
    await collector.collect(size=1, scorers=[ScorerSpec("rubric_judge", 1, {"engine": slow})])
    (one,) = await collector.members()
    await collector.end(one.run_id, SECRET)
    call_count = 0
    once = rollout_finalizer._compute_scores  # pyright: ignore[reportPrivateUsage]

    async def counted(work: Any, meter: Any) -> Any:
        nonlocal call_count
        call_count += 1
        return await once(work, meter)

    monkeypatch.setattr(rollout_finalizer, "_compute_scores", counted)
    await asyncio.gather(*(wait_until_finalized(collector, one.run_id) for _ in range(5)))
    assert call_count == 1
    assert (await collector.group()).group.state == "complete"


class Disturbed(Database):
    """At its nth statement or transaction, Postgres goes away or the settler dies."""

    at = 0
    count = 0
    what: Literal["away", "killed"] = "away"

    @asynccontextmanager
    async def transaction(self, tenant_id: UUID, *, pipelined: bool = False) -> AsyncGenerator[Connection]:
        self._strike()
        async with super().transaction(tenant_id, pipelined=pipelined) as connection:
            execute = connection.execute

            async def watched(*args: Any, **kwargs: Any) -> Any:
                self._strike()
                return await execute(*args, **kwargs)

            connection.execute = watched  # pyright: ignore[reportAttributeAccessIssue]
            try:
                yield connection
                self._strike()
            finally:
                del connection.execute
        self._strike()

    def _strike(self) -> None:
        self.count += 1
        if self.count == self.at:
            raise Died if self.what == "killed" else Unavailable("on purpose")


@pytest.mark.parametrize("what", ["away", "killed"])
@pytest.mark.parametrize("rated", [False, True], ids=["rules", "judge"])
async def test_a_finalizer_that_crashes_at_any_moment_leaves_nothing_half_done(
    app_url: str, sql: Sql, what: Literal["away", "killed"], rated: bool
) -> None:
    scorers = [ScorerSpec("exact_match"), *([ScorerSpec("rubric_judge", 1, {"engine": JUDGE})] if rated else [])]
    async with Database(app_url, max_connections=4) as calm, Disturbed(app_url, max_connections=2) as disturbed:
        disturbed.what = what
        collector, moment, struck = Collector(calm), 0, True
        while struck:
            moment += 1
            await collector.collect(a_task(f"Question {moment}?"), size=2, attempts=2, scorers=scorers)
            good, bad = (await collector.members())[-2:]
            await collector.end(good.run_id, SECRET)
            await collector.end(bad.run_id, None, reason=StopReason.PROVIDER_DOWN)
            struck = False
            for run in (good.run_id, bad.run_id):
                disturbed.at, disturbed.count = moment, 0
                try:
                    await finalize_ended_rollout(disturbed, collector.notifier, LOCAL_TENANT, run)
                except (Died, Unavailable):
                    struck = True
            sql("update app.rollout set due_at = now() - interval '1 second' where due_at is not null")
            await finalize_overdue(calm, collector.notifier, 0)
            again = (await collector.members())[-1]
            await collector.end(again.run_id, "No")
            await wait_until_finalized(collector, again.run_id)
            await _as_undisturbed(collector, good.group_id, rated)
    assert moment > 8


async def _as_undisturbed(collector: Collector, group_id: UUID, rated: bool) -> None:
    seen = await rollouts.get_group(collector.database, collector.tenant, group_id)
    more = 0.5 if rated else 0.0
    assert [(r.member, r.attempt, r.outcome, r.reward) for r in seen.rollouts] == [
        (0, 1, "answered", 1.0 + more),
        (1, 1, "infra_error", None),
        (1, 2, "answered", 0.0 + more),
    ]
    assert seen.group.state == "complete"
    assert len(seen.scores) == (4 if rated else 2)
