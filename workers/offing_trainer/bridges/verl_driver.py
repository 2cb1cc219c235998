"""Steps that were handed over, trained by verl's `TrainingWorker`. Runs in verl's own environment:

    torchrun --nproc-per-node 8 -m offing_trainer.bridges.verl_driver DIR --policy FOLDER --out FOLDER

Every process is a worker with a share of the rows; nothing of verl's rollouts, rewards or datasets is used, nor Ray.
Imports verl, torch and `handed`, and nothing else of ours: where Offing is not installed, a folder
`offing_trainer/bridges` with these two files is enough.
"""

import argparse
import json
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from offing_trainer.bridges.handed import Handed, HandedRow, Terms, ended, read_step, steps_in, weightless

FARTHEST = 20.0
"""Nats that a log-ratio is cut at; beyond it a token has no gradient, as in our own learner."""

WAIT_SECONDS = 2.0

PER_TOKEN = ("loss_mask", "advantages", "weights")

Loss = Callable[..., tuple[Any, dict[str, Any]]]


@dataclass(frozen=True)
class Asked:
    """What the command line says."""

    steps: Path
    policy: str
    out: Path
    strategy: str = "fsdp2"
    tokens: int = 16384
    """Of a micro-batch, on each process."""
    precision: str = "bf16"
    learning_rate: float | None = None
    """None: the job's."""
    attention: str = ""
    """Empty: verl's own choice."""
    remove_padding: bool = True
    checkpointing: bool = True
    save_every: int = 0
    """Steps. 0: only at the end."""
    follow: bool = False
    """Wait for steps until the hand-over has ended."""


def token_loss(terms: Terms, logp: Any, given: dict[str, Any], entropy: Any = None) -> tuple[Any, dict[str, Any]]:
    """The loss of flat tokens, as a sum; tensors of one length. The same formulas as our surrogates and regularisers.

    `given`: advantages, weights and, where the terms need them, old_logprobs and ref_logprobs.
    """
    torch: Any = import_module("torch")
    advantage, weight = given["advantages"], given["weights"]
    figures: dict[str, Any] = {}
    if terms.surrogate == "ppo-clip":
        ratio = _ratio(torch, logp - given["old_logprobs"])
        held = torch.clamp(ratio, 1 - terms.low, 1 + terms.high)
        gain = torch.minimum(ratio * advantage, held * advantage)
        if terms.dual is not None:
            gain = torch.where(advantage < 0, torch.maximum(gain, terms.dual * advantage), gain)
        loss = -(weight * gain).sum()
        figures["ratio"] = ratio.detach().mean()
    else:
        credit = advantage if terms.surrogate == "reinforce" else torch.clamp(advantage, min=0)
        loss = -(weight * credit * logp).sum()
    if terms.kl is not None and terms.kl_coefficient:
        apart = _kl(torch, terms.kl, given["ref_logprobs"] - logp)
        loss = loss + terms.kl_coefficient * (weight * apart).sum()
        figures["kl"] = apart.detach().mean()
    if terms.entropy:
        loss = loss - terms.entropy * (weight * entropy).sum()
    return loss, figures


def _ratio(torch: Any, log: Any) -> Any:
    return torch.exp(torch.clamp(log, -FARTHEST, FARTHEST))


def _kl(torch: Any, estimator: str, apart: Any) -> Any:
    """Of `apart` = log p_ref - log p at tokens sampled from p."""
    if estimator == "k1":
        return -apart
    return apart**2 / 2 if estimator == "k2" else _ratio(torch, apart) - apart - 1


def loss_of(terms: Terms) -> Loss:
    """As verl calls it for each micro-batch. verl averages gradients over processes; a weight already divides, so the
    part is multiplied by their number."""

    def loss(model_output: dict[str, Any], data: Any, dp_group: Any = None) -> tuple[Any, dict[str, Any]]:
        here = data["loss_mask"].values().bool()
        names = [name for name in (*PER_TOKEN[1:], "old_logprobs", "ref_logprobs") if name in data.keys()]  # noqa: SIM118  # a TensorDict
        given = {name: data[name].values()[here] for name in names}
        entropy = model_output["entropy"].values()[here] if terms.entropy else None
        value, figures = token_loss(terms, model_output["log_probs"].values()[here].float(), given, entropy)
        return value * data["dp_size"], {f"offing/{name}": figure.item() for name, figure in figures.items()}

    return loss


def batch_of(rows: Sequence[HandedRow], extra: dict[str, Sequence[Any]], about: dict[str, Any]) -> Any:
    """Rows as verl's TensorDict without padding. Entry n of a token's column is about token n + 1, as verl's own
    log-probabilities are. `extra`: further columns, an array of length L a row, not yet shifted."""
    torch: Any = import_module("torch")
    tu: Any = import_module("verl.utils.tensordict_utils")
    ids = [torch.from_numpy(row.token_ids.astype(np.int64)) for row in rows]
    columns = {name: [getattr(row, name) for row in rows] for name in PER_TOKEN} | extra
    tensors = {
        "input_ids": jagged(torch, ids),
        "position_ids": jagged(torch, [torch.arange(len(one)) for one in ids]),
        **{n: jagged(torch, [torch.from_numpy(shifted(one)) for one in column]) for n, column in columns.items()},
    }
    heat = {row.temperature for row in rows}
    if len(heat) > 1:
        tensors["temperature"] = torch.tensor([row.temperature for row in rows])
    else:
        about = {**about, "temperature": heat.pop()}
    data = tu.get_tensordict(tensor_dict=tensors, non_tensor_dict=about)
    lengths = import_module("tensordict").NonTensorData([len(row) for row in rows])
    tu.assign_non_tensor(data, global_token_num=lengths)
    return data


def jagged(torch: Any, parts: list[Any]) -> Any:
    return torch.nested.as_nested_tensor(parts, layout=torch.jagged)


def shifted(array: Any) -> Any:
    """Entry n is what entry n + 1 was; 0 at the last token, which predicts nothing."""
    return np.append(array[1:], array[:1] * 0).astype(np.float32)


def share_of(rows: Sequence[HandedRow], rank: int, size: int) -> list[HandedRow]:
    """One process's rows, as many as every other has: what is missing is a row that weighs nothing."""
    mine = list(rows[rank::size])
    if len(mine) < -(-len(rows) // size):
        mine.append(weightless(rows[0]))
    return mine


def worker_of(asked: Asked, handed: Handed, *, forward_only: bool = False) -> Any:
    """verl's own worker over the policy's folder, weights loaded."""
    worker: Any = import_module("verl.workers.engine_workers")
    configs: Any = import_module("verl.workers.config")
    checkpoint: Any = import_module("verl.trainer.config")
    how = handed.learner
    override = {"attn_implementation": asked.attention} if asked.attention else {}
    config = configs.TrainingWorkerConfig(
        model_type="language_model",
        model_config=configs.HFModelConfig(
            path=asked.policy,
            use_remove_padding=asked.remove_padding,
            enable_gradient_checkpointing=asked.checkpointing and not forward_only,
            override_config=override,
        ),
        engine_config=configs.FSDPEngineConfig(
            strategy=asked.strategy,
            forward_only=forward_only,
            use_dynamic_bsz=True,
            max_token_len_per_gpu=asked.tokens,
            infer_max_token_len_per_gpu=asked.tokens,
            use_torch_compile=False,
            model_dtype="fp32",
            mixed_precision={"param_dtype": asked.precision, "reduce_dtype": "fp32", "buffer_dtype": "fp32"},
        ),
        optimizer_config=configs.FSDPOptimizerConfig(
            lr=how["learning_rate"] if asked.learning_rate is None else asked.learning_rate,
            betas=tuple(how["betas"]),
            weight_decay=how["weight_decay"],
            clip_grad=how["gradient_clip"] or float("inf"),
            lr_warmup_steps=how["warmup"],
            total_training_steps=1 << 30,
            override_optimizer_config={"eps": how["epsilon"]},
        ),
        checkpoint_config=checkpoint.CheckpointConfig(save_contents=["model", "optimizer", "extra", "hf_model"]),
    )
    made = worker.TrainingWorker(config=config)
    made.reset()
    return made


def train_step(worker: Any, reference: Any, handed: Handed, asked: Asked) -> list[dict[str, Any]]:
    """The optimiser steps of one step; the figures of each."""
    terms, engine = handed.terms, worker.engine
    worker.set_loss_fn(loss_of(terms))
    rank, size = engine.get_data_parallel_rank(), engine.get_data_parallel_size()
    shares = [share_of(rows, rank, size) for nth in range(handed.optimiser_steps) if (rows := handed.rows_of(nth))]
    old = [_anchors(worker, terms, mine, asked) for mine in shares]
    figures: list[dict[str, Any]] = []
    for mine, anchors in zip(shares, old, strict=True):
        extra = dict(anchors)
        if terms.kl is not None and terms.kl_coefficient:
            extra["ref_logprobs"] = logprobs(reference, mine, asked)
        about = {**_about(asked), "calculate_entropy": bool(terms.entropy), "update_lr_scheduler": True}
        output = worker.train_batch(batch_of(mine, extra, about))
        figures.append(import_module("verl.utils.tensordict_utils").get(output, "metrics"))
    return figures


def _anchors(worker: Any, terms: Terms, rows: Sequence[HandedRow], asked: Asked) -> dict[str, Sequence[Any]]:
    """Under the weights that the step begins with, before the first optimiser step moves them."""
    if terms.anchor == "behaviour":
        return {"old_logprobs": [row.behaviour_logprobs for row in rows]}
    return {"old_logprobs": logprobs(worker, rows, asked)} if terms.anchor == "start" else {}


def logprobs(worker: Any, rows: Sequence[HandedRow], asked: Asked) -> list[Any]:
    """An array of length L a row, 0 at the first token: what a worker's weights say of each token."""
    tu: Any = import_module("verl.utils.tensordict_utils")
    about = {**_about(asked), "calculate_entropy": False, "compute_loss": False}
    output = worker.infer_batch(batch_of(rows, {}, about))
    found = tu.get(output, "log_probs")
    return [np.append(np.zeros(1), one.float().cpu().numpy()[:-1]).astype(np.float32) for one in found.unbind()]


def _about(asked: Asked) -> dict[str, Any]:
    pad_mode: Any = import_module("verl.utils.dataset.dataset_utils").DatasetPadMode
    return {
        "use_remove_padding": asked.remove_padding,
        "use_dynamic_bsz": True,
        "max_token_len_per_gpu": asked.tokens,
        "use_fused_kernels": False,
        "pad_mode": pad_mode.NO_PADDING,
        "pad_token_id": 0,
    }


def files_of(asked: Asked, sleep: Callable[[float], None] = time.sleep) -> Iterator[Path]:
    """Steps in their order, and with `follow` those that are still to come."""
    done: set[Path] = set()
    while True:
        over = ended(asked.steps) or not asked.follow  # looked at first: steps are whole before the end is
        fresh = [file for file in steps_in(asked.steps) if file not in done]
        yield from fresh
        done.update(fresh)
        if over:
            return
        if not fresh:
            sleep(WAIT_SECONDS)


OWN = ("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja",
       "special_tokens_map.json", "vocab.json", "merges.txt")  # fmt: skip
"""Files of a policy that training does not change. verl writes them anew, and a policy whose tokenizer has another hash
could not be trained on the same rollouts again."""


def save(worker: Any, folder: Path, asked: Asked, step: int) -> None:
    """A checkpoint, and in its `huggingface` what `offing policy add` takes: moved weights, all else as it was."""
    worker.save_checkpoint(str(folder), global_step=step)
    began = Path(asked.policy)
    if worker.engine.get_data_parallel_rank() == 0 and began.is_dir():
        for name in OWN:
            if (began / name).is_file():
                shutil.copyfile(began / name, folder / "huggingface" / name)
    import_module("torch.distributed").barrier()


def train(asked: Asked) -> None:
    """All steps that are handed over, then a last checkpoint in `final`."""
    distributed: Any = import_module("verl.utils.distributed")
    distributed.initialize_global_process_group()
    worker: Any = None
    reference: Any = None
    number = 0
    for file in files_of(asked):
        handed = read_step(file)
        if worker is None:
            worker = worker_of(asked, handed)
            reference = worker_of(asked, handed, forward_only=True) if handed.terms.kl is not None else None
        figures = train_step(worker, reference, handed, asked)
        number = handed.step
        if worker.engine.get_data_parallel_rank() == 0:
            print(json.dumps({"step": number, "optimiser_steps": figures}, default=str), flush=True)
        if asked.save_every and number % asked.save_every == 0:
            save(worker, asked.out / f"step-{number:06d}", asked, number)
    if worker is None:
        raise SystemExit(f"there is no step in {asked.steps}")
    save(worker, asked.out / "final", asked, number)
    distributed.destroy_global_process_group()


def asked_of(arguments: Sequence[str] | None = None) -> Asked:
    parser = argparse.ArgumentParser(prog="verl_driver", description="Train steps that Offing handed over, with verl.")
    parser.add_argument("steps", type=Path, help="folder of a hand-over")
    parser.add_argument("--policy", required=True, help="folder of the weights to begin with")
    parser.add_argument("--out", type=Path, required=True, help="where checkpoints and the policy are saved")
    parser.add_argument("--strategy", default="fsdp2", choices=["fsdp", "fsdp2"])
    parser.add_argument("--tokens", type=int, default=16384, help="of a micro-batch, on each process")
    parser.add_argument("--precision", default="bf16", choices=["bf16", "fp32"])
    parser.add_argument("--learning-rate", type=float)
    parser.add_argument("--attention", default="", help="such as sdpa; empty: verl's own choice")
    parser.add_argument("--keep-padding", dest="remove_padding", action="store_false")
    parser.add_argument("--no-checkpointing", dest="checkpointing", action="store_false")
    parser.add_argument("--save-every", type=int, default=0, help="steps; 0: only at the end")
    parser.add_argument("--follow", action="store_true", help="wait for steps until the hand-over has ended")
    return Asked(**vars(parser.parse_args(arguments)))


if __name__ == "__main__":
    train(asked_of())
