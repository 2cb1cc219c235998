"""Builders for trying HiPER: runs over a small library, turns as an agent says them, records as a run leaves them."""

from typing import Any

from offing.core.step import StepKind
from offing.sdk import ReportDraft
from offing_graphs.hiper.schemas import Action, Switch, Turn, TurnRecord
from tests.graphs.corpus import harbour
from tests.graphs.in_memory_context import Engine, InMemoryContext

QUESTION = "How often is the tide gauge calibrated?"
SEARCH = Action(tool="search_library", args={"query": "tide gauge"})
ANSWER = Action(tool="answer", report=ReportDraft(title="T", answer="So.", sections=()))


def run(question: str = QUESTION, **more: Any) -> InMemoryContext:
    return InMemoryContext(harbour(), question, **more)


def says(*turns: Turn) -> Engine:
    """An agent that answers these, then the last again and again."""
    left = list(turns)
    return lambda _inputs: left.pop(0) if len(left) > 1 else left[0]


def keep(subgoal: str = "", action: Action = SEARCH) -> Turn:
    return Turn(switch=Switch.KEEP, subgoal=subgoal, action=action)


def switch(subgoal: str, action: Action = SEARCH) -> Turn:
    return Turn(switch=Switch.SWITCH, subgoal=subgoal, action=action)


def records(ctx: InMemoryContext) -> list[TurnRecord]:
    return [TurnRecord.model_validate(s.payload) for s in ctx.steps if s.kind is StepKind.MEMORY]
