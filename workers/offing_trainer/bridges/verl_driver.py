"""Training of exported steps with verl's `TrainingWorker`, run in verl's own environment.

    torchrun --nproc-per-node 8 -m offing_trainer.bridges.verl_driver DIR --policy POLICY --out OUT

Every process is a worker with a part of the rows. It uses neither verl's rollouts, rewards and
datasets nor Ray. This module imports verl, torch and `step_file`, and nothing else of Offing: where
Offing is not installed, a folder `offing_trainer/bridges` with these two files is enough.
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

from offing_trainer.bridges.step_file import (
    ExportedRow,
    ExportedStep,
    LossSpec,
    has_ended,
    list_step_files,
    read_step,
    zero_weight_row,
)

MAX_LOG_RATIO_NATS = 20.0
"""Limit of log-ratios in nats. Beyond it a token has no gradient, as in Offing's own learner."""

POLL_SECONDS = 2.0

TOKEN_COLUMNS = ("loss_mask", "advantages", "token_weights")

VerlLossFn = Callable[..., tuple[Any, dict[str, Any]]]


@dataclass(frozen=True)
class VerlArgs:
    """Command-line arguments."""

    steps_dir: Path
    policy_dir: str
    output_dir: Path
    strategy: str = "fsdp2"
    max_tokens_per_micro_batch: int = 16384
    """Maximum tokens of a micro-batch on each process."""
    precision: str = "bf16"
    learning_rate: float | None = None
    """`None` uses the job's learning rate."""
    attention: str = ""
    """Attention implementation. Empty uses verl's default."""
    remove_padding: bool = True
    gradient_checkpointing: bool = True
    save_every_steps: int = 0
    """Number of steps between checkpoints. `0` saves only at the end."""
    follow: bool = False
    """Wait for steps until the export has ended."""


def compute_token_loss(
    loss_spec: LossSpec, logp: Any, inputs: dict[str, Any], entropy: Any = None
) -> tuple[Any, dict[str, Any]]:
    """Return the summed loss of flat tokens, with the formulas of Offing's surrogates and regularizers.

    All tensors have the same length. `inputs` has advantages, token_weights and, where the loss needs
    them, old_logprobs and ref_logprobs.
    """
    torch: Any = import_module("torch")
    advantage, weight = inputs["advantages"], inputs["token_weights"]
    metrics: dict[str, Any] = {}
    if loss_spec.surrogate == "ppo-clip":
        ratio = _importance_ratio(torch, logp - inputs["old_logprobs"])
        clipped = torch.clamp(ratio, 1 - loss_spec.clip_low, 1 + loss_spec.clip_high)
        gain = torch.minimum(ratio * advantage, clipped * advantage)
        if loss_spec.dual_clip is not None:
            gain = torch.where(advantage < 0, torch.maximum(gain, loss_spec.dual_clip * advantage), gain)
        loss = -(weight * gain).sum()
        metrics["ratio"] = ratio.detach().mean()
    else:
        token_advantage = advantage if loss_spec.surrogate == "reinforce" else torch.clamp(advantage, min=0)
        loss = -(weight * token_advantage * logp).sum()
    if loss_spec.kl_estimator is not None and loss_spec.kl_coefficient:
        divergence = _estimate_kl(torch, loss_spec.kl_estimator, inputs["ref_logprobs"] - logp)
        if loss_spec.kl_max_value is not None:
            divergence = torch.clamp(divergence, max=loss_spec.kl_max_value)
        loss = loss + loss_spec.kl_coefficient * (weight * divergence).sum()
        metrics["kl"] = divergence.detach().mean()
    if loss_spec.entropy_coefficient:
        loss = loss - loss_spec.entropy_coefficient * (weight * entropy).sum()
    return loss, metrics


def _importance_ratio(torch: Any, log_ratio: Any) -> Any:
    return torch.exp(torch.clamp(log_ratio, -MAX_LOG_RATIO_NATS, MAX_LOG_RATIO_NATS))


def _estimate_kl(torch: Any, estimator: str, log_ratio: Any) -> Any:
    """Estimate the KL divergence from log_ratio = log p_ref - log p at tokens sampled from p."""
    if estimator == "k1":
        return -log_ratio
    return log_ratio**2 / 2 if estimator == "k2" else _importance_ratio(torch, log_ratio) - log_ratio - 1


def build_verl_loss(loss_spec: LossSpec) -> VerlLossFn:
    """Build the loss function that verl calls for each micro-batch.

    verl averages gradients over processes, while the weights already divide, so the loss is multiplied
    by the number of processes.
    """

    def loss(model_output: dict[str, Any], data: Any, dp_group: Any = None) -> tuple[Any, dict[str, Any]]:
        is_trained = data["loss_mask"].values().bool()
        names = [name for name in (*TOKEN_COLUMNS[1:], "old_logprobs", "ref_logprobs") if name in data.keys()]  # noqa: SIM118  # a TensorDict
        inputs = {name: data[name].values()[is_trained] for name in names}
        entropy = model_output["entropy"].values()[is_trained] if loss_spec.entropy_coefficient else None
        value, metrics = compute_token_loss(
            loss_spec, model_output["log_probs"].values()[is_trained].float(), inputs, entropy
        )
        return value * data["dp_size"], {f"offing/{name}": figure.item() for name, figure in metrics.items()}

    return loss


def build_tensordict(
    rows: Sequence[ExportedRow], extra_columns: dict[str, Sequence[Any]], metadata: dict[str, Any]
) -> Any:
    """Build verl's TensorDict of rows, without padding.

    Entry n of a column belongs to token n + 1, as in verl's own logprobs. `extra_columns` are further
    columns, with one array of length L per row, not yet shifted.
    """
    torch: Any = import_module("torch")
    tu: Any = import_module("verl.utils.tensordict_utils")
    ids = [torch.from_numpy(row.token_ids.astype(np.int64)) for row in rows]
    columns = {name: [getattr(row, name) for row in rows] for name in TOKEN_COLUMNS} | extra_columns
    tensors = {
        "input_ids": to_jagged(torch, ids),
        "position_ids": to_jagged(torch, [torch.arange(len(one)) for one in ids]),
        **{n: to_jagged(torch, [torch.from_numpy(shift_left(one)) for one in column]) for n, column in columns.items()},
    }
    temperatures = {row.temperature for row in rows}
    if len(temperatures) > 1:
        tensors["temperature"] = torch.tensor([row.temperature for row in rows])
    else:
        metadata = {**metadata, "temperature": temperatures.pop()}
    data = tu.get_tensordict(tensor_dict=tensors, non_tensor_dict=metadata)
    lengths = import_module("tensordict").NonTensorData([len(row) for row in rows])
    tu.assign_non_tensor(data, global_token_num=lengths)
    return data


def to_jagged(torch: Any, tensors: list[Any]) -> Any:
    return torch.nested.as_nested_tensor(tensors, layout=torch.jagged)


def shift_left(array: Any) -> Any:
    """Shift the array left by one token. The last entry is 0, since the last token predicts nothing."""
    return np.append(array[1:], array[:1] * 0).astype(np.float32)


def rows_of_rank(rows: Sequence[ExportedRow], rank: int, world_size: int) -> list[ExportedRow]:
    """Return the rows of one process, padded with a row of weight 0.

    All processes get the same number of rows.
    """
    own = list(rows[rank::world_size])
    if len(own) < -(-len(rows) // world_size):
        own.append(zero_weight_row(rows[0]))
    return own


def build_worker(args: VerlArgs, exported_step: ExportedStep, *, forward_only: bool = False) -> Any:
    """Build verl's worker for the policy's folder, with its weights loaded."""
    worker: Any = import_module("verl.workers.engine_workers")
    configs: Any = import_module("verl.workers.config")
    checkpoint: Any = import_module("verl.trainer.config")
    learner = exported_step.learner
    override = {"attn_implementation": args.attention} if args.attention else {}
    config = configs.TrainingWorkerConfig(
        model_type="language_model",
        model_config=configs.HFModelConfig(
            path=args.policy_dir,
            use_remove_padding=args.remove_padding,
            enable_gradient_checkpointing=args.gradient_checkpointing and not forward_only,
            override_config=override,
        ),
        engine_config=configs.FSDPEngineConfig(
            strategy=args.strategy,
            forward_only=forward_only,
            use_dynamic_bsz=True,
            max_token_len_per_gpu=args.max_tokens_per_micro_batch,
            infer_max_token_len_per_gpu=args.max_tokens_per_micro_batch,
            use_torch_compile=False,
            model_dtype="fp32",
            mixed_precision={"param_dtype": args.precision, "reduce_dtype": "fp32", "buffer_dtype": "fp32"},
        ),
        optimizer_config=configs.FSDPOptimizerConfig(
            lr=learner["learning_rate"] if args.learning_rate is None else args.learning_rate,
            betas=tuple(learner["betas"]),
            weight_decay=learner["weight_decay"],
            clip_grad=learner["max_grad_norm"] or float("inf"),
            lr_warmup_steps=learner["warmup_steps"],
            total_training_steps=1 << 30,
            override_optimizer_config={"eps": learner["epsilon"]},
        ),
        checkpoint_config=checkpoint.CheckpointConfig(save_contents=["model", "optimizer", "extra", "hf_model"]),
    )
    training_worker = worker.TrainingWorker(config=config)
    training_worker.reset()
    return training_worker


def train_step(worker: Any, reference: Any, exported_step: ExportedStep, args: VerlArgs) -> list[dict[str, Any]]:
    """Run all optimizer steps of a training step. Returns the metrics of each."""
    terms, engine = exported_step.loss_spec, worker.engine
    worker.set_loss_fn(build_verl_loss(terms))
    rank, size = engine.get_data_parallel_rank(), engine.get_data_parallel_size()
    shares = [
        rows_of_rank(rows, rank, size)
        for nth in range(exported_step.optimizer_steps)
        if (rows := exported_step.list_rows(nth))
    ]
    old = [_compute_old_logprobs(worker, terms, own, args) for own in shares]
    metrics: list[dict[str, Any]] = []
    for mine, anchors in zip(shares, old, strict=True):
        extra = dict(anchors)
        if terms.kl_estimator is not None and terms.kl_coefficient:
            extra["ref_logprobs"] = compute_logprobs(reference, mine, args)
        about = {
            **_forward_settings(args),
            "calculate_entropy": bool(terms.entropy_coefficient),
            "update_lr_scheduler": True,
        }
        output = worker.train_batch(build_tensordict(mine, extra, about))
        metrics.append(import_module("verl.utils.tensordict_utils").get(output, "metrics"))
    return metrics


def _compute_old_logprobs(
    worker: Any, loss_spec: LossSpec, rows: Sequence[ExportedRow], args: VerlArgs
) -> dict[str, Sequence[Any]]:
    """Compute logprobs under the initial weights of the step, before its first optimizer step."""
    if loss_spec.ratio_to == "behavior":
        return {"old_logprobs": [row.behavior_logprobs for row in rows]}
    return {"old_logprobs": compute_logprobs(worker, rows, args)} if loss_spec.ratio_to == "start" else {}


def compute_logprobs(worker: Any, rows: Sequence[ExportedRow], args: VerlArgs) -> list[Any]:
    """Return an array of length L per row with the logprob of each token. The first token has 0."""
    tu: Any = import_module("verl.utils.tensordict_utils")
    about = {**_forward_settings(args), "calculate_entropy": False, "compute_loss": False}
    output = worker.infer_batch(build_tensordict(rows, {}, about))
    logprobs = tu.get(output, "log_probs")
    return [np.append(np.zeros(1), one.float().cpu().numpy()[:-1]).astype(np.float32) for one in logprobs.unbind()]


def _forward_settings(args: VerlArgs) -> dict[str, Any]:
    pad_mode: Any = import_module("verl.utils.dataset.dataset_utils").DatasetPadMode
    return {
        "use_remove_padding": args.remove_padding,
        "use_dynamic_bsz": True,
        "max_token_len_per_gpu": args.max_tokens_per_micro_batch,
        "use_fused_kernels": False,
        "pad_mode": pad_mode.NO_PADDING,
        "pad_token_id": 0,
    }


def iter_step_files(args: VerlArgs, sleep: Callable[[float], None] = time.sleep) -> Iterator[Path]:
    """Yield step files in order. With `follow`, wait for new ones."""
    done: set[Path] = set()
    while True:
        is_last_pass = (
            has_ended(args.steps_dir) or not args.follow
        )  # checked first: all steps are complete before the end file is written
        fresh = [file for file in list_step_files(args.steps_dir) if file not in done]
        yield from fresh
        done.update(fresh)
        if is_last_pass:
            return
        if not fresh:
            sleep(POLL_SECONDS)


POLICY_FILES = ("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json",
"chat_template.jinja",
       "special_tokens_map.json", "vocab.json", "merges.txt")  # fmt: skip
"""Files of a policy that training does not change.

verl rewrites them. A policy whose tokenizer has another hash could not be trained on the same
rollouts again.
"""


def save_checkpoint(worker: Any, folder: Path, args: VerlArgs, step: int) -> None:
    """Save a checkpoint, and in its `huggingface` folder the files for `offing policy add`.

    Only the weights differ from the initial policy.
    """
    worker.save_checkpoint(str(folder), global_step=step)
    start_dir = Path(args.policy_dir)
    if worker.engine.get_data_parallel_rank() == 0 and start_dir.is_dir():
        for name in POLICY_FILES:
            if (start_dir / name).is_file():
                shutil.copyfile(start_dir / name, folder / "huggingface" / name)
    import_module("torch.distributed").barrier()


def train(args: VerlArgs) -> None:
    """Train all exported steps, then save a last checkpoint in `final`."""
    distributed: Any = import_module("verl.utils.distributed")
    distributed.initialize_global_process_group()
    worker: Any = None
    reference: Any = None
    number = 0
    for file in iter_step_files(args):
        handed = read_step(file)
        if worker is None:
            worker = build_worker(args, handed)
            reference = (
                build_worker(args, handed, forward_only=True) if handed.loss_spec.kl_estimator is not None else None
            )
        metrics = train_step(worker, reference, handed, args)
        number = handed.step
        if worker.engine.get_data_parallel_rank() == 0:
            print(json.dumps({"step": number, "optimizer_steps": metrics}, default=str), flush=True)
        if args.save_every_steps and number % args.save_every_steps == 0:
            save_checkpoint(worker, args.output_dir / f"step-{number:06d}", args, number)
    if worker is None:
        raise SystemExit(f"there are no steps in {args.steps_dir}")
    save_checkpoint(worker, args.output_dir / "final", args, number)
    distributed.destroy_global_process_group()


def parse_args(argv: Sequence[str] | None = None) -> VerlArgs:
    parser = argparse.ArgumentParser(prog="verl_driver", description="Train exported steps of Offing with verl.")
    parser.add_argument("steps_dir", type=Path, help="folder of a step export")
    parser.add_argument("--policy", dest="policy_dir", required=True, help="folder of the initial weights")
    parser.add_argument(
        "--out", dest="output_dir", type=Path, required=True, help="folder for checkpoints and the policy"
    )
    parser.add_argument("--strategy", default="fsdp2", choices=["fsdp", "fsdp2"])
    parser.add_argument(
        "--max-tokens-per-micro-batch", type=int, default=16384, help="maximum tokens of a micro-batch on each process"
    )
    parser.add_argument("--precision", default="bf16", choices=["bf16", "fp32"])
    parser.add_argument("--learning-rate", type=float)
    parser.add_argument("--attention", default="", help="attention implementation, such as sdpa; the default is verl's")
    parser.add_argument("--keep-padding", dest="remove_padding", action="store_false")
    parser.add_argument("--no-gradient-checkpointing", dest="gradient_checkpointing", action="store_false")
    parser.add_argument(
        "--save-every-steps", type=int, default=0, help="steps between checkpoints; 0 saves only at the end"
    )
    parser.add_argument("--follow", action="store_true", help="wait for further steps until the export has ended")
    return VerlArgs(**vars(parser.parse_args(argv)))


if __name__ == "__main__":
    train(parse_args())
