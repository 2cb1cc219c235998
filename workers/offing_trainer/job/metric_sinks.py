"""Metric sinks besides the database: files and experiment trackers. They cannot delay or fail a step.

One thread writes to all sinks from a bounded queue. Steps that do not fit are dropped and counted.
A sink that raises is logged once and not used again. Trackers' packages are imported only when they
are used.
"""

import logging
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol
from uuid import UUID

import orjson

from offing.core.errors import InvalidInput

log = logging.getLogger("offing.trainer")

MAX_QUEUED_STEPS = 256
"""Maximum number of steps that wait for the slowest sink."""

CLOSE_TIMEOUT_SECONDS = 5.0
"""How long the end of a job waits for its sinks."""


class MetricSink(Protocol):
    """Writes metrics. All calls come from one thread."""

    @property
    def name(self) -> str: ...

    def write(self, step: int, metrics: Mapping[str, float]) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class SinkContext:
    """What a sink needs to know about its job."""

    job_id: UUID
    policy: str
    config: Mapping[str, Any]
    folder: Path
    """The job's folder."""


class JsonlSink:
    """One line per step in the job's folder. If a step was repeated, its last line counts."""

    name = "jsonl"

    def __init__(self, context: SinkContext) -> None:
        context.folder.mkdir(parents=True, exist_ok=True)
        self._file = (context.folder / "metrics.jsonl").open("ab")

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        self._file.write(orjson.dumps({"step": step, **metrics}) + b"\n")
        self._file.flush()

    def close(self) -> None:
        self._file.close()


class TensorBoardSink:
    name = "tensorboard"

    def __init__(self, context: SinkContext) -> None:
        module = _import_package("torch.utils.tensorboard", "tensorboard")
        self._writer: Any = module.SummaryWriter(str(context.folder / "tensorboard"))

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        for name, value in metrics.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()


JOB_TAG = "offing.job"
"""Tag of an MLflow run with the job's id."""


class MlflowSink:
    """Sink for the MLflow server of MLFLOW_TRACKING_URI. A restarted job continues its MLflow run."""

    name = "mlflow"

    def __init__(self, context: SinkContext) -> None:
        self._mlflow: Any = _import_package("mlflow", "mlflow")
        experiment = self._mlflow.set_experiment("offing").experiment_id
        before: Any = self._mlflow.MlflowClient().search_runs([experiment], f"tags.`{JOB_TAG}` = '{context.job_id}'")
        run_options = (
            {"run_id": before[0].info.run_id} if before else {"run_name": f"{context.policy} {context.job_id}"}
        )
        self._run: Any = self._mlflow.start_run(**run_options, tags={JOB_TAG: str(context.job_id)})
        self._mlflow.log_dict(dict(context.config), "config.json")

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        self._mlflow.log_metrics(dict(metrics), step=step, run_id=self._run.info.run_id)

    def close(self) -> None:
        self._mlflow.end_run()


class TrackerSink:
    """Sink for Weights & Biases, and for trackio, which has the same API.

    A restarted job continues its run. `run_args` identify that run besides its name.
    """

    def __init__(self, context: SinkContext, name: str, **run_args: str) -> None:
        self.name = name
        init: Callable[..., Any] = _import_package(name, name).init
        title, config = f"{context.policy}-{context.job_id}", dict(context.config)
        self._run: Any = init(project="offing", name=title, config=config, resume="allow", **run_args)

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        self._run.log(dict(metrics), step=step)

    def close(self) -> None:
        self._run.finish()


SINK_FACTORIES: Mapping[str, Callable[[SinkContext], MetricSink]] = {
    "jsonl": JsonlSink,
    "tensorboard": TensorBoardSink,
    "mlflow": MlflowSink,
    "wandb": lambda about: TrackerSink(about, "wandb", id=str(about.job_id)),
    "trackio": lambda about: TrackerSink(about, "trackio"),
}


def build_sink_factories(names: Sequence[str], context: SinkContext) -> list[Callable[[], MetricSink]]:
    """Return factories of these sinks and of the JSON lines sink. Raises InvalidInput for an unknown name."""
    if unknown := [name for name in names if name not in SINK_FACTORIES]:
        raise InvalidInput("sinks", f"there is no sink {unknown[0]!r}", f"Use {', '.join(sorted(SINK_FACTORIES))}.")
    unique_names = dict.fromkeys(("jsonl", *names))
    return [lambda name=name: SINK_FACTORIES[name](context) for name in unique_names]


@dataclass(slots=True)
class MetricWriter:
    """Thread and queue that write to the sinks.

    The thread also opens the sinks, since that may connect to a server.
    """

    factories: Sequence[Callable[[], MetricSink]]
    max_queued_steps: int = MAX_QUEUED_STEPS
    dropped_steps: int = 0
    """Number of steps that were dropped because the queue was full."""
    failed_sinks: int = 0
    """Number of sinks that could not be opened or failed to write."""
    _queue: "queue.Queue[tuple[int, Mapping[str, float]] | None]" = field(init=False)
    _thread: threading.Thread = field(init=False)

    def __post_init__(self) -> None:
        self._queue = queue.Queue(self.max_queued_steps)
        self._thread = threading.Thread(target=self._run, name="offing-sinks", daemon=True)
        self._thread.start()

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        """Queue metrics and return at once."""
        self._enqueue((step, metrics))

    def close(self, timeout_seconds: float = CLOSE_TIMEOUT_SECONDS) -> None:
        """Wait up to `timeout_seconds` for queued steps, then give up."""
        self._enqueue(None)
        self._thread.join(timeout_seconds)
        if self._thread.is_alive() or self.dropped_steps:
            log.warning(
                "a metric sink is slow: %d steps were dropped, and others may not be written yet", self.dropped_steps
            )

    def _enqueue(self, item: tuple[int, Mapping[str, float]] | None) -> None:
        try:
            self._queue.put_nowait(item)
        except queue.Full:
            self.dropped_steps += 1

    def _run(self) -> None:
        sinks = [sink for sink in map(_open_sink, self.factories) if sink is not None]
        self.failed_sinks = len(self.factories) - len(sinks)
        while (item := self._queue.get()) is not None:
            working_sinks = [sink for sink in sinks if _write_to_sink(sink, *item)]
            self.failed_sinks += len(sinks) - len(working_sinks)
            sinks = working_sinks
        for sink in sinks:
            _close_sink(sink)


def _open_sink(factory: Callable[[], MetricSink]) -> MetricSink | None:
    try:
        return factory()
    except Exception:  # training continues whatever error a tracker's package raises
        log.exception("a metric sink cannot be opened; the job continues without it")
        return None


def _write_to_sink(sink: MetricSink, step: int, metrics: Mapping[str, float]) -> bool:
    try:
        sink.write(step, metrics)
    except Exception:
        log.exception("metric sink %s failed; the job continues without it", sink.name)
        return False
    return True


def _close_sink(sink: MetricSink) -> None:
    try:
        sink.close()
    except Exception:
        log.exception("metric sink %s could not be closed", sink.name)


def _import_package(module: str, package: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise InvalidInput("sinks", f"{package} is not installed", f"Run: pip install {package}") from error
