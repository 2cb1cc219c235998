"""Exported steps as a rollout worker of TRL's asynchronous trainer.

    worker = StoredRolloutWorker(DIR, rows_per_step=32)
    args = AsyncGRPOConfig(OUT, per_device_train_batch_size=32,
                           max_steps=worker.count_optimizer_steps(),
                           max_staleness=worker.count_optimizer_steps() + LAG,
                           **build_config_args(worker.read_first_step()))
    trainer = build_per_token_trainer()(POLICY, args=args, train_dataset=ANY,
                                        rollout_worker=worker,
                                        weight_transfer=NoWeightTransfer())
    trainer.train()

TRL has one advantage per sample and divides by tokens. Offing's estimators give each token an
advantage, and every average is a weight. A sample therefore carries both: a float for TRL's own
tables, and each token's advantage times weight, which the trainer of this module uses instead. A
sample that TRL drops as stale would shift all following steps, so `max_staleness` has to be large:
the age of rows was checked when they were exported. This module imports trl, numpy and `step_file`,
and nothing else of Offing.
"""

import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from offing_trainer.bridges.step_file import (
    ExportedRow,
    ExportedStep,
    Floats,
    LossSpec,
    has_ended,
    list_step_files,
    read_step,
    zero_weight_row,
)

POLL_SECONDS = 1.0


class TokenAdvantage(float):
    """A sample's advantage for TRL's tables that also carries each token's advantage times weight."""

    per_token: Floats
    """Advantage times weight of each token, (L,). 0 where a token is not trained."""

    @classmethod
    def from_row(cls, row: ExportedRow) -> "TokenAdvantage":
        token = row.advantages * row.token_weights
        advantage = cls(float(row.advantages[row.loss_mask].mean()) if row.loss_mask.any() else 0.0)
        advantage.per_token = token
        return advantage


def build_config_args(exported_step: ExportedStep) -> dict[str, Any]:
    """Return the arguments of `AsyncGRPOConfig` that the exported step determines.

    Raises ValueError for a loss that TRL does not support.
    """
    _check_supported(exported_step.loss_spec, {row.temperature for row in exported_step.rows})
    learner = exported_step.learner
    return {
        "epsilon": exported_step.loss_spec.clip_low,
        "epsilon_high": exported_step.loss_spec.clip_high,
        "temperature": next(iter({row.temperature for row in exported_step.rows})),
        "learning_rate": learner["learning_rate"],
        "adam_beta1": learner["betas"][0],
        "adam_beta2": learner["betas"][1],
        "adam_epsilon": learner["epsilon"],
        "weight_decay": learner["weight_decay"],
        "max_grad_norm": learner["max_grad_norm"] or 0.0,
        "warmup_steps": learner["warmup_steps"],
        "lr_scheduler_type": "constant_with_warmup",
        "token_budget": 0,
        "weight_sync_steps": 1,
    }


def _check_supported(loss_spec: LossSpec, temperatures: set[float]) -> None:
    if loss_spec.surrogate != "ppo-clip" or loss_spec.dual_clip is not None:
        raise ValueError(
            "TRL's trainer supports only ppo-clip without a dual clip; this step export uses "
            f"{loss_spec.surrogate} with dual clip {loss_spec.dual_clip}"
        )
    if loss_spec.ratio_to != "behavior":
        raise ValueError('TRL uses ratios to the sampling policy. Export with learner.mode = "bypass".')
    if loss_spec.kl_coefficient or loss_spec.entropy_coefficient:
        raise ValueError("TRL's trainer has no reference and no entropy term. Export with pipeline.regularizers = [].")
    if len(temperatures) != 1:
        raise ValueError(f"TRL supports one temperature, but these rows have {sorted(temperatures)}")


class StoredRolloutWorker:
    """A rollout worker of `AsyncGRPOTrainer` that reads its samples from a folder of exported steps.

    Each optimizer step is padded with samples of weight 0 to `rows_per_step`. That number must be
    per_device_train_batch_size * processes * gradient_accumulation_steps, so that TRL's steps are the
    exported ones. The queue is bounded, so a killed trainer loses only the steps that were queued.
    """

    def __init__(
        self, folder: Path | str, *, rows_per_step: int, follow: bool = False, max_queued_steps: int = 2
    ) -> None:
        self.rollout_buffer: queue.Queue[Any] = queue.Queue(maxsize=max(1, max_queued_steps) * rows_per_step)
        self.metrics_queue: queue.Queue[dict[str, Any]] = queue.Queue()
        self._folder, self._size, self._follow = Path(folder), rows_per_step, follow
        self._sample: Any = None
        self._began: int | None = None
        self._beat = time.monotonic()
        self._stop = threading.Event()
        self._failed: Exception | None = None
        self._done = False
        self._groups: dict[str, int] = {}
        self._thread = threading.Thread(target=self._run, name="offing-stored", daemon=True)

    def read_first_step(self) -> ExportedStep:
        """Read the first step, for its loss. Raises ValueError if there is none."""
        files = list_step_files(self._folder)
        if not files:
            raise ValueError(f"there are no steps in {self._folder}")
        return read_step(files[0])

    def count_optimizer_steps(self) -> int:
        """Count the optimizer steps that exist now, for the trainer's `max_steps`."""
        return sum(
            sum(bool(one.list_rows(n)) for n in range(one.optimizer_steps))
            for one in map(read_step, list_step_files(self._folder))
        )

    def start(self) -> None:
        module: Any = import_module("trl.experimental.async_grpo.async_rollout_worker")
        self._sample = module.RolloutSample
        self._beat = time.monotonic()
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(10)

    def update_model_version(self, model_version: int) -> None:
        """Record the first version, which is the initial policy that the rows' lag refers to."""
        if self._began is None:
            self._began = model_version

    def check_health(self, stale_after_s: float) -> None:
        """Raise RuntimeError if no more samples will come, or none came for `stale_after_s` seconds."""
        if self._failed is not None:
            raise RuntimeError(f"steps in {self._folder} cannot be read: {self._failed}") from self._failed
        if self._done and self.rollout_buffer.empty():
            raise RuntimeError(f"all steps in {self._folder} are used; set max_steps to {self.count_optimizer_steps()}")
        if time.monotonic() - self._beat > stale_after_s:
            raise RuntimeError(f"no new step appeared in {self._folder} for {stale_after_s:.0f} seconds")

    def _run(self) -> None:
        """Fill the queue.

        TRL reads one micro-batch ahead, so one that is never trained is added after the last step.
        """
        rows: Sequence[ExportedRow] = ()
        try:
            for handed in self._iter_steps():
                for rows in filter(None, map(handed.list_rows, range(handed.optimizer_steps))):
                    self._enqueue(self.build_samples(rows))
            self._enqueue(self.build_samples([zero_weight_row(row) for row in rows[:1]]) if rows else ())
            self._done = not self._stop.is_set()
        except Exception as error:  # raised by check_health in the trainer's own thread
            self._failed = error

    def _iter_steps(self) -> Iterator[ExportedStep]:
        read_count = 0
        while not self._stop.is_set():
            is_last_pass = has_ended(self._folder) or not self._follow
            files = list_step_files(self._folder)[read_count:]
            for file in files:
                read_count += 1
                yield read_step(file)
            if is_last_pass:
                return
            if not files:
                self._stop.wait(POLL_SECONDS)

    def build_samples(self, rows: Sequence[ExportedRow]) -> list[Any]:
        """Return the rows of an optimizer step as TRL samples, padded to `rows_per_step`."""
        if len(rows) > self._size:
            raise ValueError(f"an optimizer step has {len(rows)} rows, but rows_per_step is {self._size}")
        return [self._build_sample(row) for row in (*rows, *([zero_weight_row(rows[0])] * (self._size - len(rows))))]

    def _build_sample(self, row: ExportedRow) -> Any:
        return self._sample(
            prompt=[],
            completion=[],
            input_ids=row.token_ids.astype(np.int64),
            completion_mask=row.loss_mask.astype(np.int64),
            old_log_probs=row.behavior_logprobs,
            advantage=TokenAdvantage.from_row(row),
            model_version=(self._began or 0) - max(row.version_lag, 0),
            group_id=self._groups.setdefault(row.group_id, len(self._groups)),
            metrics={},
            enqueued_at=time.time(),
        )

    def _enqueue(self, samples: Sequence[Any]) -> None:
        for sample in samples:
            while not self._stop.is_set():
                try:
                    self.rollout_buffer.put(sample, timeout=POLL_SECONDS)
                    break
                except queue.Full:
                    self._beat = time.monotonic()
            self._beat = time.monotonic()


class NoWeightTransfer:
    """TRL's weight transfer without a generation server, since all rollouts exist already."""

    def init_weight_transfer(self) -> None:
        pass

    def pause(self) -> None:
        pass

    def send_weights(self, iterator: Iterator[Any]) -> None:
        for _ in iterator:  # all processes have to gather together
            pass

    def resume(self) -> None:
        pass

    def destroy(self) -> None:
        pass


class PerTokenCollator:
    """TRL's collator with advantages per token.

    Each token gets its own advantage times weight instead of its sample's advantage. TRL divides the
    sum of a micro-batch by its trained tokens and by `accumulation_steps` micro-batches; both are
    multiplied back.
    """

    def __init__(self, collate: Callable[..., dict[str, Any]], accumulation_steps: int) -> None:
        self._collate, self._accumulated = collate, accumulation_steps
        self.batches = 0

    def __call__(self, examples: list[Any], *args: Any, **kwargs: Any) -> dict[str, Any]:
        torch: Any = import_module("torch")
        batch = self._collate(examples, *args, **kwargs)
        (rows,) = examples
        parts = [np.concatenate([_trained_advantages(sample) for sample in row.samples]) for row in rows]
        scale = self._accumulated * sum(len(part) for part in parts)
        for nth, part in enumerate(parts):
            batch["advantages"][nth, : len(part)] = torch.from_numpy(part * scale)
        self.batches += 1
        return batch


def _trained_advantages(sample: dict[str, Any]) -> Floats:
    """Return the values in TRL's order of a sample's loss terms. The first token has no term."""
    return sample["advantage"].per_token[1:][sample["completion_mask"][1:].astype(bool)]


def build_per_token_trainer() -> Any:
    """Build a subclass of `AsyncGRPOTrainer` with advantages per token."""
    base: Any = import_module("trl.experimental.async_grpo").AsyncGRPOTrainer

    class PerTokenTrainer(base):
        def get_train_dataloader(self: Any) -> Any:
            loader: Any = base.get_train_dataloader(self)
            # accelerate's wrapper passes on the batches of this loader
            inner: Any = getattr(loader, "base_dataloader", loader)
            self.collated = PerTokenCollator(inner.collate_fn, self.args.gradient_accumulation_steps)
            inner.collate_fn = self.collated
            return loader

        def compute_loss(self: Any, *args: Any, **how: Any) -> Any:
            if self.accelerator.is_main_process and not self.collated.batches:
                raise RuntimeError(
                    "this version of TRL uses another collator: all tokens of a sample would get the same advantage"
                )
            return base.compute_loss(self, *args, **how)

    return PerTokenTrainer
