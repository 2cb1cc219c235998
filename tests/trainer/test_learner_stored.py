"""What a learner leaves on disk: states that are whole, training that goes on, policies that an engine serves."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportPrivateUsage=false

import json
import os
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
from offing.core.rows import TrainRow
from offing_engine.batch import scored
from offing_engine.folder import weights_sha256
from offing_engine.sampling import Sampling
from offing_engine.weights import Policy, base_of, load_adapter
from offing_trainer.learner.atomic import put_whole, settle
from offing_trainer.learner.contract import Derivatives
from offing_trainer.learner.local import LocalLearner, open_learner
from offing_trainer.learner.optimiser import rate
from offing_trainer.learner.policy import moved
from offing_trainer.learner.settings import Critic, Lora, Settings
from tests.trainer.learning import digest, loss, trained
from tests.trainer.sampled import rollouts, served

HOW = Settings(tokens_per_microbatch=1, learning_rate=1e-2, threads=1, device="cpu")

pytestmark = pytest.mark.timeout(600)


def process(*args: str) -> subprocess.CompletedProcess[str]:
    quiet = os.environ | {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
    command = [sys.executable, *args]
    return subprocess.run(command, env=quiet, capture_output=True, text=True, timeout=100)


WRITER = """
import os, signal, sys
from pathlib import Path
from offing_trainer.learner.atomic import put_whole
left = int(sys.argv[2])
def heard(name, args):
    global left
    if name in ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "shutil.rmtree"):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(heard)
with put_whole(Path(sys.argv[1]), replacing=True) as new:
    for name in ("one", "two"):
        (new / name).write_text("new")
"""


def test_whatever_moment_a_writer_is_killed_at_the_folder_is_the_old_one_or_the_new_one(tmp_path: Path):
    script, found = tmp_path / "writer.py", list[str]()
    script.write_text(WRITER)
    for moment in range(1, 100):
        folder = tmp_path / str(moment) / "state"
        folder.mkdir(parents=True)
        for name in ("one", "two"):
            (folder / name).write_text("old")
        ended = process(str(script), str(folder), str(moment))
        settle(folder)
        texts = {path.read_text() for path in folder.iterdir()}
        assert len(texts) == 1, moment
        assert {path.name for path in folder.iterdir()} == {"one", "two"}, moment
        found += texts
        if ended.returncode == 0:
            break
        assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert found[0] == "old"
    assert found[-1] == "new"
    assert found == sorted(found, reverse=True)
    assert len(found) > 10


def test_a_folder_that_could_not_be_written_is_not_there(tmp_path: Path):
    with pytest.raises(FileNotFoundError), put_whole(tmp_path / "state", replacing=True) as new:
        (new / "no folder" / "one").write_text("new")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("at", ["open", "os.rename"])
def test_training_that_was_killed_while_it_saved_goes_on_as_if_nothing_had_happened(
    tmp_path: Path, policy_folder: Path, at: str
):
    nth = "30" if at == "open" else "5"
    ended = process("-m", "tests.trainer.learning", str(tmp_path), str(policy_folder), "6", f"kill={nth}", f'at="{at}"')
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    learner, undisturbed = open_learner(policy_folder, HOW), open_learner(policy_folder, HOW)
    learner.load(tmp_path / "state")
    assert 0 < learner.steps < 6
    rows = rollouts(policy_folder)
    trained(learner, rows, 6, tmp_path / "state")
    trained(undisturbed, rows, 6, tmp_path / "other")
    assert digest(tmp_path / "state") == digest(tmp_path / "other")
    assert np.array_equal(learner.forward(rows).logp, undisturbed.forward(rows).logp)


@pytest.mark.parametrize("kind", ["full", "lora"])
def test_a_loaded_state_goes_on_bit_for_bit(
    tmp_path: Path, policy_folder: Path, sampled_rows: list[TrainRow], kind: str
):
    how = HOW.model_copy(update={"kind": kind, "warmup": 3, "schedule": "cosine", "steps": 6, "critic": Critic()})
    straight, stopped = open_learner(policy_folder, how), open_learner(policy_folder, how)
    trained(straight, sampled_rows, 5, tmp_path / "a")
    trained(stopped, sampled_rows, 2, tmp_path / "b")
    resumed = open_learner(policy_folder, how)
    resumed.load(tmp_path / "b")
    trained(resumed, sampled_rows, 5, tmp_path / "b")
    assert digest(tmp_path / "a") == digest(tmp_path / "b")


def test_a_state_of_other_weights_or_of_another_kind_is_refused(
    tmp_path: Path, policy_folder: Path, sampled_rows: list[TrainRow]
):
    learner = open_learner(policy_folder, HOW)
    trained(learner, sampled_rows, 1, tmp_path / "state")
    learner.export_policy(tmp_path / "p@2", "full")
    with pytest.raises(InvalidInput, match="began with other weights"):
        open_learner(tmp_path / "p@2", HOW).load(tmp_path / "state")
    with pytest.raises(InvalidInput, match="is of kind full"):
        open_learner(policy_folder, HOW.model_copy(update={"kind": "lora"})).load(tmp_path / "state")
    with pytest.raises(InvalidInput, match="holds other weights than are moved here"):
        open_learner(policy_folder, HOW.model_copy(update={"critic": Critic()})).load(tmp_path / "state")
    with pytest.raises(InvalidInput, match="holds no learner's state"):
        learner.load(tmp_path / "p@2")


def test_nothing_is_saved_between_a_gradient_and_its_step(
    tmp_path: Path, policy_folder: Path, sampled_rows: list[TrainRow]
):
    learner = open_learner(policy_folder, HOW)
    learner.forward_backward(sampled_rows, loss)
    with pytest.raises(Conflict, match="Save after optim_step"):
        learner.save(tmp_path / "state")


def test_a_gradient_that_is_not_finite_moves_nothing(policy_folder: Path, sampled_rows: list[TrainRow]):
    learner = open_learner(policy_folder, HOW)
    before = learner.forward(sampled_rows).logp
    learner.forward_backward(sampled_rows, lambda _, seen: Derivatives(0.0, np.full(len(seen.logp), np.nan)))
    stepped = learner.optim_step()
    assert stepped.skipped
    assert not np.isfinite(stepped.grad_norm)
    assert learner.steps == 0
    assert np.array_equal(learner.forward(sampled_rows).logp, before)
    learner.forward_backward(sampled_rows, loss)
    assert not learner.optim_step().skipped


def test_a_gradient_is_cut_to_its_longest_and_reported_as_it_was(policy_folder: Path, sampled_rows: list[TrainRow]):
    norms, moments = list[float](), list[torch.Tensor]()
    for steep in (1.0, 1000.0):
        learner = open_learner(policy_folder, HOW.model_copy(update={"gradient_clip": 0.01}))
        slope = partial(np.full, fill_value=steep)
        learner.forward_backward(sampled_rows, lambda _, seen, by=slope: Derivatives(0.0, by(len(seen.logp))))
        norms.append(learner.optim_step().grad_norm)
        state = learner._optimiser.adamw.state
        moments.append(torch.cat([state[w]["exp_avg"].flatten() for w in moved(learner._network).values()]))
    assert norms[1] == pytest.approx(1000 * norms[0], rel=1e-4)
    assert torch.allclose(moments[0], moments[1], rtol=1e-3, atol=1e-9)
    assert float(moments[0].norm()) == pytest.approx(0.1 * 0.01, rel=1e-3)


def test_the_rate_rises_and_falls():
    level = Settings(warmup=4)
    assert [rate(n, level) for n in range(6)] == [0.25, 0.5, 0.75, 1, 1, 1]
    cosine = Settings(warmup=2, schedule="cosine", steps=10, floor=0.1)
    assert [round(rate(n, cosine), 4) for n in (0, 1, 2, 6, 10, 99)] == [0.5, 1, 1, 0.55, 0.1, 0.1]


def test_cosine_without_an_end_is_refused(policy_folder: Path):
    with pytest.raises(InvalidInput, match="Give steps"):
        open_learner(policy_folder, Settings(schedule="cosine"))


def engine_says(policy: Policy, rows: list[TrainRow]) -> np.ndarray:
    """Log-probabilities of trained tokens, by the engine's own scoring."""
    found: list[float] = []
    for row in rows:
        with torch.inference_mode():
            every = scored(policy, row.token_ids.tolist(), Sampling(row.turns.temperature[0] or 1.0))
        found += [every[place - 1][0] for place in np.flatnonzero(row.loss_mask).tolist()]
    return np.array(found)


def test_full_weights_are_exported_as_the_engine_serves_them(
    tmp_path: Path, policy_folder: Path, sampled_rows: list[TrainRow]
):
    learner = open_learner(policy_folder, HOW)
    trained(learner, sampled_rows, 3)
    learner.export_policy(tmp_path / "p@2", "full")
    before, after = served(policy_folder), served(tmp_path / "p@2")
    assert np.abs(engine_says(after, sampled_rows) - learner.forward(sampled_rows).logp).max() < 1e-4
    assert np.abs(engine_says(before, sampled_rows) - learner.forward(sampled_rows).logp).max() > 1e-2
    assert (after.hashes.tokenizer, after.hashes.template) == (before.hashes.tokenizer, before.hashes.template)
    names = [set(load_file(folder / "model.safetensors")) for folder in (policy_folder, tmp_path / "p@2")]
    assert names[0] == names[1]
    assert (tmp_path / "p@2" / "config.json").read_bytes() == (policy_folder / "config.json").read_bytes()
    with pytest.raises(Conflict, match="already there"):
        learner.export_policy(tmp_path / "p@2", "full")
    with pytest.raises(InvalidInput, match="there is no adapter"):
        learner.export_policy(tmp_path / "p@3", "lora")


def adapted(policy_folder: Path, rows: list[TrainRow]) -> LocalLearner:
    learner = open_learner(policy_folder, HOW.model_copy(update={"kind": "lora", "lora": Lora(rank=4)}))
    trained(learner, rows, 3)
    return learner


def test_an_adapter_is_exported_as_the_engine_serves_it(
    tmp_path: Path, policy_folder: Path, sampled_rows: list[TrainRow]
):
    learner = adapted(policy_folder, sampled_rows)
    weights = {name: weight.clone() for name, weight in learner._network.state_dict().items()}
    learner.export_policy(tmp_path / "p@2", "lora")
    learner.export_policy(tmp_path / "p@2-full", "full")
    assert all(torch.equal(weight, weights[name]) for name, weight in learner._network.state_dict().items())
    expected = learner.forward(sampled_rows).logp
    base = served(policy_folder)
    found = base_of(tmp_path / "p@2", None, {base.name: base})
    assert np.abs(engine_says(base, sampled_rows) - expected).max() > 1e-2
    assert np.abs(engine_says(load_adapter("p@2", tmp_path / "p@2", found, 4096), sampled_rows) - expected).max() < 1e-4
    assert np.abs(engine_says(served(tmp_path / "p@2-full"), sampled_rows) - expected).max() < 1e-4


def test_the_same_training_makes_the_same_adapter_wherever_it_runs(
    tmp_path: Path, policy_folder: Path, sampled_rows: list[TrainRow]
):
    for name in ("one", "two"):
        adapted(policy_folder, sampled_rows).export_policy(tmp_path / name, "lora")
    assert weights_sha256(tmp_path / "one") == weights_sha256(tmp_path / "two")
    about = json.loads((tmp_path / "one" / "adapter_config.json").read_text())
    assert about["base_model_name_or_path"] == "p@1"
    assert about["target_modules"] == sorted(about["target_modules"])


def test_training_goes_on_from_an_adapter(tmp_path: Path, policy_folder: Path, sampled_rows: list[TrainRow]):
    first, how = adapted(policy_folder, sampled_rows), HOW.model_copy(update={"kind": "lora"})
    first.export_policy(tmp_path / "p@2", "lora")
    second = open_learner(tmp_path / "p@2", how, base=policy_folder)
    assert np.abs(second.forward(sampled_rows).logp - first.forward(sampled_rows).logp).max() < 1e-6
    trained(second, sampled_rows, 1)
    with pytest.raises(InvalidInput, match="Name the folder of the weights under it"):
        open_learner(tmp_path / "p@2", how)
    with pytest.raises(InvalidInput, match="Use kind lora"):
        open_learner(tmp_path / "p@2", HOW, base=policy_folder)
    first.export_policy(tmp_path / "other", "full")
    with pytest.raises(InvalidInput, match="was trained over other weights"):
        open_learner(tmp_path / "p@2", how, base=tmp_path / "other")


def test_weights_that_are_stored_short_are_exported_short(
    tmp_path: Path, policy_folder: Path, sampled_rows: list[TrainRow]
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
    assert np.abs(engine_says(served(tmp_path / "p@2"), sampled_rows) - learner.forward(sampled_rows).logp).max() < 0.1
