"""Which checkpoints of a job stay, and what others see of those that do not."""

import shutil
from pathlib import Path

import pytest

from offing_trainer.job.checkpoints import prune_checkpoints, remove_checkpoints, step_folder


def test_a_checkpoint_that_is_removed_is_never_seen_by_half(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for step in range(1, 6):
        step_folder(tmp_path, step, 1).mkdir()
    (tmp_path / ".step-000000-1.gone").mkdir()  # of a process that was killed
    seen: list[str] = []
    remove = shutil.rmtree

    def watched(path: Path, *, ignore_errors: bool) -> None:
        seen.extend(result.name for result in tmp_path.glob("step-*"))
        remove(path, ignore_errors=ignore_errors)

    monkeypatch.setattr(shutil, "rmtree", watched)
    prune_checkpoints(tmp_path, 5, 3)
    stored = [step_folder(tmp_path, step, 1).name for step in (3, 4, 5)]
    assert set(seen) == set(stored)
    assert sorted(path.name for path in tmp_path.iterdir()) == stored


def test_a_job_that_is_done_leaves_its_metrics_and_no_checkpoint(tmp_path: Path) -> None:
    for step in range(1, 4):
        step_folder(tmp_path, step, 1).mkdir()
    (tmp_path / "metrics.jsonl").write_text("{}\n")
    remove_checkpoints(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["metrics.jsonl"]
