"""verl's own `TrainingWorker` on a step that was handed over, against our learner. In verl's environment, on a CPU:

    PYTHONPATH=workers torchrun --nproc-per-node 1 tests/trainer/elsewhere/with_verl.py FOLDER

verl registers its engines for accelerators alone, so the CPU is registered here as one more platform; the engine, its
FSDP2 and the worker are verl's, unchanged. Two processes must come out like one.
"""

# ruff: noqa: E402
# pyright: reportUnknownLambdaType=false
import os
import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

os.environ["VERL_PLATFORM"] = "cpu"
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

torch: Any = import_module("torch")
platforms: Any = import_module("verl.plugin.platform.platform_manager")
base: Any = import_module("verl.plugin.platform.platform_base")


def _nothing(*_: Any, **__: Any) -> Any:
    return None


MODULE = SimpleNamespace(
    **dict.fromkeys(("set_device", "synchronize", "empty_cache", "ipc_collect", "reset_peak_memory_stats"), _nothing),
    **{name: lambda *_: 0 for name in ("memory_allocated", "memory_reserved", "max_memory_allocated",
                                       "max_memory_reserved", "current_device", "device_count")},
    is_available=lambda: True,
    get_device_name=lambda *_: "CPU",
    mem_get_info=lambda *_: (1, 1),
    get_rng_state=torch.get_rng_state,
    set_rng_state=torch.set_rng_state,
)  # fmt: skip

VERL_METRICS: dict[str, Any] = {
    "device_name": property(lambda _: "cpu"),
    "vendor_name": property(lambda _: "none"),
    "device_module": property(lambda _: MODULE),
    "is_available": lambda _: True,
    "current_device": lambda _: "cpu",
    "device_count": lambda _: 1,
    "communication_backend_name": lambda _: "gloo",
    "visible_devices_envvar": lambda _: "CUDA_VISIBLE_DEVICES",
    "ray_resource_name": lambda _: "CPU",
    "ray_noset_envvars": lambda _: [],
    "is_ipc_supported": lambda _: False,
}

quiet = dict.fromkeys(base.PlatformBase.__abstractmethods__, _nothing)
platforms.PlatformRegistry.register(platform="cpu")(type("Cpu", (base.PlatformBase,), quiet | VERL_METRICS))

engines: Any = import_module("verl.workers.engine")
fsdp: Any = import_module("verl.workers.engine.fsdp.transformer_impl")
engines.EngineRegistry.register(model_type="language_model", backend=["fsdp", "fsdp2"], device=["cpu"])(
    fsdp.FSDPEngineWithLMHead
)

from offing_trainer.bridges.step_file import ExportedRow, list_step_files, read_step
from offing_trainer.bridges.verl_driver import VerlArgs, build_worker, compute_logprobs, train, train_step

CLOSE = 1e-5
"""Of losses and log-probabilities before a step; after it ten times as much, as two implementations of AdamW give."""


def train_with_verl(worker: Any, rows: list[ExportedRow], request: VerlArgs) -> dict[str, Any]:
    """Log-probabilities of each row's trained tokens, by its key."""
    logprobs = compute_logprobs(worker, rows, request)
    return {row.key: one[row.loss_mask] for row, one in zip(rows, logprobs, strict=True)}


def in_order(results: dict[str, Any], keys: list[str]) -> Any:
    return np.concatenate([results[key] for key in keys])


def checked(folder: Path, name: str, *, remove_padding: bool) -> None:
    handed, ours = read_step(list_step_files(folder / name)[0]), np.load(folder / f"{name}.npz")
    options = VerlArgs(
        folder / name, str(folder / "policy"), folder / "out", max_tokens_per_micro_batch=64,
        precision="fp32", attention="sdpa",
        gradient_checkpointing=False, remove_padding=remove_padding,
    )  # fmt: skip
    worker = build_worker(options, handed)
    # A worker that only forwards keeps its weights pinned for a GPU; one that could learn says the same.
    reference = build_worker(options, handed)
    rows, keys = list(handed.rows), [str(key) for key in ours["keys"]]
    before = in_order(train_with_verl(worker, rows, options), keys)
    metrics = train_step(worker, reference, handed, options)
    after = in_order(train_with_verl(worker, rows, options), keys)
    apart = {
        "before": np.abs(before - ours["before"]).max(),
        "losses": np.abs(np.array([one["loss"] for one in metrics]) - ours["losses"]).max(),
        "norms": np.abs(np.array([one["grad_norm"] for one in metrics]) / ours["norms"] - 1).max(),
        "after": np.abs(after - ours["after"]).max(),
        "moved": np.abs(ours["after"] - ours["before"]).max(),
    }
    print(name, "packed" if remove_padding else "padded", {key: f"{value:.1e}" for key, value in apart.items()})
    assert max(apart["before"], apart["losses"], apart["norms"]) < CLOSE
    assert apart["after"] < 10 * CLOSE < apart["moved"]


def driven(folder: Path) -> None:
    """The whole driver, and the policy that it leaves behind."""
    ours, out = np.load(folder / "plain.npz"), folder / "out"
    how: dict[str, Any] = {
        "max_tokens_per_micro_batch": 64,
        "precision": "fp32",
        "attention": "sdpa",
        "gradient_checkpointing": False,
    }
    train(VerlArgs(folder / "plain", str(folder / "policy"), out, remove_padding=False, **how))
    left = out / "final" / "huggingface"
    for file in (folder / "policy").glob("*.json"):
        assert (left / file.name).read_bytes() == file.read_bytes(), file.name
    model: Any = import_module("transformers").AutoModelForCausalLM.from_pretrained(left, dtype=torch.float32)
    apart = np.abs(
        _logp(model, read_step(list_step_files(folder / "plain")[0]).rows, ours["keys"]) - ours["after"]
    ).max()
    print(f"driver: policy in {left.name}, apart {apart:.1e}")
    assert apart < 10 * CLOSE


def _logp(model: Any, rows: Any, keys: Any) -> Any:
    results: dict[str, Any] = {}
    for row in rows:
        ids = torch.from_numpy(row.token_ids.astype(np.int64))[None]
        with torch.no_grad():
            logp = torch.log_softmax(model(input_ids=ids).logits[0, :-1].double(), -1)
        results[row.key] = logp.gather(1, ids[0, 1:, None])[:, 0].numpy()[row.loss_mask[1:]]
    return in_order(results, [str(key) for key in keys])


def main(folder: Path) -> None:
    # verl names a backend for the CPU and one for its device, which torch rejects where both are the CPU.
    distributed: Any = import_module("verl.utils.distributed")
    distributed.initialize_global_process_group = lambda: torch.distributed.init_process_group("gloo")
    distributed.initialize_global_process_group()
    for name in ("plain", "whole", "decoupled"):
        checked(folder, name, remove_padding=False)
    checked(folder, "plain", remove_padding=True)
    distributed.destroy_global_process_group()
    driven(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
