"""Folders of a job's checkpoints, and which of them are still needed.

Each step has a folder. The learner writes it under another name and renames it when it is complete,
so every existing folder is complete. The database decides which step counts: folders of later steps
are left over from a crashed process.
"""

import shutil
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from uuid import UUID

MAX_CHECKPOINTS = 2
"""Number of latest checkpoints that are kept besides the last good one."""


def job_folder(data_dir: Path, job_id: UUID) -> Path:
    """Return the folder with all files of a job."""
    return data_dir / "training" / str(job_id)


def step_folder(folder: Path, step: int, fence: int) -> Path:
    """Return the folder of a step's checkpoint.

    Every claim of a job writes its own folders, so that a process whose lease expired does not disturb
    the next one.
    """
    return folder / f"step-{step:06d}-{fence}"


def find_checkpoint(folder: Path, step: int) -> Path | None:
    """Find a checkpoint of this step.
    All checkpoints of a step are equal. Returns `None` if there is none.
    """
    return max(folder.glob(f"step-{step:06d}-*"), default=None, key=lambda path: int(path.name.rpartition("-")[2]))


def prune_checkpoints(folder: Path, step: int, last_good_step: int) -> None:
    """Remove checkpoints that are no longer needed, and those of steps that were never committed."""
    _remove_others(folder, {f"{n:06d}" for n in (*range(step - MAX_CHECKPOINTS + 1, step + 1), last_good_step)})


def remove_checkpoints(folder: Path) -> None:
    """Remove all checkpoints of a job that is done. Its weights are in the version that it registered."""
    _remove_others(folder, set())


def _remove_others(folder: Path, needed: Collection[str]) -> None:
    for path in folder.glob("step-*"):
        if path.name.split("-")[1] not in needed:
            with suppress(OSError):
                path.rename(path.with_name(f".{path.name}.gone"))  # so that a partly deleted folder is never found
    for path in folder.glob(".step-*.gone"):
        shutil.rmtree(path, ignore_errors=True)
