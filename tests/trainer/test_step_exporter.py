"""Stored groups into a folder of steps: which, how far, and what is rejected before anything is written."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from offing.core.errors import InvalidInput
from offing.services import policies
from offing.storage.migrate import LOCAL_TENANT
from offing_trainer.bridges.step_exporter import POSITION_FILE, ExportedFile, ExportPosition, export_steps
from offing_trainer.bridges.step_file import END_FILE, has_ended, list_step_files, read_step
from offing_trainer.config import parse_config
from tests.trainer.jobs import TABLES, Bench


async def stored_groups(
    bench: Bench, folder: Path, *, follow: bool = False, **tables: Any
) -> tuple[ExportPosition, list[ExportedFile]]:
    config = parse_config({**TABLES, "pipeline": {"regularizers": []}, **tables})
    policy, wrote = (
        await policies.get_version_by_name(bench.database, LOCAL_TENANT, config.policy),
        list[ExportedFile](),
    )
    position = await export_steps(
        bench.database, LOCAL_TENANT, config, policy, folder, follow=follow, on_exported=wrote.append
    )
    return position, wrote


async def test_steps_are_those_that_a_job_would_take(bench: Bench, tmp_path: Path) -> None:
    await bench.policy()
    await bench.groups(5)
    position, wrote = await stored_groups(bench, tmp_path / "out")
    assert [one.groups for one in wrote] == [2, 2, 1]
    assert (position.step, has_ended(tmp_path / "out")) == (3, True)
    steps = [read_step(file) for file in list_step_files(tmp_path / "out")]
    assert [step.step for step in steps] == [1, 2, 3]
    assert {(s.policy, s.tokenizer_sha256, s.optimizer_steps) for s in steps} == {("planner@1", bench.tokenizer, 2)}
    runs = [row.run_id for step in steps for row in step.rows]
    assert len(set(runs)) == 10
    assert steps[0].policy_sha256 != ""


async def test_a_hand_over_that_was_stopped_continues_behind_its_last_step(bench: Bench, tmp_path: Path) -> None:
    await bench.policy()
    await bench.groups(4)
    await stored_groups(bench, tmp_path / "out", max_steps=1)
    (tmp_path / "out" / END_FILE).unlink()  # as if it had been killed before it said so
    position, wrote = await stored_groups(bench, tmp_path / "out")
    assert (position.step, [one.file.name for one in wrote]) == (2, ["step-000002.parquet"])
    first, second = ({row.group_id for row in read_step(file).rows} for file in list_step_files(tmp_path / "out"))
    assert len(first) == len(second) == 2
    assert not first & second


async def test_a_step_without_its_markers_is_written_again(bench: Bench, tmp_path: Path) -> None:
    await bench.policy()
    await bench.groups(2)
    await stored_groups(bench, tmp_path / "out")
    file = tmp_path / "out" / "step-000001.parquet"
    before = file.read_bytes()
    for name in (END_FILE, POSITION_FILE):
        (tmp_path / "out" / name).unlink()
    await stored_groups(bench, tmp_path / "out")
    assert file.read_bytes() == before


async def test_following_waits_for_groups_and_ends_with_the_steps_asked_for(bench: Bench, tmp_path: Path) -> None:
    await bench.policy()
    following = asyncio.create_task(stored_groups(bench, tmp_path / "out", follow=True, max_steps=1))
    await asyncio.sleep(0.3)
    assert not following.done()
    await bench.groups(2)
    position, _ = await asyncio.wait_for(following, 30)
    assert (position.step, json.loads((tmp_path / "out" / END_FILE).read_bytes())) == (1, {"steps": 1})


async def test_a_folder_whose_hand_over_has_ended_is_rejected(bench: Bench, tmp_path: Path) -> None:
    await bench.policy()
    await bench.groups(2)
    await stored_groups(bench, tmp_path / "out")
    with pytest.raises(InvalidInput, match="has ended"):
        await stored_groups(bench, tmp_path / "out")


async def test_what_cannot_be_handed_over_is_rejected_before_a_folder_is_made(bench: Bench, tmp_path: Path) -> None:
    await bench.policy()
    await bench.groups(2)
    cases: list[tuple[dict[str, Any], str]] = [
        ({"surrogate": {"name": "gspo"}, "regularizers": []}, "gspo cannot be exported"),
        ({"regularizers": [], "selectors": [{"name": "success-replay"}]}, "replayed rollouts"),
    ]
    for pipeline, problem in cases:
        with pytest.raises(InvalidInput, match=problem):
            await stored_groups(bench, tmp_path / "out", pipeline=pipeline)
    assert not (tmp_path / "out").exists()


async def test_rows_of_another_tokenizer_are_rejected(bench: Bench, tmp_path: Path) -> None:
    await bench.policy()
    await bench.groups(2, tokenizer="another")
    with pytest.raises(InvalidInput, match="another tokenizer"):
        await stored_groups(bench, tmp_path / "out")
    assert list_step_files(tmp_path / "out") == []


async def test_the_reference_is_left_to_who_opens_its_weights(bench: Bench, tmp_path: Path) -> None:
    await bench.policy()
    await bench.groups(2)
    await stored_groups(bench, tmp_path / "out", pipeline={})
    terms = read_step(list_step_files(tmp_path / "out")[0]).loss_spec
    assert (terms.kl_estimator, terms.kl_coefficient) == ("k3", 0.001)
