"""Group rated runs for comparison and select cases for a prompt library. Asks no engine.

A group is informative only if its members were rated differently or a person corrected one (Training-Free
Group Relative Policy Optimization, 2025, section 2: groups without a clear winner are left out).
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

import orjson

from offing.core.prompt_library import MAX_EXPERIENCE_CHARS, MAX_PLAN_LINES, Case, to_single_line
from offing.core.step import Step, StepKind
from offing.storage.rated_runs import RatedRun

MIN_REWARD_SPREAD = 0.2
"""Minimum difference between the best and the worst reward of an informative group."""

MIN_GOOD_REWARD = 0.5
"""Minimum reward of a run that counts as good."""

MAX_ATTEMPTS = 4
"""Maximum number of runs of a group in a comparison: the best and the worst."""

MAX_STEP_LINES = 30

RENDERED_STEP_KINDS = frozenset(
    {
        StepKind.ANALYSIS,
        StepKind.PLAN,
        StepKind.TOOL_RESULT,
        StepKind.VERIFICATION,
        StepKind.ROLE_CALL,
        StepKind.FAILURE,
    }
)

PLAN_STEP_KINDS = frozenset({StepKind.PLAN, StepKind.TOOL_RESULT})


@dataclass(frozen=True, slots=True)
class RatedRunGroup:
    """Rated runs of the same question."""

    key: str
    runs: tuple[RatedRun, ...]
    """The runs with the best first. Of equal rewards, the earlier run comes first."""

    @property
    def question(self) -> str:
        return self.runs[0].question

    @property
    def is_interactive(self) -> bool:
        """Whether these are interactive runs and not rollouts."""
        return self.key.startswith("asked ")

    @property
    def is_informative(self) -> bool:
        spread = self.runs[0].reward - self.runs[-1].reward
        return spread >= MIN_REWARD_SPREAD or any(run.corrections for run in self.runs)

    @property
    def best_and_worst(self) -> tuple[RatedRun, ...]:
        """The best and the worst runs, best first."""
        if len(self.runs) <= MAX_ATTEMPTS:
            return self.runs
        half = MAX_ATTEMPTS // 2
        return (*self.runs[:half], *self.runs[-half:])

    @property
    def digest(self) -> str:
        """A hash that changes when a run joins the group or is rated again."""
        ratings = [(str(r.run_id), r.reward, r.corrections) for r in sorted(self.runs, key=lambda r: r.run_id)]
        return hashlib.sha256(orjson.dumps([self.key, ratings])).hexdigest()[:32]


def group_rated_runs(runs: Sequence[RatedRun]) -> list[RatedRunGroup]:
    """Group rated runs in the order of their first run."""
    runs_by_question: dict[str, list[RatedRun]] = {}
    for run in runs:
        runs_by_question.setdefault(run.comparison_group, []).append(run)
    return [RatedRunGroup(key, tuple(sorted(them, key=lambda r: -r.reward))) for key, them in runs_by_question.items()]


def render_steps(steps: Sequence[Step]) -> tuple[str, ...]:
    """Return what a run did, with one line per step."""
    lines = [f"{step.label or step.kind}: {step.title}" for step in steps if step.kind in RENDERED_STEP_KINDS]
    return tuple(to_single_line(one) for one in lines[:MAX_STEP_LINES])


def select_cases(group: RatedRunGroup, steps: Mapping[UUID, Sequence[Step]]) -> list[Case]:
    """Return the best run of a group if it was good, and its worst if it was not.

    The worst comes first, because the last cases are kept.
    """
    best, worst = group.runs[0], group.runs[-1]
    chosen = ([worst] if worst.reward < MIN_GOOD_REWARD else []) + ([best] if best.reward >= MIN_GOOD_REWARD else [])
    return [_build_case(run, steps.get(run.run_id, ())) for run in chosen if run.question.strip()]


def _build_case(run: RatedRun, steps: Sequence[Step]) -> Case:
    plan = [
        to_single_line(f"{step.label or step.kind}: {step.title}") for step in steps if step.kind in PLAN_STEP_KINDS
    ]
    corrections = [f"a person corrected: {correction}" for correction in run.corrections]
    return Case(
        question=to_single_line(run.question, MAX_EXPERIENCE_CHARS),
        plan=tuple(plan[:MAX_PLAN_LINES]),
        outcome=to_single_line("; ".join((run.answer, *corrections)).removeprefix("; "), MAX_EXPERIENCE_CHARS),
        reward=min(max(run.reward, 0.0), 1.0),
        run_id=str(run.run_id),
    )  # fmt: skip
