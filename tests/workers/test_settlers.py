"""Several settlers at once, and settlers that are lost at any moment: each rollout is settled once."""

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
from offing_workers import collection
from offing_workers.collection import settle, settle_forgotten
from tests.workers.collecting import JUDGE, SECRET, Collector, Died, Sql, a_task, settled


async def test_settling_again_or_at_the_same_time_changes_nothing(collector: Collector) -> None:
    await collector.collect(size=4)
    members = await collector.members()
    for n, member in enumerate(members):
        await collector.end(
            member.run, SECRET if n else None, reason=StopReason.ANSWERED if n else StopReason.NO_PROGRESS
        )
    await asyncio.gather(*(settled(collector, m.run) for m in members for _ in range(5)))
    before = await collector.group()
    assert [(r.member, r.attempt) for r in before.rollouts] == [(0, 1), (0, 2), (1, 1), (2, 1), (3, 1)]
    assert len(before.scores) == 3
    await asyncio.gather(*(settled(collector, m.run) for m in members))
    assert await collector.group() == before


async def test_two_settlers_do_not_ask_the_same_judge_twice(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = {**JUDGE, "options": {**JUDGE["options"], "delay_ms": 100}}
    await collector.collect(size=1, scorers=[ScorerSpec("rubric_judge", 1, {"engine": slow})])
    (one,) = await collector.members()
    await collector.end(one.run, SECRET)
    asked = 0
    once = collection._scores  # pyright: ignore[reportPrivateUsage]

    async def counted(work: Any, meter: Any) -> Any:
        nonlocal asked
        asked += 1
        return await once(work, meter)

    monkeypatch.setattr(collection, "_scores", counted)
    await asyncio.gather(*(settled(collector, one.run) for _ in range(5)))
    assert asked == 1
    assert (await collector.group()).group.state == "complete"


class Disturbed(Database):
    """At its nth statement or transaction, Postgres goes away or the settler dies."""

    at = 0
    count = 0
    what: Literal["away", "killed"] = "away"

    @asynccontextmanager
    async def transaction(self, tenant: UUID) -> AsyncGenerator[Connection]:
        self._strike()
        async with super().transaction(tenant) as connection:
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
@pytest.mark.parametrize("judged", [False, True], ids=["rules", "judge"])
async def test_a_settler_that_is_lost_at_any_moment_leaves_nothing_half_done(
    app_url: str, sql: Sql, what: Literal["away", "killed"], judged: bool
) -> None:
    scorers = [ScorerSpec("exact_match"), *([ScorerSpec("rubric_judge", 1, {"engine": JUDGE})] if judged else [])]
    async with Database(app_url, most=4) as calm, Disturbed(app_url, most=2) as disturbed:
        disturbed.what = what
        collector, moment, struck = Collector(calm), 0, True
        while struck:
            moment += 1
            await collector.collect(a_task(f"Question {moment}?"), size=2, attempts=2, scorers=scorers)
            good, bad = (await collector.members())[-2:]
            await collector.end(good.run, SECRET)
            await collector.end(bad.run, None, reason=StopReason.PROVIDER_DOWN)
            struck = False
            for run in (good.run, bad.run):
                disturbed.at, disturbed.count = moment, 0
                try:
                    await settle(disturbed, collector.hints, LOCAL_TENANT, run)
                except (Died, Unavailable):
                    struck = True
            sql("update app.rollout set due_at = now() - interval '1 second' where due_at is not null")
            await settle_forgotten(calm, collector.hints, 0)
            again = (await collector.members())[-1]
            await collector.end(again.run, "No")
            await settled(collector, again.run)
            await _as_undisturbed(collector, good.group, judged)
    assert moment > 8


async def _as_undisturbed(collector: Collector, group: UUID, judged: bool) -> None:
    seen = await rollouts.one_group(collector.database, collector.tenant, group)
    more = 0.5 if judged else 0.0
    assert [(r.member, r.attempt, r.outcome, r.reward) for r in seen.rollouts] == [
        (0, 1, "answered", 1.0 + more),
        (1, 1, "infra_error", None),
        (1, 2, "answered", 0.0 + more),
    ]
    assert seen.group.state == "complete"
    assert len(seen.scores) == (4 if judged else 2)
