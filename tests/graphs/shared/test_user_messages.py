"""When a run reads a message: in the first turn that begins after it was sent, and a step says so."""

from typing import Any

import pytest

from offing.core.run import Budget
from offing.core.step import StepKind
from offing.sdk import Graph
from offing.testing import assert_survives_worker_loss, simulate_run
from offing_graphs.agentflow import graph as agentflow
from offing_graphs.agentflow.extractive import plan_next_step
from offing_graphs.agentflow.schemas import PlannerInput
from offing_graphs.hiper import graph as hiper
from offing_graphs.iterresearch import graph as iterresearch
from offing_graphs.memact import graph as memact
from offing_graphs.research_team import graph as research_team
from offing_graphs.shared.task import MESSAGE_READ
from tests.graphs.agentflow.test_outline import DOCUMENTS, QUESTION

MESSAGE = "Look at terns, too."


@pytest.mark.parametrize("after_steps", range(2, 9))
async def test_the_first_plan_of_a_turn_that_begins_after_a_message_has_it_and_a_step_says_so(after_steps: int) -> None:
    seen: list[PlannerInput] = []

    def planner(inputs: PlannerInput) -> Any:
        seen.append(inputs)
        return plan_next_step(inputs)

    run = await simulate_run(
        agentflow,
        QUESTION,
        documents=DOCUMENTS,
        budget=Budget(max_turns=4),
        answers={"planner": planner},
        user_messages={after_steps: MESSAGE},
    )
    (message,) = run.list_steps(StepKind.USER_MESSAGE)
    (note,) = [step for step in run.list_steps(StepKind.NOTE) if step.label == MESSAGE_READ]
    assert (note.payload, note.detail) == ({"messages": [message.seq]}, f"step {message.seq}")
    plans = run.list_steps(StepKind.PLAN)
    read = [plan.seq > note.seq for plan in plans]
    assert [inputs.user_messages == (MESSAGE,) for inputs in seen] == read
    # The plan that was being made when the message came is the only one that may lack it.
    assert sum(plan.seq > message.seq for plan in plans) - sum(read) <= 1


@pytest.mark.parametrize("graph", [hiper, iterresearch, memact, research_team], ids=lambda one: one.name)
async def test_every_graph_says_that_it_read_a_message(graph: Graph) -> None:
    run = await simulate_run(
        graph, QUESTION, documents=DOCUMENTS, budget=Budget(max_turns=4), user_messages={3: MESSAGE}
    )
    (message,) = run.list_steps(StepKind.USER_MESSAGE)
    (note,) = [step for step in run.list_steps(StepKind.NOTE) if step.label == MESSAGE_READ]
    assert note.payload["messages"] == [message.seq]


async def test_a_crash_repeats_no_note() -> None:
    run = await assert_survives_worker_loss(
        agentflow, QUESTION, documents=DOCUMENTS, budget=Budget(max_turns=4), user_messages={3: MESSAGE}
    )
    assert [step.label for step in run.list_steps(StepKind.NOTE)].count(MESSAGE_READ) == 1
