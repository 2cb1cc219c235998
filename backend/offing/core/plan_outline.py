"""The plan of a run as an outline that a person can change while the run works.

A change is a user message with the whole outline in its payload. So it is recorded and delivered like any message, and
a graph that does not know outlines still reads it as text.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from offing.core.step import Step, StepDraft, StepKind

MAX_PLAN_ITEMS = 20
MAX_PLAN_ITEM_CHARS = 300

PLAN_FIELD = "plan"
"""Field of a user message's payload that contains the items."""

CONSUMED_FIELD = "plan_change"
"""Field of a note's payload that contains the seq of the change that the graph has read."""


@dataclass(frozen=True, slots=True)
class PlanItem:
    """A part of the question, in the words of a graph or of a person."""

    text: str
    must_answer: bool = False
    """Whether the run is to continue while this part is open, within its budget."""


@dataclass(frozen=True, slots=True)
class PlanChange:
    """The outline as a person has set it."""

    seq: int
    """Step of the user message."""
    items: tuple[PlanItem, ...]


def draft_plan_change(items: Sequence[PlanItem]) -> StepDraft:
    """Return the user message that sets the outline."""
    text = render_plan_items(items)
    payload = {"text": text, PLAN_FIELD: [{"text": item.text, "must_answer": item.must_answer} for item in items]}
    titles = "; ".join(item.text for item in items)
    return StepDraft(StepKind.USER_MESSAGE, f"Plan changed: {titles}", payload, label="plan change")


def render_plan_items(items: Sequence[PlanItem]) -> str:
    """Return the outline as text for models."""
    lines = (f"{number}. {_mark_item(item)}" for number, item in enumerate(items, 1))
    return "The plan now has these parts, in this order, and no others:\n" + "\n".join(lines)


def find_plan_change(messages: Iterable[Step]) -> PlanChange | None:
    """Return the latest change of the outline among user messages, oldest first. `None` means that there is none."""
    changes = [step for step in messages if is_plan_change(step)]
    return PlanChange(changes[-1].seq, parse_plan_items(changes[-1].payload[PLAN_FIELD])) if changes else None


def is_plan_change(step: Step) -> bool:
    return step.kind is StepKind.USER_MESSAGE and PLAN_FIELD in step.payload


def parse_plan_items(stored: Iterable[Mapping[str, Any]]) -> tuple[PlanItem, ...]:
    return tuple(PlanItem(str(item["text"]), bool(item["must_answer"])) for item in stored)


def items_from_analysis(payload: Mapping[str, Any]) -> tuple[PlanItem, ...]:
    """Return the outline of a graph: the `sub_questions` in the output of its analysis. Empty means that it has none.

    Graphs of other authors may record anything, so other values are ignored.
    """
    output = payload.get("output")
    parts: object = cast("Mapping[str, Any]", output).get("sub_questions") if isinstance(output, Mapping) else None
    texts = cast("list[object]", parts) if isinstance(parts, list) else []
    return tuple(PlanItem(text) for text in texts if isinstance(text, str) and text.strip())


def _mark_item(item: PlanItem) -> str:
    return f"{item.text} (must be answered)" if item.must_answer else item.text
