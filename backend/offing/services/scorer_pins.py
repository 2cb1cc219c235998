"""Scorers of a batch: how files and requests name them, and how groups pin them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast
from uuid import UUID

from offing.core.errors import InvalidInput
from offing.core.scoring import Reference
from offing.scorers import SCORERS
from offing.scorers.scorer import find_missing_answers
from offing.storage.tasks import TaskRow


@dataclass(frozen=True, slots=True)
class ScorerSpec:
    """A scorer and its weight in the reward."""

    name: str
    weight: float = 1.0
    """Weight in the reward. With 0 the score is recorded but not part of the reward."""
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])


def build_scorers(table: Mapping[str, Any]) -> list[ScorerSpec] | None:
    """Return the scorers of a table: `name = weight`, or `name = { weight = …, option = … }`, by default of weight 1.

    `None` means that the table is empty.
    """
    specs = [
        ScorerSpec(name, float(value.get("weight", 1.0)), {k: v for k, v in value.items() if k != "weight"})
        if isinstance(value, dict)
        else ScorerSpec(name, float(value))
        for name, value in cast("Mapping[str, dict[str, Any] | float]", table).items()
    ]
    return specs or None


def pin_scorers(
    scorer_configs: Sequence[ScorerSpec] | None,
    task_rows: Sequence[TaskRow],
    references: Mapping[UUID, Reference],
    *,
    omit_inapplicable: bool = False,
) -> list[dict[str, Any]]:
    """Return the scorers as a group pins them. Raises InvalidInput for tasks that a scorer cannot score."""
    if scorer_configs is None:
        has_answers = all(not find_missing_answers(references.get(task.id)) for task in task_rows)
        scorer_configs = [ScorerSpec("exact_match")] if has_answers else []
    names = [spec.name for spec in scorer_configs]
    if len(set(names)) < len(names):
        raise InvalidInput("scorers", "one is named twice", "Name each scorer once.")
    checked = () if omit_inapplicable else task_rows
    return [_pin_scorer(spec, checked, references) for spec in scorer_configs]


def _pin_scorer(spec: ScorerSpec, task_rows: Sequence[TaskRow], references: Mapping[UUID, Reference]) -> dict[str, Any]:
    scorer = SCORERS.get_named(spec.name, "scorers")
    scorer.check_options(spec.options)
    for task in task_rows:
        if lacks := scorer.find_missing(references.get(task.id)):
            raise InvalidInput(
                "scorers", f"{spec.name} cannot score task {task.name or task.id}: {lacks}", "Choose other scorers."
            )
    return {"name": spec.name, "version": scorer.version, "weight": spec.weight, "options": dict(spec.options)}


def split_by_scorers(
    scorers: Sequence[dict[str, Any]], task_rows: Sequence[TaskRow], references: Mapping[UUID, Reference]
) -> list[tuple[list[dict[str, Any]], list[TaskRow]]]:
    """Return the tasks with the scorers that can score them: one part per set of scorers."""
    parts: dict[tuple[str, ...], tuple[list[dict[str, Any]], list[TaskRow]]] = {}
    for task in task_rows:
        applicable = [one for one in scorers if not SCORERS[one["name"]].find_missing(references.get(task.id))]
        names = tuple(one["name"] for one in applicable)
        parts.setdefault(names, (applicable, []))[1].append(task)
    return list(parts.values())
