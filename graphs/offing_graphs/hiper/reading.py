"""What a node reads before it acts, and what it leaves: the run's turns as records, passages, people's messages.

Reads only what was recorded before a given turn, so that a node that runs again sees what it saw the first time.
"""

from collections.abc import Sequence

from offing.sdk import Evidence, RunContext, Step, StepDraft, StepKind, ToolResult, shortened
from offing_graphs.hiper.roles import AGENT
from offing_graphs.hiper.segments import placed
from offing_graphs.hiper.shapes import AgentInput, PastTurn, Turn, TurnRecord
from offing_graphs.hiper.state import State
from offing_graphs.parts.cards import card_of
from offing_graphs.parts.findings import brought_back, finding, pieces, value_of
from offing_graphs.parts.shapes import Exchange

KEPT = 64
"""Turns read back at most; older ones stay in the run's steps."""
SEEN = 240
"""Passages read back at most."""
WISHES = 20
"""Messages from people that are passed on, the latest."""


async def read(ctx: RunContext, state: State, *, turn: int, heard: int | None = None, reason: str = "") -> AgentInput:
    """The agent's input of turn `turn`. `reason`: why it must answer now; empty: it need not."""
    limit = state["heard"] if heard is None else heard
    messages = await ctx.messages(0)
    records = await recorded(ctx, turn) if state["turn"] else ()
    return AgentInput(
        question=ctx.run.question,
        earlier=tuple(Exchange(question=q, answer=a) for q, a in ctx.run.earlier),
        wishes=tuple(_text(m) for m in messages if m.seq <= limit)[-WISHES:],
        tools=tuple(map(card_of, ctx.tools)),
        memory=records,
        evidence=pieces(await ctx.evidence(SEEN)) if state["turn"] else (),
        past=await _past(ctx, turn) if state["turn"] else (),
        subgoal=records[-1].subgoal if records else "",
        turn=turn,
        remaining=0 if reason else ctx.run.budget.turns - turn + 1,
        reason=reason,
    )


async def recorded(ctx: RunContext, before: int) -> tuple[TurnRecord, ...]:
    """Records of the turns before turn `before`."""
    steps = await ctx.recall(StepKind.MEMORY, KEPT)
    return tuple(TurnRecord.model_validate(s.payload) for s in steps if 0 < s.turn < before)


async def said(ctx: RunContext, seq: int) -> Turn:
    """What the agent answered in a step."""
    return _output((await ctx.fetch([seq]))[0])


def used(
    output: Turn, seq: int, result: ToolResult, evidence: Sequence[Evidence], before: Sequence[TurnRecord], turn: int
) -> TurnRecord:
    """What a turn that called a tool did and found."""
    known = {id for record in before for id in record.evidence}
    back = brought_back(result, evidence)
    subgoal = placed(output, before[-1] if before else None).subgoal
    return bare(output, seq, before, turn).model_copy(
        update={
            "args": result.args,
            "status": str(result.status),
            "finding": finding(subgoal, result, back),
            "value": value_of(result),
            "evidence": tuple(e.id for e in back),
            "fresh": sum(e.id not in known for e in back),
        }
    )


def bare(
    output: Turn, seq: int, before: Sequence[TurnRecord], turn: int, status: str = "ok", finding: str = ""
) -> TurnRecord:
    """A turn in its segment, with nothing found: it answered, or its call was not made."""
    place = placed(output, before[-1] if before else None)
    return TurnRecord(
        turn=turn,
        sub_goal=place.subgoal,
        tool=output.action.tool,
        args=output.action.args,
        status=status,
        finding=finding,
        said=seq,
        switch=output.switch,
        boundary=place.boundary,
        subgoal=place.subgoal,
        subgoal_nr=place.number,
        drifted=place.drifted,
    )


def step_of(record: TurnRecord) -> StepDraft:
    """The record as a step to append."""
    ok = record.status == "ok"
    count = len(record.evidence)
    found = f"{count} passage{'s' * (count != 1)}, {record.fresh} new" if count else shortened(record.finding)
    return StepDraft(
        kind=StepKind.MEMORY,
        title=shortened(record.subgoal or "No subgoal"),
        payload=record.model_dump(mode="json"),
        label="subgoal" if record.boundary else "memory",
        detail=found if ok else shortened(record.finding),
        ok=ok,
        turn=record.turn,
    )


async def _past(ctx: RunContext, before: int) -> tuple[PastTurn, ...]:
    steps = await ctx.recall(AGENT.kind, KEPT)
    return tuple(PastTurn(seq=s.seq, turn=s.turn, output=_output(s)) for s in steps if 0 < s.turn < before)


def _output(step: Step) -> Turn:
    return Turn.model_validate(step.payload.get("output", step.payload))


def _text(message: Step) -> str:
    return str(message.payload.get("text") or message.title)
