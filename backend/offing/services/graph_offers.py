"""What packages and folders offer as graphs and tools, checked and by name. Knows neither files nor versions."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType

from offing.core.errors import InvalidInput
from offing.core.provenance import MCP_PREFIX
from offing.sdk import Graph
from offing.sdk.tool import OwnTool
from offing.services.graph_folders import FIELD, TOOLS, BrokenProject
from offing.tools import reserved

REGISTER = "Register one: graph = offing.langchain.plain_graph(NAME, compiled, code=__file__), or offing.sdk.Graph(…)."


def by_name(
    offers: Mapping[Path, tuple[Graph, ...]], before: Mapping[str, Graph]
) -> tuple[dict[str, Graph], list[BrokenProject]]:
    """Graphs of folders by name. A name that two have means neither, or the one that had it before."""
    places: defaultdict[str, dict[Path, Graph]] = defaultdict(dict)
    twice: list[BrokenProject] = []
    for place, graphs in offers.items():
        for graph in graphs:
            places[graph.name][place] = graph
    named = {name: next(iter(found.values())) for name, found in places.items() if len(found) == 1}
    for name, found in places.items():
        if len(found) > 1:
            problem = f"Two folders have a graph {name!r}: {' and '.join(map(str, found))}"
            twice.append(
                BrokenProject(max(found), InvalidInput(FIELD, problem, "Rename one of them."), frozenset({name}))
            )
            if before.get(name) in found.values():
                named[name] = before[name]
    return named, twice


def graphs_in(name: str, found: object, place: Path, installed: Sequence[Graph]) -> list[Graph]:
    """The graphs that an entry point names: one, or all that are values in a module of its own."""
    if isinstance(found, Graph):
        return [found]
    if not isinstance(found, ModuleType):
        problem = f"{place}: {name} is {type(found).__name__} and no graph"
        raise InvalidInput(FIELD, problem, REGISTER if _is_langgraph(found) else "Name an offing.sdk.Graph.")
    values = dict.fromkeys(value for value in vars(found).values() if isinstance(value, Graph))
    graphs = [graph for graph in values if not any(graph is other for other in installed)]
    if not graphs:
        problem = f"{place} has no graph: none of the values of module {name} is an offing.sdk.Graph"
        raise InvalidInput(FIELD, problem, REGISTER)
    if len({graph.name for graph in graphs}) < len(graphs):
        raise InvalidInput(FIELD, f"{place} has two graphs of one name", "Rename one of them.")
    return graphs


def _is_langgraph(value: object) -> bool:
    return type(value).__module__.partition(".")[0] == "langgraph"


def complete(graph: Graph, tools: Mapping[str, OwnTool]) -> Graph:
    """The graph with its tools as values. Raises InvalidInput for one that nobody offers."""
    if not graph.tools:
        return graph
    lacking = [tool for tool in graph.tools if isinstance(tool, str) and tool not in tools]
    if lacking:
        raise InvalidInput(
            f"{graph.name}.tools", f"There is no tool {lacking[0]!r}", f"Install what offers it in the group {TOOLS}."
        )
    found = tuple(tools[tool] if isinstance(tool, str) else tool for tool in graph.tools)
    checked_tools({tool.spec.name: tool for tool in found})
    return replace(graph, tools=found)


def checked_tools(offers: Mapping[str, object]) -> dict[str, OwnTool]:
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


def with_place(error: InvalidInput, place: Path) -> InvalidInput:
    """The same error, with the folder or file that it is about."""
    said = str(place) in error.problem
    return error if said else InvalidInput(error.field, f"{place}: {error.problem}", error.remedy)
