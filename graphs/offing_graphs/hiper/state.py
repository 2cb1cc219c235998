"""State of the graph, and the agent's input, which is loaded from the steps that the state names.

The subgoal is not part of the state: it is read from the record of the latest turn. Only what was
recorded before a given turn is loaded, so that a node that runs again gets the same input.
"""

from offing.sdk import RunContext, StepKind
from offing_graphs.hiper.schemas import AgentInput, PastTurn, Turn, TurnRecord
from offing_graphs.shared.findings import passages_from_evidence
from offing_graphs.shared.memory import MAX_EVIDENCE, MAX_RECORDS, count_earlier_passages, load_records
from offing_graphs.shared.state import TurnState, output_from_step
from offing_graphs.shared.task import build_tool_cards, load_task


class State(TurnState):
    """State of one run."""

    output_seq: int
    """Seq of the agent's latest output."""
    answer: int
    """Seq of the latest output that answered. 0 means that there is none."""


async def load_inputs(
    ctx: RunContext, state: State, *, turn: int, last_message_seq: int, reason: str = ""
) -> AgentInput:
    """Load the agent's input of a turn.

    `last_message_seq` limits the user messages to those up to this step. `reason` is the reason why
    the agent must answer now. Empty means that it need not.
    """
    has_turns = state["turn"] > 0
    task = await load_task(ctx, last_message_seq)
    records = await load_turn_records(ctx, turn) if has_turns else ()
    evidence = await ctx.get_evidence(MAX_EVIDENCE) if has_turns else ()
    return AgentInput(
        **dict(task),
        tools=build_tool_cards(ctx.tools),
        memory=records,
        evidence=passages_from_evidence(evidence),
        left_out_passages=count_earlier_passages(evidence),
        past=await _load_past_turns(ctx, turn) if has_turns else (),
        subgoal=records[-1].subgoal if records else "",
        turn=turn,
        remaining=0 if reason else ctx.run.budget.max_turns - turn + 1,
        reason=reason,
    )


async def load_turn_records(ctx: RunContext, before_turn: int) -> tuple[TurnRecord, ...]:
    """Load the records of the turns before `before_turn`."""
    return tuple(r for r in await load_records(ctx, before_turn, TurnRecord) if r.turn > 0)


async def _load_past_turns(ctx: RunContext, before_turn: int) -> tuple[PastTurn, ...]:
    steps = await ctx.last_steps(StepKind.ROLE_CALL, MAX_RECORDS)
    return tuple(
        PastTurn(seq=s.seq, turn=s.turn, output=output_from_step(s, Turn)) for s in steps if 0 < s.turn < before_turn
    )
