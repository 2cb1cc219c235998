"""The list of graphs outlives one that cannot be drawn."""

from typing import Any

from offing.api.routes.platform import draw_graph
from offing.sdk import Graph


def broken() -> Any:
    raise RuntimeError("no graph")


def test_a_graph_that_cannot_be_built_has_no_diagram() -> None:
    assert draw_graph(Graph("broken", "Broken", "", "1", broken, lambda _: {}, ())).diagram == ""
