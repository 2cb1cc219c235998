"""State of the graph, and the workspace of a turn: the question, the latest output and its tool result.

Nothing older is loaded. Passages are looked up by id; stored passages never change.
"""

from collections.abc import Sequence

from offing.sdk import Evidence, RunContext, ToolResult, tool_result_from_step
from offing_graphs.iterresearch.schemas import Round, ToolObservation, TurnPhase, Workspace
from offing_graphs.shared.depth import is_deep
from offing_graphs.shared.findings import (
    extract_evidence_ids,
    list_returned_evidence,
    passages_from_evidence,
    render_value,
)
from offing_graphs.shared.schemas import RetrievedPassage
from offing_graphs.shared.state import TurnState, find_output
from offing_graphs.shared.task import build_tool_cards, load_task

MAX_CITED_PASSAGES = 240
"""Maximum number of passages that are looked up by the ids in a report.

The last named are kept.
"""
MAX_EVIDENCE = 1_000_000
ROLE_NAME = "researcher"


class State(TurnState):
    """State of one run."""

    round: int
    """Seq of the latest output, which holds the report and the action or answer."""
    tool: int
    """Seq of the result of the latest requested tool call. 0 means that the call has not been made."""
    more_tools: list[int]
    """Seqs of the results of the calls that were made at the same time, in the order of the calls."""


async def load_workspace(ctx: RunContext, state: State, phase: TurnPhase, last_message_seq: int) -> Workspace:
    """Load the workspace of turn `state["turn"] + 1`.

    `last_message_seq` limits the user messages to those up to this step.
    """
    task = await load_task(ctx, last_message_seq)
    before = await find_last_output(ctx, state)
    results = await _load_results(ctx, state)
    known = await _load_evidence(ctx, before, results)
    observations = tuple(_build_observation(result, known) for result in results)
    return Workspace(
        **dict(task),
        phase=phase,
        tools=build_tool_cards(ctx.tools),
        report=before.report if before else "",
        action=before.action if before else None,
        result=observations[0] if observations else None,
        more_actions=before.more_actions if before else (),
        more_results=observations[1:],
        cited=_list_cited_passages(before.report, known) if before else (),
        deep=is_deep(ctx.run),
        turn=state["turn"] + 1,
        max_turns=ctx.run.budget.max_turns,
        answer_tokens=ctx.get_answer_tokens(ROLE_NAME),
    )


async def find_last_output(ctx: RunContext, state: State) -> Round | None:
    """Load the output that the state names. `None` means that there is none yet."""
    return await find_output(ctx, state["round"], Round)


async def _load_results(ctx: RunContext, state: State) -> tuple[ToolResult, ...]:
    """Load the results of the last calls, in the order of the calls. Empty means that they were not made."""
    seqs = [state["tool"], *state["more_tools"]] if state["tool"] else []
    return tuple(tool_result_from_step(step) for step in await ctx.get_steps(seqs))


def _build_observation(result: ToolResult, evidence: tuple[Evidence, ...]) -> ToolObservation:
    return ToolObservation(
        status=result.status,
        message=result.message,
        content=result.content,
        passages=passages_from_evidence(list_returned_evidence(result, evidence)),
        value=render_value(result),
    )


async def _load_evidence(
    ctx: RunContext, previous: Round | None, results: Sequence[ToolResult]
) -> tuple[Evidence, ...]:
    """Load all evidence if the turn can refer to it, else none."""
    named = previous is not None and bool(extract_evidence_ids(previous.report))
    return await ctx.get_evidence(MAX_EVIDENCE) if named or any(r.spans for r in results) else ()


def _list_cited_passages(report: str, evidence: tuple[Evidence, ...]) -> tuple[RetrievedPassage, ...]:
    """Return the passages that a report names, in the order of their first retrieval."""
    named = frozenset(extract_evidence_ids(report)[-MAX_CITED_PASSAGES:])
    return passages_from_evidence(e for e in evidence if e.id in named)
