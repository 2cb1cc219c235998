"""Packages with graphs that lie in a folder instead of being installed: what they offer, at which version.

The only home of how such a folder is read. A version is the hash of the packages' files. Its files are copied to
Offing's home under that hash and run from there, so that a run keeps its version while its author edits the folder.
"""

import os
import shutil
import tempfile
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from offing.core.errors import InvalidInput
from offing.sdk.graph import HASHED, content_hash
from offing.services import isolated

GRAPHS, TOOLS, SCORERS, TRAINING = "offing.graphs", "offing.tools", "offing.scorers", "offing.training"
GROUPS = (GRAPHS, TOOLS, SCORERS, TRAINING)
"""Entry point groups that a package may offer things in."""

FIELD = "--path"
PROJECT = "pyproject.toml"


@dataclass(frozen=True, slots=True)
class Project:
    """A project folder as it is now."""

    folder: Path
    points: Mapping[str, Mapping[str, str]]
    """By group and name: `module:name`."""
    packages: Mapping[str, Path]
    """Where the top-level packages lie that the points name."""
    version: str


def projects(paths: str) -> tuple[Project, ...]:
    """The projects in folders that are separated as in PATH: each folder is one, or holds some. Raises InvalidInput."""
    found: list[Project] = []
    for text in filter(None, paths.split(os.pathsep)):
        folder = Path(text).expanduser().resolve()
        inside = sorted(p.parent for p in folder.glob(f"*/{PROJECT}")) if folder.is_dir() else []
        offering = [p for p in ([folder] if (folder / PROJECT).is_file() else inside) if _points(p)]
        if not offering:
            what = "is no folder" if not folder.is_dir() else f"has no {PROJECT} that offers graphs or tools"
            raise InvalidInput(FIELD, f"{folder} {what}", "Name a folder that `offing new graph` has made.")
        found += map(project, offering)
    return tuple(found)


def project(folder: Path) -> Project:
    """One project folder. Raises InvalidInput for one whose packages are not there."""
    points = _points(folder)
    names = {t.partition(":")[0].partition(".")[0] for group in points.values() for t in group.values()}
    packages = {name: _package(folder, name) for name in sorted(names)}
    return Project(folder, points, packages, content_hash(*packages.values()))


def kept(found: Project, home: Path) -> Path:
    """The folder that holds a copy of this version; made if it is not there, or was touched."""
    target = home / "graphs" / found.version
    if target.is_dir():
        if _is_whole(target, found.version):
            return target
        shutil.rmtree(target)
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    making = Path(tempfile.mkdtemp(dir=target.parent))
    try:
        _copy(found, making)
        if not _is_whole(making, found.version):
            raise InvalidInput(FIELD, f"{found.folder} changed while it was read", "Try again.")
        making.rename(target)
    except OSError:
        if not target.is_dir():  # somebody else made it meanwhile
            raise
    finally:
        shutil.rmtree(making, ignore_errors=True)
    return target


def kept_version(version: str, home: Path) -> Project | None:
    """A version that was copied before. None: it was not, or its copy is damaged."""
    folder = home / "graphs" / version
    if len(version) != 64 or not version.isalnum() or not folder.is_dir():
        return None
    try:
        found = project(folder)
    except InvalidInput:
        return None
    return found if found.version == version else None


def versions_kept(home: Path, before: float) -> tuple[str, ...]:
    """Versions whose copies were made before this time, in seconds since 1970; the oldest first."""
    folder, made = home / "graphs", list[tuple[float, str]]()
    for copy in folder.iterdir() if folder.is_dir() else ():
        with suppress(FileNotFoundError):  # another worker has removed it meanwhile
            made.append((copy.stat().st_mtime, copy.name))
    return tuple(name for at, name in sorted(made) if at < before)


def drop_version(version: str, home: Path) -> None:
    """Remove the copy of a version. One that is gone already is no error."""
    shutil.rmtree(home / "graphs" / version, ignore_errors=True)


def offered(found: Project, home: Path, group: str) -> dict[str, Any]:
    """What a project offers in a group, by name, imported from its copy. Raises InvalidInput with what is wrong."""
    folder, packages = kept(found, home), tuple(found.packages)
    try:
        points = found.points.get(group, {})
        return {name: isolated.load(folder, packages, found.version, target) for name, target in points.items()}
    except Exception as error:
        isolated.forget(found.version)
        raise InvalidInput(
            FIELD, f"{found.folder} cannot be loaded: {_said(error, found, folder)}", "Mend it."
        ) from error


def _points(folder: Path) -> dict[str, dict[str, str]]:
    try:
        table = tomllib.loads((folder / PROJECT).read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(FIELD, f"{folder / PROJECT} cannot be read: {error}", "Mend it.") from None
    points = table.get("project", {}).get("entry-points", {})
    return {group: dict(points[group]) for group in GROUPS if points.get(group)}


def _package(folder: Path, name: str) -> Path:
    for place in (folder / name, folder / "src" / name):
        if (place / "__init__.py").is_file():
            return place
    raise InvalidInput(FIELD, f"{folder} has no package {name}", f"Put {name}/__init__.py there, or correct {PROJECT}.")


def _copy(found: Project, to: Path) -> None:
    shutil.copyfile(found.folder / PROJECT, to / PROJECT)
    for name, package in found.packages.items():
        for file in (p for p in package.rglob("*") if p.suffix in HASHED and p.is_file()):
            target = to / name / file.relative_to(package)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)


def _is_whole(folder: Path, version: str) -> bool:
    try:
        return project(folder).version == version
    except InvalidInput:
        return False


def _said(error: Exception, found: Project, copy: Path) -> str:
    """An import's failure, at its last line in the author's own files."""
    place, trace = "", error.__traceback__
    while trace is not None:
        file = Path(trace.tb_frame.f_code.co_filename)
        if file.is_relative_to(copy):
            place = f"{_own(file, found, copy)}:{trace.tb_lineno}: "
        trace = trace.tb_next
    if isinstance(error, SyntaxError) and error.filename:
        place = f"{_own(Path(error.filename), found, copy)}:{error.lineno}: "
    return f"{place}{type(error).__name__}: {error}"


def _own(file: Path, found: Project, copy: Path) -> str:
    if not file.is_relative_to(copy):
        return str(file)
    package, *rest = file.relative_to(copy).parts
    return str(found.packages[package].joinpath(*rest)) if package in found.packages else str(file)
