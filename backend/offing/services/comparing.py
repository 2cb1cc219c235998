"""Judged runs as groups to compare, and as cases to remember. Pure; asks no engine.

Only a group whose members were judged differently, or that a person corrected, says something (Training-Free Group
Relative Policy Optimization, 2025, section 2: groups without a clear winner are left out).
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

import orjson

from offing.core.prompt_library import LONGEST_EXPERIENCE, MOST_PLAN, Case, line
from offing.core.step import Step, StepKind
from offing.storage.rated_runs import RatedRun

CONTRAST = 0.2
"""Between the best and the worst reward of a group that says something."""

GOOD = 0.5
"""Reward from which on a run counts as good."""

MOST_ATTEMPTS = 4
"""Of a group, in a comparison: the best and the worst."""

MOST_LINES = 30

SHOWN = frozenset({StepKind.ANALYSIS, StepKind.PLAN, StepKind.TOOL, StepKind.VERDICT, StepKind.TURN, StepKind.FAILURE})

DONE = frozenset({StepKind.PLAN, StepKind.TOOL})


@dataclass(frozen=True, slots=True)
class Group:
    """Runs on one question."""

    key: str
    runs: tuple[RatedRun, ...]
    """The best first; of equals the earlier."""

    @property
    def question(self) -> str:
        return self.runs[0].question

    @property
    def people(self) -> bool:
        """Whether these are people's own runs, and no rollouts."""
        return self.key.startswith("asked ")

    @property
    def telling(self) -> bool:
        spread = self.runs[0].reward - self.runs[-1].reward
        return spread >= CONTRAST or any(run.corrections for run in self.runs)

    @property
    def extremes(self) -> tuple[RatedRun, ...]:
        """The best and the worst, best first."""
        if len(self.runs) <= MOST_ATTEMPTS:
            return self.runs
        half = MOST_ATTEMPTS // 2
        return (*self.runs[:half], *self.runs[-half:])

    @property
    def digest(self) -> str:
        """Another once a run joins it or is judged anew."""
        told = [(str(r.run), r.reward, r.corrections) for r in sorted(self.runs, key=lambda r: r.run)]
        return hashlib.sha256(orjson.dumps([self.key, told])).hexdigest()[:32]


def groups_of(runs: Sequence[RatedRun]) -> list[Group]:
    """In order of their first run."""
    found: dict[str, list[RatedRun]] = {}
    for run in runs:
        found.setdefault(run.group, []).append(run)
    return [Group(key, tuple(sorted(them, key=lambda r: -r.reward))) for key, them in found.items()]


def lines_of(steps: Sequence[Step]) -> tuple[str, ...]:
    """What a run did, a line a step."""
    told = [f"{step.label or step.kind}: {step.title}" for step in steps if step.kind in SHOWN]
    return tuple(line(one) for one in told[:MOST_LINES])


def cases_of(group: Group, steps: Mapping[UUID, Sequence[Step]]) -> list[Case]:
    """The group's best run if it was good, and its worst if it was not; the worst first, as what comes last stays."""
    best, worst = group.runs[0], group.runs[-1]
    chosen = ([worst] if worst.reward < GOOD else []) + ([best] if best.reward >= GOOD else [])
    return [_case(run, steps.get(run.run, ())) for run in chosen if run.question.strip()]


def _case(run: RatedRun, steps: Sequence[Step]) -> Case:
    plan = [line(f"{step.label or step.kind}: {step.title}") for step in steps if step.kind in DONE]
    return Case(
        question=line(run.question, LONGEST_EXPERIENCE),
        plan=tuple(plan[:MOST_PLAN]),
        outcome=line("; ".join((run.answer, *(f"a person corrected: {said}" for said in run.corrections)))
                     .removeprefix("; "), LONGEST_EXPERIENCE),
        reward=min(max(run.reward, 0.0), 1.0),
        run=str(run.run),
    )  # fmt: skip
