"""LangGraph projects: what the `langgraph.json` of a folder names, as modules that Offing can hash, copy and import.

A reference to a file becomes a reference to a module, under the name by which the project's own code imports it.
"""

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
from dotenv import dotenv_values

from offing.core.errors import InvalidInput
from offing.core.langgraph_config import CONFIG_FILE, LangGraphConfig, ObjectReference
from offing.core.langgraph_config_parser import parse_langgraph_config
from offing.sdk.graph import HASHED_SUFFIXES
from offing.services.folder_imports import find_local_package

LANGGRAPH_SUFFIXES = HASHED_SUFFIXES | {
    ".csv",
    ".html",
    ".j2",
    ".jinja",
    ".jinja2",
    ".json",
    ".md",
    ".prompt",
    ".sql",
    ".tsv",
    ".yaml",
    ".yml",
}
"""Suffixes of the files inside the project's packages that are part of its graphs."""


@dataclass(frozen=True, slots=True)
class LangGraphProject:
    """What a configuration file names, with each reference as `module:variable`."""

    file: Path
    config: LangGraphConfig
    roots: tuple[Path, ...]
    """Folders from which the project's code imports its own packages, the most specific first."""
    graphs: Mapping[str, str]
    """References of the graphs by name."""
    auth: str = ""
    """Reference of the `Auth` object. Empty means that there is none."""
    http_app: str = ""
    """Reference of the project's own ASGI application. Empty means that there is none."""
    embed: str = ""
    """Reference of the function that embeds items of the store. Empty means a model by name, or no index."""

    @property
    def targets(self) -> tuple[str, ...]:
        """All references."""
        return tuple(filter(None, (*self.graphs.values(), self.auth, self.http_app, self.embed)))

    @property
    def manifest(self) -> bytes:
        """The part of the configuration that decides what the graphs are. It contains no variable and no path.

        A copy of the project is described by it, and it is part of the version.
        """
        config = self.config
        described = {graph.name: graph.description for graph in config.graphs}
        document: dict[str, Any] = {
            "graphs": {
                name: {"path": target, "description": described[name]} for name, target in sorted(self.graphs.items())
            },
            "store": {
                "index": {
                    "dims": config.store_index.dims,
                    "embed": self.embed or config.store_index.embed,
                    "fields": list(config.store_index.fields),
                }
                if config.store_index
                else None,
                "ttl": {
                    "default_ttl": config.store_ttl.default_ttl,
                    "refresh_on_read": config.store_ttl.refresh_on_read,
                    "sweep_interval_minutes": config.store_ttl.sweep_interval_minutes,
                }
                if config.store_ttl
                else None,
            },
            "auth": {"path": self.auth} if self.auth else None,
            "http": {"app": self.http_app} if self.http_app else None,
        }
        return orjson.dumps(document, option=orjson.OPT_INDENT_2)


def find_langgraph_config(path: Path) -> Path | None:
    """Return the configuration file that a path names, or that is in the folder. `None` if there is none."""
    if path.is_file():
        return path if path.suffix == ".json" else None
    return path / CONFIG_FILE if (path / CONFIG_FILE).is_file() else None


def read_langgraph_config(file: Path) -> LangGraphConfig:
    """Read and parse a configuration file. Raises InvalidInput, without any value of `env`."""
    try:
        document = orjson.loads(file.read_bytes())
    except orjson.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise InvalidInput(str(file), f"is not JSON: {error.msg} ({place})", "Correct the file.") from None
    return parse_langgraph_config(document, str(file))


def read_langgraph_project(file: Path) -> LangGraphProject:
    """Read a configuration file and find the modules that it names. Raises InvalidInput that names the key."""
    config = read_langgraph_config(file)
    roots = _list_roots(file.parent, config)
    files = [one.reference for one in config.graphs]
    files += [one for one in (config.auth, config.http.app) if one is not None]
    roots = _add_package_roots(file.parent, roots, files)
    finder = _TargetFinder(file, roots)
    embed = config.store_index.embed if config.store_index else ""
    return LangGraphProject(
        file,
        config,
        roots,
        {one.name: finder.find(one.reference, f"graphs.{one.name}") for one in config.graphs},
        finder.find(config.auth, "auth.path") if config.auth else "",
        finder.find(config.http.app, "http.app") if config.http.app else "",
        finder.find_embed(embed) if embed else "",
    )


def read_project_env(file: Path, config: LangGraphConfig) -> dict[str, str]:
    """Return the environment variables of a project, which may be secrets.

    A file that does not exist has none, because projects are shared without it. Raises InvalidInput for one that
    cannot be read.
    """
    if not config.env_file:
        return dict(config.env)
    path = file.parent / config.env_file
    if not path.exists():
        return {}
    try:
        return {name: value for name, value in dotenv_values(path).items() if value is not None}
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{file}: env", f"{path} cannot be read: {type(error).__name__}", "Correct it.") from None


def find_project_package(roots: tuple[Path, ...], name: str) -> Path | None:
    """Return the package folder or module file of `import NAME` in a project, or `None`.

    A folder without `__init__.py` is a package if no installed package has its name, as in Python.
    """
    for root in roots:
        if (local := find_local_package(root, name)) is not None:
            return local
    for root in roots:
        if (root / name).is_dir() and any((root / name).rglob("*.py")) and not _is_installed(name):
            return root / name
    return None


def find_installed_package(name: str) -> Path | None:
    """Return the folder or file of an installed package or module, without importing it. `None` if there is none."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    if spec.submodule_search_locations:
        return Path(next(iter(spec.submodule_search_locations)))
    return Path(spec.origin) if spec.origin and spec.origin.endswith(".py") else None


def _is_installed(name: str) -> bool:
    spec = importlib.util.find_spec(name) if name.isidentifier() else None
    return spec is not None and spec.origin is not None


def _list_roots(folder: Path, config: LangGraphConfig) -> tuple[Path, ...]:
    """Return the folder of the configuration and those of its local dependencies, each with its `src`."""
    roots: list[Path] = []
    for named in (".", *config.local_dependencies):
        base = (folder / named).resolve()
        if not base.is_dir():
            field = f"{folder / CONFIG_FILE}: dependencies"
            raise InvalidInput(field, f"{named!r} is not a folder", "Correct the path, or remove it.")
        roots += [base / "src", base] if (base / "src").is_dir() else [base]
    return tuple(dict.fromkeys(roots))


def _add_package_roots(folder: Path, roots: tuple[Path, ...], files: list[ObjectReference]) -> tuple[Path, ...]:
    """Add the folder that contains the package of each file."""
    package_roots = [_find_package_root(folder / one.location) for one in files if one.is_file]
    return tuple(dict.fromkeys([*roots, *(root for root in package_roots if root is not None)]))


def _find_package_root(file: Path) -> Path | None:
    """Return the folder above the outermost package that contains a file. `None` if it is in no package."""
    place = file.resolve().parent
    if not (place / "__init__.py").is_file():
        return None
    while (place / "__init__.py").is_file():
        place = place.parent
    return place


@dataclass(frozen=True, slots=True)
class _TargetFinder:
    """Turns references into modules."""

    file: Path
    roots: tuple[Path, ...]

    def find(self, reference: ObjectReference, key: str) -> str:
        module = self._find_module_of_file(reference, key) if reference.is_file else reference.location
        top = module.partition(".")[0]
        if find_project_package(self.roots, top) is None and find_installed_package(top) is None:
            problem = f"{reference} names the module {module}, which does not exist"
            raise InvalidInput(
                f"{self.file}: {key}", problem, "Correct it, or install its package in the environment of Offing."
            )
        return f"{module}:{reference.variable}"

    def find_embed(self, text: str) -> str:
        """Return the reference of an embedding function. Empty means the name of a model."""
        location, _, variable = text.rpartition(":")
        reference = ObjectReference(location, variable)
        return self.find(reference, "store.index.embed") if reference.is_file or "." in location else ""

    def _find_module_of_file(self, reference: ObjectReference, key: str) -> str:
        path = (self.file.parent / reference.location).resolve()
        if not path.is_file():
            problem = f"there is no file {path} for {reference}"
            raise InvalidInput(f"{self.file}: {key}", problem, "Correct the path, which begins at the configuration.")
        package_root = _find_package_root(path)
        inside = [root for root in self.roots if path.is_relative_to(root)]
        root = package_root or max(inside, key=lambda one: len(one.parts), default=path.parent)
        parts = path.relative_to(root).with_suffix("").parts
        if not all(part.isidentifier() for part in parts) or root not in self.roots:
            problem = f"{path} cannot be imported as a module"
            remedy = "Use names of letters, digits and underscores below a folder that `dependencies` names."
            raise InvalidInput(f"{self.file}: {key}", problem, remedy)
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
