"""Steps that were handed over, as a rollout worker of TRL's asynchronous trainer:

    worker = StoredWorker(DIR, rows_per_step=32)
    args = AsyncGRPOConfig(OUT, per_device_train_batch_size=32, max_steps=worker.optimiser_steps(),
                           max_staleness=worker.optimiser_steps() + LAG, **arguments(worker.first()))
    trainer = per_token_trainer()(POLICY, args=args, train_dataset=ANY, rollout_worker=worker,
                                  weight_transfer=NoTransfer())
    trainer.train()

TRL knows one advantage a sample and divides by tokens; our estimators credit tokens, and every average is a weight. So
a sample carries both: a float for TRL's own tables, and with it what each token's advantage times weight is, which the
trainer here puts in its place. A sample that TRL drops as stale would shift every step behind it: the rows' age was
judged when they were handed over. Imports trl, numpy and `handed`, and nothing else of ours.
"""

import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from offing_trainer.bridges.handed import Floats, Handed, HandedRow, Terms, ended, read_step, steps_in, weightless

WAIT_SECONDS = 1.0


class Credit(float):
    """A sample's advantage for TRL's tables, and of each of its tokens advantage times weight."""

    token: Floats
    """(L,) 0 where nothing is trained."""

    @classmethod
    def of(cls, row: HandedRow) -> "Credit":
        token = row.advantages * row.weights
        made = cls(float(row.advantages[row.loss_mask].mean()) if row.loss_mask.any() else 0.0)
        made.token = token
        return made


def arguments(handed: Handed) -> dict[str, Any]:
    """Of `AsyncGRPOConfig`, as far as the hand-over decides them. Raises ValueError for what TRL has no words for."""
    _refuse(handed.terms, {row.temperature for row in handed.rows})
    how = handed.learner
    return {
        "epsilon": handed.terms.low,
        "epsilon_high": handed.terms.high,
        "temperature": next(iter({row.temperature for row in handed.rows})),
        "learning_rate": how["learning_rate"],
        "adam_beta1": how["betas"][0],
        "adam_beta2": how["betas"][1],
        "adam_epsilon": how["epsilon"],
        "weight_decay": how["weight_decay"],
        "max_grad_norm": how["gradient_clip"] or 0.0,
        "warmup_steps": how["warmup"],
        "lr_scheduler_type": "constant_with_warmup",
        "token_budget": 0,
        "weight_sync_steps": 1,
    }


def _refuse(terms: Terms, heats: set[float]) -> None:
    if terms.surrogate != "ppo-clip" or terms.dual is not None:
        raise ValueError(
            f"TRL's trainer clips, without a dual bound; this hand-over says {terms.surrogate} {terms.dual}"
        )
    if terms.anchor != "behaviour":
        raise ValueError('TRL takes ratios to what was sampled: hand over with learner.mode = "bypass"')
    if terms.kl_coefficient or terms.entropy:
        raise ValueError("TRL's trainer has no reference and no entropy term: hand over with chain.regularise = []")
    if len(heats) != 1:
        raise ValueError(f"TRL knows one temperature, and these rows have {sorted(heats)}")


class StoredWorker:
    """What `AsyncGRPOTrainer` calls a rollout worker; its samples come from a folder of handed steps.

    Each optimiser step is padded with samples that weigh nothing to `rows_per_step`, which must be
    per_device_train_batch_size * processes * gradient_accumulation_steps, so that TRL's steps are ours. A step is put
    into the queue when the one before has been taken, so that a killed trainer loses no more than it had asked for.
    """

    def __init__(self, folder: Path | str, *, rows_per_step: int, follow: bool = False, waiting: int = 2) -> None:
        self.rollout_buffer: queue.Queue[Any] = queue.Queue(maxsize=max(1, waiting) * rows_per_step)
        self.metrics_queue: queue.Queue[dict[str, Any]] = queue.Queue()
        self._folder, self._size, self._follow = Path(folder), rows_per_step, follow
        self._sample: Any = None
        self._began: int | None = None
        self._beat = time.monotonic()
        self._stop = threading.Event()
        self._failed: Exception | None = None
        self._done = False
        self._groups: dict[str, int] = {}
        self._thread = threading.Thread(target=self._work, name="offing-stored", daemon=True)

    def first(self) -> Handed:
        """The first step, for its terms. Raises ValueError when there is none."""
        files = steps_in(self._folder)
        if not files:
            raise ValueError(f"there is no step in {self._folder}")
        return read_step(files[0])

    def optimiser_steps(self) -> int:
        """Of the steps that are there now: the trainer's `max_steps`."""
        return sum(
            sum(bool(one.rows_of(n)) for n in range(one.optimiser_steps))
            for one in map(read_step, steps_in(self._folder))
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
        """The first one names the weights that training begins with, of which the handed rows lag behind."""
        if self._began is None:
            self._began = model_version

    def check_health(self, stale_after_s: float) -> None:
        """Raises RuntimeError where no sample will come any more, or none came for so long."""
        if self._failed is not None:
            raise RuntimeError(f"steps in {self._folder} cannot be read: {self._failed}") from self._failed
        if self._done and self.rollout_buffer.empty():
            raise RuntimeError(f"all steps in {self._folder} were taken: set max_steps to {self.optimiser_steps()}")
        if time.monotonic() - self._beat > stale_after_s:
            raise RuntimeError(f"no step came into {self._folder} for {stale_after_s:.0f} seconds")

    def _work(self) -> None:
        """TRL looks a micro-batch ahead, so that behind the last step there is one that nobody trains."""
        rows: Sequence[HandedRow] = ()
        try:
            for handed in self._steps():
                for rows in filter(None, map(handed.rows_of, range(handed.optimiser_steps))):
                    self._put(self.samples(rows))
            self._put(self.samples([weightless(row) for row in rows[:1]]) if rows else ())
            self._done = not self._stop.is_set()
        except Exception as error:  # told by check_health, in the trainer's own thread
            self._failed = error

    def _steps(self) -> Iterator[Handed]:
        taken = 0
        while not self._stop.is_set():
            over = ended(self._folder) or not self._follow
            files = steps_in(self._folder)[taken:]
            for file in files:
                taken += 1
                yield read_step(file)
            if over:
                return
            if not files:
                self._stop.wait(WAIT_SECONDS)

    def samples(self, rows: Sequence[HandedRow]) -> list[Any]:
        """An optimiser step's rows as TRL's samples, and as many more as make it whole."""
        if len(rows) > self._size:
            raise ValueError(f"an optimiser step has {len(rows)} rows; rows_per_step is {self._size}")
        return [self._made(row) for row in (*rows, *([weightless(rows[0])] * (self._size - len(rows))))]

    def _made(self, row: HandedRow) -> Any:
        return self._sample(
            prompt=[],
            completion=[],
            input_ids=row.token_ids.astype(np.int64),
            completion_mask=row.loss_mask.astype(np.int64),
            old_log_probs=row.behaviour_logprobs,
            advantage=Credit.of(row),
            model_version=(self._began or 0) - max(row.lag, 0),
            group_id=self._groups.setdefault(row.group, len(self._groups)),
            metrics={},
            enqueued_at=time.time(),
        )

    def _put(self, samples: Sequence[Any]) -> None:
        for sample in samples:
            while not self._stop.is_set():
                try:
                    self.rollout_buffer.put(sample, timeout=WAIT_SECONDS)
                    break
                except queue.Full:
                    self._beat = time.monotonic()
            self._beat = time.monotonic()


class NoTransfer:
    """TRL's weight transfer where no server generates: the rollouts are there already."""

    def init_weight_transfer(self) -> None:
        pass

    def pause(self) -> None:
        pass

    def send_weights(self, iterator: Iterator[Any]) -> None:
        for _ in iterator:  # gathering is done by every process together
            pass

    def resume(self) -> None:
        pass

    def destroy(self) -> None:
        pass


class Credited:
    """TRL's collator, with a token's own advantage times weight in place of its sample's advantage.

    TRL divides a micro-batch's sum by its trained tokens and by `accumulated` micro-batches; both are multiplied back.
    """

    def __init__(self, collate: Callable[..., dict[str, Any]], accumulated: int) -> None:
        self._collate, self._accumulated = collate, accumulated
        self.batches = 0

    def __call__(self, examples: list[Any], *rest: Any, **how: Any) -> dict[str, Any]:
        torch: Any = import_module("torch")
        batch = self._collate(examples, *rest, **how)
        (rows,) = examples
        parts = [np.concatenate([_trained(sample) for sample in row.samples]) for row in rows]
        scale = self._accumulated * sum(len(part) for part in parts)
        for nth, part in enumerate(parts):
            batch["advantages"][nth, : len(part)] = torch.from_numpy(part * scale)
        self.batches += 1
        return batch


def _trained(sample: dict[str, Any]) -> Floats:
    """In TRL's order of a sample's loss terms; the first token has none."""
    return sample["advantage"].token[1:][sample["completion_mask"][1:].astype(bool)]


def per_token_trainer() -> Any:
    """`AsyncGRPOTrainer` that credits tokens."""
    base: Any = import_module("trl.experimental.async_grpo").AsyncGRPOTrainer

    class PerTokenTrainer(base):
        def get_train_dataloader(self: Any) -> Any:
            loader: Any = base.get_train_dataloader(self)
            inner: Any = getattr(loader, "base_dataloader", loader)  # accelerate's wrapper hands batches of it on
            self.collated = Credited(inner.collate_fn, self.args.gradient_accumulation_steps)
            inner.collate_fn = self.collated
            return loader

        def compute_loss(self: Any, *given: Any, **how: Any) -> Any:
            if self.accelerator.is_main_process and not self.collated.batches:
                raise RuntimeError("this version of TRL collates elsewhere: tokens would have their sample's advantage")
            return base.compute_loss(self, *given, **how)

    return PerTokenTrainer
