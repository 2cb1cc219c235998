"""Every metric sink on its real package, nothing of which leaves the machine. In an environment with all of them:

PYTHONPATH=workers:backend python tests/trainer/elsewhere/with_sinks.py FOLDER
"""

import os
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any
from uuid import UUID

from offing_trainer.job.metric_sinks import MetricWriter, SinkContext, build_sink_factories

METRICS = {"reward": 0.5, "seconds_forward": 1.25, "not/finite": float("nan")}


def about(folder: Path) -> SinkContext:
    config: dict[str, Any] = {
        "policy": "planner@1",
        "data": {"groups_per_step": 2, "tags": []},
        "pipeline": {"surrogate": [{"name": "ppo-clip"}]},
    }
    return SinkContext(UUID(int=7), "planner@1", config, folder / "job")


def written(name: str, folder: Path, *steps: int) -> None:
    sinks = MetricWriter(build_sink_factories([name], about(folder)))
    began = time.monotonic()
    for step in steps:
        sinks.write(step, METRICS)
    held = time.monotonic() - began
    sinks.close(120)
    assert held < 0.1, held
    assert not sinks.failed_sinks, sinks.failed_sinks
    print(f"{name}: {len(steps)} steps held nothing up ({held * 1000:.1f} ms)")


def tensorboard(folder: Path) -> None:
    reader: Any = import_module("tensorboard.backend.event_processing.event_accumulator")
    events = reader.EventAccumulator(str(folder / "job" / "tensorboard"))
    events.Reload()
    assert [(one.step, one.value) for one in events.Scalars("reward")] == [(1, 0.5), (2, 0.5), (3, 0.5)]


def mlflow(folder: Path) -> None:
    client = import_module("mlflow").MlflowClient()
    (run,) = client.search_runs([client.get_experiment_by_name("offing").experiment_id])
    assert [one.step for one in client.get_metric_history(run.info.run_id, "reward")] == [1, 2, 3]
    assert run.info.status == "FINISHED"
    assert [one.path for one in client.list_artifacts(run.info.run_id)] == ["config.json"]


def wandb(folder: Path) -> None:
    """Offline a run that continues is one more folder of the same id, which the service joins."""
    runs = list((folder / "wandb").glob(f"offline-run-*/run-{UUID(int=7)}.wandb"))
    assert runs
    assert all(b"seconds_forward" in run.read_bytes() for run in runs)


def trackio(folder: Path) -> None:
    storage: Any = import_module("trackio.sqlite_storage").SQLiteStorage
    (run,) = storage.get_runs("offing")
    rows = storage.get_logs("offing", run)
    assert [(row["step"], row["reward"]) for row in rows] == [(1, 0.5), (2, 0.5), (3, 0.5)], rows


CHECKS = {"tensorboard": tensorboard, "mlflow": mlflow, "wandb": wandb, "trackio": trackio}


def main(folder: Path) -> None:
    folder.mkdir(parents=True)
    os.environ |= {
        "MLFLOW_TRACKING_URI": f"sqlite:///{folder}/mlflow.db", "WANDB_MODE": "offline", "WANDB_DIR": str(folder),
        "WANDB_SILENT": "true", "TRACKIO_DIR": str(folder / "trackio"), "HF_HUB_OFFLINE": "1",
    }  # fmt: skip
    os.chdir(folder)
    for name, check in CHECKS.items():
        written(name, folder, 1, 2)
        written(name, folder, 3)  # as in the process that continues with the job
        check(folder)
        print(f"{name}: read back")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
