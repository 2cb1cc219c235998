"""AgentFlow's state with the parts of the question, and the inputs of a node for one part.

What the judge discarded is not loaded.
"""

from dataclasses import replace
from typing import Any

from offing.sdk import RunContext, Step, StepKind
from offing_graphs.agentflow import state as agentflow
from offing_graphs.agentflow.state import NodeInputs
from offing_graphs.shared.judge import filter_discarded, load_judgments
from offing_graphs.shared.schemas import Analysis
from offing_graphs.shared.task import MAX_USER_MESSAGES

MAX_COMMENTS = 8
"""Maximum number of comments on plans that are read back."""


class State(agentflow.State):
    """State of one run. `turn` includes the turns of child runs, and `analysis` is the plan."""

    parts: int
    """Number of parts of the plan."""
    part: int
    """Index of the current part, from 0. The number of parts means the question as a whole."""
    since: int
    """Number of turns completed when the current part began."""
    team: int
    """Number of child runs that were started. 0 means none."""
    reviews: int
    """Number of times that a person requested another plan."""
    replan: int
    """1 if another plan must be made now, else 0."""


async def load_inputs(
    ctx: RunContext, state: State, *, before_turn: int | None = None, last_message_seq: int | None = None
) -> NodeInputs:
    """Load AgentFlow's inputs with the comments on plans, without what was discarded."""
    inputs = await agentflow.load_inputs(ctx, state, before_turn=before_turn, last_message_seq=last_message_seq)
    notes = await ctx.last_steps(StepKind.NOTE, MAX_COMMENTS)
    comments = (str(step.payload["comment"]) for step in notes if _is_comment(step))
    user_messages = (*inputs.task.user_messages, *comments)[-MAX_USER_MESSAGES:]
    inputs = replace(inputs, task=inputs.task.model_copy(update={"user_messages": user_messages}))
    if not state["turn"]:
        return inputs
    records, discarded = filter_discarded(inputs.memory, await load_judgments(ctx, before_turn or 1_000_000_000))
    useful = tuple(p for p in inputs.evidence if p.id not in discarded)
    left_out = inputs.left_out_passages + len(inputs.evidence) - len(useful)
    return replace(inputs, memory=records, evidence=useful, left_out_passages=left_out)


def narrow_to_part(inputs: NodeInputs, state: State) -> NodeInputs:
    """Return the inputs for the current part alone.

    For the question as a whole, the inputs are returned unchanged.
    """
    parts = inputs.analysis.sub_questions
    if state["part"] >= len(parts):
        return inputs
    part = parts[state["part"]]
    return replace(
        inputs,
        task=inputs.task.model_copy(update={"question": part}),
        analysis=Analysis(summary=part, sub_questions=(part,)),
        memory=tuple(r for r in inputs.memory if r.turn > state["since"]),
    )


def drop_uncited(inputs: NodeInputs) -> NodeInputs:
    """Return the inputs without the passages that child runs only read.

    A passage stays if a child run cites it or if the run retrieved it itself. The passages of a child
    run without a report stay, too. `count_child_passages` counts what is dropped.
    """
    children = [record.child for record in inputs.memory if record.child]
    used_ids = {id for record in inputs.memory if not record.child for id in record.evidence}
    used_ids |= {id for child in children for id in child.cited}
    dropped = {id for child in children for id in child.uncited} - used_ids
    return replace(inputs, evidence=tuple(p for p in inputs.evidence if p.id not in dropped))


def count_child_passages(inputs: NodeInputs) -> dict[str, Any]:
    """Return the fields of the writer's input about the passages of child runs.

    A passage that two child runs read counts twice, as in their own records.
    """
    children = [(record.child, record.evidence) for record in inputs.memory if record.child]
    quoted = dict.fromkeys(id for child, _ in children for id in child.quoted)
    uncited = sum(child.read_passages - len(set(ids) - set(child.uncited)) for child, ids in children)
    return {"quoted": tuple(quoted), "uncited_passages": uncited}


def _is_comment(step: Step) -> bool:
    """Return whether a step is a person's comment on a plan."""
    return "comment" in step.payload
