"""Packages with graphs that lie in a folder instead of being installed: what they offer, at which version.

The only home of how such a folder is read; a single Python file is one, too. A version is the hash of the packages'
files. They are copied to Offing's home under that hash and run from there, so that a run keeps its version while its
author edits the folder.
"""

import json
import os
import re
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
from offing.services.folder_imports import find_local, with_imported

GRAPHS, TOOLS, SCORERS, TRAINING = "offing.graphs", "offing.tools", "offing.scorers", "offing.training"
GROUPS = (GRAPHS, TOOLS, SCORERS, TRAINING)
"""Entry point groups that a package may offer things in."""

FIELD = "--path"
PROJECT = "pyproject.toml"


@dataclass(frozen=True, slots=True)
class Project:
    """A project folder, or a single Python file, as it is now."""

    place: Path
    """The folder or the file."""
    points: Mapping[str, Mapping[str, str]]
    """By group and name: `module:name`, or `module` for all graphs in it."""
    packages: Mapping[str, Path]
    """Where the top-level packages and modules lie that the points name, and those of the folder that they import."""
    version: str


@dataclass(frozen=True, slots=True)
class BrokenProject:
    """A folder or a file that cannot be used as it is now."""

    place: Path
    error: InvalidInput
    graphs: frozenset[str] = frozenset()
    """Names of the graphs that it would offer, as far as they are known."""


def projects(paths: str) -> tuple[Project | BrokenProject, ...]:
    """The projects in places that are separated as in PATH: each is a project folder, holds some, or is a file."""
    places = [Path(text).expanduser().resolve() for text in paths.split(os.pathsep) if text]
    return tuple(found for place in places for found in _projects_in(place))


def _projects_in(place: Path) -> list[Project | BrokenProject]:
    try:
        here = place.is_file() or (place / PROJECT).is_file()
        single = [place] if here else sorted(p.parent for p in place.glob(f"*/{PROJECT}"))
        found = [_read(one) for one in single]
        offering = [one for one in found if isinstance(one, BrokenProject) or one.points]
        return offering or [BrokenProject(place, _unusable(place))]
    except OSError as error:
        return [BrokenProject(place, _unreadable(place, error))]


def _read(place: Path) -> Project | BrokenProject:
    points: Mapping[str, Mapping[str, str]] = {}
    try:
        points = _points(place)
        return project(place)
    except InvalidInput as error:
        return BrokenProject(place, error, graph_names(points))
    except OSError as error:
        return BrokenProject(place, _unreadable(place, error), graph_names(points))


def graph_names(points: Mapping[str, Mapping[str, str]]) -> frozenset[str]:
    """Names of the graphs that a project offers. Those of a whole module are known only when it is imported."""
    return frozenset(name for name, target in points.get(GRAPHS, {}).items() if ":" in target)


def project(place: Path) -> Project:
    """One project folder or Python file. Raises InvalidInput for one whose packages are not there."""
    points = _points(place)
    names = {t.partition(":")[0].partition(".")[0] for group in points.values() for t in group.values()}
    folder = place.parent if place.is_file() else place
    packages = with_imported(folder, {name: _package(folder, name) for name in sorted(names)})
    return Project(place, points, packages, content_hash(*packages.values()))


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
            raise InvalidInput(FIELD, f"{found.place} changed while it was read", "Try again.")
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
    except (Exception, SystemExit) as error:  # a script that ends itself must not end us
        isolated.forget(found.version)
        raise InvalidInput(
            FIELD, f"{found.place} cannot be loaded: {_said(error, found, folder)}", _remedy(error, found)
        ) from error


def _points(place: Path) -> dict[str, dict[str, str]]:
    if place.is_file():
        return _points_of_file(place)
    try:
        table = tomllib.loads((place / PROJECT).read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(FIELD, f"{place / PROJECT} cannot be read: {error}", "Mend it.") from None
    points = table.get("project", {}).get("entry-points", {})
    return {group: dict(points[group]) for group in GROUPS if points.get(group)}


def _points_of_file(file: Path) -> dict[str, dict[str, str]]:
    """A file offers the graphs that are values in it."""
    if file.suffix != ".py" or not re.fullmatch(r"[\w-]+", file.stem):
        problem = f"{file} is no folder and no Python file that can be imported"
        raise InvalidInput(FIELD, problem, "Name a folder, or a file such as agent.py.")
    return {GRAPHS: {file.stem: file.stem}}


def _unreadable(place: Path, error: OSError) -> InvalidInput:
    return InvalidInput(FIELD, f"{place} cannot be read: {error}", "Let the user that Offing runs as read it.")


def _unusable(place: Path) -> InvalidInput:
    """Why nothing is offered there, and what the author can do."""
    if not place.is_dir():
        return InvalidInput(FIELD, f"{place} is no folder and no file", "Name a folder or a .py file with a graph.")
    if (place / PROJECT).is_file():
        remedy = f'Add [project.entry-points."{GRAPHS}"] with a line such as harbour = "harbour:graph".'
        return InvalidInput(FIELD, f"{place / PROJECT} offers no graphs or tools", remedy)
    files = sorted(file.name for file in place.glob("*.py") if file.name != "__init__.py")
    remedy = f"Name the file with the graph, such as --path {place / files[0]}, or " if files else ""
    remedy += "name a folder that `offing new graph` has made."
    return InvalidInput(FIELD, f"{place} has no {PROJECT} that offers graphs or tools", remedy[0].upper() + remedy[1:])


def _package(folder: Path, name: str) -> Path:
    if (found := find_local(folder, name)) is not None:
        return found
    raise InvalidInput(FIELD, f"{folder} has no package {name}", f"Put {name}/__init__.py there, or correct {PROJECT}.")


def _copy(found: Project, to: Path) -> None:
    if found.place.is_file():
        module = json.dumps(found.place.stem)
        (to / PROJECT).write_text(f'[project.entry-points."{GRAPHS}"]\n{module} = {module}\n', encoding="utf-8")
    else:
        shutil.copyfile(found.place / PROJECT, to / PROJECT)
    for name, package in found.packages.items():
        if package.is_file():
            shutil.copyfile(package, to / f"{name}.py")
        for file in (p for p in package.rglob("*") if p.suffix in HASHED and p.is_file()):
            target = to / name / file.relative_to(package)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)


def _is_whole(folder: Path, version: str) -> bool:
    try:
        return project(folder).version == version
    except InvalidInput:
        return False


def _said(error: BaseException, found: Project, copy: Path) -> str:
    """An import's failure, at its last line in the author's own files."""
    place, trace = "", error.__traceback__
    while trace is not None:
        file = Path(trace.tb_frame.f_code.co_filename)
        if file.is_relative_to(copy):
            place = f"{_own(file, found, copy)}:{trace.tb_lineno}: "
        trace = trace.tb_next
    if isinstance(error, SyntaxError) and error.filename:
        place = f"{_own(Path(error.filename), found, copy)}:{error.lineno}: "
    text = isolated.with_usual_names(error.problem if isinstance(error, InvalidInput) else str(error))
    for name, package in found.packages.items():
        text = text.replace(str(copy / name), str(package.with_suffix("")))
    return f"{place}{error.field if isinstance(error, InvalidInput) else type(error).__name__}: {text}"


def _own(file: Path, found: Project, copy: Path) -> str:
    if not file.is_relative_to(copy):
        return str(file)
    package, *rest = file.relative_to(copy).parts
    package = package if rest else package.removesuffix(".py")
    return str(found.packages[package].joinpath(*rest)) if package in found.packages else str(file)


def _remedy(error: BaseException, found: Project) -> str:
    """What its author can do about an import's failure."""
    folder = found.place.parent if found.place.is_file() else found.place
    if isinstance(error, InvalidInput):
        return error.remedy
    if isinstance(error, ModuleNotFoundError) and error.name:
        name = isolated.with_usual_names(error.name).partition(".")[0]
        if name in found.packages:
            return "Mend it."
        if inner := [package for package, at in found.packages.items() if (at / f"{name}.py").is_file()]:
            return f"Write {inner[0]}.{name}."
        if any((base / name).is_dir() for base in (folder, folder / "src")):
            return f"Put {name}/__init__.py there, so that it is a package."
        return f"Install {name} where Offing runs, or put its package into {folder}."
    if isinstance(error, FileNotFoundError):
        return f"Only {', '.join(sorted(HASHED))} files inside a package are there when a graph runs."
    return "Mend it."
