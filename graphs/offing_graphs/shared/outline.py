"""The parts of a question as a person has set them while the run works."""

from collections.abc import Sequence

from offing.sdk import CONSUMED_FIELD, PlanChange, RunContext, StepDraft, StepKind, find_plan_change
from offing_graphs.shared.schemas import NOT_IN_DOCUMENTS, Analysis, Coverage, MemoryRecord, OutlinePart, TaskContext

MAX_VAIN_TURNS = 3
"""Turns in a row that find nothing new, after which a run may end although a part that must be answered is open."""


async def note_plan_change(ctx: RunContext, seen_seq: int, last_seq: int, turn: int) -> None:
    """Record that the latest change of the plan after message `seen_seq` was read, up to message `last_seq`."""
    new = [message for message in await ctx.get_user_messages(seen_seq) if message.seq <= last_seq]
    if (change := find_plan_change(new)) is not None:
        await ctx.append_steps(_draft_note(change, turn))


def _draft_note(change: PlanChange, turn: int) -> StepDraft:
    title = f"The changed plan was read: {len(change.items)} part{'s' if len(change.items) > 1 else ''}"
    detail = " · ".join(item.text for item in change.items)
    payload = {CONSUMED_FIELD: change.seq, "parts": [item.text for item in change.items]}
    return StepDraft(StepKind.NOTE, title, payload, "plan read", detail, turn=turn)


def parts_from_change(change: PlanChange | None) -> tuple[OutlinePart, ...]:
    """Return the parts that a person has set. Empty means that nobody has."""
    return tuple(OutlinePart(text=i.text, must_answer=i.must_answer) for i in change.items) if change else ()


def apply_outline(analysis: Analysis, outline: Sequence[OutlinePart]) -> Analysis:
    """Return the analysis with the parts that a person has set, if anybody has."""
    return analysis.model_copy(update={"sub_questions": tuple(p.text for p in outline)}) if outline else analysis


def drop_removed(coverage: Sequence[Coverage], outline: Sequence[OutlinePart]) -> tuple[Coverage, ...]:
    """Return the judgments of parts that are still in the plan."""
    texts = {part.text for part in outline}
    return tuple(one for one in coverage if not outline or one.sub_question in texts)


def list_open_musts(task: TaskContext, coverage: Sequence[Coverage], memory: Sequence[MemoryRecord]) -> tuple[str, ...]:
    """Return the parts that must be answered and are open, so that the run is to continue.

    A part is settled if it is covered or is not in the documents. If the latest turns found nothing new, there is no
    use in continuing, and nothing is returned.
    """
    latest = memory[-MAX_VAIN_TURNS:]
    if len(latest) == MAX_VAIN_TURNS and not any(record.fresh for record in latest):
        return ()
    settled = {one.sub_question for one in coverage if one.covered or one.state == NOT_IN_DOCUMENTS}
    return tuple(part.text for part in task.plan if part.must_answer and part.text not in settled)


def draft_continued(parts: Sequence[str], turn: int) -> StepDraft:
    """Return a step draft that says that the run continues although its verifier would stop."""
    title = "The run continues while a part that must be answered is open"
    return StepDraft(StepKind.NOTE, title, {"open": list(parts)}, "continue", " · ".join(parts), turn=turn)
