"""Files of a backup other than the database dump: which rows name them, and how they are restored.

This module does not use the database or the archive format. The installation keeps running
during a backup, so files that others may delete are hard linked into a staging directory.
"""

import shutil
import sys
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from offing import environment
from offing.core.errors import Conflict
from offing.local.archive import Entry, check_link, check_no_cycle, missing_file_error
from offing.local.data_directory import locate_data_directory
from offing.local.engine_process import get_policy_dir
from offing.mcp.pins import pins_path
from offing.models.accepted_servers import find_servers_file
from offing.settings import Settings

if TYPE_CHECKING:
    from offing.storage.backup import DatabaseSnapshot, JobCheckpoint, PolicyWeights

GRAPH_VERSION_CHARS = 64
"""Length of a graph version, which names the folder of its copy. Folders with other names are
incomplete.
"""

LOST_AND_FOUND = "lost+found"
"""Folder in the root of a disk that belongs to the file system."""


@dataclass(slots=True)
class BackupContents:
    """Files of a backup other than the dump."""

    entries: list[Entry] = field(default_factory=list[Entry])
    addresses: dict[str, str] = field(default_factory=dict[str, str])
    """Name in the backup by the address in a row, where the two end differently."""
    left_out: list[str] = field(default_factory=list[str])
    """Descriptions of files that rows name and that are not in the backup."""


def list_locations(settings: Settings) -> dict[str, Path]:
    """Return the paths outside the database that a backup contains, by their names in the backup."""
    home = locate_data_directory(settings.home).root
    locations = {
        "policies": get_policy_dir(settings).resolve(),
        "graphs": home / "graphs",
        "training": home / "training",
    }
    accepted = find_servers_file({**environment.VARIABLES, "OFFING_HOME": str(home)})
    if accepted is not None:
        locations["engine-servers"] = accepted
    if settings.mcp_config is not None:
        locations |= {"mcp.toml": settings.mcp_config, "mcp.pins.json": pins_path(settings.mcp_config)}
    return locations


def gather_files(settings: Settings, stored: "DatabaseSnapshot", staging_dir: Path) -> BackupContents:
    """Find the files that rows name, and hard link files that others may delete into `staging_dir`.

    Raises Conflict for a missing file that a row needs.
    """
    contents, locations = BackupContents(), list_locations(settings)
    _gather_weights(contents, locations.pop("policies"), stored.weights)
    _gather_graphs(contents, locations.pop("graphs"), staging_dir / "graphs")
    _gather_training(contents, locations.pop("training"), stored.checkpoints, staging_dir / "training")
    contents.entries += [Entry(name, path) for name, path in locations.items()]
    return contents


def _gather_weights(contents: BackupContents, policy_dir: Path, weights: "Sequence[PolicyWeights]") -> None:
    tops = list_entries(policy_dir)
    names = {top: f"policies/{top.name}" for top in tops}
    roots = {top.resolve(): name for top, name in names.items()} | names  # rows have addresses with links resolved
    needed: dict[str, str] = {}
    for version in weights:
        address = Path(version.uri)
        root = next((root for root in roots if address.is_relative_to(root)), None)
        if root is not None and address.exists():
            needed[roots[root]] = f"policy version {version.label}"
            if root not in names:
                contents.addresses[version.uri] = (roots[root] / address.relative_to(root)).as_posix()
        elif not tops or not address.is_relative_to(policy_dir):
            contents.left_out.append(f"the weights of {version.label}, which are outside the policy folder")
        elif version.is_unused:
            contents.left_out.append(f"the weights of {version.label}, which are no longer in {address}")
        else:
            remedy = f"Restore the folder, or run `offing policy set-state {version.label} blocked`."
            raise Conflict(f"{address}, which policy version {version.label} needs, does not exist.", remedy)
    contents.entries += [Entry(name, top, needed.get(name, "")) for top, name in names.items()]


def _gather_graphs(contents: BackupContents, graphs: Path, staging_dir: Path) -> None:
    for version in list_entries(graphs):
        if len(version.name) == GRAPH_VERSION_CHARS:
            with suppress(FileNotFoundError):  # a version that is deleted now is needed by no run
                contents.entries.append(_stage_entry(f"graphs/{version.name}", version, staging_dir / version.name))


def _gather_training(
    contents: BackupContents, training: Path, checkpoints: "Sequence[JobCheckpoint]", staging_dir: Path
) -> None:
    """Add the checkpoint of each resumable job, and all other files of every job, such as metrics."""
    for checkpoint in checkpoints:
        _gather_checkpoint(contents, training, checkpoint, staging_dir)
    for job in list_entries(training):
        files = [path for path in list_entries(job) if not path.name.startswith("step-")]
        contents.entries += [Entry(f"training/{job.name}/{path.name}", path) for path in files]


def _gather_checkpoint(
    contents: BackupContents, training: Path, checkpoint: "JobCheckpoint", staging_dir: Path
) -> None:
    folder, needed_by = training / str(checkpoint.job_id), f"training job {checkpoint.job_id}"
    folder_here = folder / Path(checkpoint.folder).name
    if folder_here.is_dir():
        if Path(checkpoint.folder) != folder_here:
            contents.addresses[checkpoint.folder] = f"training/{checkpoint.job_id}/{folder_here.name}"
        for step in dict.fromkeys([folder_here, *sorted(folder.glob(f"step-{checkpoint.last_good_step:06d}-*"))]):
            name = f"{checkpoint.job_id}/{step.name}"
            try:
                contents.entries.append(_stage_entry(f"training/{name}", step, staging_dir / name, needed_by))
            except FileNotFoundError:
                raise missing_file_error(step, needed_by) from None
    elif checkpoint.has_failed or not _is_local_checkpoint(Path(checkpoint.folder), training):
        contents.left_out.append(f"the checkpoint of {needed_by}, which is not in {folder_here}")
    else:
        remedy = f"Restore the folder, or run `offing jobs cancel {checkpoint.job_id}`."
        raise Conflict(f"{folder_here}, which {needed_by} needs, does not exist.", remedy)


def _is_local_checkpoint(address: Path, training: Path) -> bool:
    """Return whether the checkpoint belongs to this machine's training folder."""
    return training.is_dir() and address.resolve().is_relative_to(training.resolve())


def list_entries(folder: Path) -> list[Path]:
    """List the entries of a folder, without temporary files. A missing folder has no entries."""
    inside = sorted(folder.iterdir()) if folder.is_dir() else []
    return [path for path in inside if not path.name.startswith(".") and path.name != LOST_AND_FOUND]


def _stage_entry(name: str, source: Path, staging_dir: Path, needed_by: str = "") -> Entry:
    _hardlink_tree(source, staging_dir, ())
    return Entry(name, staging_dir, needed_by)


def _hardlink_tree(source: Path, target: Path, ancestors: tuple[tuple[int, int], ...]) -> None:
    """Hard link the files of a folder, so that they stay when the originals are deleted.

    Raises FileNotFoundError if some of them are already deleted, and Conflict for a dead link.
    """
    status = source.stat()
    check_no_cycle(source, identity := (status.st_dev, status.st_ino), ancestors)
    target.mkdir(parents=True)
    for path in source.iterdir():
        check_link(path)
        if path.is_dir():
            _hardlink_tree(path, target / path.name, (*ancestors, identity))
        elif path.is_file():
            _link_or_copy(path.resolve(), target / path.name)
        else:
            path.lstat()  # skip sockets; raise if the file was deleted


def _link_or_copy(source: Path, target: Path) -> None:
    try:
        target.hardlink_to(source)
    except FileNotFoundError:
        raise
    except OSError:  # another disk, or no hard links
        shutil.copy2(source, target)


def restore_path(source: Path, target: Path, undo: ExitStack) -> None:
    """Move a file, or the contents of a folder, from the backup to its place in this installation.

    An existing file is not replaced. The target folder may be a link or a mount point. `undo` receives
    a callback that removes each moved path.
    """
    if source.is_dir():
        target.mkdir(parents=True, exist_ok=True)
        for path in sorted(source.iterdir()):
            _move(path, target / path.name, undo)
    elif target.exists():
        print(f"{target} already exists and is not replaced by the file from the backup", file=sys.stderr)
    elif source.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        _move(source, target, undo)


def _move(source: Path, target: Path, undo: ExitStack) -> None:
    undo.callback(_remove, target)
    shutil.move(source, target)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
