"""A job from its configuration to a registered version, on a real store with tiny weights."""

from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any
from uuid import UUID

import orjson
import pytest

from offing.core.errors import InvalidInput
from offing.models.policy_folder import hash_weights
from offing.services import policies, training_jobs
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.training_jobs import TrainingJobRow
from offing_trainer.job.checkpoints import find_checkpoint
from offing_trainer.job.metric_sinks import SinkContext, build_sink_factories
from tests.storage.rollouts import A
from tests.trainer.jobs import NO_GUARDS, TABLES, Bench, job_context


async def test_a_job_trains_on_stored_groups_and_registers_a_candidate_with_its_lineage(bench: Bench) -> None:
    await bench.policy()
    await bench.groups(5)
    job = await bench.job()
    done = await bench.run(job.id)
    assert (done.state, done.stop_reason, done.error) == ("done", "no groups are left", "")
    assert (done.step, done.group_count, done.rollout_count) == (3, 5, 10)
    assert await bench.ledger(job.id) == {"used": 10}
    created = await policies.get_version_by_name(bench.database, LOCAL_TENANT, "planner@2")
    assert (created.state, created.id, created.lineage["parent"]) == (
        "candidate",
        done.produced_version_id,
        "planner@1",
    )
    assert (created.lineage["job"], created.lineage["rollouts"], created.lineage["steps"]) == (str(job.id), 10, 3)
    assert hash_weights(Path(created.uri)) == created.sha256
    assert created.sha256 != (await policies.get_version_by_name(bench.database, LOCAL_TENANT, "planner@1")).sha256
    metrics = await training_jobs.list_metrics(
        bench.database, LOCAL_TENANT, job.id, 0, ["reward", "grad_norm", "groups"], 100
    )
    assert [m.value for m in metrics if m.name == "groups"] == [2, 2, 1]
    assert all(m.value > 0 for m in metrics)
    lines = (bench.home / "training" / str(job.id) / "metrics.jsonl").read_bytes().splitlines()
    assert [orjson.loads(line)["step"] for line in lines] == [1, 2, 3]


async def test_short_and_stale_groups_are_noted_and_never_trained_on(bench: Bench) -> None:
    await bench.policy()
    await bench.policy(seed=1)
    await bench.policy(seed=2)
    old, fresh, short = await bench.groups(3)
    bench.pin(old, "planner@1")
    bench.pin(fresh, "planner@2")
    bench.complete(short, 3, "incomplete")
    job = await bench.job(policy="planner@3")
    done = await bench.run(job.id)
    assert (done.state, done.error) == ("done", "")
    assert await bench.ledger(job.id) == {"stale": 2, "used": 2, "incomplete_group": 2}
    assert done.rollout_count == 2


async def test_a_job_whose_groups_teach_nothing_ends_without_a_version(bench: Bench) -> None:
    await bench.policy()
    await bench.groups(3, rewards=(1.0,))
    done = await bench.run((await bench.job()).id)
    assert (done.state, done.produced_version_id, done.step) == ("done", None, 0)
    assert done.stop_reason == "too few groups with differing rewards are left"


async def test_weights_that_only_a_regularizer_moved_are_registered_too(bench: Bench) -> None:
    await bench.policy()
    await bench.groups(3, rewards=(1.0,))
    data = {**TABLES["data"], "min_informative_groups": 0}
    pipeline = {**TABLES["pipeline"], "regularizers": [{"name": "entropy", "coefficient": 0.01}]}
    done = await bench.run((await bench.job(data=data, pipeline=pipeline)).id)
    assert (done.state, done.error, done.rollout_count) == ("done", "", 0)
    assert done.step >= 1
    created = await policies.get_version_by_name(bench.database, LOCAL_TENANT, "planner@2")
    assert created.id == done.produced_version_id


async def test_a_step_waits_for_informative_groups(bench: Bench) -> None:
    await bench.policy()
    await bench.groups(3, rewards=(1.0,))
    await bench.groups(1, first=3)
    data = {"groups_per_step": 1, "min_informative_groups": 1, "max_groups_per_step": 8}
    job = await bench.job(data=data)
    done = await bench.run(job.id)
    assert (done.step, done.group_count) == (1, 4)
    assert await bench.ledger(job.id) == {"used": 2, "zero_advantage": 6}


async def test_rows_of_another_tokenizer_fail_the_job_with_what_to_do(bench: Bench) -> None:
    await bench.policy()
    await bench.groups(1, tokenizer="another")
    done = await bench.run((await bench.job()).id)
    assert done.state == "failed"
    assert "another tokenizer" in done.error
    assert "data.rollout_batches" in done.error


async def test_a_guard_goes_back_to_the_last_good_weights_and_registers_nothing(bench: Bench) -> None:
    await bench.policy()
    await bench.groups(8)
    learner = {**TABLES["learner"], "learning_rate": 1e-2}
    job = await bench.job(guards={**NO_GUARDS, "max_kl": 1e-9}, learner=learner)
    done = await bench.run(job.id)
    assert (done.state, done.stop_reason, done.produced_version_id) == ("failed", "guard", None)
    assert "KL divergence from the sampling policy" in done.error
    kinds = [event.kind for event in await training_jobs.list_events(bench.database, LOCAL_TENANT, job.id, None, 50)]
    assert kinds == ["created", "guard"]


async def test_a_guard_that_trips_later_names_the_checkpoint_before_the_update_that_it_condemns(bench: Bench) -> None:
    await bench.policy()
    await bench.groups(8)
    learner = {**TABLES["learner"], "learning_rate": 0.3}
    job = await bench.job(guards={**NO_GUARDS, "max_entropy_drop": 0.02, "max_entropy_rise": 0.02}, learner=learner)
    done = await bench.run(job.id)
    assert (done.state, done.stop_reason) == ("failed", "guard")
    assert done.step >= 1
    good = done.step - 1
    assert f"weights are those of step {good}" in done.error
    assert done.checkpoint == ("" if good == 0 else str(find_checkpoint(bench.folder(job.id), good)))


async def test_a_guard_compares_violations_with_those_of_the_first_step_also_after_a_pause(bench: Bench) -> None:
    await bench.policy()
    await bench.groups(2)
    bench.violate(await bench.groups(4, first=2))
    job = await bench.job(guards={**NO_GUARDS, "max_violation_rise": 0.2})

    def pause(row: TrainingJobRow, phase: str, metrics: object) -> None:
        if phase == "moved":
            bench.later(training_jobs.pause_job(bench.database, LOCAL_TENANT, row.id))

    paused = await bench.run(job.id, job_context(bench, on_phase=pause))
    assert (paused.state, paused.step) == ("paused", 1)
    await training_jobs.resume_job(bench.database, LOCAL_TENANT, job.id)
    done = await bench.run(job.id)
    assert (done.state, done.stop_reason, done.step) == ("failed", "guard", 1)
    assert "rise of the fraction of rollouts that violated a rule: 0.5, above the limit of 0.2" in done.error


async def test_a_paused_job_continues_and_a_cancelled_one_keeps_what_it_committed(bench: Bench) -> None:
    await bench.policy()
    await bench.groups(6)
    job = await bench.job()
    actions = iter([training_jobs.pause_job, training_jobs.cancel_job])

    def ask(row: TrainingJobRow, phase: str, metrics: object) -> None:
        if phase == "moved":  # said on the thread that moves weights
            bench.later(next(actions)(bench.database, LOCAL_TENANT, row.id))

    context = job_context(bench, on_phase=ask)
    rested = await bench.run(job.id, context)
    assert (rested.state, rested.step) == ("paused", 1)
    await training_jobs.resume_job(bench.database, LOCAL_TENANT, job.id)
    ended = await bench.run(job.id, context)
    assert (ended.state, ended.step, ended.produced_version_id) == ("cancelled", 2, None)
    assert await bench.ledger(job.id) == {"used": 8}


async def test_moments_of_the_optimizer_are_written_at_the_interval_that_a_job_asks_for(bench: Bench) -> None:
    await bench.policy()
    await bench.groups(8)
    job = await bench.job(learner={**TABLES["learner"], "optimizer_state_every_steps": 2})
    seen = list[int]()

    def pause_in_third_step(row: TrainingJobRow, phase: str, metrics: object) -> None:
        if phase == "moved":
            seen.append(row.step)
            if len(seen) == 3:
                bench.later(training_jobs.pause_job(bench.database, LOCAL_TENANT, row.id))

    context = job_context(bench, on_phase=pause_in_third_step)
    paused = await bench.run(job.id, context)
    assert (paused.state, paused.step) == ("paused", 3)
    second, third = (find_checkpoint(bench.folder(job.id), step) for step in (2, 3))
    assert second is not None
    assert third is not None
    assert (second / "moments.safetensors").samefile(third / "moments.safetensors")
    assert not (second / "weights.safetensors").samefile(third / "weights.safetensors")
    await training_jobs.resume_job(bench.database, LOCAL_TENANT, job.id)
    assert (await bench.run(job.id, context)).state == "done"


async def test_a_second_pass_trains_again_and_the_ledger_keeps_the_first_decision(bench: Bench) -> None:
    await bench.policy()
    await bench.groups(4)
    job = await bench.job(data={**TABLES["data"], "data_passes": 2})
    done = await bench.run(job.id)
    assert (done.state, done.step, done.group_count, done.data_pass) == ("done", 4, 8, 2)
    assert await bench.ledger(job.id) == {"used": 8}


async def test_text_without_tokens_is_imitated_and_rejected_by_what_needs_log_probabilities(bench: Bench) -> None:
    await bench.policy()
    await bench.groups(2, role_calls=lambda nth, member: [A("w1 w2 w3", ids=False)])
    sft = {"algorithm": "sft", "policy": "planner@1", "guards": NO_GUARDS,
           "learner": TABLES["learner"], "data": {"groups_per_step": 2, "min_informative_groups": 0}}  # fmt: skip
    job = await training_jobs.create_job(bench.database, LOCAL_TENANT, sft)
    done = await bench.run(job.id)
    assert (done.state, done.error) == ("done", "")
    assert (await bench.ledger(job.id))["used"] == 2
    with pytest.raises(InvalidInput, match="algorithm sft"):
        await bench.inspected(await bench.job(pipeline={}))


async def test_what_a_job_would_find_is_counted_without_reading_tokens(bench: Bench) -> None:
    await bench.policy()
    *_, short = await bench.groups(5)
    bench.complete(short, 9, "incomplete")
    seen = await bench.inspected(await bench.job())
    assert (seen.complete_groups, seen.incomplete_groups, seen.informative_groups, seen.rollouts) == (4, 1, 4, 8)
    assert (seen.steps_per_pass, seen.mean_reward, seen.outcomes) == (2, 0.5, {"answered": 8})
    assert seen.turns_by_trainability == {"rl": 15}
    assert sum(seen.rollouts_by_tokens.values()) == 10


async def test_a_hanging_and_a_failing_sink_hold_no_step_up(bench: Bench) -> None:
    await bench.policy()
    await bench.groups(4)
    hung = Event()

    class Hanging:
        name = "hanging"

        def write(self, step: int, metrics: object) -> None:
            hung.wait(60)

        def close(self) -> None: ...

    def failing() -> Hanging:
        raise RuntimeError("no server")

    def makers(_names: object, _about: object) -> list[Callable[[], Hanging]]:
        return [failing, Hanging]

    job = await bench.job()
    context = job_context(bench, build_sink_factories=makers, sink_close_timeout_seconds=0.1)
    done = await bench.run(job.id, context)
    hung.set()
    assert (done.state, done.step) == ("done", 2)


def test_a_sink_that_there_is_not_is_rejected_by_name(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="grafana"):
        build_sink_factories(["grafana"], SinkContext(UUID(int=1), "p@1", {}, tmp_path))


async def test_a_group_that_failed_is_trained_with_an_earlier_success_of_its_task(bench: Bench) -> None:
    await bench.policy()
    solved, failed = await bench.groups(1), await bench.groups(1, rewards=(0.0,), first=1)
    bench.same_task(solved[0], failed[0])
    job = await bench.job(
        data={"groups_per_step": 1, "min_informative_groups": 0},
        pipeline={**TABLES["pipeline"], "selectors": [{"name": "success-replay"}]},
    )
    done = await bench.run(job.id)
    assert (done.state, done.error, done.step) == ("done", "", 2)
    assert await bench.ledger(job.id) == {"used": 3, "unselected": 1}
    metrics = await training_jobs.list_metrics(bench.database, LOCAL_TENANT, job.id, 0, ["replayed", "grad_norm"], 100)
    assert [m.value for m in metrics if m.name == "replayed"] == [0, 1]
    assert all(m.value > 0 for m in metrics if m.name == "grad_norm")


IGPO: dict[str, Any] = {
    "algorithm": "igpo",
    "data": {"groups_per_step": 2, "roles": ["planner"], "answer_prefix": "w1"},
    "pipeline": {"surrogate": {"name": "reinforce"}, "regularizers": []},
}


async def test_turns_are_rewarded_for_what_they_add_towards_the_reference_answer(bench: Bench) -> None:
    """Outcomes are all equal, so that only the turns' gains can have moved anything."""
    await bench.policy()
    messages = [A("one", adds=(7, 8)), A("two", adds=(9, 9, 9)), A("three")]
    await bench.groups(
        2, rewards=(1.0,), role_calls=lambda nth, member: messages[: 2 + member], answers=("w5 w6", "w7")
    )
    done = await bench.run((await bench.job(**IGPO)).id)
    assert (done.state, done.error, done.step) == ("done", "", 1)
    assert await bench.ledger(done.id) == {"used": 4}
    metrics = {
        m.name: m.value for m in await training_jobs.list_metrics(bench.database, LOCAL_TENANT, done.id, 0, None, 500)
    }
    assert metrics["grad_norm"] > 0
    assert metrics["advantage_std"] > 0


@pytest.mark.parametrize(
    ("answers", "why"), [(None, "1 of 1 tasks have no reference answer"), (("Paris",), "no tokens for 'Paris'")]
)
async def test_a_reference_that_is_not_there_or_cannot_be_written_fails_the_job_by_name(
    bench: Bench, answers: tuple[str, ...] | None, why: str
) -> None:
    await bench.policy()
    await bench.groups(1, answers=answers)
    job = await bench.job(**IGPO)
    done = await bench.run(job.id)
    assert done.state == "failed"
    assert why in done.error
    if answers is None:
        with pytest.raises(InvalidInput, match=why):
            await bench.inspected(job)
