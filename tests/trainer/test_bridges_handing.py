"""Stored groups into a folder of steps: which, how far, and what is refused before anything is written."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from offing.core.errors import InvalidInput
from offing.services import policies
from offing.storage.migrate import LOCAL_TENANT
from offing_trainer.bridges.handed import END, ended, read_step, steps_in
from offing_trainer.bridges.handing import PLACE, Place, Wrote, hand_over
from offing_trainer.config import config_of
from tests.trainer.jobs import TABLES, Bench


async def given(bench: Bench, folder: Path, *, follow: bool = False, **tables: Any) -> tuple[Place, list[Wrote]]:
    config = config_of({**TABLES, "chain": {"regularise": []}, **tables})
    policy, wrote = await policies.named(bench.database, LOCAL_TENANT, config.policy), list[Wrote]()
    place = await hand_over(bench.database, LOCAL_TENANT, config, policy, folder, follow=follow, said=wrote.append)
    return place, wrote


async def test_steps_are_those_that_a_job_would_take(bench: Bench, tmp_path: Path) -> None:
    await bench.policy()
    await bench.groups(5)
    place, wrote = await given(bench, tmp_path / "out")
    assert [one.groups for one in wrote] == [2, 2, 1]
    assert (place.step, ended(tmp_path / "out")) == (3, True)
    steps = [read_step(file) for file in steps_in(tmp_path / "out")]
    assert [step.step for step in steps] == [1, 2, 3]
    assert {(s.policy, s.tokenizer_sha256, s.optimiser_steps) for s in steps} == {("planner@1", bench.tokenizer, 2)}
    runs = [row.run for step in steps for row in step.rows]
    assert len(set(runs)) == 10
    assert steps[0].policy_sha256 != ""


async def test_a_hand_over_that_was_stopped_goes_on_behind_its_last_step(bench: Bench, tmp_path: Path) -> None:
    await bench.policy()
    await bench.groups(4)
    await given(bench, tmp_path / "out", steps=1)
    (tmp_path / "out" / END).unlink()  # as if it had been killed before it said so
    place, wrote = await given(bench, tmp_path / "out")
    assert (place.step, [one.file.name for one in wrote]) == (2, ["step-000002.parquet"])
    first, second = ({row.group for row in read_step(file).rows} for file in steps_in(tmp_path / "out"))
    assert len(first) == len(second) == 2
    assert not first & second


async def test_a_step_without_its_place_is_written_again(bench: Bench, tmp_path: Path) -> None:
    await bench.policy()
    await bench.groups(2)
    await given(bench, tmp_path / "out")
    file = tmp_path / "out" / "step-000001.parquet"
    before = file.read_bytes()
    for name in (END, PLACE):
        (tmp_path / "out" / name).unlink()
    await given(bench, tmp_path / "out")
    assert file.read_bytes() == before


async def test_following_waits_for_groups_and_ends_with_the_steps_asked_for(bench: Bench, tmp_path: Path) -> None:
    await bench.policy()
    following = asyncio.create_task(given(bench, tmp_path / "out", follow=True, steps=1))
    await asyncio.sleep(0.3)
    assert not following.done()
    await bench.groups(2)
    place, _ = await asyncio.wait_for(following, 30)
    assert (place.step, json.loads((tmp_path / "out" / END).read_bytes())) == (1, {"steps": 1})


async def test_a_folder_whose_hand_over_has_ended_is_refused(bench: Bench, tmp_path: Path) -> None:
    await bench.policy()
    await bench.groups(2)
    await given(bench, tmp_path / "out")
    with pytest.raises(InvalidInput, match="has ended"):
        await given(bench, tmp_path / "out")


async def test_what_cannot_be_handed_over_is_refused_before_a_folder_is_made(bench: Bench, tmp_path: Path) -> None:
    await bench.policy()
    await bench.groups(2)
    cases: list[tuple[dict[str, Any], str]] = [
        ({"surrogate": {"name": "gspo"}, "regularise": []}, "gspo is not handed over"),
        ({"regularise": [], "select": [{"name": "success-replay"}]}, "replayed rollouts"),
    ]
    for chain, problem in cases:
        with pytest.raises(InvalidInput, match=problem):
            await given(bench, tmp_path / "out", chain=chain)
    assert not (tmp_path / "out").exists()


async def test_rows_of_another_tokenizer_are_refused(bench: Bench, tmp_path: Path) -> None:
    await bench.policy()
    await bench.groups(2, tokenizer="another")
    with pytest.raises(InvalidInput, match="another tokenizer"):
        await given(bench, tmp_path / "out")
    assert steps_in(tmp_path / "out") == []


async def test_the_reference_is_left_to_who_opens_its_weights(bench: Bench, tmp_path: Path) -> None:
    await bench.policy()
    await bench.groups(2)
    await given(bench, tmp_path / "out", chain={})
    terms = read_step(steps_in(tmp_path / "out")[0]).terms
    assert (terms.kl, terms.kl_coefficient) == ("k3", 0.001)
