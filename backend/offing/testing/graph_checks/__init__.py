"""Static and simulated checks of a graph: its state, its code, its components, and a simulated run."""

from typing import Any

from offing.core.errors import InvalidInput
from offing.sdk import Graph
from offing.services.graphs import GraphRegistry
from offing.testing.graph_checks.adapter_code import find_adapter_code_issues
from offing.testing.graph_checks.adapter_input import find_adapter_input_issues
from offing.testing.graph_checks.compile_options import find_compile_issues
from offing.testing.graph_checks.determinism import find_determinism_issues
from offing.testing.graph_checks.foreign_models import find_model_issues
from offing.testing.graph_checks.issue import ERROR, WARNING, GraphIssue
from offing.testing.graph_checks.node_returns import find_return_issues
from offing.testing.graph_checks.reachable_values import GraphWalk
from offing.testing.graph_checks.side_effects import find_side_effect_issues
from offing.testing.graph_checks.simulation_checks import find_simulation_issues
from offing.testing.graph_checks.state_keys import find_state_issues
from offing.testing.graph_checks.state_types import find_type_issues
from offing.testing.graph_checks.state_upgrade import find_upgrade_issues

__all__ = ["ERROR", "WARNING", "GraphIssue", "find_graph_issues"]


async def find_graph_issues(graph: Graph) -> tuple[GraphIssue, ...]:
    """Return the issues of a graph, errors first.

    If the graph cannot be built, it is not checked further.
    """
    try:
        compiled: Any = graph.build().compile()
        compiled.get_graph()
    except Exception as error:  # the code of an author may raise any exception, and it is reported as an issue
        return (_build_failure(graph, error),)
    whole, walk = GraphRegistry([graph])[graph.name], GraphWalk(compiled)
    issues = [*find_model_issues(whole, walk), *find_compile_issues(whole, walk), *find_type_issues(whole, walk)]
    issues += [*find_return_issues(walk), *find_side_effect_issues(whole, walk), *find_upgrade_issues(whole)]
    if whole.langgraph_adapter is not None:
        issues += [*find_adapter_input_issues(whole, compiled), *find_adapter_code_issues(walk)]
    else:
        issues += [*find_state_issues(whole), *find_determinism_issues(whole), *await find_simulation_issues(whole)]
    return tuple(sorted(dict.fromkeys(issues), key=lambda f: (f.level != ERROR, f.rule, f.location)))


def _build_failure(graph: Graph, error: Exception) -> GraphIssue:
    if isinstance(error, InvalidInput):
        return GraphIssue(ERROR, "build", graph.name, f"The graph cannot be built: {error.problem}.", error.remedy)
    why = f"The graph cannot be built: {type(error).__name__}: {error}."
    return GraphIssue(ERROR, "build", graph.name, why, "Correct `build`.")
