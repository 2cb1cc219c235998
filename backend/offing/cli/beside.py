"""What lies beside the database and belongs in a backup: which files rows name, where they lie, and how they come back.

Asks no database, and knows nothing of the file that a backup is. Everybody else goes on working meanwhile, so what
others remove is kept aside as it was when the database was looked at.
"""

import os
import shutil
import sys
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from offing.core.errors import Conflict
from offing.local.archive import Entry, gone, refuse_circle, refuse_dead_link
from offing.local.datadir import layout
from offing.local.policy import policies_folder
from offing.mcp.pins import pins_path
from offing.models.accepted import servers_file
from offing.settings import Settings

if TYPE_CHECKING:
    from offing.storage.backup import Checkpoint, Seen, Weights

VERSION_LENGTH = 64
"""Of a graph's version, after which its copy is named. Another folder is one that is being made."""

OF_A_DISK = "lost+found"
"""In the topmost folder of a disk; nobody's."""


@dataclass(slots=True)
class Gathered:
    """What goes into a backup beside the dump."""

    entries: list[Entry] = field(default_factory=list[Entry])
    addresses: dict[str, str] = field(default_factory=dict[str, str])
    """By an address in a row: its name in the backup, where the two do not end alike."""
    left_out: list[str] = field(default_factory=list[str])
    """What rows name that is not in it, in words."""


def places(settings: Settings) -> dict[str, Path]:
    """What lies outside the database and is needed again, by its name in a backup."""
    home = layout(settings.home).home
    found = {"policies": policies_folder(settings).resolve(), "graphs": home / "graphs", "training": home / "training"}
    accepted = servers_file({**os.environ, "OFFING_HOME": str(home)})
    if accepted is not None:
        found["engine-servers"] = accepted
    if settings.mcp is not None:
        found |= {"mcp.toml": settings.mcp, "mcp.pins.json": pins_path(settings.mcp)}
    return found


def gather(settings: Settings, seen: "Seen", aside: Path) -> Gathered:
    """Look up what rows name, and keep in `aside` what others remove while they work.

    Raises Conflict for what is not there although something needs it.
    """
    found, lie = Gathered(), places(settings)
    _gather_weights(found, lie.pop("policies"), seen.weights)
    _gather_graphs(found, lie.pop("graphs"), aside / "graphs")
    _gather_training(found, lie.pop("training"), seen.checkpoints, aside / "training")
    found.entries += [Entry(name, path) for name, path in lie.items()]
    return found


def _gather_weights(found: Gathered, policies: Path, weights: "Sequence[Weights]") -> None:
    tops = listed(policies)
    names = {top: f"policies/{top.name}" for top in tops}
    roots = {top.resolve(): name for top, name in names.items()} | names  # rows have addresses without links
    needed: dict[str, str] = {}
    for one in weights:
        address = Path(one.uri)
        root = next((root for root in roots if address.is_relative_to(root)), None)
        if root is not None and address.exists():
            needed[roots[root]] = f"policy version {one.label}"
            if root not in names:
                found.addresses[one.uri] = (roots[root] / address.relative_to(root)).as_posix()
        elif not tops or not address.is_relative_to(policies):
            found.left_out.append(f"the weights of {one.label}, which lie outside the folder of policies")
        elif one.unused:
            found.left_out.append(f"the weights of {one.label}, which are not in {address} any more")
        else:
            remedy = f"Put it back, or say `offing policy state {one.label} bad`."
            raise Conflict(f"{address} is not there, which policy version {one.label} needs.", remedy)
    found.entries += [Entry(name, top, needed.get(name, "")) for top, name in names.items()]


def _gather_graphs(found: Gathered, graphs: Path, aside: Path) -> None:
    for version in listed(graphs):
        if len(version.name) == VERSION_LENGTH:
            with suppress(FileNotFoundError):  # a version that is removed now is one that no run needs
                found.entries.append(_kept(f"graphs/{version.name}", version, aside / version.name))


def _gather_training(found: Gathered, training: Path, checkpoints: "Sequence[Checkpoint]", aside: Path) -> None:
    """Of each job that can go on its checkpoint, and of every job what is no checkpoint, such as its metrics."""
    for one in checkpoints:
        _gather_checkpoint(found, training, one, aside)
    for job in listed(training):
        files = [path for path in listed(job) if not path.name.startswith("step-")]
        found.entries += [Entry(f"training/{job.name}/{path.name}", path) for path in files]


def _gather_checkpoint(found: Gathered, training: Path, one: "Checkpoint", aside: Path) -> None:
    folder, needed_by = training / str(one.job), f"training job {one.job}"
    place = folder / Path(one.address).name
    if place.is_dir():
        if Path(one.address) != place:
            found.addresses[one.address] = f"training/{one.job}/{place.name}"
        for step in dict.fromkeys([place, *sorted(folder.glob(f"step-{one.good_step:06d}-*"))]):
            name = f"{one.job}/{step.name}"
            try:
                found.entries.append(_kept(f"training/{name}", step, aside / name, needed_by))
            except FileNotFoundError:
                raise gone(step, needed_by) from None
    elif one.failed or not _is_below(Path(one.address), training):
        found.left_out.append(f"the checkpoint of {needed_by}, which is not in {place}")
    else:
        remedy = f"Put it back, or say `offing training cancel {one.job}`."
        raise Conflict(f"{place} is not there, which {needed_by} needs.", remedy)


def _is_below(address: Path, training: Path) -> bool:
    """Whether a checkpoint would be here, and not on another machine."""
    return training.is_dir() and address.resolve().is_relative_to(training.resolve())


def listed(folder: Path) -> list[Path]:
    """What is in a folder, without what is being written there. Empty, too, when there is no folder."""
    inside = sorted(folder.iterdir()) if folder.is_dir() else []
    return [path for path in inside if not path.name.startswith(".") and path.name != OF_A_DISK]


def _kept(name: str, source: Path, aside: Path, needed_by: str = "") -> Entry:
    _hold(source, aside, ())
    return Entry(name, aside, needed_by)


def _hold(source: Path, aside: Path, above: tuple[tuple[int, int], ...]) -> None:
    """Give a folder's files a second name, under which they stay when they are removed.

    Raises FileNotFoundError when some of them are gone already, and Conflict for a link that leads nowhere.
    """
    known = source.stat()
    refuse_circle(source, identity := (known.st_dev, known.st_ino), above)
    aside.mkdir(parents=True)
    for path in source.iterdir():
        refuse_dead_link(path)
        if path.is_dir():
            _hold(path, aside / path.name, (*above, identity))
        elif path.is_file():
            _link(path.resolve(), aside / path.name)
        else:
            path.lstat()  # a socket is left out; what is gone is told


def _link(source: Path, aside: Path) -> None:
    try:
        aside.hardlink_to(source)
    except FileNotFoundError:
        raise
    except OSError:  # another disk, or one without such links
        shutil.copy2(source, aside)


def put_back(source: Path, place: Path, undo: ExitStack) -> None:
    """Move a file or what is in a folder of the backup to where this installation looks for it.

    A file that is there stays; a folder may be a link or a disk of its own. `undo` learns how to take it away again.
    """
    if source.is_dir():
        place.mkdir(parents=True, exist_ok=True)
        for path in sorted(source.iterdir()):
            _move(path, place / path.name, undo)
    elif place.exists():
        print(f"{place} stays as it is; the backup's is not used", file=sys.stderr)
    elif source.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        _move(source, place, undo)


def _move(source: Path, place: Path, undo: ExitStack) -> None:
    undo.callback(_remove, place)
    shutil.move(source, place)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
