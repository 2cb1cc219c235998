"""Which graphs this installation has: entry points of the group `offing.graphs`, and those that the settings name."""

from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from offing.core.errors import InvalidInput
from offing.sdk import Graph

GROUP = "offing.graphs"


@cache
def installed(more: str = "") -> Mapping[str, Graph]:
    """Graphs by name; `more` names others as `module:name,…`. One that cannot be imported fails here, loudly."""
    named_here = (EntryPoint(place, place, GROUP) for place in more.split(",") if place)
    points = (*entry_points(group=GROUP), *named_here)
    return {graph.name: graph for graph in (point.load() for point in points)}


def named(graphs: Mapping[str, Graph], name: str) -> Graph:
    if name not in graphs:
        raise InvalidInput("graph", f"There is no graph {name!r}", f"Use one of: {', '.join(sorted(graphs))}.")
    return graphs[name]
