"""Every graph loses its worker at each moment, ends as if it had not, and keeps plain values in its state."""

from collections.abc import Iterator

import pytest
from langgraph.checkpoint.serde.event_hooks import SerdeEvent, register_serde_event_listener

from offing.core.run import Budget
from offing.sdk import Graph
from offing.testing import assert_survives_worker_loss
from offing_graphs.agentflow import graph as agentflow
from offing_graphs.hiper import graph as hiper
from offing_graphs.iterresearch import graph as iterresearch
from offing_graphs.memact import graph as memact
from offing_graphs.memact import supo
from offing_graphs.research_team import graph as research_team
from offing_graphs.router import graph as router

GULLS = """# Gulls

Gulls nest on cliffs. A gull lays three eggs in May.

## Food

Gulls eat fish and crabs.
"""

DOCUMENTS = {"gulls.md": GULLS, "terns.md": "# Terns\n\nA tern lays two eggs in June. Terns eat small fish.\n"}

EGGS = "How many eggs does a gull lay?"


@pytest.fixture
def blocked() -> Iterator[list[SerdeEvent]]:
    """What LangGraph's serializer did not load as it was stored."""
    events: list[SerdeEvent] = []
    stop = register_serde_event_listener(events.append)
    yield events
    stop()


@pytest.mark.parametrize(("graph", "question"), [
    (router, EGGS),
    (router, "What is a puffin afraid of?"),
    (research_team, "What do gulls eat and when does a tern lay eggs?"),
    *((graph, EGGS) for graph in (agentflow, iterresearch, memact, supo, hiper)),
])  # fmt: skip
async def test_a_graph_ends_the_same_wherever_its_worker_crashes(
    graph: Graph, question: str, blocked: list[SerdeEvent]
) -> None:
    whole = await assert_survives_worker_loss(graph, question, documents=DOCUMENTS, budget=Budget(max_turns=3))
    assert whole.report is not None
    assert whole.loss_points > 5
    assert blocked == []
