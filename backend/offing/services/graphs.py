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
from offing.core.provenance import MCP_PREFIX
from offing.sdk import Graph
from offing.sdk.tool import OwnTool
from offing.services.graph_folders import GRAPHS, SCORERS, TOOLS, Project, kept_version, offered, projects
from offing.settings import Settings
from offing.tools import reserved

GROUP = GRAPHS

LOOK_PAUSE = 0.5
"""Seconds between looks at folders that are reloaded."""

log = structlog.get_logger()


class Catalogue(Mapping[str, Graph]):
    """Graphs by name, each in its newest version that could be loaded.

    `paths`: folders, separated as in PATH. `reloads`: a folder that changes is loaded anew for new runs, and one that
    cannot be loaded stays as it last was.
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
    ) -> None:
        self._tools, self._paths, self._home, self._reloads = dict(tools or {}), paths, home, reloads
        self._monotonic, self._looked = monotonic, float("-inf")
        self._fixed = {graph.name: _complete(graph, self._tools) for graph in installed}
        self._now = dict(self._fixed)
        self._loaded: dict[str, tuple[Graph, ...]] = {}
        self._told = ""
        self.problem = ""
        """Why the folders cannot be used as they are now. Empty: they can."""
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
        self._looked = now
        try:
            self._now, self.problem = self._fixed | self._in_folders(), ""
        except InvalidInput as error:
            if not self._reloads:
                raise
            self.problem = str(error)
        if self.problem and self.problem != self._told:
            log.warning("graphs stay as they were", reason=self.problem)
        self._told = self.problem

    def _in_folders(self) -> dict[str, Graph]:
        named: dict[str, Graph] = {}
        for found in projects(self._paths):
            for graph in self._loaded.get(found.version) or self._load(found):
                if graph.name in named:
                    raise InvalidInput("--path", f"Two folders have a graph {graph.name!r}", "Rename one of them.")
                named[graph.name] = graph
        return named

    def _load(self, found: Project) -> tuple[Graph, ...]:
        assert self._home is not None
        tools = self._tools | _checked_tools(offered(found, self._home, TOOLS))
        graphs = offered(found, self._home, GRAPHS).items()
        scorers.take(offered(found, self._home, SCORERS))
        loaded = tuple(replace(_complete(_graph(n, g), tools), version=found.version) for n, g in graphs)
        self._loaded[found.version] = loaded
        return loaded


@cache
def installed(more: str = "", paths: str = "", home: Path | None = None, reloads: bool = False) -> Catalogue:
    """Graphs by name; `more` names others as `module:name,…`. One that cannot be imported fails here, loudly."""
    named_here = (EntryPoint(place, place, GROUP) for place in more.split(",") if place)
    points = (*entry_points(group=GROUP), *named_here)
    tools = _checked_tools({point.name: point.load() for point in entry_points(group=TOOLS)})
    return Catalogue((point.load() for point in points), tools, paths=paths, home=home, reloads=reloads)


def available(settings: Settings) -> Catalogue:
    """Graphs as a process with these settings has them."""
    return installed(settings.graphs, settings.graph_paths, settings.home, settings.graph_reload)


def in_folders(settings: Settings, group: str) -> tuple[object, ...]:
    """What the folders of these settings offer in a group."""
    found = projects(settings.graph_paths)
    return tuple(offer for one in found for offer in offered(one, settings.home, group).values())


def named(graphs: Mapping[str, Graph], name: str) -> Graph:
    if name not in graphs:
        raise InvalidInput("graph", f"There is no graph {name!r}", f"Use one of: {', '.join(sorted(graphs))}.")
    return graphs[name]


def at_version(graphs: Mapping[str, Graph], name: str, version: str) -> Graph | None:
    """The graph that a run of this version goes on with. None: it is not here."""
    if isinstance(graphs, Catalogue):
        return graphs.at(name, version)
    graph = graphs.get(name)
    return graph if graph is not None and graph.version == version else None


def own_tools(graph: Graph) -> tuple[OwnTool, ...]:
    """The tools that come with a graph of a catalogue."""
    return tuple(tool for tool in graph.tools if isinstance(tool, OwnTool))


def _graph(name: str, found: object) -> Graph:
    if not isinstance(found, Graph):
        raise InvalidInput("--path", f"{name} is {type(found).__name__} and no graph", "Name an offing.sdk.Graph.")
    return found


def _complete(graph: Graph, tools: Mapping[str, OwnTool]) -> Graph:
    """The graph with its tools as values. Raises InvalidInput for one that nobody offers."""
    if not graph.tools:
        return graph
    lacking = [tool for tool in graph.tools if isinstance(tool, str) and tool not in tools]
    if lacking:
        raise InvalidInput(
            f"{graph.name}.tools", f"There is no tool {lacking[0]!r}", f"Install what offers it in the group {TOOLS}."
        )
    found = tuple(tools[tool] if isinstance(tool, str) else tool for tool in graph.tools)
    _checked_tools({tool.spec.name: tool for tool in found})
    return replace(graph, tools=found)


def _checked_tools(offers: Mapping[str, object]) -> dict[str, OwnTool]:
    """Offers by the tools' own names. Raises InvalidInput for what is no tool or has a name of the platform's."""
    found: dict[str, OwnTool] = {}
    for name, offer in offers.items():
        if not isinstance(offer, OwnTool):
            raise InvalidInput(
                TOOLS, f"{name} is {type(offer).__name__} and no tool", "Make it with `offing.sdk.tool`."
            )
        if offer.spec.name in reserved() or offer.spec.name.startswith(MCP_PREFIX):
            raise InvalidInput(TOOLS, f"{offer.spec.name!r} is a tool of the platform's", "Give it another name.")
        found[offer.spec.name] = offer
    return found
