"""Collect the graphs and tools that packages and folders offer, check them and index them by name."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType

from offing.core.errors import InvalidInput
from offing.core.provenance import MCP_PREFIX
from offing.registry import Group
from offing.sdk import Graph
from offing.sdk.tool import CustomTool
from offing.services.graph_folders import PATH_OPTION, BrokenGraphProject
from offing.tools import reserved_tool_names

REGISTRATION_REMEDY = (
    "Register one: graph = offing.langchain.register_langgraph(NAME, compiled, code_path=__file__), "
    "or offing.sdk.Graph(…)."
)


def index_graphs(
    offers: Mapping[Path, tuple[Graph, ...]], previous: Mapping[str, Graph]
) -> tuple[dict[str, Graph], list[BrokenGraphProject]]:
    """Index the graphs of folders by name.

    If two folders have a graph of the same name, neither is used, except the one that had the name before.
    """
    graphs_by_name: defaultdict[str, dict[Path, Graph]] = defaultdict(dict)
    twice: list[BrokenGraphProject] = []
    for origin, graphs in offers.items():
        for graph in graphs:
            graphs_by_name[graph.name][origin] = graph
    named = {name: next(iter(offering.values())) for name, offering in graphs_by_name.items() if len(offering) == 1}
    for name, by_origin in graphs_by_name.items():
        if len(by_origin) > 1:
            problem = f"Two folders have a graph named {name!r}: {' and '.join(map(str, by_origin))}"
            twice.append(
                BrokenGraphProject(
                    max(by_origin), InvalidInput(PATH_OPTION, problem, "Rename one of them."), frozenset({name})
                )
            )
            if previous.get(name) in by_origin.values():
                named[name] = previous[name]
    return named, twice


def collect_graphs(name: str, entry_value: object, path: Path, installed: Sequence[Graph]) -> list[Graph]:
    """Return the graphs of an entry point: a single one, or all that are values in the named module."""
    if isinstance(entry_value, Graph):
        return [entry_value]
    if not isinstance(entry_value, ModuleType):
        problem = f"{path}: {name} is of type {type(entry_value).__name__}, not a graph"
        raise InvalidInput(
            PATH_OPTION, problem, REGISTRATION_REMEDY if _is_langgraph(entry_value) else "Use an offing.sdk.Graph."
        )
    values = dict.fromkeys(value for value in vars(entry_value).values() if isinstance(value, Graph))
    graphs = [graph for graph in values if not any(graph is other for other in installed)]
    if not graphs:
        problem = f"{path} has no graph: module {name} contains no offing.sdk.Graph"
        raise InvalidInput(PATH_OPTION, problem, REGISTRATION_REMEDY)
    if len({graph.name for graph in graphs}) < len(graphs):
        raise InvalidInput(PATH_OPTION, f"{path} has two graphs with the same name", "Rename one of them.")
    return graphs


def _is_langgraph(value: object) -> bool:
    return type(value).__module__.partition(".")[0] == "langgraph"


def resolve_tools(graph: Graph, tools: Mapping[str, CustomTool]) -> Graph:
    """Return the graph with its tools as values. Raises InvalidInput for a tool that nothing offers."""
    if not graph.tools:
        return graph
    lacking = [tool for tool in graph.tools if isinstance(tool, str) and tool not in tools]
    if lacking:
        raise InvalidInput(
            f"{graph.name}.tools",
            f"there is no tool {lacking[0]!r}",
            f"Install a package that registers it in the entry point group {Group.TOOLS}.",
        )
    resolved = tuple(tools[tool] if isinstance(tool, str) else tool for tool in graph.tools)
    index_tools({tool.spec.name: tool for tool in resolved})
    return replace(graph, tools=resolved)


def index_tools(offers: Mapping[str, object]) -> dict[str, CustomTool]:
    """Index custom tools by their names. Raises InvalidInput for other values and for names of built-in tools."""
    tools: dict[str, CustomTool] = {}
    for name, offer in offers.items():
        if not isinstance(offer, CustomTool):
            raise InvalidInput(
                Group.TOOLS,
                f"{name} is of type {type(offer).__name__}, not a tool",
                "Create it with `offing.sdk.tool`.",
            )
        if offer.spec.name in reserved_tool_names() or offer.spec.name.startswith(MCP_PREFIX):
            raise InvalidInput(
                Group.TOOLS, f"{offer.spec.name!r} is the name of a built-in tool", "Choose another name."
            )
        tools[offer.spec.name] = offer
    return tools


def add_path(error: InvalidInput, path: Path) -> InvalidInput:
    """Return the same error with the folder or file that it concerns."""
    names_path = str(path) in error.problem
    return error if names_path else InvalidInput(error.field, f"{path}: {error.problem}", error.remedy)
