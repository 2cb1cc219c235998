"""The registry of the graphs of this installation, with the version and the tools of each.

Graphs come from entry points of the group `offing.graphs`, from the settings, and from folders.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import structlog

from offing.core.errors import InvalidInput
from offing.exports.format import FORMATS
from offing.models.engine import ENGINES
from offing.registry import Group, Registry, add_folder
from offing.scorers import SCORERS
from offing.sdk import Graph
from offing.sdk.tool import CustomTool
from offing.services.graph_folders import (
    PATH_OPTION,
    BrokenGraphProject,
    GraphProject,
    find_copied_version,
    graph_names,
    list_projects,
    list_registrations,
    load_entry_points,
)
from offing.services.graph_offers import (
    REGISTRATION_REMEDY,
    add_path,
    collect_graphs,
    index_graphs,
    index_tools,
    resolve_tools,
)
from offing.services.langgraph_graphs import load_langgraph_graphs
from offing.settings import Settings
from offing.tools.environment import extend_graph
from offing.tools.platform_tool import TOOLS
from offing.web.provider import SEARCH_ENGINES

GRAPHS: Registry[Graph] = Registry(
    Group.GRAPHS,
    "a graph",
    accepts=lambda value: isinstance(value, Graph),
    remedy=REGISTRATION_REMEDY,
    name_of=lambda graph: graph.name,
)
"""The graphs of installed packages by name."""

CHECKED_REGISTRIES: tuple[Registry[Any], ...] = (ENGINES, SCORERS, SEARCH_ENGINES, FORMATS)
"""Registries whose values are imported with their folder, so that its author sees at once what is wrong with them."""

POLL_SECONDS = 0.5
"""Minimum seconds between checks of folders that are reloaded."""

log = structlog.get_logger()


class GraphRegistry(Mapping[str, Graph]):
    """Graphs by name, each in its newest version that could be loaded.

    `paths` are folders and files, separated as in PATH. One that cannot be loaded is reported once to
    `on_problem`; its graphs are unavailable and all others are loaded. With `reload`, a folder that changes is
    loaded again for new runs; if that fails, its last good version stays.
    """

    def __init__(
        self,
        installed: Iterable[Graph] = (),
        tools: Mapping[str, CustomTool] | None = None,
        *,
        paths: str = "",
        data_dir: Path | None = None,
        reload: bool = False,
        clock: Callable[[], float] = time.monotonic,
        on_problem: Callable[[str], object] | None = None,
    ) -> None:
        self._tools, self._paths, self._data_dir, self._reload = dict(tools or {}), paths, data_dir, reload
        self._clock, self._polled_at, self._on_problem = clock, float("-inf"), on_problem or _warn
        self._installed = tuple(installed)
        self._from_packages = {graph.name: extend_graph(resolve_tools(graph, self._tools)) for graph in self._installed}
        self._current = dict(self._from_packages)
        self._loaded: dict[str, tuple[Graph, ...]] = {}
        self._last_good: dict[Path, tuple[Graph, ...]] = {}
        """What each path offered when it was last loaded successfully."""
        self._replaced: set[str] = set()
        """Names of the installed graphs that were reported as replaced."""
        self._registered: dict[Path, str] = {}
        """The version of each path whose other values are registered."""
        self.broken: tuple[BrokenGraphProject, ...] = ()
        """Folders and files that currently cannot be used."""
        self._refresh()

    def __getitem__(self, name: str) -> Graph:
        self._refresh()
        return self._current[name]

    def __iter__(self) -> Iterator[str]:
        self._refresh()
        return iter(self._current)

    def __len__(self) -> int:
        return len(self._current)

    @property
    def folder_graph_names(self) -> frozenset[str]:
        """Names of the graphs that folders offer now."""
        return frozenset(name for name, graph in self._current.items() if graph is not self._from_packages.get(name))

    def find_version(self, name: str, version: str) -> Graph | None:
        """Return exactly this version of a graph, even if its folder has a newer one.

        `None` if it is not available.
        """
        self._refresh(force=True)
        graph = self._current.get(name)
        if graph is not None and graph.version == version:
            return graph
        loaded = self._loaded.get(version) or self._load_copied(version)
        return next((graph for graph in loaded if graph.name == name), None)

    def _load_copied(self, version: str) -> tuple[Graph, ...]:
        """Load a version from a copy that an earlier process has made."""
        project = find_copied_version(version, self._data_dir) if self._data_dir else None
        if project is None:
            return ()
        try:
            return self._load(project)
        except InvalidInput as error:
            log.warning("a stored version of a graph cannot be loaded", version=version[:12], reason=str(error))
            return ()

    def _refresh(self, *, force: bool = False) -> None:
        if not self._paths or (self._polled_at > float("-inf") and not self._reload):
            return
        now = self._clock()
        if now - self._polled_at < POLL_SECONDS and not force:
            return
        self._polled_at, before = now, {str(one.error) for one in self.broken}
        offers, broken = self._load_folders()
        named, twice = index_graphs(offers, self._current)
        self.broken = (*broken, *twice)
        lacking = {name for one in self.broken for name in one.graphs} - named.keys()
        self._current = {name: graph for name, graph in (self._from_packages | named).items() if name not in lacking}
        self._report_replaced(named)
        for one in self.broken:
            if str(one.error) not in before:
                self._on_problem(str(one.error))

    def _report_replaced(self, named: Mapping[str, Graph]) -> None:
        """Report each installed graph in whose place a folder's graph is used, once."""
        for name in sorted(named.keys() & self._from_packages.keys() - self._replaced):
            self._replaced.add(name)
            log.warning("the graph of a folder replaces the installed graph of the same name", graph=name)

    @property
    def problem(self) -> str:
        """Why some folders currently cannot be used. Empty if all can be used."""
        return " ".join(str(one.error) for one in self.broken)

    def _load_folders(self) -> tuple[dict[Path, tuple[Graph, ...]], list[BrokenGraphProject]]:
        """Return what each path offers, and the paths that cannot be used. Those offer what they did before."""
        broken: list[BrokenGraphProject] = []
        good: dict[Path, tuple[Graph, ...]] = {}
        for project in list_projects(self._paths):
            try:
                if isinstance(project, BrokenGraphProject):
                    raise project.error
                good[project.path] = self._loaded.get(project.version) or self._load(project)
                self._register(project)
            except InvalidInput as error:
                names = project.graphs if isinstance(project, BrokenGraphProject) else graph_names(project.entry_points)
                broken.append(BrokenGraphProject(project.path, add_path(error, project.path), names))
                if project.path in self._last_good:
                    good[project.path] = self._last_good[project.path]
        self._last_good = good
        return good, broken

    def _register(self, project: GraphProject) -> None:
        """Register what the project provides in addition to graphs. Raises InvalidInput for what cannot be used."""
        assert self._data_dir is not None
        if self._registered.get(project.path) == project.version:
            return
        add_folder(str(project.path), list_registrations(project, self._data_dir))
        for registry in CHECKED_REGISTRIES:
            for name in project.entry_points.get(registry.group, {}):
                registry[name]
        self._registered[project.path] = project.version

    def _load(self, project: GraphProject) -> tuple[Graph, ...]:
        assert self._data_dir is not None
        tools = self._tools | index_tools(load_entry_points(project, self._data_dir, Group.TOOLS))
        graphs = self._collect(project, self._data_dir)
        loaded = tuple(replace(extend_graph(resolve_tools(graph, tools)), version=project.version) for graph in graphs)
        self._loaded[project.version] = loaded
        return loaded

    def _collect(self, project: GraphProject, data_dir: Path) -> Sequence[Graph]:
        if project.langgraph is not None:
            return load_langgraph_graphs(project, data_dir)
        offers = load_entry_points(project, data_dir, Group.GRAPHS).items()
        return [g for name, offer in offers for g in collect_graphs(name, offer, project.path, self._installed)]


@cache
def open_registry(
    extra: str = "",
    paths: str = "",
    data_dir: Path | None = None,
    reload: bool = False,
    on_problem: Callable[[str], object] | None = None,
) -> GraphRegistry:
    """Return the registry of graphs. `extra` names more graphs as `module:name,…`.

    A graph that cannot be imported raises its error here.
    """
    named_here = (EntryPoint(module, module, Group.GRAPHS).load() for module in extra.split(",") if module)
    tools = index_tools({name: tool for name, tool in TOOLS.items() if isinstance(tool, CustomTool)})
    installed = (*GRAPHS.values(), *named_here)
    return GraphRegistry(installed, tools, paths=paths, data_dir=data_dir, reload=reload, on_problem=on_problem)


def open_registry_from_settings(settings: Settings, on_problem: Callable[[str], object] | None = None) -> GraphRegistry:
    """Return the registry of graphs for these settings.

    `on_problem` is called for folders that cannot be used; `None` writes to the log.
    """
    return open_registry(settings.extra_graphs, settings.graph_paths, settings.home, settings.graph_reload, on_problem)


def register_folders(settings: Settings) -> None:
    """Register what the folders of these settings provide in addition to graphs, for commands that use no graphs.

    Unusable folders are logged.
    """
    for one in list_projects(settings.graph_paths):
        try:
            if isinstance(one, BrokenGraphProject):
                raise one.error
            add_folder(str(one.path), list_registrations(one, settings.home))
        except InvalidInput as error:
            _warn(str(add_path(error, one.path)))


def get_graph(graphs: Mapping[str, Graph], name: str) -> Graph:
    """Return the graph of a name.

    Raises InvalidInput for an unknown name, with the problem of a folder that may have it.
    """
    if name in graphs:
        return graphs[name]
    broken = graphs.broken if isinstance(graphs, GraphRegistry) else ()
    for one in broken:
        if name in one.graphs:
            where = "" if one.error.field == PATH_OPTION else f"{one.error.field}: "
            raise InvalidInput("graph", f"{name!r} cannot be used: {where}{one.error.problem}", one.error.remedy)
    unknown = (one.error.problem for one in broken if not one.graphs)
    problem = "; ".join([f"There is no graph {name!r}", *unknown])
    raise InvalidInput("graph", problem, f"Use one of: {', '.join(sorted(graphs))}.")


def find_graph_version(graphs: Mapping[str, Graph], name: str, version: str) -> Graph | None:
    """Return the graph with which a run of this version continues, or `None` if it is not available."""
    if isinstance(graphs, GraphRegistry):
        return graphs.find_version(name, version)
    graph = graphs.get(name)
    return graph if graph is not None and graph.version == version else None


def custom_tools_of(graph: Graph) -> tuple[CustomTool, ...]:
    """Return the custom tools of a graph in the registry."""
    return tuple(tool for tool in graph.tools if isinstance(tool, CustomTool))


def _warn(problem: str) -> None:
    log.warning("a folder of graphs cannot be loaded", reason=problem)
