"""Experiment trackers: they delay nothing, they fail alone, and a job that continues stays in its run."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Event
from types import ModuleType, SimpleNamespace
from typing import Any
from uuid import UUID

import orjson
import pytest

from offing_trainer.job.metric_sinks import MetricSink, MetricWriter, SinkContext, build_sink_factories

JOB = UUID(int=7)


class RecordingSink:
    """Keeps what it is given; raises, or waits, where it is told to."""

    def __init__(self, name: str = "kept", *, broken: bool = False, until: Event | None = None) -> None:
        self.name, self.steps = name, list[int]()
        self._broken, self._until = broken, until

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        if self._broken:
            raise OSError("the disk is full")
        if self._until is not None:
            self._until.wait(30)
        self.steps.append(step)

    def close(self) -> None: ...


def about(folder: Path) -> SinkContext:
    return SinkContext(JOB, "planner@1", {"policy": "planner@1"}, folder)


def written(*makers: Callable[[], MetricSink], steps: int = 3, **how: Any) -> MetricWriter:
    sinks = MetricWriter(makers, **how)
    for step in range(1, steps + 1):
        sinks.write(step, {"reward": 0.5})
    sinks.close(10)
    return sinks


def test_a_sink_that_fails_is_left_out_and_counted_and_the_others_continue() -> None:
    stored = RecordingSink()

    def closed() -> RecordingSink:
        raise ConnectionError("no server")

    sinks = written(closed, lambda: RecordingSink(broken=True), lambda: stored)
    assert (stored.steps, sinks.failed_sinks, sinks.dropped_steps) == ([1, 2, 3], 2, 0)


def test_steps_beyond_the_queue_of_a_slow_sink_are_dropped_and_counted() -> None:
    free = Event()
    slow = RecordingSink(until=free)
    sinks = MetricWriter([lambda: slow], max_queued_steps=1)
    for step in range(1, 7):
        sinks.write(step, {})
    assert sinks.dropped_steps >= 4
    free.set()
    sinks.close(10)
    assert slow.steps[0] == 1


def test_a_line_a_step_is_always_written(tmp_path: Path) -> None:
    written(*build_sink_factories([], about(tmp_path)), steps=2)
    lines = [orjson.loads(line) for line in (tmp_path / "metrics.jsonl").read_bytes().splitlines()]
    assert lines == [{"step": 1, "reward": 0.5}, {"step": 2, "reward": 0.5}]


def test_a_tracker_that_is_not_installed_is_told_and_fails_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    sinks = written(*build_sink_factories(["wandb"], about(tmp_path)))
    assert sinks.failed_sinks == 1
    assert "pip install wandb" in caplog.text
    assert len((tmp_path / "metrics.jsonl").read_bytes().splitlines()) == 3


@pytest.mark.parametrize(("name", "known"), [("wandb", {"id": str(JOB)}), ("trackio", {})])
def test_a_tracker_is_asked_to_continue_in_the_jobs_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, known: dict[str, str]
) -> None:
    """With the names that both packages take, wandb 0.31 and trackio 0.43."""
    messages, logged = dict[str, Any](), list[tuple[int, dict[str, float]]]()

    def init(**how: Any) -> Any:
        messages.update(how)
        return SimpleNamespace(log=lambda metrics, step: logged.append((step, metrics)), finish=lambda: None)  # pyright: ignore

    module = ModuleType(name)
    module.init = init  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, name, module)
    assert written(*build_sink_factories([name], about(tmp_path)), steps=1).failed_sinks == 0
    config = {"policy": "planner@1"}
    assert messages == {"project": "offing", "name": f"planner@1-{JOB}", "config": config, "resume": "allow", **known}
    assert logged == [(1, {"reward": 0.5})]
