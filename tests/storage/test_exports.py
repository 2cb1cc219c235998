"""An export as a training job sees it: one file, what was left out, and where the next one goes on."""

import asyncio
import os
from pathlib import Path

import psycopg
import pytest

from offing.core.episode import Cost
from offing.core.errors import InvalidInput
from offing.core.trajectory import Fracture
from offing.exports.format import Options, named, reader
from offing.services import trajectories
from offing.services.trajectories import Exported
from offing.storage import stretches
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing.storage.trajectories import Query
from tests.storage.rollouts import A, Collected


@pytest.fixture
def collected(pool: Database, owner_url: str) -> Collected:
    return Collected(pool, LOCAL_TENANT, owner_url)


async def exported(
    pool: Database, out: Path, *, cursor: str | None = None, options: Options | None = None, format: str = "parquet"
) -> Exported:
    return await trajectories.export(pool, LOCAL_TENANT, Query(), named(format), options or Options(), cursor, out)


async def test_what_is_stored_is_exported_and_read_back(pool: Database, collected: Collected, tmp_path: Path) -> None:
    runs = [await collected.rollout(A("one"), A("two", fracture=Fracture.COMPACTION), minutes=n) for n in range(3)]
    made = await exported(pool, tmp_path / "x.parquet")
    rows = list(reader(named("parquet"))(tmp_path / "x.parquet"))
    assert [row.episode.run for row in rows] == [run for run in runs for _ in range(2)]
    assert (made.records, made.runs, made.without_ids, made.quarantined) == (6, 3, 0, 0)
    assert os.listdir(tmp_path) == ["x.parquet"]


async def test_the_next_export_takes_only_what_became_final_since(
    pool: Database, collected: Collected, tmp_path: Path
) -> None:
    await collected.rollout(minutes=1)
    first = await exported(pool, tmp_path / "x")
    late = await collected.rollout(minutes=2)
    second = await exported(pool, tmp_path / "y", cursor=first.cursor)
    assert [row.episode.run for row in reader(named("parquet"))(tmp_path / "y")] == [late]
    third = await exported(pool, tmp_path / "z", cursor=second.cursor)
    assert (third.records, third.cursor) == (0, second.cursor)


async def test_many_pages_make_one_file(
    pool: Database, collected: Collected, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trajectories, "PAGE", 2)
    runs = [await collected.rollout(minutes=n) for n in range(5)]
    await exported(pool, tmp_path / "x")
    assert [row.episode.run for row in reader(named("parquet"))(tmp_path / "x")] == runs


async def test_what_is_left_out_is_counted(pool: Database, collected: Collected, tmp_path: Path) -> None:
    run = await collected.rollout(A("one"), A("two"))
    collected.quarantine(run, 0)
    await collected.rollout(A("text alone", ids=False))
    made = await exported(pool, tmp_path / "x")
    assert (made.records, made.runs, made.without_ids, made.quarantined) == (1, 2, 1, 1)
    (row,) = reader(named("parquet"))(tmp_path / "x")
    assert set(row.turn_index[row.loss_mask].tolist()) == {1}
    await exported(pool, tmp_path / "y", options=Options(quarantined=True))
    (row,) = reader(named("parquet"))(tmp_path / "y")
    assert set(row.turn_index[row.loss_mask].tolist()) == {0, 1}


async def test_a_failed_export_leaves_no_file_of_that_name(
    pool: Database, collected: Collected, tmp_path: Path
) -> None:
    with pytest.raises(InvalidInput, match="cursor"):
        await exported(pool, tmp_path / "x", cursor="nonsense")
    assert not (tmp_path / "x").exists()


async def test_a_run_that_becomes_final_while_others_are_exported_is_in_this_export_or_the_next(
    pool: Database, collected: Collected, tmp_path: Path
) -> None:
    for n in range(3):
        await collected.rollout(minutes=n)
    first, late = await asyncio.gather(exported(pool, tmp_path / "x"), collected.rollout(minutes=9))
    await exported(pool, tmp_path / "y", cursor=first.cursor)
    read = reader(named("parquet"))
    found = [row.episode.run for name in "xy" for row in read(tmp_path / name)]
    assert len(found) == len(set(found)) == 4
    assert late in found


async def test_what_people_asked_is_refused_without_their_consent(
    pool: Database, collected: Collected, tmp_path: Path
) -> None:
    await collected.rollout(kind="ask")
    with pytest.raises(InvalidInput, match="training_opt_in"):
        await trajectories.export(
            pool, LOCAL_TENANT, Query(kind="ask"), named("jsonl_chat"), Options(), None, tmp_path / "x"
        )


async def test_a_row_says_what_its_run_took(
    pool: Database, collected: Collected, tmp_path: Path, owner_url: str
) -> None:
    run = await collected.rollout(A("one", tool=True), A("two", role="verifier"))
    with psycopg.connect(owner_url) as owner:
        owner.execute("update app.run set turns = 2, usd = 0.25, work_seconds = 1.5 where id = %s", (run,))
        spoken = owner.execute(
            "select sum(prompt_tokens), sum(completion_tokens) from app.turn where run_id = %s", (run,)
        ).fetchone()
    assert spoken is not None
    await exported(pool, tmp_path / "x")
    rows = list(reader(named("parquet"))(tmp_path / "x"))
    assert {row.episode.cost for row in rows} == {Cost(2, spoken[0], spoken[1], 0.25, 1.5, 1)}


async def test_spans_stay_with_the_segment_whose_turns_they_are_in(pool: Database, collected: Collected) -> None:
    run = await collected.rollout(A("one"), A("two", fracture=Fracture.COMPACTION), A("three"))
    async with pool.transaction(LOCAL_TENANT) as connection:
        found = await stretches.segments(connection, [(run, 1), (run, 0)])
    assert [segment.head.idx for _, segment in found] == [1, 0]
    assert [segment.spans.seq for _, segment in found] == [segment.turns.seq for _, segment in found]
