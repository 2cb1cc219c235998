"""State of the graph, and the inputs of its nodes, which are loaded from the steps that the state names.

Only what was recorded before a given turn is loaded, so that a node that runs again gets
the same inputs.
"""

from dataclasses import dataclass
from typing import Any

from offing.sdk import RunContext, StepKind
from offing_graphs.agentflow.extractive import analyze_question
from offing_graphs.agentflow.interactions import load_clarification
from offing_graphs.agentflow.schemas import AnalystInput, PastTurn, Verdict
from offing_graphs.shared.findings import passages_from_evidence
from offing_graphs.shared.memory import (
    MAX_EVIDENCE,
    MAX_RECORDS,
    count_earlier_passages,
    has_findings,
    load_records,
)
from offing_graphs.shared.outline import apply_outline, drop_removed
from offing_graphs.shared.schemas import Analysis, MemoryRecord, Plan, RetrievedPassage, TaskContext, ToolCard
from offing_graphs.shared.state import TurnState, find_output, output_from_step
from offing_graphs.shared.task import build_tool_cards, load_task


class State(TurnState):
    """State of one run."""

    analysis: int
    """Seq of the analysis step."""
    plan: int
    """Seq of the latest plan."""
    tool: int
    """Seq of the latest tool result."""
    verdict: int
    """Seq of the latest verifier output."""
    clarification: int
    """Seq of the step with what the person answered before the research. 0 means that nothing was asked."""


@dataclass(frozen=True, slots=True)
class NodeInputs:
    """The inputs of a node."""

    task: TaskContext
    cards: tuple[ToolCard, ...]
    analysis: Analysis
    """The recorded analysis, or one made without a model if the analyst gave none.

    Its parts are those that a person has set, if anybody has.
    """
    memory: tuple[MemoryRecord, ...]
    evidence: tuple[RetrievedPassage, ...]
    left_out_passages: int
    """Number of retrieved passages that are not in `evidence`."""
    verdict: Verdict | None

    @property
    def question(self) -> str:
        return self.task.question

    @property
    def has_findings(self) -> bool:
        """Whether there is something to write about."""
        return has_findings(self.evidence, self.memory)

    def collected_fields(self) -> dict[str, Any]:
        """Return the task, analysis, memory and evidence as fields of a role's input."""
        return {
            **dict(self.task),
            "analysis": self.analysis,
            "memory": self.memory,
            "evidence": self.evidence,
            "left_out_passages": self.left_out_passages,
        }


async def load_inputs(
    ctx: RunContext, state: State, *, before_turn: int | None = None, last_message_seq: int | None = None
) -> NodeInputs:
    """Load everything recorded before turn `before_turn`. `None` means everything.

    `last_message_seq` limits the user messages to those up to this step; `None` takes the value
    from the state.
    """
    task = await load_task(ctx, state["seen_message_seq"] if last_message_seq is None else last_message_seq)
    if seq := state.get("clarification", 0):
        task = task.model_copy(update={"clarification": await load_clarification(ctx, seq)})
    cards = build_tool_cards(ctx.tools)
    has_turns = state["turn"] > 0
    memory = await load_records(ctx, before_turn, MemoryRecord) if has_turns else ()
    evidence = await ctx.get_evidence(MAX_EVIDENCE) if has_turns else ()
    analysis = await find_output(ctx, state["analysis"], Analysis)
    verdict = await find_output(ctx, state["verdict"], Verdict)
    if verdict and task.plan:
        verdict = verdict.model_copy(update={"coverage": drop_removed(verdict.coverage, task.plan)})
    return NodeInputs(
        task=task,
        cards=cards,
        analysis=apply_outline(analysis or analyze_question(AnalystInput(**dict(task), tools=cards)), task.plan),
        memory=memory,
        evidence=passages_from_evidence(evidence),
        left_out_passages=count_earlier_passages(evidence),
        verdict=verdict,
    )


async def load_covered_counts(ctx: RunContext) -> tuple[tuple[int, int], ...]:
    """Load the turns of the latest verifier outputs, each with the number of parts that were covered, oldest first."""
    steps = await ctx.last_steps(StepKind.VERIFICATION, MAX_RECORDS)
    return tuple((s.turn, sum(c.covered for c in output_from_step(s, Verdict).coverage)) for s in steps)


async def load_past_turns(ctx: RunContext, before_turn: int, after_turn: int = 0) -> tuple[PastTurn, ...]:
    """Load the plans of the turns between two turns, at most `MAX_RECORDS`."""
    steps = await ctx.last_steps(StepKind.PLAN, MAX_RECORDS) if before_turn > 1 else ()
    return tuple(
        PastTurn(seq=s.seq, turn=s.turn, plan=output_from_step(s, Plan))
        for s in steps
        if after_turn < s.turn < before_turn
    )
