"""What a node reads before it acts: the question it works on, and what was recorded and not set aside.

Reads only what was recorded before a given turn, so that a node that runs again sees what it saw the first time.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from offing.sdk import RunContext, Step, StepKind
from offing_graphs.agentflow import memory
from offing_graphs.agentflow.extractive import analyst
from offing_graphs.agentflow.reading import WISHES, output_of
from offing_graphs.agentflow.shapes import AnalystInput, PastTurn, Verdict
from offing_graphs.parts.cards import card_of
from offing_graphs.parts.findings import pieces
from offing_graphs.parts.judge import judgements, sifted
from offing_graphs.parts.shapes import Analysis, Card, Exchange, Piece, Plan, Record
from offing_graphs.research_team.state import State

COMMENTS = 8
"""Words on plans that are read back."""


@dataclass(frozen=True, slots=True)
class Table:
    """What lies before a node."""

    question: str
    """The part that is worked on, or the run's question."""
    earlier: tuple[Exchange, ...]
    wishes: tuple[str, ...]
    cards: tuple[Card, ...]
    analysis: Analysis
    """Of that question."""
    parts: tuple[str, ...]
    """Of the run's question."""
    memory: tuple[Record, ...]
    evidence: tuple[Piece, ...]
    verdict: Verdict | None

    @property
    def found(self) -> bool:
        """There is something to write about."""
        return bool(self.evidence) or any(r.value for r in self.memory)

    def case(self) -> dict[str, Any]:
        """The fields that every role is given."""
        return {"question": self.question, "earlier": self.earlier, "wishes": self.wishes}

    def seen(self) -> dict[str, Any]:
        """The same with what was found."""
        return self.case() | {"analysis": self.analysis, "memory": self.memory, "evidence": self.evidence}


async def read(ctx: RunContext, state: State, *, before: int | None = None, heard: int | None = None) -> Table:
    """Everything recorded before turn `before`, and not set aside. None: everything.

    `heard`: messages up to this step. None: as the state says.
    """
    limit = state["heard"] if heard is None else heard
    wishes = [_text(m) for m in await ctx.messages(0) if m.seq <= limit]
    wishes += [str(step.payload["comment"]) for step in await ctx.recall(StepKind.NOTE, COMMENTS) if _comments(step)]
    earlier = tuple(Exchange(question=q, answer=a) for q, a in ctx.run.earlier)
    cards = tuple(map(card_of, ctx.tools))
    heard_of = tuple(wishes)[-WISHES:]
    case = AnalystInput(question=ctx.run.question, earlier=earlier, wishes=heard_of, tools=cards)
    analysis = await _planned(ctx, state) or analyst(case)
    records, evidence = await _found(ctx, before) if state["turn"] else ((), ())
    verdict = output_of((await ctx.fetch([state["verdict"]]))[0], Verdict) if state["verdict"] else None
    parts = analysis.sub_questions
    return Table(ctx.run.question, earlier, heard_of, cards, analysis, parts, records, evidence, verdict)


def of_part(table: Table, state: State) -> Table:
    """The same for whoever works on the current part alone. The whole question stays as it is."""
    if state["part"] >= len(table.parts):
        return table
    part = table.parts[state["part"]]
    own = tuple(r for r in table.memory if r.turn > state["since"])
    return replace(table, question=part, analysis=Analysis(summary=part, sub_questions=(part,)), memory=own)


async def past(ctx: RunContext, state: State, before: int) -> tuple[PastTurn, ...]:
    """What the planner said of this part before turn `before`, as far back as memory is read."""
    steps = await ctx.recall(StepKind.PLAN, memory.KEPT) if before > 1 else ()
    ours = (s for s in steps if state["since"] < s.turn < before)
    return tuple(PastTurn(seq=s.seq, turn=s.turn, plan=output_of(s, Plan)) for s in ours)


async def _planned(ctx: RunContext, state: State) -> Analysis | None:
    """The plan as it now stands. None: there is none."""
    return output_of((await ctx.fetch([state["analysis"]]))[0], Analysis) if state["analysis"] else None


async def _found(ctx: RunContext, before: int | None) -> tuple[tuple[Record, ...], tuple[Piece, ...]]:
    """Records and passages without what was set aside."""
    recorded: Sequence[Record] = memory.records(await ctx.recall(StepKind.MEMORY, memory.KEPT))
    recorded = [r for r in recorded if before is None or r.turn < before]
    shown, out = sifted(recorded, await judgements(ctx, before or 1_000_000_000))
    return shown, tuple(p for p in pieces(await ctx.evidence(memory.SEEN)) if p.id not in out)


def _comments(step: Step) -> bool:
    """A person's words on a plan."""
    return "comment" in step.payload


def _text(message: Step) -> str:
    return str(message.payload.get("text") or message.title)
