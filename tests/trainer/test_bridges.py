"""What other trainers get of a step, and that its terms mean there what they mean here."""

import queue
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import numpy as np
import pytest

from offing.core.errors import InvalidInput
from offing_trainer.bridges.loss_spec import EXPORTABLE_SURROGATES, build_loss_spec, export_learner_settings
from offing_trainer.bridges.step_file import END_FILE, ExportedRow, ExportedStep, LossSpec, read_step, step_path
from offing_trainer.bridges.step_rows import iter_exported_rows, prepare_step, write_step
from offing_trainer.bridges.tinker_datums import build_loss_fn as tinker_loss
from offing_trainer.bridges.tinker_datums import serialize_datum
from offing_trainer.bridges.trl_worker import PerTokenCollator, StoredRolloutWorker, TokenAdvantage, build_config_args
from offing_trainer.bridges.verl_driver import (
    VerlArgs,
    compute_token_loss,
    iter_step_files,
    parse_args,
    rows_of_rank,
    shift_left,
    to_jagged,
)
from offing_trainer.bridges.verl_driver import build_verl_loss as verl_loss
from offing_trainer.config import TrainConfig, parse_config
from offing_trainer.losses import build_loss
from offing_trainer.pipeline import build_job_pipeline
from offing_trainer.prepared_step import PreparedStep
from tests.trainer.builders import a_group, a_sample, derived, random_groups, rewarded

PLAIN: dict[str, Any] = {"regularizers": []}


def a_config(pipeline: dict[str, Any] | None = None, algorithm: str = "flow-grpo", **tables: Any) -> TrainConfig:
    return parse_config(
        {"algorithm": algorithm, "policy": "planner@1", **tables, "pipeline": PLAIN if pipeline is None else pipeline}
    )


def ready(config: TrainConfig, groups: Any) -> PreparedStep:
    return prepare_step(build_job_pipeline(config), config.learner, groups, {}, np.random.default_rng(3))


def handed(config: TrainConfig, groups: Any, step: int = 1) -> ExportedStep:
    prepared = ready(config, groups)
    rows = tuple(iter_exported_rows(prepared, config.policy))
    terms = build_loss_spec(config, build_job_pipeline(config))
    return ExportedStep(
        step, config.policy, "w", "tok", terms, export_learner_settings(config), len(prepared.optimizer_steps), rows
    )


def flat(rows: Sequence[ExportedRow], name: str) -> Any:
    return np.concatenate([getattr(row, name)[row.loss_mask] for row in rows]).astype(np.float64)


def test_a_step_is_read_as_it_was_written(tmp_path: Path) -> None:
    gave = handed(a_config(learner={"minibatches": 2, "epochs": 2, "learning_rate": 3e-6}), random_groups(1))
    write_step(tmp_path / "step.parquet", gave)
    got = read_step(tmp_path / "step.parquet")
    assert (got.step, got.policy, got.loss_spec, got.optimizer_steps) == (1, "planner@1", gave.loss_spec, 4)
    assert got.learner == {**gave.learner, "betas": [0.9, 0.999]}
    assert len(got.rows) == len(gave.rows) > 0
    for one, other in zip(got.rows, gave.rows, strict=True):
        for name in ExportedRow.__slots__:
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_a_file_has_these_columns_and_no_draft_stays(tmp_path: Path) -> None:
    import pyarrow.parquet as pq  # pyright: ignore[reportMissingTypeStubs]

    write_step(step_path(tmp_path, 1), handed(a_config(), [rewarded([1.0, 0.0])]))
    read: Any = pq.read_table  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    table = read(tmp_path / "step-000001.parquet")
    assert [(f.name, str(f.type)) for f in table.schema] == [
        ("key", "string"), ("run_id", "string"), ("group_id", "string"), ("optimizer_step", "int32"),
        ("version_lag", "int32"),
        ("temperature", "double"), ("token_ids", "list<element: int32 not null>"),
        ("loss_mask", "list<element: int8 not null>"), ("behavior_logprobs", "list<element: float not null>"),
        ("advantages", "list<element: float not null>"), ("token_weights", "list<element: float not null>"),
    ]  # fmt: skip
    assert [path.name for path in tmp_path.iterdir()] == ["step-000001.parquet"]
    assert table.column("loss_mask").to_pylist() == [[0, 0, 1, 1, 1]] * 2
    # Flow-GRPO: (R - mean) / std of 1 and 0, and 1 / (1 group * 2 rollouts * 1 turn * 3 tokens).
    np.testing.assert_allclose(table.column("advantages").to_pylist()[0][2:], [0.7071058] * 3, atol=1e-6)
    np.testing.assert_allclose(table.column("token_weights").to_pylist()[0][2:], [1 / 6] * 3, atol=1e-7)


def test_another_parquet_file_is_rejected(tmp_path: Path) -> None:
    import pyarrow as pa  # pyright: ignore[reportMissingTypeStubs]
    import pyarrow.parquet as pq  # pyright: ignore[reportMissingTypeStubs]

    table = cast(Any, pa).table({"token_ids": [[1]]})
    cast(Any, pq).write_table(table, tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match="does not have the format offing-steps-1"):
        read_step(tmp_path / "rows.parquet")


def test_advantage_and_weight_of_every_optimizer_step_are_those_of_a_job() -> None:
    config = a_config(learner={"minibatches": 2})
    prepared = ready(config, random_groups(2))
    rows = tuple(iter_exported_rows(prepared, config.policy))
    for nth in range(2):
        mine = [row for row in rows if row.optimizer_step == nth]
        assert [row.key for row in mine] == [row.key for row in prepared.step_rows(nth)]
        logp = flat(mine, "behavior_logprobs")
        ours = build_loss(build_job_pipeline(config), prepared, nth)(np.arange(len(mine)), _forwarded(logp)).value
        assert ours == pytest.approx(-(flat(mine, "token_weights") * flat(mine, "advantages")).sum(), abs=1e-6)


def _forwarded(logp: Any) -> Any:
    from offing_trainer.learner.contract import ForwardResult

    return ForwardResult(logp, np.ones(len(logp)))


PIPELINES: dict[str, dict[str, Any]] = {
    "clip": {"surrogate": {"low": 0.1, "high": 0.28}, "regularizers": []},
    "dual": {"surrogate": {"dual_clip": 1.5}, "regularizers": []},
    "k1": {"regularizers": [{"name": "kl-ref", "estimator": "k1", "coefficient": 0.3}]},
    "k2": {"regularizers": [{"name": "kl-ref", "estimator": "k2", "coefficient": 0.3}]},
    "k3 and entropy": {
        "regularizers": [{"name": "kl-ref", "coefficient": 0.3}, {"name": "entropy", "coefficient": 0.05}]
    },
    "reinforce": {"surrogate": {"name": "reinforce"}, "regularizers": []},
    "cross-entropy": {"surrogate": {"name": "cross-entropy"}, "regularizers": []},
    "decoupled": {"surrogate": {"dual_clip": 1.5}, "regularizers": []},
}


@pytest.mark.parametrize("name", PIPELINES)
def test_the_loss_for_other_trainers_is_ours(name: str) -> None:
    """On tokens far enough from the policy that sampled them that every clip holds some."""
    import torch

    config = a_config(PIPELINES[name], learner={"mode": "decoupled" if name == "decoupled" else "bypass"})
    pipeline, prepared = build_job_pipeline(config), ready(config, random_groups(3, tokens=40))
    rows, dice = list(iter_exported_rows(prepared, config.policy)), np.random.default_rng(5)
    old = flat(rows, "behavior_logprobs")
    columns = {
        name: old + dice.normal(0, 0.4, len(old))
        for name in ("ref_logprobs", "old_logprobs")
        if name in prepared.columns
    }
    if name != "decoupled":
        columns.pop("old_logprobs", None)
    logp = np.minimum(old + dice.normal(0, 0.5, len(old)), -1e-3)
    ours = derived(pipeline, replace(prepared, columns={**prepared.columns, **columns}), logp)

    mine = torch.tensor(logp, requires_grad=True)
    inputs = {
        "advantages": torch.tensor(flat(rows, "advantages")),
        "token_weights": torch.tensor(flat(rows, "token_weights")),
        "old_logprobs": torch.tensor(columns.get("old_logprobs", old)),
        "ref_logprobs": torch.tensor(columns.get("ref_logprobs", old)),
    }
    value, _ = compute_token_loss(
        build_loss_spec(config, pipeline), mine, inputs, torch.ones(len(logp), dtype=torch.float64)
    )
    (slope,) = torch.autograd.grad(value, mine)
    assert float(value.detach()) == pytest.approx(ours.value, abs=1e-6)
    np.testing.assert_allclose(slope.numpy(), ours.logprob_grads, atol=1e-6)


@pytest.mark.parametrize("processes", [1, 2])
def test_a_micro_batch_of_verl_has_each_log_probability_where_verl_says_it(processes: int) -> None:
    """verl's entry n is of token n + 1; it averages gradients over processes, and our weights are not to be divided."""
    torch: Any = import_module("torch")

    config = a_config(PIPELINES["clip"])
    pipeline, prepared = build_job_pipeline(config), ready(config, random_groups(6))
    rows, dice = list(iter_exported_rows(prepared, config.policy)), np.random.default_rng(7)
    logp = [row.behavior_logprobs + dice.normal(0, 0.3, len(row)).astype(np.float32) for row in rows]
    flat_logp = np.concatenate([one[row.loss_mask] for one, row in zip(logp, rows, strict=True)])

    def laid(arrays: Any) -> Any:
        return to_jagged(torch, [torch.from_numpy(shift_left(one)) for one in arrays])

    names = {"old_logprobs": "behavior_logprobs"} | {n: n for n in ("loss_mask", "advantages", "token_weights")}
    data = {name: laid([getattr(row, column) for row in rows]) for name, column in names.items()}
    value, _ = verl_loss(build_loss_spec(config, pipeline))({"log_probs": laid(logp)}, {**data, "dp_size": processes})
    ours = derived(pipeline, prepared, flat_logp.astype(np.float64)).value
    assert float(value) == pytest.approx(ours * processes, abs=1e-5)


REJECTED: dict[str, tuple[dict[str, Any], str]] = {
    "another surrogate": ({"pipeline": {"surrogate": {"name": "gspo"}}}, "gspo cannot be exported"),
    "another regularizer": ({"pipeline": {"regularizers": [{"name": "lld-guard"}]}}, "lld-guard cannot be exported"),
    "a critic": ({"algorithm": "hae", "learner": {"critic": {"columns": ["value_high", "value_low", "value_switch"]}}},
                 "must be computed with weights before the step"),
    "a correction": ({"pipeline": {"token_weights": [{"name": "token-mean"}, {"name": "truncated-importance"}],
                                   "regularizers": []},
                      "learner": {"mode": "decoupled"}}, "a token weight needs logprobs"),
    "another reference": ({"reference_policy": "planner@7", "pipeline": {}}, "use the initial policy as reference"),
}  # fmt: skip


@pytest.mark.parametrize("case", REJECTED)
def test_what_only_our_learner_can_do_is_rejected_by_name(case: str) -> None:
    tables, problem = REJECTED[case]
    config = a_config(**tables)
    with pytest.raises(InvalidInput, match=problem):
        build_loss_spec(config, build_job_pipeline(config))


def test_a_row_of_several_temperatures_is_rejected() -> None:
    hot = a_sample(1.0, ((2, 2),), run=1, turns={"temperature": (1.0, 0.7)})
    with pytest.raises(InvalidInput, match=r"temperatures 0\.7 and 1"):
        handed(a_config(), [a_group(hot, a_sample(0.0, run=2))])


def test_the_age_of_a_row_is_told_in_versions() -> None:
    config = parse_config({"algorithm": "flow-grpo", "policy": "planner@4", "pipeline": PLAIN})
    groups = [a_group(a_sample(1.0, run=1, policy="planner@3"), a_sample(0.0, run=2, policy="planner@3"))]
    assert {row.version_lag for row in handed(config, groups).rows} == {1}
    others = [a_group(a_sample(1.0, run=1, policy="other@3"), a_sample(0.0, run=2, policy="other@3"))]
    assert {row.version_lag for row in handed(config, others).rows} == {-1}


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_processes_have_equally_many_rows_and_weigh_together_what_one_does(size: int) -> None:
    rows = handed(a_config(), [rewarded([1.0, 0.0, 0.0, 1.0])]).rows
    shares = [rows_of_rank(rows, rank, size) for rank in range(size)]
    assert len({len(share) for share in shares}) == 1
    weighed = sorted(row.key for share in shares for row in share if row.token_weights.any())
    assert weighed == sorted(row.key for row in rows)


def test_a_driver_takes_every_step_once_and_follows_until_the_end(tmp_path: Path) -> None:
    write_step(step_path(tmp_path, 1), handed(a_config(), [rewarded([1.0, 0.0])]))

    def later(_: float) -> None:
        write_step(step_path(tmp_path, 2), handed(a_config(), [rewarded([1.0, 0.0])], step=2))
        (tmp_path / END_FILE).write_text("{}")

    names = [path.name for path in iter_step_files(VerlArgs(tmp_path, "p", tmp_path, follow=True), later)]
    assert names == ["step-000001.parquet", "step-000002.parquet"]


def test_a_driver_is_asked_as_its_help_says(tmp_path: Path) -> None:
    options = parse_args(
        [str(tmp_path), "--policy", "p", "--out", "o", "--max-tokens-per-micro-batch", "64", "--follow"]
    )
    assert options == VerlArgs(tmp_path, "p", Path("o"), max_tokens_per_micro_batch=64, follow=True)


@pytest.mark.parametrize("module", ["step_file", "verl_driver", "trl_worker", "tinker_datums"])
def test_the_reading_side_needs_nothing_of_ours_and_no_trainer_to_be_imported(module: str) -> None:
    code = (
        "import sys\n"
        "class Nothing:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        assert name.split('.')[0] not in {'offing', 'torch', 'verl', 'trl', 'tinker', 'transformers'}, name\n"
        "sys.meta_path.insert(0, Nothing())\n"
        f"import offing_trainer.bridges.{module}\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@dataclass(slots=True)
class RolloutSample:
    """The fields of TRL 1.16's own."""

    prompt: Any
    completion: Any
    input_ids: Any
    completion_mask: Any
    old_log_probs: Any
    advantage: float
    model_version: int
    group_id: int
    metrics: dict[str, float]
    enqueued_at: float | None = None


@pytest.fixture
def trl(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("trl.experimental.async_grpo.async_rollout_worker")
    module.RolloutSample = RolloutSample  # type: ignore[attr-defined]
    for name in ("trl", "trl.experimental", "trl.experimental.async_grpo"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, module.__name__, module)


def when_it_has_ended(worker: StoredRolloutWorker) -> None:
    """Wait for the worker's own thread."""
    worker._thread.join(60)  # pyright: ignore[reportPrivateUsage]


@pytest.mark.usefixtures("trl")
def test_a_rollout_worker_gives_whole_optimizer_steps_and_then_says_that_there_are_no_more(tmp_path: Path) -> None:
    step = handed(a_config(learner={"minibatches": 2}), [rewarded([1.0, 0.0, 0.0])])
    write_step(step_path(tmp_path, 1), step)
    (tmp_path / END_FILE).write_text("{}")
    worker = StoredRolloutWorker(tmp_path, rows_per_step=3, max_queued_steps=9)
    worker.update_model_version(1)
    worker.start()
    worker.update_model_version(2)  # training continues while it reads
    samples: list[Any] = [worker.rollout_buffer.get(timeout=60) for _ in range(9)]
    weighing = [bool(sample.advantage.per_token.any()) for sample in samples]
    assert worker.count_optimizer_steps() == 2
    assert sum(weighing[:6]) == sum(weighing) == 3
    assert {sample.model_version for sample in samples} == {1}
    assert all(isinstance(sample, RolloutSample) and sample.group_id == 0 for sample in samples)
    first, row = samples[0], step.list_rows(0)[0]
    np.testing.assert_array_equal(first.input_ids, row.token_ids)
    np.testing.assert_allclose(first.advantage.per_token, row.advantages * row.token_weights)
    when_it_has_ended(worker)
    with pytest.raises(RuntimeError, match="set max_steps to 2"):
        worker.check_health(300)
    worker.stop()


@pytest.mark.usefixtures("trl")
def test_a_worker_whose_step_is_too_large_or_late_is_not_well(tmp_path: Path) -> None:
    write_step(step_path(tmp_path, 1), handed(a_config(), [rewarded([1.0, 0.0, 0.0])]))
    large = StoredRolloutWorker(tmp_path, rows_per_step=2)
    large.start()
    when_it_has_ended(large)
    with pytest.raises(RuntimeError, match="has 3 rows"):
        large.check_health(300)
    large.stop()
    late = StoredRolloutWorker(tmp_path / "nothing", rows_per_step=2, follow=True)
    late.start()
    with pytest.raises(RuntimeError, match="no new step appeared"):
        late.check_health(-1.0)
    late.stop()


@dataclass
class Row:
    samples: list[dict[str, Any]]


def test_trl_gets_advantages_per_token_instead_of_one_per_sample() -> None:
    """Divided as TRL divides a micro-batch's sum, it is our advantage times weight."""
    torch: Any = import_module("torch")

    rows = handed(a_config(), random_groups(4)).list_rows(0)
    created = [
        {"completion_mask": row.loss_mask.astype(np.int64), "advantage": TokenAdvantage.from_row(row)} for row in rows
    ]
    ranks = [Row(created[0::2]), Row(created[1::2])]
    counts = [sum(int(sample["completion_mask"].sum()) for sample in rank.samples) for rank in ranks]

    def collate(_: Any) -> dict[str, Any]:
        return {"advantages": torch.full((2, max(counts)), 9.0)}

    batch = PerTokenCollator(collate, 4)([ranks])
    for nth, part in enumerate((rows[0::2], rows[1::2])):
        divided = batch["advantages"][nth, : counts[nth]].numpy() / sum(counts) / 4
        np.testing.assert_allclose(divided, flat(part, "token_weights") * flat(part, "advantages"), atol=1e-7)


def test_trl_and_tinker_reject_terms_that_they_have_no_words_for() -> None:
    stored = LossSpec("ppo-clip", "behavior", 0.2, 0.28, kl_estimator="k3", kl_coefficient=0.1)
    for terms, problem in (
        (stored, "reference"),
        (LossSpec("ppo-clip", "behavior", 0.2, 0.28, dual_clip=3.0), "dual"),
        (LossSpec("ppo-clip", "start", 0.2, 0.28), "bypass"),
    ):
        step = replace(handed(a_config(), [rewarded([1.0, 0.0])]), loss_spec=terms)
        with pytest.raises(ValueError, match=problem):
            build_config_args(step)
        with pytest.raises(ValueError, match=problem):
            tinker_loss(terms)
    step = handed(a_config(), [rewarded([1.0, 0.0])])
    assert (build_config_args(step)["epsilon"], build_config_args(step)["epsilon_high"]) == (
        step.loss_spec.clip_low,
        step.loss_spec.clip_high,
    )
    assert tinker_loss(LossSpec("ppo-clip", "behavior", 0.2, 0.28)) == (
        "ppo", {"clip_low_threshold": 0.8, "clip_high_threshold": 1.28}
    )  # fmt: skip


def test_a_datum_is_shifted_by_one_and_carries_advantage_times_weight() -> None:
    row = handed(a_config(), [rewarded([1.0, 0.0])]).rows[0]
    created = serialize_datum(row, LossSpec("ppo-clip", "behavior", 0.2, 0.2))
    inputs = created["loss_fn_inputs"]
    assert created["model_input"] == {"chunks": [{"type": "encoded_text", "tokens": [1, 1, 10, 11]}]}
    assert inputs["target_tokens"] == {"data": [1, 10, 11, 12], "dtype": "int64", "shape": [4]}
    np.testing.assert_allclose(inputs["advantages"]["data"], [0, *[0.7071058 / 6] * 3], atol=1e-6)
    np.testing.assert_allclose(inputs["logprobs"]["data"], row.behavior_logprobs[1:])
    imitated = serialize_datum(row, LossSpec("cross-entropy", "none"))["loss_fn_inputs"]
    np.testing.assert_allclose(imitated["weights"]["data"], inputs["advantages"]["data"])
    with pytest.raises(ValueError, match=r"temperature 0\.7"):
        serialize_datum(replace(row, temperature=0.7), LossSpec("ppo-clip", "behavior"))


def test_a_queue_holds_no_more_than_was_asked_for(tmp_path: Path) -> None:
    assert StoredRolloutWorker(tmp_path, rows_per_step=4).rollout_buffer.maxsize == 8
    assert isinstance(StoredRolloutWorker(tmp_path, rows_per_step=4).metrics_queue, queue.Queue)


@pytest.mark.parametrize("name", ["flow-grpo", "grpo", "dcpo", "supo", "spo", "sft", "reinforce"])
def test_recipes_whose_loss_is_a_tokens_are_handed_over(name: str) -> None:
    config = parse_config({"algorithm": name, "policy": "planner@1"})
    assert build_loss_spec(config, build_job_pipeline(config)).surrogate in EXPORTABLE_SURROGATES


@pytest.mark.parametrize("name", ["gspo", "eapo", "steady"])
def test_recipes_with_another_loss_are_not(name: str) -> None:
    config = parse_config({"algorithm": name, "policy": "planner@1"})
    with pytest.raises(InvalidInput, match="cannot be exported"):
        build_loss_spec(config, build_job_pipeline(config))
