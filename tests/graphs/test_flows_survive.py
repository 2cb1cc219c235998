"""Flows built with the SDK alone lose their worker at each moment, and end as if they had not."""

import pytest

from offing.core.run import Budget
from offing.sdk import Graph
from offing.testing import survives
from offing_graphs.research_team import graph as research_team
from offing_graphs.router import graph as router

GULLS = """# Gulls

Gulls nest on cliffs. A gull lays three eggs in May.

## Food

Gulls eat fish and crabs.
"""

DOCUMENTS = {"gulls.md": GULLS, "terns.md": "# Terns\n\nA tern lays two eggs in June. Terns eat small fish.\n"}


@pytest.mark.parametrize(("graph", "question"), [
    (router, "How many eggs does a gull lay?"),
    (router, "What is a puffin afraid of?"),
    (research_team, "What do gulls eat and when does a tern lay eggs?"),
])  # fmt: skip
async def test_a_flow_ends_the_same_wherever_its_worker_is_lost(graph: Graph, question: str) -> None:
    whole = await survives(graph, question, documents=DOCUMENTS, budget=Budget(turns=3))
    assert whole.report is not None
    assert whole.moments > 5
