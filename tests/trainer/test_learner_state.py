"""What a learner leaves on disk: states that are whole, training that continues, policies that an engine serves."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportPrivateUsage=false

import json
import os
import shutil
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from offing.core.errors import Conflict, InvalidInput
from offing.core.training_rows import TrainingRow
from offing.models.policy_folder import hash_weights
from offing_engine.batch import score_tokens
from offing_engine.sampling import SamplingParams
from offing_engine.weights import LoadedPolicy, load_adapter_policy, resolve_base
from offing_trainer.learner.atomic_folder import open_atomic_folder, restore_interrupted
from offing_trainer.learner.contract import LossGradients
from offing_trainer.learner.local_learner import LocalLearner, open_learner
from offing_trainer.learner.opened_model import trainable_parameters
from offing_trainer.learner.optimizer import learning_rate_factor
from offing_trainer.learner.settings import CriticSettings, LearnerSettings, LoraSettings
from tests.trainer.learner_process import digest, loss, trained
from tests.trainer.sampled_rollouts import rollouts, served

HOW = LearnerSettings(max_tokens_per_micro_batch=1, learning_rate=1e-2, cpu_threads=1, device="cpu")

pytestmark = pytest.mark.timeout(600)


def process(*args: str) -> subprocess.CompletedProcess[str]:
    quiet = os.environ | {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
    command = [sys.executable, *args]
    return subprocess.run(command, env=quiet, capture_output=True, text=True, timeout=100)


WRITER = """
import os, signal, sys
from pathlib import Path
from offing_trainer.learner.atomic_folder import open_atomic_folder
left = int(sys.argv[2])
def heard(name, args):
    global left
    if name in ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "shutil.rmtree"):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(heard)
with open_atomic_folder(Path(sys.argv[1]), replace=True) as new:
    for name in ("one", "two"):
        (new / name).write_text("new")
"""


def test_when_a_writer_is_killed_at_any_moment_the_folder_is_the_old_one_or_the_new_one(tmp_path: Path):
    script, results = tmp_path / "writer.py", list[str]()
    script.write_text(WRITER)
    for moment in range(1, 100):
        folder = tmp_path / str(moment) / "state"
        folder.mkdir(parents=True)
        for name in ("one", "two"):
            (folder / name).write_text("old")
        ended = process(str(script), str(folder), str(moment))
        restore_interrupted(folder)
        texts = {path.read_text() for path in folder.iterdir()}
        assert len(texts) == 1, moment
        assert {path.name for path in folder.iterdir()} == {"one", "two"}, moment
        results += texts
        if ended.returncode == 0:
            break
        assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert results[0] == "old"
    assert results[-1] == "new"
    assert results == sorted(results, reverse=True)
    assert len(results) > 10


def test_a_folder_that_could_not_be_written_is_not_there(tmp_path: Path):
    with pytest.raises(FileNotFoundError), open_atomic_folder(tmp_path / "state", replace=True) as new:
        (new / "no folder" / "one").write_text("new")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("at", ["open", "os.rename"])
def test_training_that_was_killed_while_it_saved_continues_as_if_nothing_had_happened(
    tmp_path: Path, policy_folder: Path, at: str
):
    nth = "30" if at == "open" else "5"
    options = [str(tmp_path), str(policy_folder), "6", f"kill={nth}", f'at="{at}"']
    ended = process("-m", "tests.trainer.learner_process", *options)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    learner, undisturbed = open_learner(policy_folder, HOW), open_learner(policy_folder, HOW)
    learner.load(tmp_path / "state")
    assert 0 < learner.optimizer_steps < 6
    rows = rollouts(policy_folder)
    trained(learner, rows, 6, tmp_path / "state")
    trained(undisturbed, rows, 6, tmp_path / "other")
    assert digest(tmp_path / "state") == digest(tmp_path / "other")
    assert np.array_equal(learner.forward(rows).logprobs, undisturbed.forward(rows).logprobs)


@pytest.mark.parametrize("kind", ["full", "lora"])
def test_a_loaded_state_continues_bit_for_bit(
    tmp_path: Path, policy_folder: Path, sampled_rows: list[TrainingRow], kind: str
):
    how = HOW.model_copy(
        update={"kind": kind, "warmup_steps": 3, "schedule": "cosine", "schedule_steps": 6, "critic": CriticSettings()}
    )
    straight, stopped = open_learner(policy_folder, how), open_learner(policy_folder, how)
    trained(straight, sampled_rows, 5, tmp_path / "a")
    trained(stopped, sampled_rows, 2, tmp_path / "b")
    resumed = open_learner(policy_folder, how)
    resumed.load(tmp_path / "b")
    trained(resumed, sampled_rows, 5, tmp_path / "b")
    assert digest(tmp_path / "a") == digest(tmp_path / "b")


def test_a_state_with_earlier_moments_has_its_own_weights_and_no_second_copy_of_the_moments(
    tmp_path: Path, policy_folder: Path, sampled_rows: list[TrainingRow]
):
    learner = open_learner(policy_folder, HOW)
    trained(learner, sampled_rows, 1, tmp_path / "first")
    trained(learner, sampled_rows, 3)
    learner.save(tmp_path / "third", tmp_path / "first")
    files = [tmp_path / name / "moments.safetensors" for name in ("first", "third")]
    assert files[0].samefile(files[1])
    shutil.rmtree(tmp_path / "first")
    resumed = open_learner(policy_folder, HOW)
    resumed.load(tmp_path / "third")
    assert resumed.optimizer_steps == 3
    assert np.array_equal(resumed.forward(sampled_rows).logprobs, learner.forward(sampled_rows).logprobs)
    steps = {float(moments["step"]) for moments in resumed._optimizer.adamw.state.values()}
    assert steps == {1.0}


def test_a_state_of_other_weights_or_of_another_kind_is_rejected(
    tmp_path: Path, policy_folder: Path, sampled_rows: list[TrainingRow]
):
    learner = open_learner(policy_folder, HOW)
    trained(learner, sampled_rows, 1, tmp_path / "state")
    learner.export_policy(tmp_path / "p@2", "full")
    with pytest.raises(InvalidInput, match="belongs to other initial weights"):
        open_learner(tmp_path / "p@2", HOW).load(tmp_path / "state")
    with pytest.raises(InvalidInput, match="is of kind full"):
        open_learner(policy_folder, HOW.model_copy(update={"kind": "lora"})).load(tmp_path / "state")
    with pytest.raises(InvalidInput, match="has other weights than this learner trains"):
        open_learner(policy_folder, HOW.model_copy(update={"critic": CriticSettings()})).load(tmp_path / "state")
    with pytest.raises(InvalidInput, match="does not contain a learner state"):
        learner.load(tmp_path / "p@2")


def test_nothing_is_saved_between_a_gradient_and_its_step(
    tmp_path: Path, policy_folder: Path, sampled_rows: list[TrainingRow]
):
    learner = open_learner(policy_folder, HOW)
    learner.forward_backward(sampled_rows, loss)
    with pytest.raises(Conflict, match="Save after optim_step"):
        learner.save(tmp_path / "state")


def test_a_gradient_that_is_not_finite_moves_nothing(policy_folder: Path, sampled_rows: list[TrainingRow]):
    learner = open_learner(policy_folder, HOW)
    before = learner.forward(sampled_rows).logprobs
    learner.forward_backward(sampled_rows, lambda _, seen: LossGradients(0.0, np.full(len(seen.logprobs), np.nan)))
    stepped = learner.optim_step()
    assert stepped.skipped
    assert not np.isfinite(stepped.grad_norm)
    assert learner.optimizer_steps == 0
    assert np.array_equal(learner.forward(sampled_rows).logprobs, before)
    learner.forward_backward(sampled_rows, loss)
    assert not learner.optim_step().skipped


def test_a_gradient_is_cut_to_its_longest_and_reported_as_it_was(policy_folder: Path, sampled_rows: list[TrainingRow]):
    norms, moments = list[float](), list[torch.Tensor]()
    for steep in (1.0, 1000.0):
        learner = open_learner(policy_folder, HOW.model_copy(update={"max_grad_norm": 0.01}))
        slope = partial(np.full, fill_value=steep)
        learner.forward_backward(sampled_rows, lambda _, seen, by=slope: LossGradients(0.0, by(len(seen.logprobs))))
        norms.append(learner.optim_step().grad_norm)
        state = learner._optimizer.adamw.state
        moments.append(
            torch.cat([state[w]["exp_avg"].flatten() for w in trainable_parameters(learner._network).values()])
        )
    assert norms[1] == pytest.approx(1000 * norms[0], rel=1e-4)
    assert torch.allclose(moments[0], moments[1], rtol=1e-3, atol=1e-9)
    assert float(moments[0].norm()) == pytest.approx(0.1 * 0.01, rel=1e-3)


def test_the_rate_rises_and_falls():
    level = LearnerSettings(warmup_steps=4)
    assert [learning_rate_factor(n, level) for n in range(6)] == [0.25, 0.5, 0.75, 1, 1, 1]
    cosine = LearnerSettings(warmup_steps=2, schedule="cosine", schedule_steps=10, min_learning_rate_fraction=0.1)
    assert [round(learning_rate_factor(n, cosine), 4) for n in (0, 1, 2, 6, 10, 99)] == [0.5, 1, 1, 0.55, 0.1, 0.1]


def test_cosine_without_an_end_is_rejected(policy_folder: Path):
    with pytest.raises(InvalidInput, match="schedule_steps: the cosine schedule needs it"):
        open_learner(policy_folder, LearnerSettings(schedule="cosine"))


def engine_logprobs(policy: LoadedPolicy, rows: list[TrainingRow]) -> np.ndarray:
    """Log-probabilities of trained tokens, by the engine's own scoring."""
    results: list[float] = []
    for row in rows:
        with torch.inference_mode():
            every = score_tokens(policy, row.token_ids.tolist(), SamplingParams(row.turns.temperature[0] or 1.0))
        results += [every[position - 1][0] for position in np.flatnonzero(row.loss_mask).tolist()]
    return np.array(results)


def test_full_weights_are_exported_as_the_engine_serves_them(
    tmp_path: Path, policy_folder: Path, sampled_rows: list[TrainingRow]
):
    learner = open_learner(policy_folder, HOW)
    trained(learner, sampled_rows, 3)
    learner.export_policy(tmp_path / "p@2", "full")
    before, after = served(policy_folder), served(tmp_path / "p@2")
    assert np.abs(engine_logprobs(after, sampled_rows) - learner.forward(sampled_rows).logprobs).max() < 1e-4
    assert np.abs(engine_logprobs(before, sampled_rows) - learner.forward(sampled_rows).logprobs).max() > 1e-2
    assert (after.hashes.tokenizer, after.hashes.template) == (before.hashes.tokenizer, before.hashes.template)
    names = [set(load_file(folder / "model.safetensors")) for folder in (policy_folder, tmp_path / "p@2")]
    assert names[0] == names[1]
    assert (tmp_path / "p@2" / "config.json").read_bytes() == (policy_folder / "config.json").read_bytes()
    with pytest.raises(Conflict, match="already exists"):
        learner.export_policy(tmp_path / "p@2", "full")
    with pytest.raises(InvalidInput, match="there is no adapter"):
        learner.export_policy(tmp_path / "p@3", "lora")


def adapted(policy_folder: Path, rows: list[TrainingRow]) -> LocalLearner:
    learner = open_learner(
        policy_folder, HOW.model_copy(update={"kind": "lora", "lora_settings": LoraSettings(rank=4)})
    )
    trained(learner, rows, 3)
    return learner


def test_an_adapter_is_exported_as_the_engine_serves_it(
    tmp_path: Path, policy_folder: Path, sampled_rows: list[TrainingRow]
):
    learner = adapted(policy_folder, sampled_rows)
    weights = {name: weight.clone() for name, weight in learner._network.state_dict().items()}
    learner.export_policy(tmp_path / "p@2", "lora")
    learner.export_policy(tmp_path / "p@2-full", "full")
    assert all(torch.equal(weight, weights[name]) for name, weight in learner._network.state_dict().items())
    expected = learner.forward(sampled_rows).logprobs
    base = served(policy_folder)
    result = resolve_base(tmp_path / "p@2", None, {base.name: base})
    assert np.abs(engine_logprobs(base, sampled_rows) - expected).max() > 1e-2
    assert (
        np.abs(
            engine_logprobs(load_adapter_policy("p@2", tmp_path / "p@2", result, 4096), sampled_rows) - expected
        ).max()
        < 1e-4
    )
    assert np.abs(engine_logprobs(served(tmp_path / "p@2-full"), sampled_rows) - expected).max() < 1e-4


def test_the_same_training_makes_the_same_adapter_wherever_it_runs(
    tmp_path: Path, policy_folder: Path, sampled_rows: list[TrainingRow]
):
    for name in ("one", "two"):
        adapted(policy_folder, sampled_rows).export_policy(tmp_path / name, "lora")
    assert hash_weights(tmp_path / "one") == hash_weights(tmp_path / "two")
    about = json.loads((tmp_path / "one" / "adapter_config.json").read_text())
    assert about["base_model_name_or_path"] == "p@1"
    assert about["target_modules"] == sorted(about["target_modules"])


def test_training_continues_from_an_adapter(tmp_path: Path, policy_folder: Path, sampled_rows: list[TrainingRow]):
    first, how = adapted(policy_folder, sampled_rows), HOW.model_copy(update={"kind": "lora"})
    first.export_policy(tmp_path / "p@2", "lora")
    second = open_learner(tmp_path / "p@2", how, base=policy_folder)
    assert np.abs(second.forward(sampled_rows).logprobs - first.forward(sampled_rows).logprobs).max() < 1e-6
    trained(second, sampled_rows, 1)
    with pytest.raises(InvalidInput, match="Set it to the folder of the adapter's base weights"):
        open_learner(tmp_path / "p@2", how)
    with pytest.raises(InvalidInput, match="Use kind lora"):
        open_learner(tmp_path / "p@2", HOW, base=policy_folder)
    first.export_policy(tmp_path / "other", "full")
    with pytest.raises(InvalidInput, match="was trained over other weights"):
        open_learner(tmp_path / "p@2", how, base=tmp_path / "other")


def test_weights_that_are_stored_short_are_exported_short(
    tmp_path: Path, policy_folder: Path, sampled_rows: list[TrainingRow]
):
    from transformers import AutoModelForCausalLM

    short = AutoModelForCausalLM.from_pretrained(policy_folder, dtype=torch.bfloat16)
    short.save_pretrained(tmp_path / "short")
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        (tmp_path / "short" / name).write_bytes((policy_folder / name).read_bytes())
    learner = open_learner(tmp_path / "short", HOW)
    trained(learner, sampled_rows, 1)
    learner.export_policy(tmp_path / "p@2", "full")
    assert {w.dtype for w in load_file(tmp_path / "p@2" / "model.safetensors").values()} == {torch.bfloat16}
    assert (
        np.abs(engine_logprobs(served(tmp_path / "p@2"), sampled_rows) - learner.forward(sampled_rows).logprobs).max()
        < 0.1
    )
