"""Load packages with graphs from folders in which they are developed instead of installed.

A single Python file counts as a folder, too. A version is the hash of the packages' files. They are copied
to the data directory under that hash and run from there, so a run keeps its version while the author edits
the folder.
"""

import hashlib
import json
import os
import re
import shutil
import tempfile
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from offing.core.errors import InvalidInput
from offing.registry import Group, Registration
from offing.sdk.graph import HASHED_SUFFIXES, compute_content_hash
from offing.services import versioned_imports
from offing.services.folder_imports import add_found_packages, add_imported_packages, find_local_package
from offing.services.langgraph_projects import (
    CONFIG_FILE,
    LANGGRAPH_SUFFIXES,
    LangGraphProject,
    find_installed_package,
    find_langgraph_config,
    find_project_package,
    read_langgraph_config,
    read_langgraph_project,
)

PATH_OPTION = "--path"
PYPROJECT = "pyproject.toml"


@dataclass(frozen=True, slots=True)
class GraphProject:
    """A project folder or a single Python file in its current state."""

    path: Path
    """The folder or the file."""
    entry_points: Mapping[str, Mapping[str, str]]
    """Entry points by group and name: `module:name`, or `module` for all graphs in it."""
    packages: Mapping[str, Path]
    """Locations of the top-level packages and modules that the entry points name, and of those in the folder that
    they import.
    """
    version: str
    langgraph: LangGraphProject | None = None
    """The LangGraph project that its `langgraph.json` describes. `None` means that it has Offing's entry points."""

    @property
    def hashed_suffixes(self) -> frozenset[str]:
        """Suffixes of the files in its packages that are part of its version."""
        return LANGGRAPH_SUFFIXES if self.langgraph else HASHED_SUFFIXES


@dataclass(frozen=True, slots=True)
class BrokenGraphProject:
    """A folder or a file that cannot be used in its current state."""

    path: Path
    error: InvalidInput
    graphs: frozenset[str] = frozenset()
    """Names of the graphs that it would provide, if they are known."""


def list_projects(paths: str) -> tuple[GraphProject | BrokenGraphProject, ...]:
    """List the projects in paths that are separated as in PATH.

    Each path is a project folder, a folder of project folders, a Python file, or a LangGraph project: its folder or
    its `langgraph.json`.
    """
    folders = [Path(text).expanduser().resolve() for text in paths.split(os.pathsep) if text]
    return tuple(project for place in folders for project in _list_projects_in(place))


def _list_projects_in(path: Path) -> list[GraphProject | BrokenGraphProject]:
    try:
        here = path.is_file() or (path / PYPROJECT).is_file() or _find_langgraph_config(path) is not None
        single = [path] if here else sorted(p.parent for p in path.glob(f"*/{PYPROJECT}"))
        projects = [_read_project(one) for one in single]
        offering = [one for one in projects if isinstance(one, BrokenGraphProject) or one.entry_points]
        return offering or [BrokenGraphProject(path, _no_graphs_error(path))]
    except OSError as error:
        return [BrokenGraphProject(path, _unreadable_error(path, error))]


def _read_project(path: Path) -> GraphProject | BrokenGraphProject:
    points: Mapping[str, Mapping[str, str]] = {}
    try:
        points = _read_entry_points(path)
        return load_project(path)
    except InvalidInput as error:
        return BrokenGraphProject(path, error, graph_names(points))
    except OSError as error:
        return BrokenGraphProject(path, _unreadable_error(path, error), graph_names(points))


def graph_names(points: Mapping[str, Mapping[str, str]]) -> frozenset[str]:
    """Return the names of the graphs that a project offers.

    Those of a complete module are known only after its import.
    """
    return frozenset(name for name, target in points.get(Group.GRAPHS, {}).items() if ":" in target)


def load_project(path: Path) -> GraphProject:
    """Return the project of a folder or file. Raises InvalidInput if its packages are missing."""
    if (config := _find_langgraph_config(path)) is not None:
        return _load_langgraph_project(path, config)
    points = _read_entry_points(path)
    names = {t.partition(":")[0].partition(".")[0] for group in points.values() for t in group.values()}
    folder = path.parent if path.is_file() else path
    packages = add_imported_packages(folder, {name: _find_package(folder, name) for name in sorted(names)})
    return GraphProject(path, points, packages, compute_content_hash(*packages.values()))


def _find_langgraph_config(path: Path) -> Path | None:
    """Return the configuration of a LangGraph project. `None` for a folder with entry points of Offing."""
    file = find_langgraph_config(path)
    if file is None or path.is_file() or not (path / PYPROJECT).is_file():
        return file
    return None if _read_pyproject(path) else file


def _load_langgraph_project(path: Path, config: Path) -> GraphProject:
    project = read_langgraph_project(config)
    packages: dict[str, Path] = {}
    for name in sorted({target.partition(":")[0].partition(".")[0] for target in project.targets}):
        package = find_project_package(project.roots, name) or find_installed_package(name)
        assert package is not None, "read_langgraph_project has found it"
        packages[name] = package
    packages = add_found_packages(packages, partial(find_project_package, project.roots))
    content = compute_content_hash(*packages.values(), suffixes=LANGGRAPH_SUFFIXES)
    version = hashlib.sha256(content.encode() + project.manifest).hexdigest()
    return GraphProject(path, {Group.GRAPHS: dict(project.graphs)}, packages, version, project)


def copy_version(project: GraphProject, data_dir: Path) -> Path:
    """Return the folder with the copy of this version. The copy is made if it is missing or was modified."""
    target = data_dir / "graphs" / project.version
    if target.is_dir():
        if _is_whole(target, project.version):
            return target
        shutil.rmtree(target)
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    making = Path(tempfile.mkdtemp(dir=target.parent))
    try:
        _copy_project(project, making)
        if not _is_whole(making, project.version):
            raise InvalidInput(PATH_OPTION, f"{project.path} changed while it was being read", "Try again.")
        making.rename(target)
    except OSError:
        if not target.is_dir():  # another process has made the copy in the meantime
            raise
    finally:
        shutil.rmtree(making, ignore_errors=True)
    return target


def find_copied_version(version: str, data_dir: Path) -> GraphProject | None:
    """Return a version that was copied before, or `None` if there is no intact copy."""
    folder = data_dir / "graphs" / version
    if len(version) != 64 or not version.isalnum() or not folder.is_dir():
        return None
    try:
        project = load_project(folder)
    except InvalidInput:
        return None
    return project if project.version == version else None


def list_copied_versions(data_dir: Path, before_timestamp: float) -> tuple[str, ...]:
    """List versions whose copies were made before `before_timestamp` (seconds since 1970), oldest first."""
    folder, versions = data_dir / "graphs", list[tuple[float, str]]()
    for copy in folder.iterdir() if folder.is_dir() else ():
        with suppress(FileNotFoundError):  # another worker has deleted it in the meantime
            versions.append((copy.stat().st_mtime, copy.name))
    return tuple(name for at, name in sorted(versions) if at < before_timestamp)


def delete_copied_version(version: str, data_dir: Path) -> None:
    """Delete the copy of a version. Deleting one that does not exist is no error."""
    shutil.rmtree(data_dir / "graphs" / version, ignore_errors=True)


def load_entry_points(project: GraphProject, data_dir: Path, group: Group) -> dict[str, Any]:
    """Import what a project offers in an entry point group from its copy, by name.

    Raises InvalidInput with the cause.
    """
    return {name: load_entry_point(project, data_dir, group, name) for name in project.entry_points.get(group, {})}


def load_entry_point(project: GraphProject, data_dir: Path, group: Group, name: str) -> Any:
    """Import the value of one entry point of a project from its copy. Raises InvalidInput with the cause."""
    return load_target(project, data_dir, project.entry_points[group][name])


def load_target(project: GraphProject, data_dir: Path, target: str) -> Any:
    """Import `module:value` of a project from its copy. Raises InvalidInput with the cause."""
    folder, packages = copy_version(project, data_dir), tuple(project.packages)
    try:
        return versioned_imports.load_module(folder, packages, project.version, target)
    except (Exception, SystemExit) as error:  # a script that calls sys.exit() must not end this process
        versioned_imports.unload_version(project.version)
        raise InvalidInput(
            PATH_OPTION,
            f"{project.path} cannot be loaded: {_describe_import_error(error, project, folder)}",
            _suggest_remedy(error, project),
        ) from error


def list_registrations(project: GraphProject, data_dir: Path) -> dict[Group, list[Registration]]:
    """List what a project registers in addition to graphs and their tools."""
    return {
        group: [
            Registration(
                name, target, f"the folder {project.path}", partial(load_entry_point, project, data_dir, group, name)
            )
            for name, target in project.entry_points.get(group, {}).items()
        ]
        for group in Group
        if group not in (Group.GRAPHS, Group.TOOLS)
    }


def _read_entry_points(path: Path) -> dict[str, dict[str, str]]:
    if (config := _find_langgraph_config(path)) is not None:
        return {Group.GRAPHS: {one.name: str(one.reference) for one in read_langgraph_config(config).graphs}}
    return _entry_points_of_file(path) if path.is_file() else _read_pyproject(path)


def _read_pyproject(path: Path) -> dict[str, dict[str, str]]:
    try:
        table = tomllib.loads((path / PYPROJECT).read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(PATH_OPTION, f"{path / PYPROJECT} cannot be read: {error}", "Correct the file.") from None
    points = table.get("project", {}).get("entry-points", {})
    return {group: dict(points[group]) for group in Group if points.get(group)}


def _entry_points_of_file(file: Path) -> dict[str, dict[str, str]]:
    """Return the entry points of a file: the graphs that are values in it."""
    if file.suffix != ".py" or not re.fullmatch(r"[\w-]+", file.stem):
        problem = f"{file} is neither a folder nor an importable Python file"
        raise InvalidInput(PATH_OPTION, problem, "Use a folder, or a file such as agent.py.")
    return {Group.GRAPHS: {file.stem: file.stem}}


def _unreadable_error(path: Path, error: OSError) -> InvalidInput:
    return InvalidInput(
        PATH_OPTION, f"{path} cannot be read: {error}", "Give the user account that runs Offing permission to read it."
    )


def _no_graphs_error(path: Path) -> InvalidInput:
    """Return an error that says why the path offers nothing and what the author can do."""
    if not path.is_dir():
        return InvalidInput(
            PATH_OPTION, f"{path} is neither a folder nor a file", "Use a folder or a .py file that contains a graph."
        )
    if (path / PYPROJECT).is_file():
        remedy = f'Add [project.entry-points."{Group.GRAPHS}"] with a line such as harbour = "harbour:graph".'
        return InvalidInput(PATH_OPTION, f"{path / PYPROJECT} registers no graphs or tools", remedy)
    files = sorted(file.name for file in path.glob("*.py") if file.name != "__init__.py")
    remedy = f"Use the file that contains the graph, such as --path {path / files[0]}, or " if files else ""
    remedy += "use a folder that `offing new graph` created."
    return InvalidInput(
        PATH_OPTION, f"{path} has no {PYPROJECT} that registers graphs or tools", remedy[0].upper() + remedy[1:]
    )


def _find_package(folder: Path, name: str) -> Path:
    if (package := find_local_package(folder, name)) is not None:
        return package
    raise InvalidInput(
        PATH_OPTION, f"{folder} has no package {name}", f"Add {name}/__init__.py to the folder, or correct {PYPROJECT}."
    )


def _copy_project(project: GraphProject, destination: Path) -> None:
    if project.langgraph is not None:
        (destination / CONFIG_FILE).write_bytes(project.langgraph.manifest)
    elif project.path.is_file():
        module = json.dumps(project.path.stem)
        (destination / PYPROJECT).write_text(
            f'[project.entry-points."{Group.GRAPHS}"]\n{module} = {module}\n', encoding="utf-8"
        )
    else:
        shutil.copyfile(project.path / PYPROJECT, destination / PYPROJECT)
    for name, package in project.packages.items():
        if package.is_file():
            shutil.copyfile(package, destination / f"{name}.py")
        for file in (p for p in package.rglob("*") if p.suffix in project.hashed_suffixes and p.is_file()):
            target = destination / name / file.relative_to(package)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)


def _is_whole(folder: Path, version: str) -> bool:
    try:
        return load_project(folder).version == version
    except InvalidInput:
        return False


def _describe_import_error(error: BaseException, project: GraphProject, copy: Path) -> str:
    """Describe the failure of an import with the last line in the author's own files."""
    location, trace = "", error.__traceback__
    while trace is not None:
        file = Path(trace.tb_frame.f_code.co_filename)
        if file.is_relative_to(copy):
            location = f"{_author_path(file, project, copy)}:{trace.tb_lineno}: "
        trace = trace.tb_next
    if isinstance(error, SyntaxError) and error.filename:
        location = f"{_author_path(Path(error.filename), project, copy)}:{error.lineno}: "
    text = versioned_imports.restore_module_names(error.problem if isinstance(error, InvalidInput) else str(error))
    for name, package in project.packages.items():
        text = text.replace(str(copy / name), str(package.with_suffix("")))
    return f"{location}{error.field if isinstance(error, InvalidInput) else type(error).__name__}: {text}"


def _author_path(file: Path, project: GraphProject, copy: Path) -> str:
    if not file.is_relative_to(copy):
        return str(file)
    package, *rest = file.relative_to(copy).parts
    package = package if rest else package.removesuffix(".py")
    return str(project.packages[package].joinpath(*rest)) if package in project.packages else str(file)


def _suggest_remedy(error: BaseException, project: GraphProject) -> str:
    """Return what the author can do about the failure of an import."""
    folder = project.path.parent if project.path.is_file() else project.path
    if isinstance(error, InvalidInput):
        return error.remedy
    if isinstance(error, ModuleNotFoundError) and error.name:
        name = versioned_imports.restore_module_names(error.name).partition(".")[0]
        if name in project.packages:
            return "Correct the code."
        if inner := [package for package, at in project.packages.items() if (at / f"{name}.py").is_file()]:
            return f"Import {inner[0]}.{name} instead."
        if any((base / name).is_dir() for base in (folder, folder / "src")):
            return f"Add {name}/__init__.py, so that the folder is a package."
        return f"Install {name} in the environment of Offing, or put its package into {folder}."
    if isinstance(error, FileNotFoundError):
        return (
            f"Only {', '.join(sorted(project.hashed_suffixes))} files inside a package are available when a graph runs."
        )
    return "Correct the code."
