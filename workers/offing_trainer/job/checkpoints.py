"""Where a job keeps the weights of its steps, and which of them it still needs.

A folder a step, written by the learner under another name and renamed when whole, so that a folder that is there is
whole. Which step counts is the database's to say: folders of later steps are left-overs of a lost process.
"""

import shutil
from contextlib import suppress
from pathlib import Path
from uuid import UUID

KEPT = 2
"""Latest checkpoints that stay beside the last good one."""


def job_folder(home: Path, job: UUID) -> Path:
    """Where everything of a job lies."""
    return home / "training" / str(job)


def step_folder(folder: Path, step: int, fence: int) -> Path:
    """Every claim of a job writes folders of its own, so that a process that lost the job disturbs none."""
    return folder / f"step-{step:06d}-{fence}"


def found(folder: Path, step: int) -> Path | None:
    """A checkpoint of this step; all there are hold the same. None: there is none."""
    return max(folder.glob(f"step-{step:06d}-*"), default=None, key=lambda path: int(path.name.rpartition("-")[2]))


def prune(folder: Path, step: int, good: int) -> None:
    """Remove checkpoints that nothing can go back to any more, and those of steps that were never committed."""
    needed = {f"{n:06d}" for n in (*range(step - KEPT + 1, step + 1), good)}
    for path in folder.glob("step-*"):
        if path.name.split("-")[1] not in needed:
            with suppress(OSError):
                path.rename(path.with_name(f".{path.name}.gone"))  # so that nobody finds half of it
    for path in folder.glob(".step-*.gone"):
        shutil.rmtree(path, ignore_errors=True)
