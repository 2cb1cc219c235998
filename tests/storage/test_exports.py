"""An export as a training job sees it: one file, what was left out, and where the next one continues."""

import asyncio
import os
from pathlib import Path

import psycopg
import pytest

from offing.core.errors import InvalidInput
from offing.core.trajectory import BoundaryReason
from offing.core.trajectory_records import RunCost
from offing.exports.format import FORMATS, ExportOptions, get_reader
from offing.services import trajectories
from offing.services.trajectories import ExportSummary
from offing.storage import trajectory_reads
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing.storage.trajectories import TrajectoryQuery
from tests.storage.rollouts import A, Collected


@pytest.fixture
def collected(pool: Database, owner_url: str) -> Collected:
    return Collected(pool, LOCAL_TENANT, owner_url)


async def exported(
    pool: Database,
    out: Path,
    *,
    cursor: str | None = None,
    options: ExportOptions | None = None,
    format: str = "parquet",
) -> ExportSummary:
    return await trajectories.export_trajectories(
        pool, LOCAL_TENANT, TrajectoryQuery(), FORMATS[format], options or ExportOptions(), cursor, out
    )


async def test_what_is_stored_is_exported_and_read_back(pool: Database, collected: Collected, tmp_path: Path) -> None:
    runs = [
        await collected.rollout(A("one"), A("two", boundary_reason=BoundaryReason.COMPACTION), minutes=n)
        for n in range(3)
    ]
    created = await exported(pool, tmp_path / "x.parquet")
    rows = list(get_reader(FORMATS["parquet"])(tmp_path / "x.parquet"))
    assert [row.metadata.run_id for row in rows] == [run for run in runs for _ in range(2)]
    assert (created.record_count, created.run_count, created.without_ids_count, created.quarantined_count) == (
        6,
        3,
        0,
        0,
    )
    assert os.listdir(tmp_path) == ["x.parquet"]


async def test_the_next_export_takes_only_what_became_final_since(
    pool: Database, collected: Collected, tmp_path: Path
) -> None:
    await collected.rollout(minutes=1)
    first = await exported(pool, tmp_path / "x")
    late = await collected.rollout(minutes=2)
    second = await exported(pool, tmp_path / "y", cursor=first.cursor)
    assert [row.metadata.run_id for row in get_reader(FORMATS["parquet"])(tmp_path / "y")] == [late]
    third = await exported(pool, tmp_path / "z", cursor=second.cursor)
    assert (third.record_count, third.cursor) == (0, second.cursor)


async def test_many_pages_make_one_file(
    pool: Database, collected: Collected, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trajectories, "PAGE_RUNS", 2)
    runs = [await collected.rollout(minutes=n) for n in range(5)]
    await exported(pool, tmp_path / "x")
    assert [row.metadata.run_id for row in get_reader(FORMATS["parquet"])(tmp_path / "x")] == runs


async def test_what_is_left_out_is_counted(pool: Database, collected: Collected, tmp_path: Path) -> None:
    run = await collected.rollout(A("one"), A("two"))
    collected.quarantine(run, 0)
    await collected.rollout(A("text alone", ids=False))
    created = await exported(pool, tmp_path / "x")
    assert (created.record_count, created.run_count, created.without_ids_count, created.quarantined_count) == (
        1,
        2,
        1,
        1,
    )
    (row,) = get_reader(FORMATS["parquet"])(tmp_path / "x")
    assert set(row.turn_index[row.loss_mask].tolist()) == {1}
    await exported(pool, tmp_path / "y", options=ExportOptions(include_quarantined=True))
    (row,) = get_reader(FORMATS["parquet"])(tmp_path / "y")
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
    read = get_reader(FORMATS["parquet"])
    run_ids = [row.metadata.run_id for name in "xy" for row in read(tmp_path / name)]
    assert len(run_ids) == len(set(run_ids)) == 4
    assert late in run_ids


async def test_what_people_asked_is_rejected_without_their_consent(
    pool: Database, collected: Collected, tmp_path: Path
) -> None:
    await collected.rollout(kind="interactive")
    with pytest.raises(InvalidInput, match="training_opt_in"):
        await trajectories.export_trajectories(
            pool,
            LOCAL_TENANT,
            TrajectoryQuery(kind="interactive"),
            FORMATS["jsonl_chat"],
            ExportOptions(),
            None,
            tmp_path / "x",
        )


async def test_a_row_says_what_its_run_took(
    pool: Database, collected: Collected, tmp_path: Path, owner_url: str
) -> None:
    run = await collected.rollout(A("one", tool=True), A("two", role="verifier"))
    with psycopg.connect(owner_url) as owner:
        owner.execute("update app.run set turns = 2, cost_usd = 0.25, work_seconds = 1.5 where id = %s", (run,))
        spoken = owner.execute(
            "select sum(prompt_tokens), sum(completion_tokens) from app.role_call where run_id = %s", (run,)
        ).fetchone()
    assert spoken is not None
    await exported(pool, tmp_path / "x")
    rows = list(get_reader(FORMATS["parquet"])(tmp_path / "x"))
    assert {row.metadata.cost for row in rows} == {RunCost(2, spoken[0], spoken[1], 0.25, 1.5, 1)}


async def test_spans_stay_with_the_segment_whose_turns_they_are_in(pool: Database, collected: Collected) -> None:
    run = await collected.rollout(A("one"), A("two", boundary_reason=BoundaryReason.COMPACTION), A("three"))
    async with pool.transaction(LOCAL_TENANT) as connection:
        packed_segments = await trajectory_reads.read_packed_segments(connection, [(run, 1), (run, 0)])
    assert [segment.segment_info.idx for _, segment in packed_segments] == [1, 0]
    assert [segment.spans.seq for _, segment in packed_segments] == [
        segment.turns.seq for _, segment in packed_segments
    ]
