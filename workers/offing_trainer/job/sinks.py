"""Where a job's figures go beside the database: files and trackers, none of which can hold a step up or fail it.

One thread writes to all sinks from a queue with a bound: what does not fit is dropped and counted. A sink that raises
is told once and left out from then on. The trackers' packages are imported when one is asked for.
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

LONGEST_QUEUE = 256
"""Steps that may wait for the slowest sink."""

CLOSING_SECONDS = 5.0
"""How long the end of a job waits for its sinks."""


class MetricSink(Protocol):
    """Takes figures; called from one thread of its own."""

    @property
    def name(self) -> str: ...

    def write(self, step: int, metrics: Mapping[str, float]) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class About:
    """What a sink is told of its job once."""

    job: UUID
    policy: str
    config: Mapping[str, Any]
    folder: Path
    """The job's own."""


class JsonlSink:
    """A line a step in the job's folder. Of a step that was done again after a loss, the last line counts."""

    name = "jsonl"

    def __init__(self, about: About) -> None:
        about.folder.mkdir(parents=True, exist_ok=True)
        self._file = (about.folder / "metrics.jsonl").open("ab")

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        self._file.write(orjson.dumps({"step": step, **metrics}) + b"\n")
        self._file.flush()

    def close(self) -> None:
        self._file.close()


class TensorBoardSink:
    name = "tensorboard"

    def __init__(self, about: About) -> None:
        module = _package("torch.utils.tensorboard", "tensorboard")
        self._writer: Any = module.SummaryWriter(str(about.folder / "tensorboard"))

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        for name, value in metrics.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()


JOB = "offing.job"
"""Tag of an MLflow run."""


class MlflowSink:
    """To the server that MLFLOW_TRACKING_URI names. A job that goes on in another process goes on in its run."""

    name = "mlflow"

    def __init__(self, about: About) -> None:
        self._mlflow: Any = _package("mlflow", "mlflow")
        experiment = self._mlflow.set_experiment("offing").experiment_id
        before: Any = self._mlflow.MlflowClient().search_runs([experiment], f"tags.`{JOB}` = '{about.job}'")
        known = {"run_id": before[0].info.run_id} if before else {"run_name": f"{about.policy} {about.job}"}
        self._run: Any = self._mlflow.start_run(**known, tags={JOB: str(about.job)})
        self._mlflow.log_dict(dict(about.config), "config.json")

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        self._mlflow.log_metrics(dict(metrics), step=step, run_id=self._run.info.run_id)

    def close(self) -> None:
        self._mlflow.end_run()


class TrackerSink:
    """Weights & Biases, and trackio, which has the same calls. A job that goes on elsewhere goes on in its run.

    `known`: what says which run it was, beside its name.
    """

    def __init__(self, about: About, name: str, **known: str) -> None:
        self.name = name
        init: Callable[..., Any] = _package(name, name).init
        title, config = f"{about.policy}-{about.job}", dict(about.config)
        self._run: Any = init(project="offing", name=title, config=config, resume="allow", **known)

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        self._run.log(dict(metrics), step=step)

    def close(self) -> None:
        self._run.finish()


MAKERS: Mapping[str, Callable[[About], MetricSink]] = {
    "jsonl": JsonlSink,
    "tensorboard": TensorBoardSink,
    "mlflow": MlflowSink,
    "wandb": lambda about: TrackerSink(about, "wandb", id=str(about.job)),
    "trackio": lambda about: TrackerSink(about, "trackio"),
}


def opened(names: Sequence[str], about: About) -> list[Callable[[], MetricSink]]:
    """How to open these sinks, JSON lines always among them. Raises InvalidInput for one that there is not."""
    if unknown := [name for name in names if name not in MAKERS]:
        raise InvalidInput("sinks", f"there is no sink {unknown[0]!r}", f"Use of {', '.join(sorted(MAKERS))}.")
    wanted = dict.fromkeys(("jsonl", *names))
    return [lambda name=name: MAKERS[name](about) for name in wanted]


@dataclass(slots=True)
class Sinks:
    """The thread and its queue. Opening a sink is the thread's work too, since it may reach for a server."""

    makers: Sequence[Callable[[], MetricSink]]
    size: int = LONGEST_QUEUE
    dropped: int = 0
    """Steps that found no room."""
    failed: int = 0
    """Sinks that could not be opened, or did not take a step."""
    _queue: "queue.Queue[tuple[int, Mapping[str, float]] | None]" = field(init=False)
    _thread: threading.Thread = field(init=False)

    def __post_init__(self) -> None:
        self._queue = queue.Queue(self.size)
        self._thread = threading.Thread(target=self._work, name="offing-sinks", daemon=True)
        self._thread.start()

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        """Returns at once, whatever the sinks do."""
        self._put((step, metrics))

    def close(self, seconds: float = CLOSING_SECONDS) -> None:
        """Waits so long for what is still to be written, and leaves the rest."""
        self._put(None)
        self._thread.join(seconds)
        if self._thread.is_alive() or self.dropped:
            log.warning("a metric sink is slow: %d steps were dropped, or are not written yet", self.dropped)

    def _put(self, item: tuple[int, Mapping[str, float]] | None) -> None:
        try:
            self._queue.put_nowait(item)
        except queue.Full:
            self.dropped += 1

    def _work(self) -> None:
        sinks = [sink for sink in map(_open, self.makers) if sink is not None]
        self.failed = len(self.makers) - len(sinks)
        while (item := self._queue.get()) is not None:
            left = [sink for sink in sinks if _written(sink, *item)]
            self.failed += len(sinks) - len(left)
            sinks = left
        for sink in sinks:
            _closed(sink)


def _open(make: Callable[[], MetricSink]) -> MetricSink | None:
    try:
        return make()
    except Exception:  # whatever a tracker's package raises, training goes on
        log.exception("a metric sink cannot be opened; the job goes on without it")
        return None


def _written(sink: MetricSink, step: int, metrics: Mapping[str, float]) -> bool:
    try:
        sink.write(step, metrics)
    except Exception:
        log.exception("metric sink %s failed; the job goes on without it", sink.name)
        return False
    return True


def _closed(sink: MetricSink) -> None:
    try:
        sink.close()
    except Exception:
        log.exception("metric sink %s did not close", sink.name)


def _package(module: str, package: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise InvalidInput("sinks", f"{package} is not installed", f"Run: pip install {package}") from error
