"""TRL's own `AsyncGRPOTrainer` on a step that was handed over, against our learner. In TRL's environment, on a CPU:

    PYTHONPATH=workers python tests/trainer/elsewhere/with_trl.py FOLDER

TRL's attention over a tree of prefixes is a kernel for GPUs; here a few lines of plain torch stand in for it, which
attend to the same tokens, and the name that TRL asks a GPU for is said. All else is TRL's, unchanged.
"""

# pyright: reportUnknownLambdaType=false

import os
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from offing_trainer.bridges.step_file import list_step_files, read_step
from offing_trainer.bridges.trl_worker import (
    NoWeightTransfer,
    StoredRolloutWorker,
    TokenAdvantage,
    build_config_args,
    build_per_token_trainer,
)

torch: Any = import_module("torch")
packing: Any = import_module("trl.experimental.async_grpo.packing")
trainers: Any = import_module("trl.experimental.async_grpo")
transformers: Any = import_module("transformers")
datasets: Any = import_module("datasets")

torch.cuda.get_device_name = lambda *_: "CPU"

CLOSE = 1e-5


def attended(module: Any, query: Any, key: Any, value: Any, mask: Any, *, tree_kv_index: Any, tree_cu_seqlens_q: Any,
             tree_cu_seqlens_k: Any, scaling: Any = None, **_: Any) -> Any:  # fmt: skip
    """Each range of the tree sees the tokens on its own path, causally."""
    query, key, value = query[0], key[0], value[0]
    times = query.shape[0] // key.shape[0]
    key, value = key.repeat_interleave(times, 0), value.repeat_interleave(times, 0)
    out = torch.empty_like(query)
    for n in range(len(tree_cu_seqlens_q) - 1):
        span = slice(int(tree_cu_seqlens_q[n]), int(tree_cu_seqlens_q[n + 1]))
        path = tree_kv_index[int(tree_cu_seqlens_k[n]) : int(tree_cu_seqlens_k[n + 1])]
        size, seen = span.stop - span.start, len(path)
        allowed = torch.ones(size, seen, dtype=torch.bool).tril(seen - size)
        out[:, span] = torch.nn.functional.scaled_dot_product_attention(
            query[:, span], key[:, path], value[:, path], attn_mask=allowed, scale=scaling
        )
    return out.transpose(0, 1).unsqueeze(0), None


def forwarded(model: Any, rows: Any) -> Any:
    """Log-probabilities of each row's trained tokens."""
    results: list[Any] = []
    with torch.no_grad():
        for row in rows:
            ids = torch.from_numpy(row.token_ids.astype(np.int64))[None]
            logp = torch.log_softmax(model(input_ids=ids).logits[0, :-1].double(), -1)
            results.append(logp.gather(1, ids[0, 1:, None])[:, 0].numpy()[row.loss_mask[1:]])
    return results


def trained(folder: Path, out: str, *, each: int, accumulated: int) -> tuple[Any, list[dict[str, Any]]]:
    worker = StoredRolloutWorker(folder / "plain", rows_per_step=each * accumulated)
    args = trainers.AsyncGRPOConfig(
        out, per_device_train_batch_size=each, gradient_accumulation_steps=accumulated, max_staleness=99,
        max_steps=worker.count_optimizer_steps(), save_strategy="no", report_to=[], use_cpu=True,
        bf16=False, logging_steps=1,
        gradient_checkpointing=False, disable_tqdm=True, **build_config_args(worker.read_first_step()),
    )  # fmt: skip
    trainer = build_per_token_trainer()(
        str(folder / "policy"), args=args, train_dataset=datasets.Dataset.from_dict({"prompt": ["-"]}),
        rollout_worker=worker, weight_transfer=NoWeightTransfer(),
    )  # fmt: skip
    transformers.AttentionInterface.register(packing.TREE_ATTENTION, attended)
    trainer.train()
    return trainer, trainer.state.log_history


def checked(folder: Path, *, each: int, accumulated: int) -> None:
    ours, rows = np.load(folder / "plain.npz"), read_step(list_step_files(folder / "plain")[0]).rows
    with tempfile.TemporaryDirectory() as out:
        trainer, log = trained(folder, out, each=each, accumulated=accumulated)
        trainer.save_model(out)
        model = transformers.AutoModelForCausalLM.from_pretrained(out, dtype=torch.float32)
    after = {row.key: one for row, one in zip(rows, forwarded(model, rows), strict=True)}
    apart = np.abs(np.concatenate([after[str(key)] for key in ours["keys"]]) - ours["after"]).max()
    steps = [one for one in log if "loss" in one]
    print(
        f"{each} x {accumulated}: after {apart:.1e}, norms", [one["grad_norm"] for one in steps], ours["norms"].tolist()
    )
    print({name: steps[-1][name] for name in ("loss", "ratio", "kl", "sample/staleness_max") if name in steps[-1]})
    assert apart < CLOSE, apart


def protocol(folder: Path) -> None:
    """A worker says when its steps are over, and TRL's own trie takes its samples."""
    worker = StoredRolloutWorker(folder / "plain", rows_per_step=4)
    worker.update_model_version(1)
    worker.start()
    samples = [worker.rollout_buffer.get(timeout=10) for _ in range(12)]
    assert all(isinstance(one.advantage, TokenAdvantage) and one.model_version == 1 for one in samples)
    row = packing.TreeRow()
    for one in samples[:4]:
        row.add(
            {
                name: getattr(one, name)
                for name in ("input_ids", "completion_mask", "old_log_probs", "advantage", "group_id")
            }
        )
    assert len(row.pack()["token_index"]) == sum(int(one.completion_mask.sum()) for one in samples[:4])
    assert not any(one.advantage.per_token.any() for one in samples[8:]), (
        "TRL looks ahead at a step that weighs something"
    )
    try:
        worker.check_health(300)
    except RuntimeError as error:
        print(error)
    else:
        raise AssertionError("a worker without steps says that it is well")
    worker.stop()


def main(folder: Path) -> None:
    protocol(folder)
    checked(folder, each=4, accumulated=1)
    checked(folder, each=2, accumulated=2)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
