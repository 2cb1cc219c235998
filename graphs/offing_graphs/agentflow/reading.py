"""What a node reads before it acts: the run's recorded steps and passages as typed values.

Reads only what was recorded before a given turn, so that a node that runs again sees what it saw the first time.
"""

from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel

from offing.sdk import Evidence, RunContext, Step, StepKind
from offing_graphs.agentflow import memory
from offing_graphs.agentflow.extractive import analyst
from offing_graphs.agentflow.shapes import AnalystInput, PastTurn, Verdict
from offing_graphs.agentflow.state import State
from offing_graphs.parts.cards import card_of
from offing_graphs.parts.shapes import Analysis, Card, Exchange, Plan, Record

Output = TypeVar("Output", bound=BaseModel)

WISHES = 20
"""Messages from people that are passed on, the latest."""


@dataclass(frozen=True, slots=True)
class Table:
    """What lies before a node."""

    question: str
    earlier: tuple[Exchange, ...]
    wishes: tuple[str, ...]
    cards: tuple[Card, ...]
    analysis: Analysis
    """As recorded; where the analyst gave none, as it is made without a model."""
    memory: tuple[Record, ...]
    evidence: tuple[Evidence, ...]
    verdict: Verdict | None
    plan_seq: int

    @property
    def found(self) -> bool:
        """There is something to write about: a passage, or a result that is no passage, such as a number."""
        return bool(self.evidence) or any(r.value for r in self.memory)

    def case(self) -> dict[str, Any]:
        """The fields that every role is given."""
        return {"question": self.question, "earlier": self.earlier, "wishes": self.wishes}

    async def plan(self, ctx: RunContext) -> Plan:
        """This turn's plan."""
        return output_of((await ctx.fetch([self.plan_seq]))[0], Plan)


async def read(ctx: RunContext, state: State, *, before: int | None = None, heard: int | None = None) -> Table:
    """Everything recorded before turn `before`. None: everything.

    `heard`: messages up to this step. None: as the state says.
    """
    limit = state["heard"] if heard is None else heard
    messages = await ctx.messages(0)
    wishes = tuple(_text(m) for m in messages if m.seq <= limit)[-WISHES:]
    earlier = tuple(Exchange(question=q, answer=a) for q, a in ctx.run.earlier)
    remembered = memory.records(await ctx.recall(StepKind.MEMORY, memory.KEPT)) if state["turn"] else ()
    cards = tuple(map(card_of, ctx.tools))
    case = AnalystInput(question=ctx.run.question, earlier=earlier, wishes=wishes, tools=cards)
    return Table(
        question=ctx.run.question,
        earlier=earlier,
        wishes=wishes,
        cards=cards,
        analysis=await _recorded(ctx, state["analysis"], Analysis) or analyst(case),
        memory=tuple(r for r in remembered if before is None or r.turn < before),
        evidence=await ctx.evidence(memory.SEEN) if state["turn"] else (),
        verdict=await _recorded(ctx, state["verdict"], Verdict),
        plan_seq=state["plan"],
    )


async def planned(ctx: RunContext, before: int) -> tuple[PastTurn, ...]:
    """What the planner said before turn `before`, as far back as memory is read."""
    steps = await ctx.recall(StepKind.PLAN, memory.KEPT) if before > 1 else ()
    return tuple(PastTurn(seq=s.seq, turn=s.turn, plan=output_of(s, Plan)) for s in steps if s.turn < before)


def output_of(step: Step, shape: type[Output]) -> Output:
    """A role's recorded answer."""
    return shape.model_validate(step.payload.get("output", step.payload))


async def _recorded(ctx: RunContext, seq: int, shape: type[Output]) -> Output | None:
    return output_of((await ctx.fetch([seq]))[0], shape) if seq else None


def _text(message: Step) -> str:
    return str(message.payload.get("text") or message.title)
