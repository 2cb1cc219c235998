"""How far a training job is, as text for a terminal."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from offing.core.time_left import RECENT_STEPS, describe_time_left, estimate_seconds_left
from offing.storage.training_jobs import TrainingJobRow

VALUE_HEADS = ("value", "value_high", "value_low", "value_switch")
"""Value heads of critics."""

SHOWN_METRICS = (
    *("reward", "success_rate", "violation_fraction", "entropy", "kl", "grad_norm", "tokens", "seconds_step"),
    *(f"{head}/explained_variance" for head in VALUE_HEADS),
)
"""Metrics of a training step that a terminal shows, if they exist."""


@dataclass(slots=True)
class JobProgress:
    """Describes the progress of jobs. Remembers how long the last steps of the present one took."""

    _job: object = None
    _recent: deque[float] = field(default_factory=lambda: deque[float](maxlen=RECENT_STEPS))

    def describe(self, job: TrainingJobRow, phase: str, metrics: Mapping[str, float]) -> str:
        """Return text such as `step 12 of 70, about 6 minutes left: collecting`.

        `metrics` are those of a step that was just committed, or empty while `phase` goes on.
        """
        self._remember(job, metrics)
        step = job.step if metrics else job.step + 1
        planned = f" of {max(job.planned_steps, step)}" if job.planned_steps else ""
        left = describe_time_left(self._estimate(job))
        return f"step {step}{planned}{left and f', {left}'}: {describe_metrics(metrics) or phase}"

    def _remember(self, job: TrainingJobRow, metrics: Mapping[str, float]) -> None:
        if job.id != self._job:
            self._job = job.id
            self._recent.clear()
        if "seconds_step" in metrics:
            self._recent.append(metrics["seconds_step"])

    def _estimate(self, job: TrainingJobRow) -> float | None:
        return estimate_seconds_left(self._recent, None if job.planned_steps is None else job.planned_steps - job.step)


def describe_metrics(metrics: Mapping[str, float]) -> str:
    """Return the metrics that a terminal shows, such as `reward 0.4  entropy 1.2`."""
    return "  ".join(f"{name} {metrics[name]:.4g}" for name in SHOWN_METRICS if name in metrics)
