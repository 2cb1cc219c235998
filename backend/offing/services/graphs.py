"""Which graphs this installation has: entry points of the group `offing.graphs`, those that the settings name, and
those in folders. The only home of which version of a graph a run gets, and of which tools come with it."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

import structlog

from offing import scorers
from offing.core.errors import InvalidInput
from offing.sdk import Graph
from offing.sdk.tool import OwnTool
from offing.services.graph_folders import (
    GRAPHS,
    SCORERS,
    TOOLS,
    BrokenProject,
    Project,
    graph_names,
    kept_version,
    offered,
    projects,
)
from offing.services.graph_offers import by_name, checked_tools, complete, graphs_in, with_place
from offing.settings import Settings

GROUP = GRAPHS

LOOK_PAUSE = 0.5
"""Seconds between looks at folders that are reloaded."""

log = structlog.get_logger()


class Catalogue(Mapping[str, Graph]):
    """Graphs by name, each in its newest version that could be loaded.

    `paths`: folders and files, separated as in PATH. One that cannot be loaded is told once to `tell` and keeps nothing
    else from being loaded; its graphs cannot be had. `reloads`: a folder that changes is loaded anew for new runs, and
    one that cannot be loaded stays as it last was.
    """

    def __init__(
        self,
        installed: Iterable[Graph] = (),
        tools: Mapping[str, OwnTool] | None = None,
        *,
        paths: str = "",
        home: Path | None = None,
        reloads: bool = False,
        monotonic: Callable[[], float] = time.monotonic,
        tell: Callable[[str], object] | None = None,
    ) -> None:
        self._tools, self._paths, self._home, self._reloads = dict(tools or {}), paths, home, reloads
        self._monotonic, self._looked, self._tell = monotonic, float("-inf"), tell or _warn
        self._installed = tuple(installed)
        self._fixed = {graph.name: complete(graph, self._tools) for graph in self._installed}
        self._now = dict(self._fixed)
        self._loaded: dict[str, tuple[Graph, ...]] = {}
        self._good: dict[Path, tuple[Graph, ...]] = {}
        """What each place offered when it could be loaded last."""
        self.broken: tuple[BrokenProject, ...] = ()
        """Folders and files that cannot be used as they are now."""
        self._look()

    def __getitem__(self, name: str) -> Graph:
        self._look()
        return self._now[name]

    def __iter__(self) -> Iterator[str]:
        self._look()
        return iter(self._now)

    def __len__(self) -> int:
        return len(self._now)

    @property
    def in_folders(self) -> frozenset[str]:
        """Names of the graphs that folders offer now."""
        return frozenset(name for name, graph in self._now.items() if graph is not self._fixed.get(name))

    def at(self, name: str, version: str) -> Graph | None:
        """The graph in just this version, also one that its folder has left behind. None: it is not here."""
        self._look(at_once=True)
        graph = self._now.get(name)
        if graph is not None and graph.version == version:
            return graph
        known = self._loaded.get(version) or self._again(version)
        return next((graph for graph in known if graph.name == name), None)

    def _again(self, version: str) -> tuple[Graph, ...]:
        """Of a copy that an earlier process has kept."""
        found = kept_version(version, self._home) if self._home else None
        if found is None:
            return ()
        try:
            return self._load(found)
        except InvalidInput as error:
            log.warning("a kept version of a graph cannot be loaded", version=version[:12], reason=str(error))
            return ()

    def _look(self, *, at_once: bool = False) -> None:
        if not self._paths or (self._looked > float("-inf") and not self._reloads):
            return
        now = self._monotonic()
        if now - self._looked < LOOK_PAUSE and not at_once:
            return
        self._looked, before = now, {str(one.error) for one in self.broken}
        offers, broken = self._offers()
        named, twice = by_name(offers, self._now)
        self.broken = (*broken, *twice)
        lacking = {name for one in self.broken for name in one.graphs} - named.keys()
        self._now = {name: graph for name, graph in (self._fixed | named).items() if name not in lacking}
        for one in self.broken:
            if str(one.error) not in before:
                self._tell(str(one.error))

    @property
    def problem(self) -> str:
        """Why some folders cannot be used as they are now. Empty: all can."""
        return " ".join(str(one.error) for one in self.broken)

    def _offers(self) -> tuple[dict[Path, tuple[Graph, ...]], list[BrokenProject]]:
        """What each place offers, and which cannot be used; those offer what they did before."""
        broken: list[BrokenProject] = []
        good: dict[Path, tuple[Graph, ...]] = {}
        for found in projects(self._paths):
            try:
                if isinstance(found, BrokenProject):
                    raise found.error
                good[found.place] = self._loaded.get(found.version) or self._load(found)
            except InvalidInput as error:
                names = found.graphs if isinstance(found, BrokenProject) else graph_names(found.points)
                broken.append(BrokenProject(found.place, with_place(error, found.place), names))
                if found.place in self._good:
                    good[found.place] = self._good[found.place]
        self._good = good
        return good, broken

    def _load(self, found: Project) -> tuple[Graph, ...]:
        assert self._home is not None
        tools = self._tools | checked_tools(offered(found, self._home, TOOLS))
        offers = offered(found, self._home, GRAPHS).items()
        graphs = [g for name, offer in offers for g in graphs_in(name, offer, found.place, self._installed)]
        scorers.take(offered(found, self._home, SCORERS))
        loaded = tuple(replace(complete(graph, tools), version=found.version) for graph in graphs)
        self._loaded[found.version] = loaded
        return loaded


@cache
def installed(
    more: str = "",
    paths: str = "",
    home: Path | None = None,
    reloads: bool = False,
    tell: Callable[[str], object] | None = None,
) -> Catalogue:
    """Graphs by name; `more` names others as `module:name,…`. One that cannot be imported fails here, loudly."""
    named_here = (EntryPoint(place, place, GROUP) for place in more.split(",") if place)
    points = (*entry_points(group=GROUP), *named_here)
    tools = checked_tools({point.name: point.load() for point in entry_points(group=TOOLS)})
    return Catalogue((point.load() for point in points), tools, paths=paths, home=home, reloads=reloads, tell=tell)


def available(settings: Settings, tell: Callable[[str], object] | None = None) -> Catalogue:
    """Graphs as a process with these settings has them. `tell` hears of folders that cannot be used. None: the log."""
    return installed(settings.graphs, settings.graph_paths, settings.home, settings.graph_reload, tell)


def in_folders(settings: Settings, group: str) -> tuple[object, ...]:
    """What the folders of these settings offer in a group. One that cannot be used is told in the log."""
    found: list[object] = []
    for one in projects(settings.graph_paths):
        try:
            if isinstance(one, BrokenProject):
                raise one.error
            found += offered(one, settings.home, group).values()
        except InvalidInput as error:
            _warn(str(with_place(error, one.place)))
    return tuple(found)


def named(graphs: Mapping[str, Graph], name: str) -> Graph:
    """Raises InvalidInput for a name that no graph has, with what is wrong with the folder that may have it."""
    if name in graphs:
        return graphs[name]
    broken = graphs.broken if isinstance(graphs, Catalogue) else ()
    for one in broken:
        if name in one.graphs:
            raise InvalidInput("graph", f"{name!r} cannot be used: {one.error.problem}", one.error.remedy)
    unknown = (one.error.problem for one in broken if not one.graphs)
    problem = "; ".join([f"There is no graph {name!r}", *unknown])
    raise InvalidInput("graph", problem, f"Use one of: {', '.join(sorted(graphs))}.")


def at_version(graphs: Mapping[str, Graph], name: str, version: str) -> Graph | None:
    """The graph that a run of this version goes on with. None: it is not here."""
    if isinstance(graphs, Catalogue):
        return graphs.at(name, version)
    graph = graphs.get(name)
    return graph if graph is not None and graph.version == version else None


def own_tools(graph: Graph) -> tuple[OwnTool, ...]:
    """The tools that come with a graph of a catalogue."""
    return tuple(tool for tool in graph.tools if isinstance(tool, OwnTool))


def _warn(problem: str) -> None:
    log.warning("a folder of graphs cannot be used", reason=problem)
