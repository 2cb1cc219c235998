"""What a learner forwards is what the engine recorded, and its gradient is that of the loss, however rows are cut."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportPrivateUsage=false

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from offing.clock import new_id
from offing.core.errors import InvalidInput
from offing.core.training_rows import TrainingRow
from offing.storage.policy_versions import PolicyVersionRow
from offing_trainer.batch import Floats, Indices
from offing_trainer.config import parse_config
from offing_trainer.job.lineage import JobPolicies
from offing_trainer.job.pipeline_trainer import open_trainer
from offing_trainer.learner import token_logprobs
from offing_trainer.learner.contract import ForwardResult, LossGradients
from offing_trainer.learner.local_learner import BaseWeights, LocalLearner, open_learner
from offing_trainer.learner.opened_model import trainable_parameters
from offing_trainer.learner.settings import CriticSettings, LearnerSettings, LoraSettings
from tests.trainer.sampled_rollouts import by_turn, rollout, served, tokens_of


class Bent:
    """A loss that depends on every log-probability and entropy in a way of its own, of which the derivative is known.

    sum of a * logp^2 + b * entropy^2, with fixed a and b a token.
    """

    def __init__(self, rows: Sequence[TrainingRow]) -> None:
        self.rows = rows
        count = sum(int(row.loss_mask.sum()) for row in rows)
        self.a, self.b = np.random.default_rng(7).normal(size=(2, count)) / count

    def __call__(self, which: Indices, seen: ForwardResult) -> LossGradients:
        mine = tokens_of(self.rows, which)
        a, b = self.a[mine], self.b[mine]
        value = float((a * seen.logprobs**2 + b * seen.entropy**2).sum())
        return LossGradients(value, 2 * a * seen.logprobs, 2 * b * seen.entropy)


def gradient(learner: LocalLearner, rows: Sequence[TrainingRow], loss: Any = None) -> Floats:
    """All of it, flat."""
    learner.forward_backward(rows, loss or Bent(rows))
    weights = trainable_parameters(learner._network).values()
    parts = [torch.zeros_like(w) if w.grad is None else w.grad for w in weights]
    return torch.cat([part.flatten() for part in parts]).double().numpy()


def apart(one: Floats, other: Floats) -> float:
    """Relative distance."""
    return float(np.linalg.norm(one - other) / np.linalg.norm(other))


def test_log_probabilities_and_entropies_are_those_that_the_engine_recorded(
    policy_folder: Path, sampled_rows: list[TrainingRow]
):
    seen = open_learner(policy_folder, LearnerSettings(max_tokens_per_micro_batch=60)).forward(sampled_rows)
    recorded = np.concatenate([row.behavior_logprobs[row.loss_mask] for row in sampled_rows])
    nats = np.concatenate([row.entropy[row.loss_mask] for row in sampled_rows])
    assert np.abs(seen.logprobs - recorded).max() < 1e-4
    assert np.abs(seen.entropy - nats).max() < 5e-3  # kept in 16 bits
    assert len({row.turns.temperature[0] for row in sampled_rows}) == 4


def test_a_flipped_id_is_seen(policy_folder: Path, sampled_rows: list[TrainingRow]):
    row = sampled_rows[2]
    ids = row.token_ids.copy()
    ids[np.flatnonzero(row.loss_mask)[0]] ^= 1
    seen = open_learner(policy_folder, LearnerSettings()).forward([replace(row, token_ids=ids)])
    assert np.abs(seen.logprobs - row.behavior_logprobs[row.loss_mask]).max() > 1e-2


@pytest.mark.parametrize(
    "settings", [LearnerSettings(), LearnerSettings(gradient_checkpointing=True)], ids=["kept", "checkpointed"]
)
def test_the_gradient_is_that_of_a_plain_loop_over_rows(
    policy_folder: Path, sampled_rows: list[TrainingRow], settings: LearnerSettings
):
    model: Any = AutoModelForCausalLM.from_pretrained(policy_folder)
    bent, total = Bent(sampled_rows), torch.zeros(())
    for n, row in enumerate(sampled_rows):
        trained = torch.from_numpy(np.flatnonzero(row.loss_mask))
        ids = torch.from_numpy(row.token_ids.astype(np.int64))
        logits = model(ids[None], use_cache=False).logits[0, trained - 1] / (row.turns.temperature[0] or 1.0)
        logps = torch.log_softmax(logits, -1)
        logp, nats = logps.gather(1, ids[trained][:, None])[:, 0], -(logps.exp() * logps).sum(-1)
        mine = tokens_of(sampled_rows, np.array([n]))
        total = total + (torch.tensor(bent.a[mine]) * logp**2 + torch.tensor(bent.b[mine]) * nats**2).sum()
    total.backward()
    plain = torch.cat([w.grad.flatten() for w in model.parameters()]).double().numpy()
    learner = open_learner(policy_folder, settings)
    assert apart(gradient(learner, sampled_rows), plain) < 1e-5
    assert learner.forward_backward(sampled_rows, bent) == pytest.approx(total.item(), rel=1e-5)


def test_the_gradient_is_the_slope_of_the_loss(policy_folder: Path, sampled_rows: list[TrainingRow]):
    learner = open_learner(policy_folder, LearnerSettings())
    weights, slope = list(trainable_parameters(learner._network).values()), gradient(learner, sampled_rows)
    along = torch.from_numpy(slope / np.linalg.norm(slope)).float()

    def at(step: float) -> float:
        with torch.no_grad():
            for weight, part in zip(weights, along.split([w.numel() for w in weights]), strict=True):
                weight.add_(part.view_as(weight), alpha=step)
        return Bent(sampled_rows)(np.arange(len(sampled_rows)), learner.forward(sampled_rows)).value

    high, low = at(1e-2), at(-2e-2)
    assert (high - low) / 2e-2 == pytest.approx(np.linalg.norm(slope), rel=1e-2)


def test_derivatives_of_a_token_s_scores_are_exact():
    generator = torch.Generator().manual_seed(1)
    logits = torch.randn(5, 9, dtype=torch.float64, generator=generator, requires_grad=True)
    expected = torch.tensor([0, 3, 8, 3, 1])
    assert torch.autograd.gradcheck(token_logprobs._LogprobsAndEntropy.apply, (logits, expected))


@pytest.mark.parametrize("maximum", [1, 50, 10**6])
def test_neither_order_nor_padding_nor_the_cut_changes_anything(
    policy_folder: Path, sampled_rows: list[TrainingRow], maximum: int
):
    learner, other = open_learner(policy_folder, LearnerSettings()), open_learner(policy_folder, LearnerSettings())
    other._settings = LearnerSettings(max_tokens_per_micro_batch=maximum)
    backwards = sampled_rows[::-1]
    order = tokens_of(sampled_rows, np.arange(len(sampled_rows))[::-1].copy())
    assert apart(other.forward(backwards).logprobs, learner.forward(sampled_rows).logprobs[order]) < 1e-6
    bent = Bent(sampled_rows)
    bent.a, bent.b, bent.rows = bent.a[order], bent.b[order], backwards
    assert apart(gradient(other, backwards, bent), gradient(learner, sampled_rows)) < 1e-6


def test_packed_rows_cannot_reach_one_another(policy_folder: Path, sampled_rows: list[TrainingRow]):
    beside, packed = (
        open_learner(policy_folder, LearnerSettings()),
        open_learner(policy_folder, LearnerSettings(packing=True)),
    )
    assert np.abs(packed.forward(sampled_rows).logprobs - beside.forward(sampled_rows).logprobs).max() < 1e-5
    assert apart(gradient(packed, sampled_rows), gradient(beside, sampled_rows)) < 1e-5


def test_a_row_of_many_turns_is_worth_as_many_rows_of_one(policy_folder: Path):
    whole = [rollout(served(policy_folder), 5, turns=6), rollout(served(policy_folder), 6, turns=4)]
    parts = [part for row in whole for part in by_turn(row)]
    one, other = open_learner(policy_folder, LearnerSettings()), open_learner(policy_folder, LearnerSettings())
    assert np.abs(one.forward(whole).logprobs - other.forward(parts).logprobs).max() < 1e-5
    assert apart(gradient(one, whole), gradient(other, parts)) < 1e-5


def test_a_head_in_ranges_is_the_head_at_once(
    policy_folder: Path, sampled_rows: list[TrainingRow], monkeypatch: pytest.MonkeyPatch
):
    learner, other = open_learner(policy_folder, LearnerSettings()), open_learner(policy_folder, LearnerSettings())
    expected = gradient(learner, sampled_rows)
    monkeypatch.setattr(token_logprobs, "MAX_LOGITS", 46 * 7)
    assert apart(gradient(other, sampled_rows), expected) < 1e-6


def test_short_arithmetic_stays_near(policy_folder: Path, sampled_rows: list[TrainingRow]):
    exact = open_learner(policy_folder, LearnerSettings()).forward(sampled_rows)
    for kind in ("full", "lora"):
        short = open_learner(policy_folder, LearnerSettings(precision="bf16", kind=kind))
        difference = np.abs(short.forward(sampled_rows).logprobs - exact.logprobs)
        assert 0 < difference.max() < 0.05
        short.forward_backward(sampled_rows, Bent(sampled_rows))
        assert not short.optim_step().skipped
        assert {w.dtype for w in trainable_parameters(short._network).values()} == {torch.float32}


def test_a_row_without_a_prompt_is_rejected(policy_folder: Path, sampled_rows: list[TrainingRow]):
    mask = sampled_rows[0].loss_mask.copy()
    mask[0] = True
    with pytest.raises(InvalidInput, match="trains its first token"):
        open_learner(policy_folder, LearnerSettings()).forward([replace(sampled_rows[0], loss_mask=mask)])


def test_nothing_to_train_is_no_gradient(policy_folder: Path, sampled_rows: list[TrainingRow]):
    learner = open_learner(policy_folder, LearnerSettings(learning_rate=1.0, weight_decay=0.1))
    before = learner.forward(sampled_rows)
    masked = [replace(row, loss_mask=np.zeros(len(row), np.bool_)) for row in sampled_rows]
    assert len(learner.forward(masked).logprobs) == len(learner.forward([]).logprobs) == 0
    learner.forward_backward(masked, lambda _, seen: LossGradients(0.0, np.zeros(len(seen.logprobs))))
    learner.forward_backward(sampled_rows, lambda _, seen: LossGradients(0.0, np.zeros(len(seen.logprobs))))
    assert learner.optim_step().grad_norm == 0
    assert np.array_equal(learner.forward(sampled_rows).logprobs, before.logprobs)


def test_derivatives_of_another_shape_are_an_error(policy_folder: Path, sampled_rows: list[TrainingRow]):
    with pytest.raises(ValueError, match=r"\(3,\) for"):
        open_learner(policy_folder, LearnerSettings()).forward_backward(
            sampled_rows, lambda _, __: LossGradients(0, np.ones(3))
        )


@pytest.mark.parametrize("family", ["gemma2", "granite", "gpt2"])
def test_other_families_are_forwarded_as_they_do_it_themselves(
    tmp_path: Path, sampled_rows: list[TrainingRow], family: str
):
    model = _tiny(family)
    model.save_pretrained(tmp_path / family)
    row = sampled_rows[0]
    ids = torch.from_numpy(row.token_ids.astype(np.int64))
    trained = np.flatnonzero(row.loss_mask)
    with torch.no_grad():
        own = torch.log_softmax(model.eval()(ids[None]).logits[0], -1)[trained - 1, ids[trained]].numpy()
    for settings in (
        LearnerSettings(),
        LearnerSettings(kind="lora", lora_settings=LoraSettings(rank=2)),
        LearnerSettings(packing=True),
    ):
        assert np.abs(open_learner(tmp_path / family, settings).forward([row]).logprobs - own).max() < 1e-5


def _tiny(family: str) -> Any:
    from transformers import Gemma2Config, GPT2Config, GraniteConfig

    shape: dict[str, Any] = {"vocab_size": 46, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2}
    heads: dict[str, Any] = {"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8, "pad_token_id": 0}
    configs: dict[str, Any] = {
        "gemma2": lambda: Gemma2Config(**shape, **heads, sliding_window=8, final_logit_softcapping=0.5),
        "granite": lambda: GraniteConfig(**shape, num_attention_heads=2, num_key_value_heads=1, logits_scaling=0.25),
        "gpt2": lambda: GPT2Config(vocab_size=46, n_embd=16, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0),
    }
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        return AutoModelForCausalLM.from_config(configs[family]())


def test_adapters_move_and_the_weights_under_them_stay(policy_folder: Path, sampled_rows: list[TrainingRow]):
    learner = open_learner(policy_folder, LearnerSettings(kind="lora", learning_rate=1e-2))
    before = {n: w.detach().clone() for n, w in learner._network.named_parameters()}
    for _ in range(2):
        learner.forward_backward(sampled_rows, Bent(sampled_rows))
        learner.optim_step()
    changed = {n for n, w in learner._network.named_parameters() if not torch.equal(w, before[n])}
    assert changed == {n for n in before if "lora_" in n}
    assert "lora_" not in {n for n in before if "lm_head" in n or "embed" in n}


def test_the_reference_under_an_adapter_is_the_same_weights_with_the_adapter_switched_off(
    policy_folder: Path, sampled_rows: list[TrainingRow]
):
    learner = open_learner(policy_folder, LearnerSettings(kind="lora", learning_rate=1e-2))
    reference = learner.without_adapter()
    assert reference is not None
    assert reference.folder == policy_folder
    for _ in range(2):
        learner.forward_backward(sampled_rows, Bent(sampled_rows))
        learner.optim_step()
    moved = learner.forward(sampled_rows).logprobs
    opened_anew = open_learner(policy_folder, LearnerSettings())
    assert apart(reference.forward(sampled_rows).logprobs, opened_anew.forward(sampled_rows).logprobs) < 1e-6
    assert apart(moved, reference.forward(sampled_rows).logprobs) > 1e-3
    assert np.array_equal(learner.forward(sampled_rows).logprobs, moved), "the adapter is on again"
    assert opened_anew.without_adapter() is None


def test_a_job_takes_the_weights_under_its_adapter_as_reference_and_opens_none(policy_folder: Path):
    start = PolicyVersionRow(
        new_id(), "planner", 1, None, "full", "", str(policy_folder), "", "", "", "active", {}, {}, datetime.now(UTC)
    )
    for kind, expected in (("lora", BaseWeights), ("full", LocalLearner)):
        tables = {"algorithm": "grpo", "policy": "planner@1", "name": "planner", "learner": {"kind": kind}}
        trainer = open_trainer(parse_config(tables), JobPolicies(start, None, None))
        assert isinstance(trainer.open_reference(trainer.learner), expected)


COLUMNS = ("value_high", "value_low", "value_switch", "value_keep", "value")


def test_values_are_read_before_a_turn_writes_and_after_its_subgoal(policy_folder: Path):
    from tests.trainer.builders import a_row

    kinds = (("switch", "subgoal", "subgoal", "action"), ("switch", "action", "action", "action"))
    row = a_row((4, 4), kinds=kinds, ids=range(10, 18))
    learner = open_learner(policy_folder, LearnerSettings(critic=CriticSettings(columns=COLUMNS)))
    with torch.no_grad():
        for name, weight in learner._network.named_parameters():
            if name.startswith("values.heads") and name.endswith("weight"):
                weight.copy_(torch.arange(64.0)[None] / 64)
    values = learner.forward([row]).values
    assert {name: len(value) for name, value in values.items()} == dict.fromkeys(COLUMNS, 2)

    def reaches(position: int) -> dict[str, list[bool]]:
        """Whose values another id at this place changes."""
        ids = row.token_ids.copy()
        ids[position] = 30
        changed = learner.forward([replace(row, token_ids=ids)]).values
        return {name: (np.abs(changed[name] - values[name]) > 1e-6).tolist() for name in COLUMNS}

    first, second = slice(2, 6), slice(8, 12)  # tokens that the policy wrote
    assert all(reaches(1)[name] == [True, True] for name in COLUMNS)
    assert reaches(first.start)["value"] == reaches(first.start)["value_keep"] == [False, True]
    assert [reaches(p)["value_low"][0] for p in range(first.start, first.stop)] == [True, True, True, False]
    assert [reaches(p)["value_low"][1] for p in range(second.start, second.stop)] == [True, False, False, False]


def test_a_turn_without_a_trained_token_has_no_value(policy_folder: Path, sampled_rows: list[TrainingRow]):
    row = sampled_rows[2]
    masked = replace(row, loss_mask=row.loss_mask & (row.turn_index != 1))
    learner = open_learner(policy_folder, LearnerSettings(critic=CriticSettings()))
    assert np.isnan(learner.forward([masked, row]).values["value"]).tolist() == [False, True, False] + [False] * 3


@pytest.mark.parametrize("trunk", ["copy", "shared", "detached"])
def test_a_critic_learns_what_it_is_told(policy_folder: Path, sampled_rows: list[TrainingRow], trunk: str):
    messages = {row.key: np.random.default_rng(n).normal(size=len(row.turns)) for n, row in enumerate(sampled_rows)}

    def loss(which: Indices, seen: ForwardResult) -> LossGradients:
        targets = np.concatenate([messages[sampled_rows[n].key] for n in which.tolist()])
        off = seen.values["value"] - targets
        return LossGradients(float((off**2).sum()), np.zeros(len(seen.logprobs)), None, {"value": 2 * off})

    critic = CriticSettings.model_validate({"trunk": trunk, "learning_rate": 1e-2})
    learner = open_learner(policy_folder, LearnerSettings(critic=critic, learning_rate=1e-3, max_grad_norm=None))
    policy = learner.forward(sampled_rows).logprobs
    losses = [learner.forward_backward(sampled_rows, loss) for _ in range(40) if learner.optim_step()]
    assert losses[-1] < (losses[0] / 100 if trunk != "detached" else losses[0] / 2)
    assert np.array_equal(learner.forward(sampled_rows).logprobs, policy) == (trunk != "shared")
